"""Spans of sorted rows: the places of the rows of a key between two times, for many keys and times at once.

Rows are sorted by (key, time). Key and time become one integer, so that one binary search answers every question. Where that is
too wide, times become ranks among all times that are asked for.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from windowpane.arrays import Integers
from windowpane.kernels.over.frames import Span
from windowpane.sizes import Size

_BITS = Size("bits of a key and a time as one integer", 61, (4, 12))


def spans_between(keys: Integers, times: Integers, asked: Integers, bounds: Sequence[tuple[Integers, Integers]]) -> list[Span]:
    """Return the spans of rows of a key between two times, both included.

    Args:
        keys: the key of each row as a code, not negative; rows are sorted by it, then by time.
        times: the time of each row.
        asked: the key of each question.
        bounds: for each kind of question, the earliest and the latest time of each.
    """
    rows, base, places = _numbered(keys, times, asked, [each for bound in bounds for each in bound])
    found = []
    for earliest, latest in zip(places[::2], places[1::2], strict=True):
        low = np.searchsorted(rows, base + earliest, side="left")
        found.append((low, np.maximum(np.searchsorted(rows, base + latest, side="right"), low)))
    return found


def _numbered(
    keys: Integers, times: Integers, asked: Integers, instants: Sequence[Integers]
) -> tuple[Integers, Integers, list[Integers]]:
    """Return one integer a row that ascends, the integer of the key of each question, and the ones to add for instants."""
    if not len(times):
        return times, asked, list(instants)
    first, last = int(times.min()), int(times.max())
    if int(keys.max()).bit_length() + (last - first + 2).bit_length() <= _BITS.value:
        wide = last - first + 3
        near = [np.clip(each, first - 1, last + 1) - first + 1 for each in instants]
        return keys * wide + (times - first + 1), asked * wide, near
    distinct, ranks = np.unique(np.concatenate([times, *instants]), return_inverse=True)
    ranked, *places = np.split(ranks, np.cumsum([len(times), *(len(each) for each in instants)])[:-1])
    wide = len(distinct) + 1
    return keys * wide + ranked, asked * wide, places
