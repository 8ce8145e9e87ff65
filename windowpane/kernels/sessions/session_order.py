"""The order in which merged sessions hold their elements: that of Flink's merging window set, for all sessions at once.

An element that touches one session is appended to it; one that touches several joins their elements, by their start, and is
last. So in most islands the elements are in order of arrival. Only where something arrived apart from all before it, and was
joined to them later, the sessions of that island are followed one by one.
"""

from __future__ import annotations

from itertools import chain

import numpy as np

from windowpane.arrays import Integers
from windowpane.kernels.sessions.islands import order_by, running_maximum
from windowpane.kernels.sessions.live_sessions import LiveSessions


def holding_order(islands: Integers, starts: Integers, ends: Integers) -> Integers:
    """Return the numbers of intervals, island by island, in the order in which each island's session holds them.

    Args:
        islands: the island of each interval; the intervals are in order of arrival, sessions that were open before them first.
        starts: where each starts.
        ends: where each ends.
    """
    order = order_by(islands, np.arange(len(islands)))
    of = islands[order]
    for begin, end in _apart(of, starts[order], ends[order]):
        members = order[begin:end]
        order[begin:end] = members[_joined(starts[members].tolist(), ends[members].tolist())]
    return order


def offsets_of(islands: Integers, order: Integers, sizes: Integers) -> Integers:
    """Return how many elements are before each interval in its island, given ``holding_order`` and how many each has."""
    before = np.cumsum(sizes[order]) - sizes[order]
    is_first = np.diff(islands[order], prepend=-1) != 0
    offsets = np.empty_like(before)
    offsets[order] = before - np.maximum.accumulate(np.where(is_first, before, 0))
    return offsets


def _apart(of: Integers, starts: Integers, ends: Integers) -> list[tuple[int, int]]:
    """Return from where to where the islands reach in which an interval touches nothing before it."""
    if len(of) < 2:
        return []
    follows = of[1:] == of[:-1]
    highest = running_maximum(of, ends)[:-1]
    lowest = ~running_maximum(of, ~starts)[:-1]
    is_apart = follows & ((starts[1:] > highest) | (ends[1:] < lowest))
    found = np.unique(of[1:][is_apart])
    begins, behind = np.searchsorted(of, found), np.searchsorted(of, found, side="right")
    return list(zip(begins.tolist(), behind.tolist(), strict=True))


def _joined(starts: list[int], ends: list[int]) -> list[int]:
    """Return the order in which the one session that intervals make in the end holds them."""
    live = LiveSessions[list[int]]()
    for number, (start, end) in enumerate(zip(starts, ends, strict=True)):
        touched = live.touched(start, end)
        live.put(touched, start, end, [*chain.from_iterable(live.values[touched]), number])
    return list(chain.from_iterable(live.values))
