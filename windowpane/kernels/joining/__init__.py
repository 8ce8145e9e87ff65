"""Joining: which rows of two sides are pairs, found by search in sorted arrays."""
