"""Running calls: frames from the start of the partition on, whose value needs no row but the counters of the row before.

Each row's running value covers its partition up to and including it; a frame that ends at row h has the value of row h. The
running values are carry columns: kept with a row, they let a segment begin anywhere (``SortedRows.seeded``). So the cost of
numbering or a running sum is that of the rows it emits, and rows long emitted can be evicted. Columns are shared by the calls
that need the same.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import numpy as np
import pyarrow as pa

from windowpane.arrays import Integers, Mask
from windowpane.hidden_columns import ROWS, hidden
from windowpane.kernels.over.frames import Layout
from windowpane.kernels.over.picks import NOWHERE, taken
from windowpane.kernels.over.protocol import Running
from windowpane.kernels.over.rows import SortedRows
from windowpane.sizes import Size
from windowpane.windowing.frames import Exclude, Side, Units
from windowpane.windowing.over.spec import OverCall

RANK = hidden("rank")
DENSE = hidden("dense")


def column_name(what: str, call: OverCall) -> str:
    """Return the name of a carry column: calls of the same columns share it."""
    return hidden(f"{what}({','.join(call.arguments)}{f'|{call.filter}' if call.filter else ''})")


# --- numbering ----------------------------------------------------------------------------------------------------------


class _Numbering(Running):
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
    name = DENSE

    def places(self, rows: SortedRows) -> Integers:
        return rows.layout.group


class Rank(RowNumber):
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


class RunningValue(Running):
    @property
    @abstractmethod
    def name(self) -> str:
        """The carry column."""

    @property
    def carries(self) -> pa.Schema:
        return pa.schema([(self.name, self.kind)])

    def value(self, rows: SortedRows) -> pa.Array:
        return _at_ends(rows.carries[self.name], rows, self.call)


def _at_ends(values: pa.Array, rows: SortedRows, call: OverCall) -> pa.Array:
    """Return the values of the rows that frames end with, null for empty frames."""
    ends = frame_ends(rows, call)
    return taken(values, np.where(ends.some, ends.row, NOWHERE))


class RunningFirst(RunningValue):
    reads_every_row = True

    @property
    def name(self) -> str:
        return column_name("first", self.call)

    def scan(self, rows: SortedRows) -> None:
        if self.name in rows.carries:
            return
        values = rows.column(self.call.arguments[0])
        if rows.seeded.any():
            source: pa.Array = pa.chunked_array([values, rows.seeds(self.name)[0]]).combine_chunks()
            pick = rows.layout.segment_firsts.copy()
            pick[rows.seeded] = len(values) + np.arange(int(rows.seeded.sum()))
        else:
            source, pick = values, rows.layout.segment_firsts
        rows.carries[self.name] = source.take(pa.array(rows.layout.spread(pick)))


class RunningLast(Running):
    """The value of the frame's last row: the rows carry nothing."""

    reads_every_row = True

    @property
    def carries(self) -> pa.Schema:
        return pa.schema([])

    def scan(self, rows: SortedRows) -> None:
        """There is nothing to carry."""

    def value(self, rows: SortedRows) -> pa.Array:
        return _at_ends(rows.column(self.call.arguments[0]), rows, self.call)


_NUMBERING: dict[str, type[Running]] = {"row_number": RowNumber, "rank": Rank, "dense_rank": DenseRank}
_VALUES: dict[str, type[Running]] = {"first_value": RunningFirst, "last_value": RunningLast}


def running_form(call: OverCall, columns: pa.Schema) -> type[Running] | None:
    types = [columns.field(name).type for name in call.arguments]
    form = _NUMBERING.get(call.function) or (_form(call, types) if _runs(call) else None)
    return None if form is None or (form.reads_every_row and call.filter is not None) else form


def _runs(call: OverCall) -> bool:
    frame = call.frame
    if frame is None or call.drops_repeats or call.ignore_nulls or frame.exclude is not Exclude.NO_OTHERS:
        return False
    ends = (Side.PRECEDING, Side.CURRENT_ROW)
    return frame.units is not Units.SESSION and frame.start.side is Side.UNBOUNDED_PRECEDING and frame.end.side in ends


def _form(call: OverCall, types: Sequence[pa.DataType]) -> type[Running] | None:
    if not call.is_aggregate:
        return _VALUES.get(call.function)
    definition = call.aggregate.definition
    form = None if definition.running is None else definition.running(call.aggregate.call(types))
    if form is None or (isinstance(form, type) and issubclass(form, Running)):
        return form
    raise definition.wrong_form(form, "Running")


_LONG = Size("rows of a long segment of a scan", 64, (1, 3))

Values = TypeVar("Values", bound=Any)


def segment_scan(fold: np.ufunc, values: Values, layout: Layout) -> Values:
    firsts, lengths = layout.segment_firsts, layout.segment_ends - layout.segment_firsts
    scanned = values.copy()
    for number in np.flatnonzero(lengths > _LONG.value).tolist():
        span = slice(int(firsts[number]), int(firsts[number] + lengths[number]))
        fold.accumulate(values[span], out=scanned[span])
    short = np.flatnonzero(lengths <= _LONG.value)
    short = short[np.argsort(-lengths[short], kind="stable")]
    starts, sizes = firsts[short], lengths[short]
    for step in range(1, int(sizes.max(initial=0))):
        starts = starts[: int(np.searchsorted(-sizes, -step, side="left"))]
        scanned[starts + step] = fold(scanned[starts + step - 1], values[starts + step])
    return scanned  # type: ignore[no-any-return]
