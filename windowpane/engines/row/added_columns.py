"""Rows in state that were written before their source had all the columns of now: they get NULL in those.

Functions of users see whole rows, and keep them as they like: a dict that has exactly the columns of before is such a row.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from windowpane.operators.window.contents import ElementRun
from windowpane.state.column_runs import ColumnRun
from windowpane.windowing.evictors import TimestampedValue


class AddedColumns:
    """Makes rows of before rows of now."""

    def __init__(self, added: frozenset[str], columns: Sequence[str]) -> None:
        """Take the columns that were added, and all columns in their order."""
        self._columns = columns
        self._before = {*columns} - added

    def __call__(self, held: Any) -> Any:
        """Return what state holds, a value or a list of elements, with the columns of now."""
        if isinstance(held, dict):
            if held.keys() == self._before:
                return {name: held.get(name) for name in self._columns}
            return {key: self(value) for key, value in held.items()}
        if isinstance(held, TimestampedValue):
            return dataclasses.replace(held, value=self(held.value))
        if isinstance(held, ElementRun):
            return ElementRun(self(held.values), held.timestamps)
        if isinstance(held, ColumnRun):
            return held.padded(self._columns)
        return type(held)(map(self, held)) if type(held) in (list, tuple) else held
