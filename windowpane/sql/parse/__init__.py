"""Text to statements. Queries are sqlglot's; what it reads and the binder does not is refused."""
