"""co_group: a function of the user's over the rows of both sides of a key and window, in place of the join of these rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from windowpane.engines.program import WINDOW_END, WINDOW_START
from windowpane.windowing.arrow.calls import fitted
from windowpane.windowing.evictors import Evictor
from windowpane.windowing.spec import Refine
from windowpane.windowing.triggers import Trigger

Names = tuple[tuple[str, str], ...]
"""The columns of a side, and what they are called in rows of both sides."""


@dataclass(frozen=True)
class CoGroup:
    """What a window gives to a function.

    Args:
        function: ``function(key, window, left_rows, right_rows)``; in Arrow ``function(left, right)``, both tables.
        results: the columns that it returns, without keys and bounds of windows.
        in_arrow: whether it is one on Arrow tables of many keys and windows.
        trigger: when windows fire, ``None`` for the assigner's default.
        evictor: which rows leave a firing window.
        refine: whether late rows of a batch fire a window once or one by one.
    """

    function: Callable[..., Any]
    results: pa.Schema
    in_arrow: bool = False
    trigger: Trigger | None = None
    evictor: Evictor | None = None
    refine: Refine = "last"

    @property
    def kind(self) -> str:
        """The name of the method that the user called."""
        return "co_group_in_arrow" if self.in_arrow else "co_group"


@dataclass(frozen=True)
class GroupedRows:
    """A function of ``co_group`` as one that ``apply`` takes, which is given the rows of both sides together."""

    function: Callable[..., Any]
    side: str
    sides: Mapping[int, Names]

    def __call__(self, key: Any, window: Any, rows: Sequence[Mapping[str, Any]]) -> Any:
        """Call the function."""
        parts = [[row for row in rows if row[self.side] == code] for code in self.sides]
        columns = self.sides.values()
        both = [[{n: row[given] for n, given in names} for row in part] for part, names in zip(parts, columns, strict=True)]
        return self.function(key, window, *both)


@dataclass(frozen=True)
class GroupedTables:
    """A function of ``co_group_in_arrow`` as one that ``apply_in_arrow`` takes.

    Args:
        function: the function.
        results: the columns that it returns.
        side: the column of the side.
        sides: the columns of each side; those of its keys come first.
        keys: the keys of rows of both sides, by the names of the left side.
    """

    function: Callable[[pa.Table, pa.Table], pa.Table]
    results: pa.Schema
    side: str
    sides: Mapping[int, Names]
    keys: Names

    def __call__(self, rows: pa.Table) -> pa.Table:
        """Call the function."""
        parts = {code: rows.filter(pc.equal(rows[self.side], code)) for code in self.sides}
        given = self.function(*(self._table(parts[code], names) for code, names in self.sides.items()))
        if not isinstance(given, pa.Table):
            return given
        bounds = [rows.schema.field(name) for name in (WINDOW_START, WINDOW_END)]
        keys = [rows.schema.field(hidden).with_name(name) for name, hidden in self.keys]
        checked = fitted(self.function, given, pa.schema([*keys, *bounds, *self.results]))
        return checked.rename_columns([*(hidden for _, hidden in self.keys), *checked.column_names[len(keys) :]])

    def _table(self, rows: pa.Table, names: Names) -> pa.Table:
        columns = {name: rows[given] for name, given in names}
        count = len(self.keys)
        keys = dict(list(columns.items())[:count])
        return pa.table({**keys, WINDOW_START: rows[WINDOW_START], WINDOW_END: rows[WINDOW_END], **columns})
