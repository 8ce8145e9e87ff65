"""Sinks of a query beside its checkpoint: what writes a batch, and the numbers by which both are compared."""
