"""min and max over spans of sorted rows: a sparse table, one level at a time.

Level k holds the extreme of the 2**k rows from each row on. A span of w rows is covered by two overlapping entries of level
floor(log2(w)), so each span is answered at one level, and only as many levels are built as the widest span needs.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from windowpane.arrays import Integers, Mask
from windowpane.kernels.over.frames import Span
from windowpane.windowing.times import MAX, MIN


def extremes(codes: Integers, frame_spans: Sequence[Span], largest: bool) -> Integers:
    """Return the largest or smallest code in the spans of each row; give rows that do not count the neutral code."""
    pick = np.maximum if largest else np.minimum
    found = np.full(len(frame_spans[0][0]), neutral(largest))
    for lo, hi in frame_spans:
        found = pick(found, _of_span(codes, lo, hi, largest))
    return found


def neutral(largest: bool) -> int:
    return MIN if largest else MAX


def _of_span(codes: Integers, lo: Integers, hi: Integers, largest: bool) -> Integers:
    pick = np.maximum if largest else np.minimum
    found = np.full(len(lo), neutral(largest))
    lengths = hi - lo
    level, width = codes, 1
    most = int(lengths.max(initial=0))
    widest = lengths == most
    behind = _distance(lo, widest)
    others = np.flatnonzero(~widest) if behind is not None else np.arange(len(lo))
    widths = lengths[others]
    while width <= most:
        if behind is not None and 2 * width > most:
            _fill(found, widest, pick(level[: len(level) - most + width], level[most - width :]), behind)
        rows = others[(widths >= width) & (widths < 2 * width)]
        if len(rows):
            found[rows] = pick(level[lo[rows]], level[hi[rows] - width])
        if 2 * width <= most:
            level = pick(level[: len(level) - width], level[width:])
        width *= 2
    return found


def _distance(lo: Integers, widest: Mask) -> int | None:
    """Return how far behind its row each of the widest spans begins, if that is the same for all and most spans are such."""
    count = int(np.count_nonzero(widest))
    if 2 * count < len(lo) or not count:
        return None
    distances = np.arange(len(lo))
    distances -= lo
    behind = int(distances[int(widest.argmax())])
    return behind if np.count_nonzero((distances == behind) & widest) == count else None


def _fill(found: Integers, widest: Mask, spans: Integers, behind: int) -> None:
    """Give the widest spans their extremes, given those of all spans as wide, by where they begin."""
    here = slice(max(behind, 0), min(len(found), len(spans) + behind))
    np.copyto(found[here], spans[here.start - behind : here.stop - behind], where=widest[here])
