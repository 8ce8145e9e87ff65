"""Grouping: which rows share a key, and aggregates by group."""
