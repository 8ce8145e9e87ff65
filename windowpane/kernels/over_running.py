"""Running calls: frames from the start of the partition on, whose value needs no row but the counters of the row before.

Each row's running value covers its partition up to and including it; a frame that ends at row h has the value of row h. The
running values are carry columns: kept with a row, they let a segment begin anywhere (``SortedRows.seeded``). So a numbering or a
running sum costs what it puts out, and rows long emitted can go. Columns are shared by the calls that need the same.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windowpane.errors import AggregateOverflowError
from windowpane.kernels.ordered_codes import Codes, Mask, decoded, has_codes, ordered_codes
from windowpane.kernels.over_extremes import neutral
from windowpane.kernels.over_layout import Positions
from windowpane.kernels.over_means import integer_means
from windowpane.kernels.over_picks import NOWHERE, taken
from windowpane.kernels.over_rows import SortedRows
from windowpane.kernels.over_scans import segment_scan
from windowpane.kernels.over_sums import LOW_BITS, exact_sum, halves
from windowpane.windowing.frames import Exclude, Side, Units
from windowpane.windowing.over_spec import RUNNING_NUMBERING, OverCall

ROWS = "__windowpane_rows"
RANK = "__windowpane_rank"
DENSE = "__windowpane_dense"


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
        """Return the value of each row; ``scan`` came before."""

    def reaches_first(self, rows: SortedRows) -> Mask:
        """Return where the value needs a row before the segment's first, besides its carry columns."""
        assert self.call.frame is not None, "numbering never does, and has its own"
        unknown: Mask = rows.frames(self.call.frame).hi == rows.layout.first
        return unknown


def running_form(call: OverCall, kind: pa.DataType | None) -> Running | None:
    """Return the running form of a call over an argument of type ``kind``, ``None`` if it has none."""
    if call.function in RUNNING_NUMBERING:
        return _NUMBERING[call.function](call, kind)
    if not _runs(call):
        return None
    if call.function == "count" and len(call.arguments) <= 1:
        return _Count(call, kind)
    if kind is None or len(call.arguments) != 1:
        return None
    if call.function in ("sum", "avg") and pa.types.is_signed_integer(kind):
        return _IntegerSum(call, kind) if call.function == "sum" else _IntegerMean(call, kind)
    if call.function in ("sum", "avg") and pa.types.is_floating(kind):
        return _FloatSum(call, kind) if call.function == "sum" else _FloatMean(call, kind)
    if call.function in ("min", "max") and has_codes(kind):
        return _Extreme(call, kind)
    if call.function == "first_value":
        return _First(call, kind)
    return None


def _runs(call: OverCall) -> bool:
    frame = call.frame
    if frame is None or call.distinct or call.ignore_nulls or frame.exclude is not Exclude.NO_OTHERS:
        return False
    ends = (Side.PRECEDING, Side.CURRENT_ROW)
    return frame.units is not Units.SESSION and frame.start.side is Side.UNBOUNDED_PRECEDING and frame.end.side in ends


def column_name(what: str, call: OverCall) -> str:
    """Return the name of a carry column: calls of the same columns share it."""
    return f"__windowpane_{what}({','.join(call.arguments)}{f'|{call.filter}' if call.filter else ''})"


# --- numbering ----------------------------------------------------------------------------------------------------------


class _Numbering(Running):
    """A number that each row, or each group, has one higher than the one before."""

    name: ClassVar[str]

    @property
    def carries(self) -> pa.Schema:
        return pa.schema([(self.name, pa.int64())])

    @abstractmethod
    def places(self, rows: SortedRows) -> Positions:
        """Return what goes up by one at each row, or group."""

    def scan(self, rows: SortedRows) -> None:
        if self.name not in rows.carries:
            ones = np.ones(rows.layout.size, np.int64)
            seeds = rows.seeds(self.name)[0].to_numpy() if rows.seeded.any() else np.empty(0, np.int64)
            rows.carries[self.name] = pa.array(rows.rebased(self.places(rows), ones, seeds))

    def value(self, rows: SortedRows) -> pa.Array:
        return rows.carries[self.name]

    def reaches_first(self, rows: SortedRows) -> Mask:
        return np.zeros(rows.layout.size, np.bool_)


class _RowNumber(_Numbering):
    name = ROWS

    def places(self, rows: SortedRows) -> Positions:
        return rows.layout.numbers


class _DenseRank(_Numbering):
    name = DENSE

    def places(self, rows: SortedRows) -> Positions:
        return rows.layout.group


class _Rank(_RowNumber):
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


_NUMBERING: dict[str, type[Running]] = {"row_number": _RowNumber, "rank": _Rank, "dense_rank": _DenseRank}


# --- aggregates ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Ends:
    """Where each frame ends: its last row, and whether it has one."""

    row: Positions
    some: Mask


def _ends(rows: SortedRows, call: OverCall) -> _Ends:
    assert call.frame is not None, "aggregates have a frame"
    found = rows.frames(call.frame)
    return _Ends(np.maximum(found.hi - 1, 0), found.hi > found.lo)


class _Count(Running):
    @property
    def name(self) -> str:
        return column_name("count", self.call)

    @property
    def carries(self) -> pa.Schema:
        return pa.schema([(self.name, pa.int64())])

    def scan(self, rows: SortedRows) -> None:
        if self.name not in rows.carries:
            counted = rows.counted(self.call.arguments, self.call.filter).astype(np.int64)
            rows.carries[self.name] = pa.array(_total(rows, counted, self.name))

    def totals(self, rows: SortedRows) -> Codes:
        """Return how many values each frame holds."""
        ends = _ends(rows, self.call)
        counts = rows.carries[self.name].to_numpy()
        return np.where(ends.some, counts[ends.row], 0) if len(counts) else counts

    def value(self, rows: SortedRows) -> pa.Array:
        return pa.array(self.totals(rows))


def _total(rows: SortedRows, values: Codes, name: str) -> Codes:
    seeds = rows.seeds(name)[0].fill_null(0).to_numpy() if rows.seeded.any() else np.empty(0, np.int64)
    return rows.rebased(np.cumsum(values), values, seeds)


class _IntegerSum(_Count):
    """Halves of the exact total, and the count that tells an empty sum from 0."""

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
        high, low = _total(rows, high, self.halves[0]), _total(rows, low, self.halves[1])
        carried = low >> LOW_BITS
        rows.carries[self.halves[0]] = pa.array(high + carried)
        rows.carries[self.halves[1]] = pa.array(low - (carried << LOW_BITS))

    def summed(self, rows: SortedRows) -> tuple[Codes, Codes]:
        """Return the halves of the total of each frame."""
        ends = _ends(rows, self.call)
        high, low = (rows.carries[name].to_numpy() for name in self.halves)
        return (np.where(ends.some, high[ends.row], 0), np.where(ends.some, low[ends.row], 0)) if len(high) else (high, low)

    def value(self, rows: SortedRows) -> pa.Array:
        high, low = self.summed(rows)
        bad = np.flatnonzero(rows.wanted & ((high < -(1 << 31)) | (high >= 1 << 31)))
        if len(bad):
            raise AggregateOverflowError(str(self.call), exact_sum(high[bad[0]], low[bad[0]]), pa.int64())
        return pa.array((high << LOW_BITS) + low, mask=self.totals(rows) == 0)


class _IntegerMean(_IntegerSum):
    def value(self, rows: SortedRows) -> pa.Array:
        return integer_means(*self.summed(rows), self.totals(rows))


class _FloatSum(_Count):
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

    def summed(self, rows: SortedRows) -> npt.NDArray[np.float64]:
        """Return the total of each frame."""
        sums: npt.NDArray[np.float64] = rows.carries[self.total].to_numpy()
        return sums[_ends(rows, self.call).row] if len(sums) else sums

    def value(self, rows: SortedRows) -> pa.Array:
        return pa.array(self.summed(rows), mask=self.totals(rows) == 0)


class _FloatMean(_FloatSum):
    what, start = "total", 0.0

    def value(self, rows: SortedRows) -> pa.Array:
        counts = self.totals(rows)
        return pa.array(self.summed(rows) / np.maximum(counts, 1), mask=counts == 0)


class _Extreme(_Count):
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
            largest = self.call.function == "max"
            codes = ordered_codes(rows.column(self.call.arguments[0]))
            codes = np.where(rows.counted(self.call.arguments, self.call.filter), codes, neutral(largest))
            if rows.seeded.any():
                codes[rows.seeded_firsts] = rows.seeds(self.code)[0].to_numpy()
            rows.carries[self.code] = pa.array(segment_scan(np.maximum if largest else np.minimum, codes, rows.layout))

    def value(self, rows: SortedRows) -> pa.Array:
        codes = rows.carries[self.code].to_numpy()
        picked = codes[_ends(rows, self.call).row] if len(codes) else codes
        return decoded(picked, self.totals(rows) > 0, self.kind)


class _First(Running):
    """The value of the partition's first row."""

    @property
    def name(self) -> str:
        return column_name("first", self.call)

    @property
    def carries(self) -> pa.Schema:
        return pa.schema([(self.name, self.kind)])

    def scan(self, rows: SortedRows) -> None:
        if self.name in rows.carries:
            return
        values = rows.column(self.call.arguments[0])
        if rows.seeded.any():
            source: Any = pa.chunked_array([values, rows.seeds(self.name)[0]]).combine_chunks()
            pick = rows.layout.segment_firsts.copy()
            pick[rows.seeded] = len(values) + np.arange(int(rows.seeded.sum()))
        else:
            source, pick = values, rows.layout.segment_firsts
        rows.carries[self.name] = source.take(pa.array(np.repeat(pick, rows.layout.segment_ends - rows.layout.segment_firsts)))

    def value(self, rows: SortedRows) -> pa.Array:
        ends = _ends(rows, self.call)
        return taken(rows.carries[self.name], np.where(ends.some, ends.row, NOWHERE))
