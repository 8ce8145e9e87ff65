"""Runs: spans of time of one key that are near each other, the gaps of which are below ``within``."""

from __future__ import annotations

import numpy as np

from windowpane.arrays import Integers
from windowpane.kernels.deduplication.first import distance


def run_numbers(codes: Integers, starts: Integers, ends: Integers, within: int) -> Integers:
    """Return the number of the run that each span belongs to.

    Args:
        codes: the key of each span.
        starts: its first instant.
        ends: its last instant.
        within: spans less apart are near.
    """
    order = np.lexsort((starts, codes))
    codes, starts, ends = codes[order], starts[order], ends[order]
    is_new_key = np.append(True, codes[1:] != codes[:-1])[: len(order)]
    reached = _reached(np.cumsum(is_new_key), ends)
    is_apart = (starts[1:] > reached[:-1]) & (distance(starts[1:], reached[:-1]) >= np.uint64(within))
    begins = is_new_key.copy()
    begins[1:] |= is_apart
    numbers = np.empty(len(order), np.int64)
    numbers[order] = np.cumsum(begins) - 1
    return numbers


def _reached(groups: Integers, ends: Integers) -> Integers:
    """Return the latest end of each group so far."""
    distinct, ranks = np.unique(ends, return_inverse=True)
    highest = np.maximum.accumulate(groups * len(distinct) + ranks)
    reached: Integers = distinct[highest % max(len(distinct), 1)]
    return reached
