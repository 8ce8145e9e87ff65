"""The reference of joins: one row at a time, and obviously right."""
