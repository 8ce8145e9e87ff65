"""The running position of each element among those of its group: what counting element by element gives, in one pass."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from windowpane.arrays import Integers, Mask
from windowpane.kernels.packed_order import stable_order


class Grouped(NamedTuple):
    order: Integers  # the elements, by group and within it in the order they arrived
    groups: Integers  # the group of each, ascending
    positions: Integers  # its place in the group, from 0


def grouped(codes: Integers) -> Grouped:
    """Return elements with these group codes, put together by group.

    Example:
        >>> grouped(np.array([1, 0, 1])).positions.tolist()
        [0, 0, 1]
    """
    order = stable_order(codes)
    groups = codes[order]
    return Grouped(order, groups, np.arange(len(groups)) - run_starts(groups))


def run_starts(values: Integers, ends: Mask | None = None) -> Integers:
    """Return, for each element, where the run of equal neighbours that it is in begins; ``ends`` ends runs earlier.

    Example:
        >>> run_starts(np.array([5, 5, 7])).tolist()
        [0, 0, 2]
        >>> run_starts(np.array([5, 5, 5]), np.array([True, False, False])).tolist()
        [0, 1, 1]
    """
    is_first = values[1:] != values[:-1]
    changes = np.flatnonzero(is_first if ends is None else is_first | ends[:-1]) + 1
    begins = np.zeros(len(values), np.int64)
    begins[changes] = changes
    return np.maximum.accumulate(begins)


def run_ends(values: Integers) -> Integers:
    return np.flatnonzero(np.append(values[1:] != values[:-1], True)[: len(values)])
