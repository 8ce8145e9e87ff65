"""Aggregates that keep the values they were given."""
