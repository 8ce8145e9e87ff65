"""Row patterns as regular expressions over one byte a row: Python's ``re`` tries them in SQL's order of preference."""
