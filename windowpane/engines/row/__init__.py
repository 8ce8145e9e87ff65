"""Rows as Python's: the reference engine, an element at a time, and the row engine, which takes the rows of a batch by key."""
