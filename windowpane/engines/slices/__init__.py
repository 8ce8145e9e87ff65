"""Slices: windows of fixed size that share pieces, each row folded once, on Arrow tables."""
