"""Joins of two streams: the rows of both sides of a bucket's keys meet in one call."""
