"""The layout of sorted rows, and the frame finder: the frame of every row as spans of row numbers, all rows at once.

Rows are sorted by (partition, ORDER BY, key). A segment is a run of rows of one partition; a partition may be cut into several
segments, with rows missing between them. Peers are rows of a segment with equal ORDER BY values; a group is all peers of a row.
All positions are row numbers of the table, all spans half-open.

A frame is ``[lo, hi)`` in the row's segment, before EXCLUDE; ``spans`` are what EXCLUDE leaves of it, in order, at most three.
Rows may be missing beyond the ends of a segment: ``reaches_first`` and ``reaches_end`` say where a frame needs the missing
rows. Both may be set too often, never too seldom.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from windowpane.arrays import Integers, Mask, NumpyArray
from windowpane.errors import MistakeError, present
from windowpane.kernels.sorting.order_axis import OrderAxis
from windowpane.windowing.frames import Bound, Exclude, Frame, Side, Units
from windowpane.windowing.over.spec import OrderColumn
from windowpane.windowing.times import MAX, MIN


@dataclass(frozen=True)
class Layout:
    starts_segment: Mask  # where a row is the first of its segment
    starts_group: Mask  # where a row is the first of its peers; true wherever a segment starts

    @property
    def size(self) -> int:
        return len(self.starts_segment)

    @cached_property
    def numbers(self) -> Integers:
        return np.arange(self.size)

    @cached_property
    def segment_firsts(self) -> Integers:
        return np.flatnonzero(self.starts_segment)

    @cached_property
    def segment_ends(self) -> Integers:
        return np.append(self.segment_firsts[1:], self.size) if self.size else self.segment_firsts

    @cached_property
    def segment(self) -> Integers:
        return np.cumsum(self.starts_segment) - 1

    def spread(self, values: NumpyArray) -> NumpyArray:
        """Return for each row the value of its segment."""
        return np.repeat(values, self.segment_ends - self.segment_firsts)

    @cached_property
    def first(self) -> Integers:
        """The first row of each row's segment."""
        return self.spread(self.segment_firsts)

    @cached_property
    def end(self) -> Integers:
        return self.spread(self.segment_ends)

    @cached_property
    def group_firsts(self) -> Integers:
        """The first row of each group, and the number of rows last."""
        return np.append(np.flatnonzero(self.starts_group), self.size)

    @cached_property
    def group(self) -> Integers:
        """The number of each row's group, counted through all segments."""
        return np.cumsum(self.starts_group) - 1

    @cached_property
    def peer_first(self) -> Integers:
        return self.group_firsts[self.group]

    @cached_property
    def peer_end(self) -> Integers:
        return self.group_firsts[self.group + 1]


Span = tuple[Integers, Integers]


@dataclass(frozen=True)
class Frames:
    lo: Integers  # its first row
    hi: Integers  # its end; not below ``lo``
    reaches_first: Mask  # where rows before the segment's first row might belong to it
    reaches_end: Mask  # where rows from the segment's end on might


@dataclass(frozen=True)
class SortedOrder:
    """What the finder knows of the rows: their layout and, where offsets are measured, the axis of the ORDER BY column."""

    layout: Layout
    column: OrderColumn | None = None
    axis: OrderAxis | None = None


def find_frames(frame: Frame, order: SortedOrder) -> Frames:
    if frame.units is Units.ROWS:
        return _rows(frame, order.layout)
    if frame.units is Units.SESSION:
        return _session(frame, order)
    lo = _edge(frame.start, frame, order, is_end=False)
    hi = np.maximum(_edge(frame.end, frame, order, is_end=True), lo)
    return Frames(lo, hi, lo == order.layout.first, hi == order.layout.end)


def spans(frame: Frame, found: Frames, layout: Layout) -> list[Span]:
    lo, hi, at = found.lo, found.hi, layout.numbers
    if frame.exclude is Exclude.NO_OTHERS:
        return [(lo, hi)]
    if frame.exclude is Exclude.CURRENT_ROW:
        return [_span(lo, np.minimum(hi, at)), _span(np.maximum(lo, at + 1), hi)]
    before = _span(lo, np.minimum(hi, layout.peer_first))
    after = _span(np.maximum(lo, layout.peer_end), hi)
    if frame.exclude is Exclude.GROUP:
        return [before, after]
    return [before, _span(np.maximum(lo, at), np.minimum(hi, at + 1)), after]


def _span(lo: Integers, hi: Integers) -> Span:
    return lo, np.maximum(lo, hi)


def _rows(frame: Frame, layout: Layout) -> Frames:
    lo, reaches_first = layout.first, np.ones(layout.size, np.bool_)
    hi, reaches_end = layout.end, reaches_first
    if frame.start.steps is not None:
        wanted = layout.numbers + _clamped(frame.start.steps)
        lo, reaches_first = np.clip(wanted, layout.first, layout.end), wanted < layout.first
    if frame.end.steps is not None:
        wanted = layout.numbers + _clamped(frame.end.steps) + 1
        hi, reaches_end = np.clip(wanted, layout.first, layout.end), wanted > layout.end
    return Frames(lo, np.maximum(lo, hi), reaches_first, reaches_end)


def _clamped(steps: int) -> int:
    """A number of rows or groups, at most what any table has, so that adding it to a position cannot wrap."""
    return max(min(steps, 1 << 40), -(1 << 40))


def _edge(bound: Bound, frame: Frame, order: SortedOrder, *, is_end: bool) -> Integers:
    """Return the first row of each frame of RANGE or GROUPS, or the one past its last, as the bound at that end says."""
    layout = order.layout
    peers = layout.peer_end if is_end else layout.peer_first
    if bound.is_unbounded:
        return layout.end if is_end else layout.first
    if bound.side is Side.CURRENT_ROW:
        return peers
    if frame.units is Units.GROUPS:
        return _group_bound(layout, bound, past=int(is_end))
    return _range_bound(order, bound, "right" if is_end else "left")


def _group_bound(layout: Layout, bound: Bound, past: int) -> Integers:
    """Return the first row of the group a number of groups away, or of the one past it, within the segment."""
    if not layout.size:
        return layout.first
    lowest, highest = layout.group[layout.first], layout.group[layout.end - 1] + 1
    wanted = layout.group + _clamped(present(bound.steps, "unbounded ones are handled before")) + past
    return layout.group_firsts[np.clip(wanted, lowest, highest)]


def _range_bound(order: SortedOrder, bound: Bound, side: Literal["left", "right"]) -> Integers:
    """Return for each row the place of a RANGE bound in the row's own segment; of a NULL that of its peers.

    Points and segments are packed into one sorted array: segment * width + point, where the NULLs of a segment are before
    (0) or after (width - 1) all its points.
    """
    axis, column, layout = *_measured(order), order.layout
    peers = layout.peer_first if side == "left" else layout.peer_end
    if not axis.valid.any():
        return peers
    if bound.offset is None:
        raise MistakeError("bounds without are handled before")
    targets = axis.shift(bound.offset, (bound.side is Side.FOLLOWING) != column.descending)
    points, targets = (~axis.points, ~targets) if column.descending else (axis.points, targets)
    points, targets, count = _narrowed(points, targets, axis.valid, len(layout.segment_firsts))
    width = count + 2
    packed = np.where(axis.valid, points, 0 if column.nulls_first else count + 1) + layout.segment * width
    inside = np.clip(targets, 1, count + 1) if side == "left" else np.clip(targets, 0, count)
    return np.where(axis.valid, np.searchsorted(packed, inside + layout.segment * width, side), peers)


def _measured(order: SortedOrder) -> tuple[OrderAxis, OrderColumn]:
    return present(order.axis, "frames with offsets come with an axis"), present(order.column, "and with its column")


def _narrowed(points: Integers, targets: Integers, valid: Mask, segments: int) -> tuple[Integers, Integers, int]:
    """Return points from 1 up and targets on the same scale, so narrow that it fits into int64 once for every segment."""
    low, high = int(points[valid].min()), int(points[valid].max())
    if (high - low + 3) * segments < 1 << 62:
        near = np.clip(targets, max(low - 1, MIN), min(high + 1, MAX))
        return points - low + 1, near - low + 1, high - low + 1
    distinct = np.unique(points[valid])
    at = np.searchsorted(distinct, targets)
    hit = distinct[np.minimum(at, len(distinct) - 1)] == targets
    return 2 * np.searchsorted(distinct, points) + 1, np.where(hit, 2 * at + 1, 2 * at), 2 * len(distinct) - 1


def session_starts(frame: Frame, order: SortedOrder) -> Mask:
    """Return where a row begins a session: not less than the gap behind the row before; NULLs are a session of their own."""
    axis, column = _measured(order)
    starts, descending = order.layout.starts_segment.copy(), column.descending
    points, moved = axis.points[1:], axis.shift(frame.session_gap, not descending)[:-1]
    reached = points <= moved if descending else points >= moved
    both = axis.valid[1:] & axis.valid[:-1]
    starts[1:] |= np.where(both, reached, axis.valid[1:] != axis.valid[:-1])
    return starts


def _session(frame: Frame, order: SortedOrder) -> Frames:
    layout = order.layout
    firsts = np.append(np.flatnonzero(session_starts(frame, order)), layout.size)
    number = np.searchsorted(firsts, layout.numbers, side="right") - 1
    lo, hi = firsts[number], firsts[number + 1] if layout.size else firsts[:0]
    return Frames(lo, hi, lo == layout.first, hi == layout.end)
