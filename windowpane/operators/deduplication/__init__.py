"""Deduplication: the reference, a row at a time."""
