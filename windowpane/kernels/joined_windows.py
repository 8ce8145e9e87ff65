"""The join of windows: rows of both sides of firing windows in, the join's rows out, of many keys and windows at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from windowpane.arrays import Integers
from windowpane.errors import present
from windowpane.kernels.conditions import pairs_hold
from windowpane.kernels.keys.codes import comparable
from windowpane.kernels.keys.key_codes import key_codes
from windowpane.kernels.keys.ordered_codes import all_valid
from windowpane.kernels.ranges import Places, Ranges
from windowpane.windowing.expressions import Expression, Side
from windowpane.windowing.joins import LEFT_ONLY, PADS_LEFT, PADS_RIGHT, How
from windowpane.windowing.outputs import DELETE, INSERT

LEFT, RIGHT, BOTH = 0, 1, 2
"""What the column of the side says: of an input row, its side; of an emitted one, what it was made of."""


@dataclass(frozen=True)
class JoinedWindows:
    """The function of a window program that joins: an ``ArrowWindowFunction`` calls it.

    Takes a table of ``window`` columns, ``side``, and those of ``left`` and ``right``, which are NULL in rows of the other side;
    returns one of the ``window`` columns, ``side``, and those of both sides that are passed on.
    """

    how: How  # which rows are emitted
    keys: tuple[str, ...]  # the key columns, which are among ``window``
    window: tuple[str, ...]  # the columns that identify a window: keys and bounds
    side: str  # the column of the side
    left: tuple[tuple[str, str], ...]  # the columns of left rows, by their names there; ``right`` likewise
    right: tuple[tuple[str, str], ...]
    passed: tuple[str, ...]  # the columns of the result, of both sides
    null_safe: bool = False  # whether NULL in a key equals NULL; else it matches nothing
    condition: Expression | None = None  # a further condition on pairs, ``None`` for none

    def __call__(self, rows: pa.Table) -> pa.Table:
        sides = rows[self.side].to_numpy()
        left, right = np.flatnonzero(sides == LEFT), np.flatnonzero(sides == RIGHT)
        has_match = np.zeros(rows.num_rows, np.bool_)
        parts = []
        for lefts, rights in self._pairs(rows, left, right):
            has_match[lefts] = has_match[rights] = True
            if self.how not in LEFT_ONLY:
                parts.append(self._table(rows, lefts, rights))
        if self.how == "semi":
            parts.append(self._table(rows, left[has_match[left]], None))
        if self.how in PADS_LEFT or self.how == "anti":
            parts.append(self._table(rows, left[~has_match[left]], None))
        if self.how in PADS_RIGHT:
            parts.append(self._table(rows, None, right[~has_match[right]]))
        return pa.concat_tables(parts or [self._table(rows, left[:0], None)])

    def _pairs(self, rows: pa.Table, left: Integers, right: Integers) -> Iterator[tuple[Integers, Integers]]:
        meets = all_valid([] if self.null_safe else [rows[name] for name in self.keys], rows.num_rows)
        codes = np.where(meets, key_codes([comparable(rows[name]) for name in self.window], rows.num_rows), -1)
        codes = np.unique(codes, return_inverse=True)[1] - (1 if (codes < 0).any() else 0)
        nothing = np.zeros(len(left), np.int64)
        places = Places.of(codes[right], np.zeros(len(right), np.int64))
        for found, there in Ranges.of(codes[left], nothing, nothing, places).pairs():
            lefts, rights = left[found], right[there]
            fulfil = pairs_hold(self.condition, self._columns(rows, lefts, rights), len(lefts))
            yield lefts[fulfil], rights[fulfil]

    def _columns(self, rows: pa.Table, lefts: Integers, rights: Integers) -> Callable[[Side, str], pa.ChunkedArray]:
        """Return what returns a column of a side for pairs of rows."""
        names: dict[Side, dict[str, str]] = {"left": dict(self.left), "right": dict(self.right)}
        return lambda side, name: rows[names[side][name]].take(pa.array(lefts if side == "left" else rights))

    def _table(self, rows: pa.Table, lefts: Integers | None, rights: Integers | None) -> pa.Table:
        some = present(lefts if lefts is not None else rights, "a result has a row of some side")
        made_of = BOTH if lefts is not None and rights is not None else LEFT if lefts is not None else RIGHT
        columns: dict[str, pa.Array] = {name: rows[name].take(pa.array(some)) for name in self.window}
        columns[self.side] = pa.array(np.full(len(some), made_of, np.int8))
        for names, numbers in ((self.left, lefts), (self.right, rights)):
            for _, name in names:
                if name in self.passed:
                    kind = rows.schema.field(name).type
                    columns[name] = pa.nulls(len(some), kind) if numbers is None else rows[name].take(pa.array(numbers))
        return pa.table(columns)


@dataclass
class Batch:
    number: int = 0  # what rows of it have in the column of the batch; rows of earlier ones have less
    refired: int = 0  # the last instant of windows that have fired before its rows arrived


@dataclass(frozen=True)
class CorrectedWindows:
    """The join of windows as a changelog: a window that fires again deletes the results it had without the rows of the batch.

    Takes tables as ``JoinedWindows`` does, with ``batch``, the number of the batch that a row arrived in; returns the same
    columns and ``change``, ``insert`` or ``delete``. A row that is deleted and inserted again is in it twice.
    """

    joined: JoinedWindows  # the results of a window
    batch: str  # the column of the batch
    end: str  # the column of the end of windows
    change: str  # the column of the change
    now: Batch  # the batch under way

    def __call__(self, rows: pa.Table) -> pa.Table:
        ends = rows[self.end].cast(pa.int64()).to_numpy()
        is_new = (rows[self.batch].to_numpy() == self.now.number) & (ends - 1 <= self.now.refired)
        codes = key_codes([comparable(rows[name]) for name in self.joined.window], rows.num_rows)
        earlier = rows.filter(pa.array(np.isin(codes, codes[is_new]) & ~is_new))
        parts = [(self.joined(rows), INSERT)]
        parts += [(self.joined(earlier), DELETE)] if earlier.num_rows else []
        return pa.concat_tables([table.append_column(self.change, pa.repeat(word, table.num_rows)) for table, word in parts])
