"""Cells of RisingWave vectors: timestamps and intervals as text, here as microseconds."""

from __future__ import annotations

import datetime as dt
import re
from typing import Any

from verify.conformance.reading.fields import Json
from windowpane.arrays.values import Row
from windowpane.windowing.times import to_micros

_TIMES = frozenset({"timestamp", "timestamptz", "date"})
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_CLOCK = re.compile(r"([+-]?)(\d+):(\d\d):(\d\d)")


def read_instant(text: Any) -> Any:
    """Return a timestamp or date written as text in microseconds, taken as UTC; numbers and ``None`` stay."""
    if not isinstance(text, str):
        return text
    instant = dt.datetime.fromisoformat(text)
    if instant.tzinfo is None:
        instant = instant.replace(tzinfo=dt.UTC)
    return (instant - _EPOCH) // dt.timedelta(microseconds=1)


def read_duration(text: Any) -> int:
    """Return a duration in microseconds: a number, also as text, text with units, or ``hh:mm:ss``."""
    if isinstance(text, str) and text.strip().lstrip("+-").isdigit():
        return int(text)
    clock = _CLOCK.fullmatch(text.strip()) if isinstance(text, str) else None
    if clock is None:
        return to_micros(text)
    hours, minutes, seconds = (int(part) for part in clock.group(2, 3, 4))
    micros = ((hours * 60 + minutes) * 60 + seconds) * 1_000_000
    return -micros if clock.group(1) == "-" else micros


class Schema:
    """Names and types of columns, to read the cells of a row by."""

    def __init__(self, columns: list[list[str]]) -> None:
        """Take ``[[name, type], ...]``."""
        self.names = [name for name, _ in columns]
        self._times = {name for name, kind in columns if kind.split("(")[0].strip().lower() in _TIMES}

    def cell(self, column: str, value: Any) -> Any:
        """Return a cell; window bounds are times in every schema."""
        return read_instant(value) if column in self._times or column.startswith("window_") else value

    def row(self, cells: list[Any], names: list[str] | None = None) -> Row:
        """Return cells as a row of the given columns, or of those of the schema."""
        columns = self.names if names is None else names
        return {name: self.cell(name, value) for name, value in zip(columns, cells, strict=True)}

    def changes(self, changes: list[Any], names: list[str] | None = None) -> list[tuple[str, Row]]:
        """Return ``[op, cells]`` pairs as changes."""
        return [(op, self.row(cells, names)) for op, cells in changes]


def watermark_pair(fields: Json | list[Any], schema: Schema) -> tuple[str, Any]:
    """Return a watermark ``{column, value}`` or ``[column, value]`` as a pair."""
    column, value = (fields["column"], fields["value"]) if isinstance(fields, dict) else fields
    return column, schema.cell(column, value)
