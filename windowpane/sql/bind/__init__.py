"""Binding: names to columns, types to expressions, queries to plans."""
