"""Sorting: rows in the order of some columns."""
