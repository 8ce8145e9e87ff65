"""Live sessions of one key, merged as intervals arrive, one after the other: where the order of arrival decides.

Islands are the sessions in the end; here are those on the way. Invariant: two live sessions neither overlap nor touch, so their
starts and their ends both ascend, and what an interval touches are neighbours. Source of the rules: Flink's MergingWindowSet, and
its WindowOperator, which merges first and then checks whether the merged window is late.

A merged session holds its elements in the order of Flink's merging window set: an element that touches one session is appended to
it; one that touches several joins their elements, by their start, and is last. So in most islands the elements are in order of
arrival. Only where something arrived apart from all before it, and was joined to them later, the sessions of that island are
followed one by one.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Generic, TypeVar

import numpy as np

from windowpane.arrays import Integers, Mask
from windowpane.kernels.packed_order import stable_order
from windowpane.kernels.sessions.islands import running_maximum

T = TypeVar("T")


class LiveSessions(Generic[T]):
    """The live sessions of a key, by their start, each with a value.

    Example:
        >>> live = LiveSessions[str]()
        >>> for start, end, name in ((1, 4, "a"), (5, 8, "b"), (3, 6, "c")):
        ...     touched = live.touched(start, end)
        ...     print(live.values[touched], live.put(touched, start, end, name))
        [] (1, 4)
        [] (5, 8)
        ['a', 'b'] (1, 8)
    """

    def __init__(self) -> None:
        self._starts, self._ends, self.values = list[int](), list[int](), list[T]()

    def touched(self, start: int, end: int) -> slice:
        """Return the places of the sessions that an interval overlaps or touches; where it belongs if there are none."""
        first = bisect_left(self._ends, start)
        after = first
        while after < len(self._starts) and self._starts[after] <= end:
            after += 1
        return slice(first, after)

    def bounds(self, at: slice) -> list[tuple[int, int]]:
        return list(zip(self._starts[at], self._ends[at], strict=True))

    def put(self, at: slice, start: int, end: int, value: T) -> tuple[int, int]:
        """Put an interval and the sessions that it touches together, with a value, and return the bounds of the one session."""
        if at.start < at.stop:
            start, end = min(start, self._starts[at.start]), max(end, self._ends[at.stop - 1])
        self._starts[at], self._ends[at], self.values[at] = [start], [end], [value]
        return start, end

    def remove(self, start: int) -> None:
        at = bisect_left(self._starts, start)
        del self._starts[at], self._ends[at], self.values[at]


def join_in_order(islands: Sequence[int], starts: Sequence[int], ends: Sequence[int], is_late: Sequence[bool]) -> Mask:
    """Return for each interval, in order of arrival, whether it is kept; sessions that were open before are first, and not late.

    One that is late by itself is kept if it touches a session that lives when it arrives; so two late ones do not save each
    other, and one that arrives before those it would have touched is dropped.
    """
    live: dict[int, LiveSessions[None]] = {}
    kept = np.ones(len(islands), bool)
    for number, (island, start, end, late) in enumerate(zip(islands, starts, ends, is_late, strict=True)):
        sessions = live.setdefault(island, LiveSessions())
        touched = sessions.touched(start, end)
        if late and touched.start == touched.stop:
            kept[number] = False
        else:
            sessions.put(touched, start, end, None)
    return kept


def merges_in_order(islands: Sequence[int], starts: Sequence[int], ends: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Yield the place, start and end of each interval that changes an existing session, with the session they become together.

    Flink refuses a merged window that ends behind the watermark, even if a later element makes it longer.

    Example:
        >>> list(merges_in_order([0, 0, 0], [1, 8, 3], [4, 9, 5]))
        [(2, 1, 5)]
    """
    live: dict[int, LiveSessions[None]] = {}
    for place, (island, start, end) in enumerate(zip(islands, starts, ends, strict=True)):
        sessions = live.setdefault(island, LiveSessions())
        touched = sessions.touched(start, end)
        met = sessions.bounds(touched)
        bounds = sessions.put(touched, start, end, None)
        if met and met != [bounds]:
            yield place, *bounds


def holding_order(islands: Integers, starts: Integers, ends: Integers) -> Integers:
    """Return intervals, given in order of arrival, in the order in which each island's session holds them, by island."""
    order = stable_order(islands)
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
