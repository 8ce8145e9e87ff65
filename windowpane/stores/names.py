"""Names as SQL: DuckDB and PostgreSQL quote them alike."""

from __future__ import annotations


def quoted(name: str) -> str:
    """Return a name as SQL.

    Example:
        >>> quoted('the "best" price')
        '"the ""best"" price"'
    """
    return '"' + name.replace('"', '""') + '"'
