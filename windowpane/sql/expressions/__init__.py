"""Expressions: operators, functions, aggregates, and the types they take and give."""
