"""Which stored rows no row to come can reach: those the general engine drops.

    rows of a partition   . . . | context | affected | horizon | rows that may still change
                          dropped ^ kept

Rows at or below the horizon are final: no change to them is taken any more. A row to come stands behind them all. It can affect
the last of them, as many as frames look ahead: ``ahead`` rows, or those whose RANGE frame ends beyond the horizon. To compute
those and the row itself anew, their frames are needed, and for running calls the carry columns of the row before. That holds
where rows are ordered by event time, ascending. Source: RisingWave #26917, which has ROWS frames only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windowpane.engines.over_program import OverProgram
from windowpane.kernels.order_axis import order_axis
from windowpane.kernels.ordered_codes import Mask
from windowpane.kernels.over_calls import CallKernel
from windowpane.kernels.over_rows import SortedRows
from windowpane.windowing.frames import Bound, Frame, Side, Units, merge_rows_frames
from windowpane.windowing.intervals import MICROS_PER_DAY

Positions = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Eviction:
    """How far the calls of a program reach.

    Args:
        back: how many rows back.
        ahead: how many rows ahead.
        ranges: their RANGE frames.
    """

    back: int
    ahead: int
    ranges: tuple[Frame, ...] = ()

    @classmethod
    def of(cls, program: OverProgram, calls: Sequence[CallKernel]) -> Self | None:
        """Return the eviction of a program, ``None`` if its rows are kept for ever."""
        order = program.spec.order_by
        if program.horizon(0) is None or not order or order[0].name != program.time_column:
            return None
        if order[0].descending or order[0].nulls_first:
            return None
        framed = [call.call.reach for call in calls if not call.is_running]
        rows = merge_rows_frames(frame for frame in framed if frame.units is Units.ROWS)
        ranges = [frame for frame in framed if frame.units is not Units.ROWS]
        behind = [_running_reach(call) for call in calls if call.is_running]
        if rows.n_preceding is None or rows.n_following is None or None in behind or not all(map(_is_bounded, ranges)):
            return None
        back = max([rows.n_preceding, *(each for each in behind if each is not None)])
        return cls(back, rows.n_following, tuple(dict.fromkeys(ranges)))

    def dropped(self, rows: SortedRows, times: pa.ChunkedArray, horizon: int) -> Mask:
        """Return which rows go."""
        layout = rows.layout
        if not layout.size:
            return np.zeros(0, np.bool_)
        final = times.fill_null(horizon + 1).to_numpy() <= horizon
        ends = layout.segment_firsts + _counts(final, layout.segment_firsts)
        affected = np.maximum(ends - self.ahead, layout.segment_firsts)
        for frame in self.ranges:
            affected = np.minimum(affected, _first_beyond(rows, frame.end, Side.FOLLOWING, final, horizon))
        kept = affected - self.back
        at = np.minimum(affected, layout.segment_ends - 1)
        for frame in self.ranges:
            kept = np.minimum(kept, _first_beyond(rows, frame.start, Side.PRECEDING, final, horizon))
            kept = np.minimum(kept, np.where(affected < layout.segment_ends, rows.frames(frame).lo[at], layout.segment_ends))
        dropped: Mask = final & (layout.numbers < kept[layout.segment])
        return dropped


def _first_beyond(rows: SortedRows, bound: Bound, side: Side, final: Mask, horizon: int) -> Positions:
    """Return the first row of each segment that, moved by a bound on this side, lies beyond the horizon."""
    offset = bound.offset if bound.side is side and bound.offset is not None else None
    column = rows.column(rows.spec.order_by[0].name)
    axis = order_axis(column, () if offset is None else (offset,))
    moved = axis.points if offset is None else axis.shift(offset, True)
    reached = horizon // MICROS_PER_DAY if pa.types.is_date32(column.type) else horizon
    firsts = rows.layout.segment_firsts
    return firsts + _counts(final & (moved <= reached), firsts)


def _counts(mask: Mask, firsts: Positions) -> Positions:
    counted: Positions = np.add.reduceat(mask.astype(np.int64), firsts)
    return counted


def _is_bounded(frame: Frame) -> bool:
    """Whether a frame is a RANGE frame that ends somewhere; of calendar offsets, adding may miss what subtracting reached."""
    if frame.units is not Units.RANGE or frame.start.is_unbounded or frame.end.is_unbounded:
        return False
    return all(bound.offset is None or getattr(bound.offset, "is_fixed", True) for bound in (frame.start, frame.end))


def _running_reach(call: CallKernel) -> int | None:
    """Return how many rows before a row to come a running call needs; ``None``: it depends on their values."""
    frame = call.call.frame
    if frame is None or frame.end.side is Side.CURRENT_ROW:
        return 1
    return 1 - (frame.end.steps or 0) if frame.units is Units.ROWS else None
