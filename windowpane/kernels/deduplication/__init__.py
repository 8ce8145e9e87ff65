"""Deduplication: kernels that find the first rows of keys, and runs of rows that are near in time."""
