"""The reference operators: one element at a time, obviously right. Every fast engine is compared with them."""
