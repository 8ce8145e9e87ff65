"""The algorithms of built-in aggregates, one a file."""
