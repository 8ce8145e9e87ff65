"""What happens when something fails: DuckDB's errors in words of SQL, and values that an expression of a view fails on.

Nothing here decides what an expression means, the binder does; and the values of good rows never pass through this room.
"""
