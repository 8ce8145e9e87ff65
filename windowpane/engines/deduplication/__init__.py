"""Deduplication: of rows of one key that are near in time, the first or the last."""
