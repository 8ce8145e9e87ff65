"""Any aggregate over frames, to the last bit as the bound aggregate folds them: written out frame by frame, or row by row.

Written out, the rows of each frame lie one after the other, so that aggregates by group compute frames as groups. Rows that share
a frame (partitions as a whole, peers) share its elements. That costs the width of frames; folding row by row costs only what a
frame has that the one before had not, but in Python: ``is_cheaper`` weighs them. Folded, frames are visited in row order: one
that begins where the frame before began, and ends no earlier, continues its accumulator.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa

from windowpane.arrays import Doubles, Integers, Mask
from windowpane.arrays.python_values import has_end_of_day
from windowpane.arrays.values import Value
from windowpane.hidden_columns import ARRIVAL
from windowpane.kernels.grouping.grouped_fold import GroupedFold
from windowpane.kernels.keys.codes import equality_codes
from windowpane.kernels.keys.ordered_codes import validity
from windowpane.kernels.over.frames import Span
from windowpane.kernels.over.rows import SortedRows
from windowpane.kernels.over.sums import doubles_of, running
from windowpane.kernels.packed_order import lexical_order
from windowpane.kernels.segments import Segments, concatenated
from windowpane.sizes import Size
from windowpane.windowing.aggregates.canonical import form_of
from windowpane.windowing.aggregates.definition import BoundAggregate
from windowpane.windowing.over.spec import OverCall

ByFrame = Callable[[pa.Table, Segments], pa.Array]
"""The value of each segment of rows; segments hold a row."""

BY_STEP = Size("rows of a frame that is added step by step", 512, (1, 3))
"""Wider frames are added up one after the other."""


def by_frame(call: OverCall, columns: pa.Schema, bound: BoundAggregate) -> ByFrame | None:
    aggregate = call.aggregate
    definition, asked = aggregate.definition, aggregate.call([columns.field(name).type for name in call.arguments])
    compute = None if definition.by_frame is None else definition.by_frame(asked, bound)
    if compute is not None:
        return lambda rows, segments: compute(*(rows[name] for name in call.arguments), segments)
    fold = GroupedFold.of([("", aggregate, call.arguments)], columns) if definition.is_exact(asked) else None
    return None if fold is None else lambda rows, segments: fold.finish(fold.fold_segments(rows, segments))[0]


def values_by_frame(rows: SortedRows, call: OverCall, bound: BoundAggregate, compute: ByFrame) -> pa.Array | None:
    """Return the value of each row that is wanted, NULL of the others; ``None`` where folding row by row is cheaper."""
    wanted = np.flatnonzero(rows.wanted)
    frames = WrittenFrames.of(rows.spans(call.own_frame), wanted, rows.filtered(call.filter))
    if not frames.is_cheaper:
        return None
    names = list(dict.fromkeys(call.arguments))
    table = pa.table([rows.column(name) for name in names], names).append_column(ARRIVAL, pa.array(rows.layout.numbers))
    codes = [equality_codes(table[name]) for name in names] if call.drops_repeats else []
    parts = [pa.array([bound.get_result(bound.create_accumulator())], bound.result_type)]
    number_of = np.zeros(len(frames.widths), np.int64)
    held = 1
    for first, block in frames.blocks():
        filled = np.flatnonzero(np.diff(block.offsets))
        if not len(filled):
            continue
        segments = Segments(block.order, np.append(block.offsets[filled], block.offsets[-1]))
        parts.append(compute(table, of_each_value_the_first(segments, codes) if codes else segments).cast(bound.result_type))
        number_of[first + filled] = held + np.arange(len(filled))
        held += len(filled)
    picked = np.zeros(rows.layout.size, np.int64)
    picked[wanted] = number_of[frames.frame_of]
    values: pa.Array = pa.concat_arrays(parts)
    return values.take(pa.array(picked, mask=~rows.wanted))


def doubles(column: pa.ChunkedArray) -> tuple[Doubles, Mask]:
    values = column.combine_chunks()
    return doubles_of(values), validity(values)


def steps(segments: Segments) -> Iterator[tuple[Integers, Integers]]:
    """Yield, for each step, the segments that are not wide and have an element then, and its place."""
    lengths = np.diff(segments.offsets)
    rows = np.flatnonzero(lengths <= BY_STEP.value)
    rows = rows[np.argsort(-lengths[rows], kind="stable")]
    ends = np.searchsorted(-lengths[rows], -np.arange(int(lengths[rows].max(initial=0))), side="left")
    for step, end in enumerate(ends.tolist()):
        here = rows[:end]
        yield here, segments.offsets[here] + step


_Spans = tuple[tuple[int, int], ...]


def folded(rows: SortedRows, call: OverCall, bound: BoundAggregate) -> pa.Array:
    spans = rows.spans(call.own_frame)
    wanted = np.flatnonzero(rows.wanted)
    fold = _Fold(bound, _arguments(rows, call), call.drops_repeats, [rows.column(n).type for n in call.arguments])
    values: list[Value] = [None] * rows.layout.size
    bounds = [(lo[wanted].tolist(), hi[wanted].tolist()) for lo, hi in spans]
    for number, row in enumerate(wanted.tolist()):
        values[row] = fold.of(tuple((lo[number], hi[number]) for lo, hi in bounds if hi[number] > lo[number]))
    return pa.array(values, bound.result_type)


def _arguments(rows: SortedRows, call: OverCall) -> list[tuple[Value, ...] | None]:
    """Return the arguments of each row as Python values, ``None`` for the rows that the FILTER leaves out."""
    columns = [_values(rows.column(name)) for name in call.arguments]
    arguments = list(zip(*columns, strict=True)) if columns else [()] * rows.layout.size
    if call.filter is None:
        return list(arguments)
    passes = rows.filtered(call.filter).tolist()
    return [each if passed else None for each, passed in zip(arguments, passes, strict=True)]


def _values(column: pa.Array) -> list[Value]:
    """Return a column as Python values; times as numbers where one is 24:00, which would be 0:00."""
    if pa.types.is_time64(column.type) and has_end_of_day(column):
        column = column.cast(pa.int64())
    return column.to_pylist()  # type: ignore[no-any-return]


class _Fold:
    def __init__(
        self, bound: BoundAggregate, arguments: list[tuple[Value, ...] | None], distinct: bool, kinds: Sequence[pa.DataType]
    ) -> None:
        self._bound = bound
        self._arguments = arguments
        self._forms = [form_of(kind) for kind in kinds] if distinct else None
        self._spans: _Spans | None = None
        self._begin()

    def _begin(self) -> None:
        self._accumulator = self._bound.create_accumulator()
        self._seen: set[tuple[Hashable, ...]] = set()

    def of(self, spans: _Spans) -> Value:
        if spans != self._spans:
            for lo, hi in self._missing(spans):
                self._add(lo, hi)
            self._spans = spans
        return self._bound.get_result(self._accumulator)

    def _missing(self, spans: _Spans) -> _Spans:
        """Return what the accumulator lacks of the spans, after starting anew if it has what they have not."""
        if self._spans is not None and len(self._spans) == 1 and len(spans) == 1:
            (lo, hi), (new_lo, new_hi) = self._spans[0], spans[0]
            if lo == new_lo and hi <= new_hi:
                return ((hi, new_hi),)
        self._begin()
        return spans

    def _add(self, lo: int, hi: int) -> None:
        for arguments in self._arguments[lo:hi]:
            if arguments is not None and self._is_new(arguments):
                self._accumulator = self._bound.add(self._accumulator, *arguments)

    def _is_new(self, arguments: tuple[Value, ...]) -> bool:
        if self._forms is None:
            return True
        frozen = tuple(None if v is None else form.freeze(v) for form, v in zip(self._forms, arguments, strict=True))
        if frozen in self._seen:
            return False
        self._seen.add(frozen)
        return True


BLOCK = Size("elements of frames written out at once", 1 << 20, (7, 40))
"""How many elements are written out at once."""
_GAIN = Size("elements folded in the time Python takes for one", 20, (0, 1_000_000))
"""How many elements are folded by group in the time that Python takes for one."""


@dataclass(frozen=True)
class WrittenFrames:
    spans: Sequence[Span]  # of each frame, in numbers of the rows that count
    counted: Integers  # the rows that count
    frame_of: Integers  # the frame of each row

    @classmethod
    def of(cls, spans: Sequence[Span], wanted: Integers, counted: Mask) -> WrittenFrames:
        before = running(counted.astype(np.int64))
        picked = [(before[lo[wanted]], before[hi[wanted]]) for lo, hi in spans]
        starts = np.ones(len(wanted), np.bool_)
        starts[1:] = np.any([bound[1:] != bound[:-1] for span in picked for bound in span], axis=0)
        firsts = np.flatnonzero(starts)
        distinct = [(lo[firsts], hi[firsts]) for lo, hi in picked]
        return cls(distinct, np.flatnonzero(counted), np.cumsum(starts) - 1)

    @property
    def widths(self) -> Integers:
        widths: Integers = np.sum([hi - lo for lo, hi in self.spans], axis=0)
        return widths

    @property
    def is_cheaper(self) -> bool:
        widths = self.widths
        folded = widths.copy()
        if len(self.spans) == 1 and len(widths):
            ((lo, hi),) = self.spans
            continues = np.append(False, (lo[1:] == lo[:-1]) & (hi[1:] >= hi[:-1]))
            folded[continues] = np.diff(hi, prepend=0)[continues]
        return int(widths.sum()) <= _GAIN.value * int(folded.sum())

    def blocks(self) -> Iterator[tuple[int, Segments]]:
        """Yield frames that hold a row, as segments, with the number of the first: so many at once that they fit into memory."""
        ends = np.cumsum(self.widths)
        cuts = np.searchsorted(ends, np.arange(0, int(ends.max(initial=0)), BLOCK.value), side="right")
        for low, high in pairwise(sorted({0, *cuts.tolist(), len(ends)})):
            yield low, self._written(low, high)

    def _written(self, low: int, high: int) -> Segments:
        lo, hi = (np.stack([span[side][low:high] for span in self.spans], axis=1).ravel() for side in (0, 1))
        lengths = hi - lo
        starts = np.append(0, np.cumsum(lengths))
        return Segments(self.counted[concatenated(lo, lengths)], starts[:: len(self.spans)])


def of_each_value_the_first(segments: Segments, codes: Sequence[Integers]) -> Segments:
    """Return segments with, of rows of one segment that are equal in all ``codes``, the first."""
    columns = [segments.numbers, *(code[segments.order] for code in codes)]
    order = lexical_order(columns)
    repeats = np.zeros(len(order), np.bool_)
    repeats[1:] = np.all([column[order[1:]] == column[order[:-1]] for column in columns], axis=0)
    kept = np.ones(len(order), np.bool_)
    kept[order[repeats]] = False
    return Segments(segments.order[kept], np.append(0, np.cumsum(kept))[segments.offsets])
