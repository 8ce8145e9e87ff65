"""Joins of two streams: what engines are given, and the engines."""
