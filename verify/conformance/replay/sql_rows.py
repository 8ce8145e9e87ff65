"""Rows of operator vectors as SQL puts them in, and as its results show them: times in microseconds."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Any

from verify.conformance.reading.sql_values import read_instant
from windowpane.sql import Result


def insert(table: str, rows: Sequence[Sequence[Any]]) -> str:
    """Return the statement that inserts rows whose cells are numbers, text or ``None``."""
    values = ", ".join(f"({', '.join(map(_literal, row))})" for row in rows)
    return f"INSERT INTO {table} VALUES {values}"


def shown_rows(result: Result) -> list[dict[str, Any]]:
    """Return the rows of a result by column."""
    return [{name: _cell(value) for name, value in zip(result.names, row, strict=True)} for row in result.rows()]


def _literal(value: Any) -> str:
    if value is None:
        return "NULL"
    text = str(value).replace("'", "''")
    return f"'{text}'" if isinstance(value, str) else text


def _cell(value: Any) -> Any:
    return read_instant(value.isoformat()) if isinstance(value, dt.date) else value
