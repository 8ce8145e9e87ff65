"""Row patterns: what a pattern is made of, its text, and the values that conditions and measures ask of a match."""
