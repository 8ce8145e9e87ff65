"""Plans of row patterns, and their programs."""
