"""The shell: statements typed by hand, scripts, and results for people."""
