"""The embedded engine: tables and the state of views in one DuckDB database."""
