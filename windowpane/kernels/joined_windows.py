"""The join of windows: rows of both sides of firing windows in, the join's rows out, of many keys and windows at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from windowpane.arrays import Integers, Mask
from windowpane.errors import MistakeError, present
from windowpane.kernels.conditions import holds
from windowpane.kernels.keys.codes import comparable
from windowpane.kernels.keys.key_codes import key_codes
from windowpane.kernels.ranges import Places, Ranges
from windowpane.windowing.expressions import Expression, Side, SideName
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
        codes = np.where(self._meets(rows), key_codes([comparable(rows[name]) for name in self.window], rows.num_rows), -1)
        codes = np.unique(codes, return_inverse=True)[1] - (1 if (codes < 0).any() else 0)
        nothing = np.zeros(len(left), np.int64)
        places = Places.of(codes[right], np.zeros(len(right), np.int64))
        for found, there in Ranges.of(codes[left], nothing, nothing, places).pairs():
            lefts, rights = left[found], right[there]
            fulfil = self._fulfil(rows, lefts, rights)
            yield lefts[fulfil], rights[fulfil]

    def _meets(self, rows: pa.Table) -> Mask:
        """Return which rows have a key that equals any."""
        meets = np.ones(rows.num_rows, np.bool_)
        for name in () if self.null_safe else self.keys:
            meets &= rows[name].is_valid().to_numpy()
        return meets

    def _fulfil(self, rows: pa.Table, lefts: Integers, rights: Integers) -> Mask:
        if self.condition is None:
            return np.ones(len(lefts), np.bool_)
        taken: dict[Side, tuple[dict[str, str], Integers]] = {
            "left": (dict(self.left), lefts),
            "right": (dict(self.right), rights),
        }

        def column(name: Expression) -> pa.ChunkedArray:
            if not isinstance(name, SideName):
                raise MistakeError("planning has resolved names")
            names, numbers = taken[name.side]
            return rows[names[name.name]].take(pa.array(numbers))

        mask: Mask = holds(self.condition, column, len(lefts)).to_numpy(zero_copy_only=False)
        return mask

    def _table(self, rows: pa.Table, lefts: Integers | None, rights: Integers | None) -> pa.Table:
        some = present(lefts if lefts is not None else rights, "a result has a row of some side")
        made_of = BOTH if lefts is not None and rights is not None else LEFT if lefts is not None else RIGHT
        columns: dict[str, Any] = {name: rows[name].take(pa.array(some)) for name in self.window}
        columns[self.side] = pa.array(np.full(len(some), made_of, np.int8))
        for names, numbers in ((self.left, lefts), (self.right, rights)):
            for _, name in names:
                if name in self.passed:
                    kind = rows.schema.field(name).type
                    columns[name] = pa.nulls(len(some), kind) if numbers is None else rows[name].take(pa.array(numbers))
        return pa.table(columns)


@dataclass
class Batch:
    """The batch under way, as a function of windows has to know it."""

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
        return pa.concat_tables([_worded(table, self.change, word) for table, word in parts])


def _worded(table: pa.Table, name: str, word: str) -> pa.Table:
    return table.append_column(name, pa.repeat(pa.scalar(word), table.num_rows))
