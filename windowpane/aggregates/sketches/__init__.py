"""Sketches of Apache DataSketches: the algorithms of approximate aggregates."""
