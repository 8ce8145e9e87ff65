"""Rolling features, one row at a time over sorted lists: the reference."""
