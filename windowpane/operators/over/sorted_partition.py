"""The rows of one partition in order, and which of them are in the frame of a row.

Frames are ranges of indices, found by search on the order keys; exclusion then takes rows out of the range. Rules: a NULL plus an
offset is NULL, so a bounded RANGE frame of a NULL row is its NULL peers; a session is a run of rows closer than the gap.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import pairwise

from windowpane.arrays.values import Row
from windowpane.operators.over.row_order import OrderKey, RowOrder
from windowpane.windowing.frames import Bound, Exclude, Frame, Offset, Side, Units
from windowpane.windowing.over.types import shifted


class SortedPartition:
    def __init__(self, rows: Sequence[Row], order: RowOrder) -> None:
        self.rows = rows
        self.keys = [order.order_key(row) for row in rows]
        self._order = order
        self._starts = [index for index in range(len(rows)) if index == 0 or self.keys[index] != self.keys[index - 1]]
        self._sessions: dict[Offset, list[int]] = {}

    def group_of(self, index: int) -> int:
        return bisect_right(self._starts, index) - 1

    def group_rows(self, group: int) -> range:
        """Return the rows of a group; groups before the first and after the last are empty."""
        if group < 0:
            return range(0, 0)
        if group >= len(self._starts):
            return range(len(self.rows), len(self.rows))
        end = self._starts[group + 1] if group + 1 < len(self._starts) else len(self.rows)
        return range(self._starts[group], end)

    def peers(self, index: int) -> range:
        return self.group_rows(self.group_of(index))

    def session(self, index: int, gap: Offset) -> range:
        starts = self._session_starts(gap)
        session = bisect_right(starts, index) - 1
        return range(starts[session], starts[session + 1] if session + 1 < len(starts) else len(self.rows))

    def frame(self, index: int, frame: Frame) -> list[int]:
        span = self.span(index, frame)
        if frame.exclude is Exclude.NO_OTHERS:
            return list(span)
        if frame.exclude is Exclude.CURRENT_ROW:
            return [each for each in span if each != index]
        peers = self.peers(index)
        kept = index if frame.exclude is Exclude.TIES else None
        return [each for each in span if each not in peers or each == kept]

    def span(self, index: int, frame: Frame) -> range:
        if frame.units is Units.SESSION:
            return self.session(index, frame.session_gap)
        start, end = self._start(index, frame), self._end(index, frame)
        return range(max(start, 0), max(min(end, len(self.rows)), start, 0))

    def _start(self, index: int, frame: Frame) -> int:
        if frame.start.is_unbounded:
            return 0
        if frame.units is Units.RANGE:
            return bisect_left(self.keys, self._edge(index, frame.start))
        steps = frame.start.steps or 0
        return index + steps if frame.units is Units.ROWS else self.group_rows(self.group_of(index) + steps).start

    def _end(self, index: int, frame: Frame) -> int:
        if frame.end.is_unbounded:
            return len(self.rows)
        if frame.units is Units.RANGE:
            return bisect_right(self.keys, self._edge(index, frame.end))
        steps = frame.end.steps or 0
        return index + steps + 1 if frame.units is Units.ROWS else self.group_rows(self.group_of(index) + steps).stop

    def _edge(self, index: int, bound: Bound) -> OrderKey:
        return self.keys[index] if bound.side is Side.CURRENT_ROW else frame_edge(self._order, self.keys[index], bound)

    def _session_starts(self, gap: Offset) -> list[int]:
        starts = self._sessions.get(gap)
        if starts is None:
            seams = enumerate(pairwise(self.keys), start=1)
            starts = [0, *(index for index, (a, b) in seams if starts_session(self._order, a, b, gap))]
            self._sessions[gap] = starts
        return starts


def moved_key(order: RowOrder, key: OrderKey, offset: Offset, toward_end: bool) -> OrderKey:
    """Return the order key at a distance from another one; NULL stays where it is."""
    value = shifted(order.value_of(key), offset, forward=toward_end != order.is_descending)
    return order.key_of(value, toward_end)


def frame_edge(order: RowOrder, key: OrderKey, bound: Bound) -> OrderKey:
    """Return the order key at which a bound, not an unbounded one, of the frame of a row lies."""
    if bound.offset is None:
        return key
    return moved_key(order, key, bound.offset, toward_end=bound.side is Side.FOLLOWING)


def starts_session(order: RowOrder, previous: OrderKey, key: OrderKey, gap: Offset) -> bool:
    """Return whether a row begins a new session behind its predecessor; NULLs are a session of their own."""
    if order.value_of(previous) is None:
        return previous != key
    return not key < moved_key(order, previous, gap, toward_end=True)
