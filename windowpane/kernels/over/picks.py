"""Which row a value function takes its value from: first_value, last_value, nth_value, lag and lead, as row numbers.

``NOWHERE`` means no row. With IGNORE NULLS the rows that count are numbered first, and the pick is made among them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from windowpane.arrays import Integers, Mask
from windowpane.kernels.over.frames import Layout, Span
from windowpane.kernels.over.sums import running, widths

NOWHERE = -1


def nth(frame_spans: Sequence[Span], number: int, counted: Mask | None = None) -> Integers:
    rows, inner = _counted(frame_spans, counted)
    return _kth(rows, inner, np.full(len(inner[0][0]), number))


def first(frame_spans: Sequence[Span], counted: Mask | None = None) -> Integers:
    return nth(frame_spans, 0, counted)


def last(frame_spans: Sequence[Span], counted: Mask | None = None) -> Integers:
    rows, inner = _counted(frame_spans, counted)
    return _kth(rows, inner, widths(inner) - 1)


def at_offset(layout: Layout, steps: int, counted: Mask | None = None) -> Integers:
    """Return the row ``steps`` after each row in its segment (before it, if negative)."""
    if steps == 0:
        return layout.numbers
    whole = (layout.first, layout.numbers) if steps < 0 else (layout.numbers + 1, layout.end)
    rows, inner = _counted([whole], counted)
    return _kth(rows, inner, widths(inner) + steps if steps < 0 else np.full(layout.size, steps - 1))


def _counted(frame_spans: Sequence[Span], counted: Mask | None) -> tuple[Integers | None, Sequence[Span]]:
    """Return the rows that count, and the spans in numbers of those; without ``counted`` every row does."""
    if counted is None or counted.all():
        return None, frame_spans
    before = running(counted.astype(np.int64))
    return np.flatnonzero(counted), [(before[lo], before[hi]) for lo, hi in frame_spans]


def _kth(rows: Integers | None, frame_spans: Sequence[Span], number: Integers) -> Integers:
    picked = np.full(len(number), NOWHERE)
    for lo, hi in frame_spans:
        here = (picked == NOWHERE) & (number >= 0) & (number < hi - lo)
        picked = np.where(here, lo + number, picked)
        number = number - (hi - lo)
    if rows is None or not len(rows):
        return picked
    return np.where(picked == NOWHERE, NOWHERE, rows[np.maximum(picked, 0)])


def taken(column: pa.Array, picked: Integers) -> pa.Array:
    """Return the values of the picked rows, NULL where there is none."""
    nowhere = picked == NOWHERE
    return column.take(pa.array(picked, mask=nowhere if nowhere.any() else None))
