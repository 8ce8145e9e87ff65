"""State that goes to another number of buckets, of programs and of nodes of SQL."""
