"""Islands: the sessions that intervals of one key make together, found by one sort and one running maximum.

    key a   |--1--|  |--2--|
               |--3--|          |--4--|      islands  1 2 3 | 4

Sorted by (key, start), an interval begins a new island exactly if it is the first of its key or starts after everything before
it has ended. Invariant: intervals that touch (``end == start``) are one island, as in Flink. Source of the idea: the
gaps-and-islands query of SQL.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Int64s = npt.NDArray[np.int64]

_BITS = 63


class Islands(NamedTuple):
    """Islands over intervals.

    Args:
        of: the number of the island of each interval.
        starts: the start of each island.
        ends: the end of each island.
        first: for each island, the number of its interval that starts first.
        growths: how many intervals made an island longer that an earlier one had begun.
    """

    of: Int64s
    starts: Int64s
    ends: Int64s
    first: Int64s
    growths: int


def find_islands(keys: Int64s, starts: Int64s, ends: Int64s) -> Islands:
    """Return the islands of intervals ``[start, end)``.

    Args:
        keys: not negative; equal for intervals of one key.
        starts: the start of each interval.
        ends: the end of each interval, not before its start.
    """
    if not len(keys):
        none = np.zeros(0, np.int64)
        return Islands(none, none, none, none, 0)
    order = order_by(keys, starts)
    key, start = keys[order], starts[order]
    is_first = np.ones(len(order), bool)
    np.not_equal(key[1:], key[:-1], out=is_first[1:])
    cover = _running_maximum(np.cumsum(is_first), ends[order])
    is_head = is_first.copy()
    is_head[1:] |= start[1:] > cover[:-1]
    heads = np.flatnonzero(is_head)
    of = np.empty(len(order), np.int64)
    of[order] = np.cumsum(is_head) - 1
    tails = np.append(heads[1:], len(order)) - 1
    growths = int(np.count_nonzero(~is_head[1:] & (cover[1:] > cover[:-1])))
    return Islands(of, start[heads], cover[tails], order[heads], growths)


def order_by(major: Int64s, minor: Int64s) -> Int64s:
    """Return the order that sorts by two columns, the first not negative.

    Both and the position are packed into one integer where they fit: NumPy sorts integers several times faster than it finds an
    order.
    """
    least = int(minor.min())
    minor_bits = (int(minor.max()) - least).bit_length()
    position_bits = len(major).bit_length()
    bits = int(major.max()).bit_length() + minor_bits
    if bits > _BITS:
        return np.lexsort((minor, major))
    packed = (major << minor_bits) | (minor - least)
    if bits + position_bits > _BITS:
        return np.argsort(packed)
    packed = (packed << position_bits) | np.arange(len(major))
    packed.sort()
    return packed & ((1 << position_bits) - 1)


def _running_maximum(groups: Int64s, values: Int64s) -> Int64s:
    """Return, at each place, the greatest value so far of its group; groups come one after the other, numbered upward."""
    least = int(values.min())
    bits = (int(values.max()) - least).bit_length()
    if int(groups[-1]).bit_length() + bits > _BITS:
        distinct, ranks = np.unique(values, return_inverse=True)
        return distinct[_running_maximum(groups, ranks)]
    running: Int64s = np.maximum.accumulate((groups << bits) | (values - least))
    return (running & ((1 << bits) - 1)) + least
