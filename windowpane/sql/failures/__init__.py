"""What happens when something fails: DuckDB's errors in words of SQL, and values that an expression of a view fails on.

Nothing here decides what an expression means; that is the binder's, and the values of good rows never pass through this room.
"""
