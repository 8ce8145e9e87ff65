"""The stages of a query: what runs on Spark's tasks, from rows to an engine and back."""
