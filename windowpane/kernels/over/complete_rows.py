"""When rows of a window that emits on close are complete, and which rows later ones still need.

Rows arrive in order; a row is complete for a call when no later row can enter the frame. That is known from a row of the
partition beyond the frame, or from a watermark: every row at or below ``closed`` (a point of the ORDER BY column) has arrived.
Numbering and frames without a following side are complete at once.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from windowpane.arrays import Integers, Mask
from windowpane.errors import MistakeError, present
from windowpane.kernels.over.picks import NOWHERE, at_offset
from windowpane.kernels.over.protocol import CallKernel
from windowpane.kernels.over.rows import SortedRows
from windowpane.kernels.sorting.order_axis import order_axis
from windowpane.windowing.frames import Frame, Offset, Side, Units
from windowpane.windowing.times import MAX


def complete(rows: SortedRows, calls: Sequence[CallKernel], closed: int) -> Mask:
    """Return which rows are complete for every call; at the end of time all are."""
    found = np.ones(rows.layout.size, np.bool_)
    if closed == MAX:
        return found
    for frame in {call.call.reach for call in calls if not _passes_over_nulls(call)}:
        found &= _complete(rows, frame, closed)
    for call in calls:
        if _passes_over_nulls(call) and _steps(call) > 0:
            found &= at_offset(rows.layout, _steps(call), rows.counted(call.call.arguments, None)) != NOWHERE
    return found


def is_closed_by_watermark(calls: Sequence[CallKernel]) -> bool:
    """Whether a watermark alone, without another row, can complete a row.

    A lead that passes over NULLs waits for values, and may have them: what the row waits for then is another call's.
    """
    frames = [call.call.reach for call in calls if not _passes_over_nulls(call)]
    return all(not frame.end.is_unbounded or frame.units is Units.SESSION for frame in frames) and any(
        frame.units is not Units.ROWS for frame in frames
    )


def _passes_over_nulls(call: CallKernel) -> bool:
    return call.call.frame is None and call.call.ignore_nulls


def _steps(call: CallKernel) -> int:
    """How many rows ahead lag or lead looks; behind, if negative."""
    return call.call.offset if call.call.function == "lead" else -call.call.offset


def _complete(rows: SortedRows, frame: Frame, closed: int) -> Mask:
    found, layout = rows.frames(frame), rows.layout
    if frame.units is Units.ROWS:
        return ~found.reaches_end
    if frame.units is Units.SESSION:
        return (found.hi < layout.end) | (_moved(rows, frame, frame.session_gap)[found.hi - 1] <= closed + 1)
    if frame.end.is_unbounded:
        return np.zeros(layout.size, np.bool_)
    if frame.units is Units.RANGE:
        return (found.hi < layout.end) | (_range_end(rows, frame) <= closed)
    has_last_group = layout.group + (frame.end.steps or 0) <= layout.group[layout.end - 1]
    return (found.hi < layout.end) | (has_last_group & (_points(rows)[layout.end - 1] <= closed))


def _points(rows: SortedRows) -> Integers:
    return order_axis(rows.column(rows.spec.order_by[0].name), ()).points


def _moved(rows: SortedRows, frame: Frame, offset: Offset) -> Integers:
    axis = present(rows.order(frame).axis, "frames with offsets have an axis")
    return axis.shift(offset, True)


def _range_end(rows: SortedRows, frame: Frame) -> Integers:
    if frame.end.side is Side.CURRENT_ROW:
        return _points(rows)
    axis = present(rows.order(frame).axis, "frames with offsets have an axis")
    if frame.end.offset is None:
        raise MistakeError("the other bounds are handled before")
    return axis.shift(frame.end.offset, frame.end.side is Side.FOLLOWING)


def kept_from(rows: SortedRows, calls: Sequence[CallKernel], pending: Integers) -> Integers:
    """Return for each segment the first row that a later value needs, given the first one that is pending, or its end."""
    layout = rows.layout
    kept = pending.copy()
    for call in calls:
        kept = np.minimum(kept, _kept(rows, call, pending))
    if any(call.is_running for call in calls):
        kept = np.minimum(kept, np.maximum(pending - 1, layout.segment_firsts))
    return np.maximum(kept, layout.segment_firsts)


def _kept(rows: SortedRows, call: CallKernel, pending: Integers) -> Integers:
    frame, layout = call.call.reach, rows.layout
    bound = frame.end if call.is_running else frame.start
    if _passes_over_nulls(call):
        return _kept_values(rows, call, pending)
    if bound.side is Side.UNBOUNDED_PRECEDING and frame.units is not Units.SESSION:
        return layout.segment_firsts
    past = 1 if call.is_running else 0
    if frame.units is Units.ROWS:
        return pending + min(bound.steps or 0, 0) - past
    ends = layout.segment_ends
    found = rows.frames(frame)
    at = np.minimum(pending, ends - 1)
    needed = (found.hi if call.is_running else found.lo)[at] - past
    return np.where(pending < ends, needed, ends) if frame.units is Units.SESSION else needed


def _kept_values(rows: SortedRows, call: CallKernel, pending: Integers) -> Integers:
    """Lag and lead that pass over NULLs: as many values before the first pending row as they go back."""
    counted = rows.counted(call.call.arguments, None)
    before = np.append(0, np.cumsum(counted))
    if _steps(call) >= 0:
        return pending
    wanted = before[pending] + _steps(call)
    places = np.flatnonzero(counted)
    held = wanted >= before[rows.layout.segment_firsts]
    return np.where(held, places[np.maximum(wanted, 0)] if len(places) else 0, rows.layout.segment_firsts)
