"""Sessions: windows that rows of one key open and join, on Arrow tables."""
