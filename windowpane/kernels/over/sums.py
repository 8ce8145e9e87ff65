"""Counts, sums and means over spans of sorted rows.

Integers: differences of one running total, taken modulo 2**64, so they are right whenever the result fits; whether it does is
checked on the high halves. Decimals of at most 18 digits are such integers of the last decimal place. Doubles: a difference of
running totals would lose digits and could not forget a NaN, so each frame is added from its first row to its last, as the bound
aggregate does: all frames advance together, one row a step. Frames of more than ``STEPS`` rows are added pairwise by numpy; the
way a frame is added depends on its own length only, so the same rows always give the same bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

import numpy as np
import pyarrow as pa

from windowpane.arrays import Doubles, Integers, Mask
from windowpane.kernels.keys.ordered_codes import decimals_as_whole, decimals_of, validity
from windowpane.kernels.over.frames import Span
from windowpane.sizes import Size
from windowpane.windowing.aggregates.decimals import EXACT, fitted, mean

STEPS = Size("rows of a frame whose doubles are added one by one", 512, (1, 3))
"""The widest frame whose doubles are added one by one."""
LOW_BITS = np.int64(32)
LOW = np.int64((1 << 32) - 1)


def running(values: Integers) -> Integers:
    """Return 0 and the total up to each value, modulo 2**64."""
    totals = np.empty(len(values) + 1, np.int64)
    totals[0] = 0
    np.cumsum(values, out=totals[1:])
    return totals


def sums(totals: Integers, frame_spans: Sequence[Span]) -> Integers:
    first, *others = [totals[hi] - totals[lo] for lo, hi in frame_spans]
    for other in others:
        first = first + other
    return first


def counts(valid: Mask, frame_spans: Sequence[Span]) -> Integers:
    if valid.all():
        return widths(frame_spans)
    return sums(running(valid.astype(np.int64)), frame_spans)


def widths(frame_spans: Sequence[Span]) -> Integers:
    first, *others = [hi - lo for lo, hi in frame_spans]
    for other in others:
        first = first + other
    return first


def halves(values: Integers) -> tuple[Integers, Integers]:
    """Return the high halves and the low ones, whose sums cannot overflow: value = high * 2**32 + low, low >= 0."""
    return values >> LOW_BITS, values & LOW


def exact_sum(high: int, low: int) -> int:
    return (int(high) << int(LOW_BITS)) + int(low)


def overflowing(values: Integers, frame_spans: Sequence[Span]) -> list[tuple[int, int]]:
    """Return (row, exact sum) where the sum over the spans does not fit into int64."""
    rows = widths(frame_spans)
    if not len(rows) or int(rows.max()) * max(abs(int(values.max())), abs(int(values.min()))) < 1 << 63:
        return []
    high, low = (sums(running(half), frame_spans) for half in halves(values))
    carried = high + (low >> LOW_BITS)
    bad = np.flatnonzero((carried < -(1 << 31)) | (carried >= 1 << 31)).tolist()
    return [(row, exact_sum(high[row], low[row])) for row in bad]


def float_sums(values: Doubles, frame_spans: Sequence[Span]) -> Doubles:
    """Return the sum over the spans of each row, added in row order onto 0.0; leave out a row by making it -0.0."""
    total = np.zeros(len(frame_spans[0][0]))
    wide = widths(frame_spans) > STEPS.value
    for lo, hi in frame_spans:
        _add_stepwise(total, values, lo, np.where(wide, lo, hi))
        if wide.any():
            rows = np.flatnonzero(wide & (hi > lo))
            ends = np.stack([lo[rows], hi[rows]], axis=1).ravel()
            total[rows] += np.add.reduceat(np.append(values, -0.0), ends)[::2]
    return total


def _add_stepwise(total: Doubles, values: Doubles, lo: Integers, hi: Integers) -> None:
    lengths = hi - lo
    most = int(lengths.max(initial=0))
    for step in range(most):
        rows = np.flatnonzero(lengths > step)
        at = lo[rows]
        first, end = int(rows[0]), int(rows[-1]) + 1
        if end - first == len(rows) and ((at - rows) == at[0] - first).all():
            total[first:end] += values[at[0] + step : at[-1] + 1 + step]
        else:
            total[rows] += values[at + step]


def decimal_sums(high: Integers, low: Integers, valid: Mask, kind: pa.DataType) -> pa.Array:
    """Return totals as decimals of ``kind``, ten digits longer than the values: ten billion rows fit."""
    return decimals_of((high << LOW_BITS) + low, (high + (low >> LOW_BITS)) >> LOW_BITS, valid, kind)


def decimal_means(high: Integers, low: Integers, counts: Integers, scale: int, kind: pa.DataType, label: str) -> pa.Array:
    """Return means as Spark rounds them; NULL where the count is 0."""
    totals = [Decimal(exact_sum(*halves)).scaleb(-scale, EXACT) for halves in zip(high.tolist(), low.tolist(), strict=True)]
    pairs = zip(totals, counts.tolist(), strict=True)
    return pa.array([fitted(mean(total, n, kind.scale), kind, label) if n else None for total, n in pairs], kind)


_EXACT_HIGH = Size("high half of an exact total of a mean", 1 << 20, (1, 2))
"""Totals with such a high half have less than 53 bits: a double holds them, so one division rounds once."""


def integer_means(high: Integers, low: Integers, counts: Integers) -> pa.Array:
    """Return the mean of each row from the halves of its total and its count; NULL where the count is 0."""
    carried = low >> LOW_BITS
    high, low = high + carried, low - (carried << LOW_BITS)
    means = ((high << LOW_BITS) + low) / np.maximum(counts, 1)
    large = np.flatnonzero(((high < -_EXACT_HIGH.value) | (high >= _EXACT_HIGH.value)) & (counts > 0))
    for row in large.tolist():
        means[row] = exact_sum(high[row], low[row]) / int(counts[row])
    return pa.array(means, mask=counts == 0)


_EXACT_DIGITS = 15
"""Whole numbers of so many digits are doubles, as are powers of ten: their quotient is rounded once."""


def doubles_of(column: pa.Array) -> Doubles:
    """Return a column of numbers as the nearest doubles, NULL as 0: Arrow's cast of decimals misses these, that of texts none."""
    if pa.types.is_decimal128(column.type) and column.type.precision <= _EXACT_DIGITS:
        found: Doubles = np.where(validity(column), decimals_as_whole(column), 0) / 10.0**column.type.scale
        return found
    numbers = column.cast(pa.string()) if pa.types.is_decimal(column.type) else column
    doubles: Doubles = numbers.cast(pa.float64(), safe=False).fill_null(0.0).to_numpy()
    return doubles
