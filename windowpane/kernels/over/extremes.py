"""min and max over spans of sorted rows: a sparse table, one level at a time.

Level k holds the extreme of the 2**k rows from each row on. A span of w rows is covered by two overlapping entries of level
floor(log2(w)), so each span is answered at one level, and only as many levels are built as the widest span needs.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from windowpane.kernels.ordered_codes import Codes
from windowpane.kernels.over.frames import Span
from windowpane.kernels.over.layout import Positions
from windowpane.windowing.times import MAX, MIN


def extremes(codes: Codes, frame_spans: Sequence[Span], largest: bool) -> Codes:
    """Return the largest or smallest code in the spans of each row; give rows that do not count the neutral code."""
    pick = np.maximum if largest else np.minimum
    found = np.full(len(frame_spans[0][0]), neutral(largest))
    for lo, hi in frame_spans:
        found = pick(found, _of_span(codes, lo, hi, largest))
    return found


def neutral(largest: bool) -> int:
    """Return the code that no other is less extreme than."""
    return MIN if largest else MAX


def _of_span(codes: Codes, lo: Positions, hi: Positions, largest: bool) -> Codes:
    pick = np.maximum if largest else np.minimum
    found = np.full(len(lo), neutral(largest))
    lengths = hi - lo
    level, width = codes, 1
    most = int(lengths.max(initial=0))
    while width <= most:
        rows = np.flatnonzero((lengths >= width) & (lengths < 2 * width))
        if len(rows):
            found[rows] = pick(level[lo[rows]], level[hi[rows] - width])
        if 2 * width <= most:
            level = pick(level[: len(level) - width], level[width:])
        width *= 2
    return found
