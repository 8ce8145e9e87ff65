"""Spans of sorted rows: where the rows of a key between two times stand, for many keys and times at once.

Rows are sorted by (key, time). Times become ranks among all times that are asked for, and key and rank one integer, so that one
binary search answers every question.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from windowpane.arrays import Integers
from windowpane.kernels.over.frames import Span


def spans_between(keys: Integers, times: Integers, asked: Integers, bounds: Sequence[tuple[Integers, Integers]]) -> list[Span]:
    """Return the spans of rows of a key between two times, both included.

    Args:
        keys: the key of each row as a code, not negative; rows are sorted by it, then by time.
        times: the time of each row.
        asked: the key of each question.
        bounds: for each kind of question, the earliest and the latest time of each.
    """
    parts = [times, *(each for bound in bounds for each in bound)]
    distinct, ranks = np.unique(np.concatenate(parts), return_inverse=True)
    wide = len(distinct) + 1
    *pieces, _ = np.split(ranks, np.cumsum([len(part) for part in parts]))
    rows = keys * wide + pieces[0]
    base = asked * wide
    found = []
    for earliest, latest in zip(pieces[1::2], pieces[2::2], strict=True):
        low = np.searchsorted(rows, base + earliest, side="left")
        found.append((low, np.maximum(np.searchsorted(rows, base + latest, side="right"), low)))
    return found
