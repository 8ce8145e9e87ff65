"""Aggregates over frames that are written out: each frame's rows in order, as the bound aggregate folds them, to the last bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from windowpane.arrays import Doubles, Mask
from windowpane.hidden_columns import ARRIVAL
from windowpane.kernels.grouping.grouped_fold import GroupedFold
from windowpane.kernels.grouping.segments import Segments
from windowpane.kernels.keys.codes import equality_codes
from windowpane.kernels.keys.ordered_codes import validity
from windowpane.kernels.over.calls.doubles import doubles_of
from windowpane.kernels.over.calls.welford import welford
from windowpane.kernels.over.elements import WrittenFrames, of_each_value_the_first
from windowpane.kernels.over.rows import SortedRows
from windowpane.sizes import Size
from windowpane.windowing.aggregates.algorithms.moments import StandardDeviation, Variance
from windowpane.windowing.aggregates.protocol import BoundAggregate
from windowpane.windowing.over.spec import OverCall

ByFrame = Callable[[pa.Table, Segments], pa.Array]
"""The value of each segment of rows; segments hold a row."""

STEPS = Size("rows of a frame that is added step by step", 512, (1, 3))
"""Wider frames are added up one after the other."""
_SKETCHES = ("approx_count_distinct", "approx_quantile")
"""A value costs them a call of Python: frames that are written out would only have more values."""


def by_frame(call: OverCall, columns: pa.Schema, bound: BoundAggregate) -> ByFrame | None:
    """Return what computes an aggregate by frame, ``None`` if nothing does."""
    kinds = [columns.field(name).type for name in call.arguments]
    if isinstance(bound, Variance):
        return lambda rows, segments: _moments(_doubles(rows[call.arguments[0]]), segments, bound)
    if call.function in ("sum", "avg") and pa.types.is_floating(kinds[0]):
        is_mean = call.function == "avg"
        return lambda rows, segments: _float_sums(_doubles(rows[call.arguments[0]]), segments, is_mean)
    form = None if call.function in _SKETCHES else GroupedFold.of([("", call.aggregate, call.arguments)], columns)
    return None if form is None else lambda rows, segments: form.finish(form.fold_segments(rows, segments))[0]


def values_by_frame(rows: SortedRows, call: OverCall, bound: BoundAggregate, compute: ByFrame) -> pa.Array | None:
    """Return the value of each row that is wanted, NULL of the others; ``None`` where folding row by row is cheaper."""
    wanted = np.flatnonzero(rows.wanted)
    frames = WrittenFrames.of(rows.spans(call.own_frame), wanted, rows.filtered(call.filter))
    if not frames.is_cheaper:
        return None
    names = list(dict.fromkeys(call.arguments))
    table = pa.table([rows.column(name) for name in names], names).append_column(ARRIVAL, pa.array(rows.layout.numbers))
    codes = [equality_codes(table[name]) for name in names] if call.distinct else []
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


def _doubles(column: pa.ChunkedArray) -> tuple[Doubles, Mask]:
    """Return a column as doubles, and where it has a value."""
    values = column.combine_chunks()
    return doubles_of(values), validity(values)


def _float_sums(column: tuple[Doubles, Mask], segments: Segments, is_mean: bool) -> pa.Array:
    values, valid = column
    elements = np.where(valid, values, -0.0)[segments.order]
    lengths = np.diff(segments.offsets)
    total = np.zeros(segments.count)
    for rows, at in _steps(segments):
        total[rows] += elements[at]
    for row in np.flatnonzero(lengths > STEPS.value).tolist():
        start = segments.offsets[row]
        total[row] = np.add.accumulate(np.append(total[row], elements[start : start + lengths[row]]))[-1]
    counts = segments.total(valid[segments.order].astype(np.int64))
    return pa.array(total / np.maximum(counts, 1) if is_mean else total, mask=counts == 0)


def _moments(column: tuple[Doubles, Mask], segments: Segments, variance: Variance) -> pa.Array:
    """Return variances by Welford's update, all frames a row a step; in the order of operations of the bound aggregate."""
    values, valid = column[0][segments.order], column[1][segments.order]
    count, mean, m2 = (np.zeros(segments.count) for _ in range(3))
    with np.errstate(all="ignore"):
        for rows, at in _steps(segments):
            rows, at = rows[valid[at]], at[valid[at]]
            count[rows] += 1.0
            mean[rows], m2[rows] = welford(count[rows], mean[rows], m2[rows], values[at])
        for row in np.flatnonzero(np.diff(segments.offsets) > STEPS.value).tolist():
            held = slice(int(segments.offsets[row]), int(segments.offsets[row + 1]))
            count[row], mean[row], m2[row] = _folded(values[held][valid[held]], variance)
        freedom = count - variance.missing
        found = m2 / freedom
        return pa.array(np.sqrt(found) if isinstance(variance, StandardDeviation) else found, mask=freedom <= 0)


def _folded(values: Doubles, variance: Variance) -> list[float]:
    accumulator = variance.create_accumulator()
    for value in values.tolist():
        accumulator = variance.add(accumulator, value)
    return accumulator


def _steps(segments: Segments) -> Any:
    """Yield, for each step, the segments that are not wide and have an element then, and its place."""
    lengths = np.diff(segments.offsets)
    rows = np.flatnonzero(lengths <= STEPS.value)
    rows = rows[np.argsort(-lengths[rows], kind="stable")]
    ends = np.searchsorted(-lengths[rows], -np.arange(int(lengths[rows].max(initial=0))), side="left")
    for step, end in enumerate(ends.tolist()):
        here = rows[:end]
        yield here, segments.offsets[here] + step
