"""Reading vectors: JSON as windowpane's specs, rows and functions."""
