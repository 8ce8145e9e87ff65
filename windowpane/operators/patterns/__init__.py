"""Row patterns, one row at a time: the matcher that backtracks, and the values of a match. Slow, and the truth."""
