"""Filling of gaps: the plan, and its program."""
