"""co_group: a function of the user's over the rows of both sides of a key and window, in place of the join of these rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from windowpane.arrays.values import Row, Value
from windowpane.engines.program import WINDOW_END, WINDOW_START
from windowpane.windowing.arrow_functions import fitted
from windowpane.windowing.evictors import Evictor
from windowpane.windowing.spec import Refine
from windowpane.windowing.triggers import Trigger

Names = tuple[tuple[str, str], ...]
"""The columns of a side, and what they are called in rows of both sides."""


@dataclass(frozen=True)
class CoGroup:
    # ``function(key, window, left_rows, right_rows)``; in Arrow ``function(left, right)``, both tables
    function: Callable[..., Value]
    results: pa.Schema  # the columns that it returns, without keys and bounds of windows
    in_arrow: bool = False  # whether it is one on Arrow tables of many keys and windows
    trigger: Trigger | None = None  # when windows fire, ``None`` for the assigner's default
    evictor: Evictor | None = None  # which rows leave a firing window
    refine: Refine = "last"  # whether late rows of a batch fire a window once or one by one

    @property
    def kind(self) -> str:
        return "co_group_in_arrow" if self.in_arrow else "co_group"


@dataclass(frozen=True)
class GroupedRows:
    """A function of ``co_group`` as one that ``apply`` takes, which is given the rows of both sides together."""

    function: Callable[..., Value]
    side: str
    sides: Mapping[int, Names]

    def __call__(self, key: object, window: object, rows: Sequence[Row]) -> Value:
        parts = [[row for row in rows if row[self.side] == code] for code in self.sides]
        columns = self.sides.values()
        both = [[{n: row[given] for n, given in names} for row in part] for part, names in zip(parts, columns, strict=True)]
        return self.function(key, window, *both)


@dataclass(frozen=True)
class GroupedTables:
    """A function of ``co_group_in_arrow`` as one that ``apply_in_arrow`` takes."""

    function: Callable[[pa.Table, pa.Table], pa.Table]  # the function
    results: pa.Schema  # the columns that it returns
    side: str  # the column of the side
    sides: Mapping[int, Names]  # the columns of each side; those of its keys come first
    keys: Names  # the keys of rows of both sides, by the names of the left side

    def __call__(self, rows: pa.Table) -> pa.Table:
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
