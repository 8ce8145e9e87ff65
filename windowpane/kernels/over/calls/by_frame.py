"""Aggregates over frames that are written out: each frame's rows in order, as the bound aggregate folds them, to the last bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from windowpane.arrays import Doubles, Mask
from windowpane.hidden_columns import ARRIVAL
from windowpane.kernels.grouping.grouped_fold import GroupedFold
from windowpane.kernels.keys.codes import equality_codes
from windowpane.kernels.keys.ordered_codes import validity
from windowpane.kernels.over.calls.doubles import doubles_of
from windowpane.kernels.over.elements import WrittenFrames, of_each_value_the_first
from windowpane.kernels.over.rows import SortedRows
from windowpane.kernels.segments import Segments
from windowpane.sizes import Size
from windowpane.windowing.aggregates.protocol import BoundAggregate
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
    values: Any = pa.concat_arrays(parts)
    return values.take(pa.array(picked, mask=~rows.wanted))


def doubles(column: pa.ChunkedArray) -> tuple[Doubles, Mask]:
    values = column.combine_chunks()
    return doubles_of(values), validity(values)


def steps(segments: Segments) -> Any:
    """Yield, for each step, the segments that are not wide and have an element then, and its place."""
    lengths = np.diff(segments.offsets)
    rows = np.flatnonzero(lengths <= BY_STEP.value)
    rows = rows[np.argsort(-lengths[rows], kind="stable")]
    ends = np.searchsorted(-lengths[rows], -np.arange(int(lengths[rows].max(initial=0))), side="left")
    for step, end in enumerate(ends.tolist()):
        here = rows[:end]
        yield here, segments.offsets[here] + step
