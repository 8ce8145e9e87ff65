"""Sessions: the windows that rows of a key make together."""
