"""Running calls: frames from the start of the partition on, whose value needs no row but the counters of the row before.

Each row's running value covers its partition up to and including it; a frame that ends at row h has the value of row h. The
running values are carry columns: kept with a row, they let a segment begin anywhere (``SortedRows.seeded``). So the cost of
numbering or a running sum is that of the rows it emits, and rows long emitted can be evicted. Columns are shared by the calls
that need the same.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from windowpane.arrays import Integers, Mask
from windowpane.hidden_columns import ROWS, hidden
from windowpane.kernels.over.rows import SortedRows
from windowpane.windowing.over.spec import OverCall

RANK = hidden("rank")
DENSE = hidden("dense")


class Running(ABC):
    """A running call."""

    def __init__(self, call: OverCall, kind: pa.DataType | None) -> None:
        self.call = call
        self.kind = kind

    reads_every_row: ClassVar[bool] = False
    """Whether it knows no FILTER."""

    @property
    @abstractmethod
    def carries(self) -> pa.Schema:
        """The carry columns."""

    @abstractmethod
    def scan(self, rows: SortedRows) -> None:
        """Put the carry columns of all rows into ``rows.carries``, those that are not there yet."""

    @abstractmethod
    def value(self, rows: SortedRows) -> pa.Array:
        """Return the value of each row, after ``scan``."""

    def reaches_first(self, rows: SortedRows) -> Mask:
        """Return where the value needs a row before the segment's first, besides its carry columns."""
        unknown: Mask = rows.frames(self.call.own_frame).hi == rows.layout.first
        return unknown


def column_name(what: str, call: OverCall) -> str:
    """Return the name of a carry column: calls of the same columns share it."""
    return hidden(f"{what}({','.join(call.arguments)}{f'|{call.filter}' if call.filter else ''})")


# --- numbering ----------------------------------------------------------------------------------------------------------


class _Numbering(Running):
    """A number that each row, or each group, has one higher than the one before."""

    name: ClassVar[str]

    @property
    def carries(self) -> pa.Schema:
        return pa.schema([(self.name, pa.int64())])

    @abstractmethod
    def places(self, rows: SortedRows) -> Integers:
        """Return the steps by which the number grows: one at each row, or group."""

    def scan(self, rows: SortedRows) -> None:
        if self.name not in rows.carries:
            ones = np.ones(rows.layout.size, np.int64)
            seeds = rows.seeds(self.name)[0].to_numpy() if rows.seeded.any() else np.empty(0, np.int64)
            rows.carries[self.name] = pa.array(rows.rebased(self.places(rows), ones, seeds))

    def value(self, rows: SortedRows) -> pa.Array:
        return rows.carries[self.name]

    def reaches_first(self, rows: SortedRows) -> Mask:
        return np.zeros(rows.layout.size, np.bool_)


class RowNumber(_Numbering):
    name = ROWS

    def places(self, rows: SortedRows) -> Integers:
        return rows.layout.numbers


class DenseRank(_Numbering):
    """The number of its group."""

    name = DENSE

    def places(self, rows: SortedRows) -> Integers:
        return rows.layout.group


class Rank(RowNumber):
    """The number of the first row of its group."""

    @property
    def carries(self) -> pa.Schema:
        return pa.schema([(ROWS, pa.int64()), (RANK, pa.int64())])

    def scan(self, rows: SortedRows) -> None:
        super().scan(rows)
        if RANK not in rows.carries and rows.layout.size:
            at_first = rows.carries[ROWS].to_numpy().copy()
            at_first[rows.seeded_firsts] = rows.seeds(RANK)[0].to_numpy() if rows.seeded.any() else 1
            rows.carries[RANK] = pa.array(at_first[rows.layout.peer_first])
        elif not rows.layout.size:
            rows.carries[RANK] = pa.array([], pa.int64())

    def value(self, rows: SortedRows) -> pa.Array:
        return rows.carries[RANK]


# --- aggregates ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FrameEnds:
    row: Integers
    some: Mask


def frame_ends(rows: SortedRows, call: OverCall) -> FrameEnds:
    found = rows.frames(call.own_frame)
    return FrameEnds(np.maximum(found.hi - 1, 0), found.hi > found.lo)


class RunningCount(Running):
    """How many rows or values there were."""

    @property
    def name(self) -> str:
        return column_name("count", self.call)

    @property
    def carries(self) -> pa.Schema:
        return pa.schema([(self.name, pa.int64())])

    def scan(self, rows: SortedRows) -> None:
        if self.name not in rows.carries:
            counted = rows.counted(self.call.arguments, self.call.filter).astype(np.int64)
            rows.carries[self.name] = pa.array(running_total(rows, counted, self.name))

    def totals(self, rows: SortedRows) -> Integers:
        ends = frame_ends(rows, self.call)
        counts = rows.carries[self.name].to_numpy()
        return np.where(ends.some, counts[ends.row], 0) if len(counts) else counts

    def value(self, rows: SortedRows) -> pa.Array:
        return pa.array(self.totals(rows))


def running_total(rows: SortedRows, values: Integers, name: str) -> Integers:
    """Return totals of each segment, that begin with the carry column ``name`` of its first row where it is seeded."""
    seeds = rows.seeds(name)[0].fill_null(0).to_numpy() if rows.seeded.any() else np.empty(0, np.int64)
    return rows.rebased(np.cumsum(values), values, seeds)
