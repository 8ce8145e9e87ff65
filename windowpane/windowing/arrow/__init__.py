"""Functions of the user's on Arrow tables."""
