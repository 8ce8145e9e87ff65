"""The file of a DuckDB store, which one process has open at a time."""

from __future__ import annotations

import duckdb

from windowpane.errors import StoreError

_LOCKED = "Could not set lock on file"
"""Words of DuckDB's message; they may also be in the path, which it names, too."""


def open_file(path: str) -> duckdb.DuckDBPyConnection:
    """Open the file, made if it does not exist, or ``":memory:"``.

    Raises:
        StoreError: another process has it open, it is no DuckDB file, or it cannot be made; nothing was changed.
    """
    try:
        return duckdb.connect(path)
    except duckdb.Error as error:
        raise StoreError(path, _reason(str(error))) from error


def _reason(said: str) -> str:
    if _LOCKED not in said:
        return said
    return f"another process has it open. Close it there, or choose another store: one process at a time writes a store.\n{said}"
