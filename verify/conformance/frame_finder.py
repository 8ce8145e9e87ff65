"""Which rows a change can affect: a pure search on the sorted positions of one partition, after the change.

    positions    . . . [ . . . ( . . . x . . x . . . ) . . . ] . .
                       |       |       delta         |       |
       first_frame_start       first_curr_row        |       |
                                          last_curr_row      last_frame_end

Rows from ``first_curr_row`` to ``last_curr_row`` have a frame that may hold a changed position: they are computed anew. Rows
from ``first_frame_start`` to ``last_frame_end`` are in one of their frames: they must be read. The answer may be a little too
wide, never too narrow. Results are indices into the positions; where more rows may lie beyond an end (``more_left``,
``more_right``), the index past that end means: read more rows, then search again. Source: RisingWave's frame_finder.rs; GROUPS
and SESSION are additions.

It is here for RisingWave's vectors: the reference computes whole partitions anew, engines have a kernel of their own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from windowpane.errors import MistakeError
from windowpane.operators.over.row_order import OrderKey, Position, RowOrder
from windowpane.operators.over.sorted_partition import frame_edge, moved_key, starts_session
from windowpane.windowing.frames import Bound, Exclude, Frame, Side, Units, merge_rows_frames
from windowpane.windowing.intervals import Interval
from windowpane.windowing.over.types import CALENDAR_SLACK

_OPPOSITE = {Side.PRECEDING: Side.FOLLOWING, Side.FOLLOWING: Side.PRECEDING}


@dataclass(frozen=True, slots=True)
class AffectedRange:
    """Indices of rows, each inclusive."""

    first_frame_start: int
    first_curr_row: int
    last_curr_row: int
    last_frame_end: int

    @property
    def is_empty(self) -> bool:
        """Whether no row is affected."""
        return self.first_curr_row > self.last_curr_row


@dataclass(frozen=True, slots=True)
class Positions:
    """Sorted positions of a partition, or of a part of it.

    Args:
        rows: the positions, ascending.
        more_left: whether rows before the first may exist that are not here.
        more_right: whether rows after the last may exist that are not here.
    """

    rows: Sequence[Position]
    more_left: bool = False
    more_right: bool = False

    @property
    def first(self) -> int:
        """The index of the first row, or the one before it, which means more rows."""
        return -1 if self.more_left else 0

    @property
    def last(self) -> int:
        """The index of the last row, or the one after it, which means more rows."""
        return len(self.rows) if self.more_right else len(self.rows) - 1

    def clamped(self, index: int) -> int:
        """Return the index, held between ``first`` and ``last``."""
        return min(max(index, self.first), max(self.last, self.first))

    def left_of(self, order: OrderKey) -> int:
        """Return the first row at or after an order key; not the first row here if peers of it may exist outside."""
        index = bisect_left(self.rows, order, key=_order)
        return self.first if index == 0 else self.clamped(index)

    def right_of(self, order: OrderKey) -> int:
        """Return the last row at or before an order key; not the last row here if peers of it may exist outside."""
        index = bisect_right(self.rows, order, key=_order)
        return self.last if index == len(self.rows) else self.clamped(index - 1)


def find_affected(
    positions: Positions, first_delta: Position, last_delta: Position, frames: Sequence[Frame], order: RowOrder | None = None
) -> AffectedRange:
    """Return the rows that changes between two positions can affect.

    Args:
        positions: the partition with the changes applied.
        first_delta: the smallest changed position: inserted, deleted or overwritten.
        last_delta: the largest.
        frames: the reach of each call.
        order: what order values are; needed for RANGE offsets and SESSION only.
    """
    if not positions.rows and not positions.more_left and not positions.more_right:
        return AffectedRange(0, 0, -1, -1)
    finders = _finders(positions, frames, order)
    first_curr = min(finder.first_curr_row(first_delta) for finder in finders)
    last_curr = max(finder.last_curr_row(last_delta) for finder in finders)
    first_start = min(finder.first_frame_start(first_curr) for finder in finders)
    last_end = max(finder.last_frame_end(last_curr) for finder in finders)
    return AffectedRange(first_start, first_curr, last_curr, last_end)


def _finders(positions: Positions, frames: Sequence[Frame], order: RowOrder | None) -> list[_Finder]:
    """All ROWS frames as one super frame, which always holds the current row; each other frame by itself."""
    rows = merge_rows_frames(frame for frame in frames if frame.units is Units.ROWS)
    others = {frame.excluding(Exclude.NO_OTHERS) for frame in frames if frame.units is not Units.ROWS}
    return [_RowsFinder(positions, rows), *(_FINDERS[frame.units](positions, frame, order) for frame in others)]


class _Finder(ABC):
    """The search for one frame; ``None`` as a reach means to the end of the partition."""

    def __init__(self, positions: Positions, frame: Frame, order: RowOrder | None = None) -> None:
        self.positions = positions
        self.rows = positions.rows
        self.frame = frame
        self._order = order

    @property
    def order(self) -> RowOrder:
        if self._order is None:
            raise MistakeError("frames that measure distances come with the order of their values")
        return self._order

    @abstractmethod
    def first_curr_row(self, delta: Position) -> int:
        """Return the first row whose frame can hold a changed position."""

    @abstractmethod
    def last_curr_row(self, delta: Position) -> int:
        """Return the last such row."""

    @abstractmethod
    def first_frame_start(self, index: int) -> int:
        """Return the first row of the frame of the row at ``index``."""

    @abstractmethod
    def last_frame_end(self, index: int) -> int:
        """Return the last row of it."""


class _RowsFinder(_Finder):
    """ROWS: so many rows to the left and right."""

    def first_curr_row(self, delta: Position) -> int:
        return self._left(bisect_left(self.rows, delta), self.frame.n_following)

    def last_curr_row(self, delta: Position) -> int:
        return self._right(bisect_right(self.rows, delta) - 1, self.frame.n_preceding)

    def first_frame_start(self, index: int) -> int:
        return self._left(index, self.frame.n_preceding)

    def last_frame_end(self, index: int) -> int:
        return self._right(index, self.frame.n_following)

    def _left(self, index: int, reach: int | None) -> int:
        return self.positions.first if reach is None else self.positions.clamped(index - reach)

    def _right(self, index: int, reach: int | None) -> int:
        return self.positions.last if reach is None else self.positions.clamped(index + reach)


class _GroupsFinder(_Finder):
    """GROUPS: so many groups of peers to the left and right, and the whole of the group there."""

    def first_curr_row(self, delta: Position) -> int:
        return self._left(bisect_left(self.rows, delta.order, key=_order), self.frame.n_following)

    def last_curr_row(self, delta: Position) -> int:
        return self._right(bisect_right(self.rows, delta.order, key=_order) - 1, self.frame.n_preceding)

    def first_frame_start(self, index: int) -> int:
        return self._left(index, self.frame.n_preceding)

    def last_frame_end(self, index: int) -> int:
        return self._right(index, self.frame.n_following)

    def _left(self, index: int, reach: int | None) -> int:
        if reach is None:
            return self.positions.first
        if not self.rows or index < 0:
            return self.positions.first
        start = self._start_of(index) if index < len(self.rows) else index
        for _ in range(reach):
            start = self._start_of(start - 1) if start > 0 else start
        return self.positions.first if start == 0 else self.positions.clamped(start)

    def _right(self, index: int, reach: int | None) -> int:
        if reach is None:
            return self.positions.last
        if not self.rows or index >= len(self.rows):
            return self.positions.last
        end = self._end_of(index) if index >= 0 else index
        for _ in range(reach):
            end = self._end_of(end + 1) if end < len(self.rows) - 1 else end
        return self.positions.last if end == len(self.rows) - 1 else self.positions.clamped(end)

    def _start_of(self, index: int) -> int:
        """The first row of a row's group."""
        return bisect_left(self.rows, self.rows[index].order, key=_order)

    def _end_of(self, index: int) -> int:
        """The last row of a row's group."""
        return bisect_right(self.rows, self.rows[index].order, key=_order) - 1


class _RangeFinder(_Finder):
    """RANGE: order values at a distance."""

    def first_curr_row(self, delta: Position) -> int:
        bound = self.frame.end
        if bound.is_unbounded:
            return self.positions.first
        return self.positions.left_of(self._widened(self._reaching(delta.order, bound), bound, toward_end=False))

    def last_curr_row(self, delta: Position) -> int:
        bound = self.frame.start
        if bound.is_unbounded:
            return self.positions.last
        return self.positions.right_of(self._widened(self._reaching(delta.order, bound), bound, toward_end=True))

    def first_frame_start(self, index: int) -> int:
        bound = self.frame.start
        if bound.is_unbounded or not 0 <= index < len(self.rows):
            return self.positions.first if bound.is_unbounded else index
        return min(index, self.positions.left_of(self._widened(self._edge(index, bound), bound, toward_end=False)))

    def last_frame_end(self, index: int) -> int:
        bound = self.frame.end
        if bound.is_unbounded or not 0 <= index < len(self.rows):
            return self.positions.last if bound.is_unbounded else index
        return max(index, self.positions.right_of(self._widened(self._edge(index, bound), bound, toward_end=True)))

    def _edge(self, index: int, bound: Bound) -> OrderKey:
        key = self.rows[index].order
        return key if bound.offset is None else frame_edge(self.order, key, bound)

    def _reaching(self, key: OrderKey, bound: Bound) -> OrderKey:
        return key if bound.offset is None else reaching_key(self.order, key, bound)

    def _widened(self, key: OrderKey, bound: Bound, toward_end: bool) -> OrderKey:
        if not isinstance(bound.offset, Interval) or bound.offset.is_fixed:
            return key
        return moved_key(self.order, key, CALENDAR_SLACK, toward_end)


class _SessionFinder(_Finder):
    """SESSION: the sessions on both sides of the changes, which these may have joined or parted."""

    def first_curr_row(self, delta: Position) -> int:
        return self.first_frame_start(max(bisect_left(self.rows, delta) - 1, self.positions.first))

    def last_curr_row(self, delta: Position) -> int:
        return self.last_frame_end(min(bisect_right(self.rows, delta), self.positions.last))

    def first_frame_start(self, index: int) -> int:
        while 0 < index < len(self.rows) and not self._starts(index):
            index -= 1
        return self.positions.first if index == 0 else index

    def last_frame_end(self, index: int) -> int:
        while 0 <= index < len(self.rows) - 1 and not self._starts(index + 1):
            index += 1
        return self.positions.last if index == len(self.rows) - 1 else index

    def _starts(self, index: int) -> bool:
        return starts_session(self.order, self.rows[index - 1].order, self.rows[index].order, self.frame.session_gap)


_FINDERS: dict[Units, type[_Finder]] = {Units.GROUPS: _GroupsFinder, Units.RANGE: _RangeFinder, Units.SESSION: _SessionFinder}


def _order(position: Position) -> OrderKey:
    return position.order


def reaching_key(order: RowOrder, key: OrderKey, bound: Bound) -> OrderKey:
    """Return the order key of the row whose ``bound`` lies at ``key``: the way back."""
    return frame_edge(order, key, Bound(_OPPOSITE.get(bound.side, bound.side), bound.offset))
