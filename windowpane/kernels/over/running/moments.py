"""Running variances and standard deviations: Welford's update from row to row, in the bound aggregate's order of operations.

While many segments have further rows, each step updates all of them together; the last few are updated one after the other.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from windowpane.arrays import Doubles, Integers, Mask
from windowpane.errors import MistakeError
from windowpane.kernels.over.calls.doubles import doubles_of
from windowpane.kernels.over.calls.welford import welford
from windowpane.kernels.over.layout import Layout
from windowpane.kernels.over.rows import SortedRows
from windowpane.kernels.over.running.calls import Running, column_name, frame_ends
from windowpane.sizes import Size
from windowpane.windowing.aggregates.algorithms.moments import StandardDeviation, Variance
from windowpane.windowing.over.types import bind_call

MANY = Size("segments worth a step of moments", 16, (1, 2))
"""So many segments at least are worth a step of numpy's."""


class RunningMoments(Running):
    """Count, mean and sum of squared distances from it."""

    @property
    def names(self) -> tuple[str, str, str]:
        """The carry columns."""
        count, mean, squares = (column_name(what, self.call) for what in ("moment0", "moment1", "moment2"))
        return count, mean, squares

    @property
    def carries(self) -> pa.Schema:
        return pa.schema([(name, pa.float64()) for name in self.names])

    def scan(self, rows: SortedRows) -> None:
        if self.names[0] in rows.carries:
            return
        moments = np.zeros((3, rows.layout.size))
        if rows.seeded.any():
            moments[:, rows.seeded_firsts] = [rows.seeds(name)[0].to_numpy() for name in self.names]
        values = doubles_of(rows.column(self.call.arguments[0]))
        counted = rows.counted(self.call.arguments, self.call.filter)
        _scan(moments, values, counted, rows.layout, rows.seeded)
        rows.carries.update(zip(self.names, map(pa.array, moments), strict=True))

    def value(self, rows: SortedRows) -> pa.Array:
        [name] = self.call.arguments
        variance = bind_call(self.call, pa.schema([(name, self.kind)]))
        if not isinstance(variance, Variance):
            raise MistakeError("the registry gives moments to variances only")
        ends = frame_ends(rows, self.call)
        count, squares = (rows.carries[name].to_numpy() for name in (self.names[0], self.names[2]))
        if not len(count):
            return pa.array([], pa.float64())
        freedom = np.where(ends.some, count[ends.row], 0.0) - variance.missing
        with np.errstate(all="ignore"):
            found = squares[ends.row] / freedom
            return pa.array(np.sqrt(found) if isinstance(variance, StandardDeviation) else found, mask=freedom <= 0)


def _scan(moments: Doubles, values: Doubles, counted: Mask, layout: Layout, seeded: Mask) -> None:
    """Fill in the moments of every row; those of seeded segments' first rows are given."""
    fresh = layout.segment_firsts[~seeded]
    lengths = layout.segment_ends - layout.segment_firsts
    by_length = np.argsort(-lengths, kind="stable")
    starts, lengths = layout.segment_firsts[by_length], lengths[by_length]
    with np.errstate(all="ignore"):
        _update(moments, np.zeros((3, len(fresh))), values, counted, fresh)
        step = 1
        while (going := int(np.searchsorted(-lengths, -step, side="left"))) >= MANY.value:
            rows = starts[:going] + step
            _update(moments, moments[:, rows - 1], values, counted, rows)
            step += 1
        for start, length in zip(starts[:going].tolist(), lengths[:going].tolist(), strict=True):
            _fold(moments, values, counted, start + step, start + length)


def _update(moments: Doubles, before: Doubles, values: Doubles, counted: Mask, rows: Integers) -> None:
    count, mean, squares = before
    after = np.stack([count + 1.0, *welford(count + 1.0, mean, squares, values[rows])])
    moments[:, rows] = np.where(counted[rows], after, before)


def _fold(moments: Doubles, values: Doubles, counted: Mask, first: int, end: int) -> None:
    variance = Variance(0)
    accumulator = moments[:, first - 1].tolist()
    folded = []
    for value, counts in zip(values[first:end].tolist(), counted[first:end].tolist(), strict=True):
        accumulator = variance.add(accumulator, value if counts else None)
        folded.append(tuple(accumulator))
    if folded:
        moments[:, first:end] = np.array(folded).T
