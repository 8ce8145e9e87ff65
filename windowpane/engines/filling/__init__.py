"""Filling of gaps: results for the windows in which a key that was seen has no rows."""
