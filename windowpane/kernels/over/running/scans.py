"""Scans of sorted rows that begin anew in every segment: a running extreme, a running sum of doubles.

Long segments are accumulated one after the other, short ones all together, one row of each a step; either way each segment is
folded strictly from its first row to its last.
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

from windowpane.kernels.over.layout import Layout
from windowpane.sizes import Size

_LONG = Size("rows of a long segment of a scan", 64, (1, 3))

Values = TypeVar("Values", bound=Any)


def segment_scan(fold: np.ufunc, values: Values, layout: Layout) -> Values:
    """Return the fold of each row's segment up to and including the row."""
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
