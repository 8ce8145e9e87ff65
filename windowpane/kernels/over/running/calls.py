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

from windowpane.arrays import Doubles, Integers, Mask
from windowpane.errors import AggregateOverflowError
from windowpane.hidden_columns import ROWS, hidden
from windowpane.kernels.keys.ordered_codes import decoded, ordered_codes
from windowpane.kernels.over.calls.extremes import neutral
from windowpane.kernels.over.calls.means import integer_means
from windowpane.kernels.over.calls.sums import LOW_BITS, exact_sum, halves
from windowpane.kernels.over.rows import SortedRows
from windowpane.kernels.over.running.scans import segment_scan
from windowpane.windowing.over.spec import OverCall

RANK = hidden("rank")
DENSE = hidden("dense")


class Running(ABC):
    """A running call."""

    def __init__(self, call: OverCall, kind: pa.DataType | None) -> None:
        """Run ``call`` over an argument of type ``kind``."""
        self.call = call
        self.kind = kind

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
    """The number of the row."""

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
    """Where each frame ends: its last row, and whether it has one."""

    row: Integers
    some: Mask


def frame_ends(rows: SortedRows, call: OverCall) -> FrameEnds:
    """Return where the frames of a running aggregate end."""
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
        """Return how many values each frame holds."""
        ends = frame_ends(rows, self.call)
        counts = rows.carries[self.name].to_numpy()
        return np.where(ends.some, counts[ends.row], 0) if len(counts) else counts

    def value(self, rows: SortedRows) -> pa.Array:
        return pa.array(self.totals(rows))


def running_total(rows: SortedRows, values: Integers, name: str) -> Integers:
    """Return totals of each segment, that begin with the carry column ``name`` of its first row where it is seeded."""
    seeds = rows.seeds(name)[0].fill_null(0).to_numpy() if rows.seeded.any() else np.empty(0, np.int64)
    return rows.rebased(np.cumsum(values), values, seeds)


class RunningIntegerSum(RunningCount):
    """Halves of the exact total, and the count, since an empty sum is not 0."""

    @property
    def halves(self) -> tuple[str, str]:
        return column_name("high", self.call), column_name("low", self.call)

    @property
    def carries(self) -> pa.Schema:
        high, low = self.halves
        return pa.schema([(self.name, pa.int64()), (high, pa.int64()), (low, pa.int64())])

    def scan(self, rows: SortedRows) -> None:
        super().scan(rows)
        if self.halves[0] in rows.carries:
            return
        values = ordered_codes(rows.column(self.call.arguments[0]))
        high, low = halves(np.where(rows.counted(self.call.arguments, self.call.filter), values, 0))
        high, low = running_total(rows, high, self.halves[0]), running_total(rows, low, self.halves[1])
        carried = low >> LOW_BITS
        rows.carries[self.halves[0]] = pa.array(high + carried)
        rows.carries[self.halves[1]] = pa.array(low - (carried << LOW_BITS))

    def summed(self, rows: SortedRows) -> tuple[Integers, Integers]:
        """Return the halves of the total of each frame."""
        ends = frame_ends(rows, self.call)
        high, low = (rows.carries[name].to_numpy() for name in self.halves)
        return (np.where(ends.some, high[ends.row], 0), np.where(ends.some, low[ends.row], 0)) if len(high) else (high, low)

    def value(self, rows: SortedRows) -> pa.Array:
        high, low = self.summed(rows)
        bad = np.flatnonzero(rows.wanted & ((high < -(1 << 31)) | (high >= 1 << 31)))
        if len(bad):
            raise AggregateOverflowError(str(self.call), exact_sum(high[bad[0]], low[bad[0]]), pa.int64())
        return pa.array((high << LOW_BITS) + low, mask=self.totals(rows) == 0)


class RunningIntegerMean(RunningIntegerSum):
    """The exact total by the count."""

    def value(self, rows: SortedRows) -> pa.Array:
        return integer_means(*self.summed(rows), self.totals(rows))


class RunningFloatSum(RunningCount):
    """Doubles added in row order."""

    what, start = "sum", -0.0

    @property
    def total(self) -> str:
        return column_name(self.what, self.call)

    @property
    def carries(self) -> pa.Schema:
        return pa.schema([(self.name, pa.int64()), (self.total, pa.float64())])

    def scan(self, rows: SortedRows) -> None:
        super().scan(rows)
        if self.total not in rows.carries:
            numbers = rows.column(self.call.arguments[0]).cast(pa.float64()).fill_null(0.0).to_numpy()
            numbers = np.where(rows.counted(self.call.arguments, self.call.filter), numbers, -0.0)
            firsts = rows.layout.segment_firsts
            numbers[firsts] = self.start + numbers[firsts]
            if rows.seeded.any():
                numbers[rows.seeded_firsts] = rows.seeds(self.total)[0].to_numpy()
            rows.carries[self.total] = pa.array(segment_scan(np.add, numbers, rows.layout))

    def summed(self, rows: SortedRows) -> Doubles:
        """Return the total of each frame."""
        sums: Doubles = rows.carries[self.total].to_numpy()
        return sums[frame_ends(rows, self.call).row] if len(sums) else sums

    def value(self, rows: SortedRows) -> pa.Array:
        return pa.array(self.summed(rows) + 0.0, mask=self.totals(rows) == 0)  # never -0.0


class RunningFloatMean(RunningFloatSum):
    """Their total by the count."""

    what, start = "total", 0.0

    def value(self, rows: SortedRows) -> pa.Array:
        counts = self.totals(rows)
        return pa.array(self.summed(rows) / np.maximum(counts, 1), mask=counts == 0)


class RunningExtreme(RunningCount):
    """The most extreme code so far."""

    @property
    def code(self) -> str:
        return column_name(f"{self.call.function}", self.call)

    @property
    def carries(self) -> pa.Schema:
        return pa.schema([(self.name, pa.int64()), (self.code, pa.int64())])

    def scan(self, rows: SortedRows) -> None:
        super().scan(rows)
        if self.code not in rows.carries:
            largest = self.call.function in ("max", "bool_or")
            codes = ordered_codes(rows.column(self.call.arguments[0]))
            codes = np.where(rows.counted(self.call.arguments, self.call.filter), codes, neutral(largest))
            if rows.seeded.any():
                codes[rows.seeded_firsts] = rows.seeds(self.code)[0].to_numpy()
            rows.carries[self.code] = pa.array(segment_scan(np.maximum if largest else np.minimum, codes, rows.layout))

    def value(self, rows: SortedRows) -> pa.Array:
        codes = rows.carries[self.code].to_numpy()
        picked = codes[frame_ends(rows, self.call).row] if len(codes) else codes
        return decoded(picked, self.totals(rows) > 0, self.kind)
