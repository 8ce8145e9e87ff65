"""What PostgreSQL's functions and casts of single values mean where DuckDB's mean something else.

``macros`` says it in DuckDB's SQL, ``kernels`` in Python on Arrow arrays where SQL cannot; ``registry`` makes both known to a
connection. The other modules build calls: text, patterns, numbers, times, arrays, jsonb. Nothing here knows queries or names.
"""
