"""Which stored rows no row to come can reach: those the general engine drops.

    ascending   . . . | needed | affected || rows that may still change, and those to come
                dropped ^ kept           edge
    descending  rows that may still change, and those to come || affected | needed | . . .
                                                            edge            kept ^ dropped

Rows at or below the horizon are *final*: no change to them is taken any more. They are on one side of the edge, all rows to
come on the other. A row to come can affect the final rows whose frames look beyond the edge: so many ROWS or GROUPS *toward* it,
those whose RANGE moved by the offset lies beyond the horizon, the last session if its gap does. To compute those and the row
itself, their frames on the side *away* from the edge are needed, and for running calls the carry columns of the row before.
Needed rows are kept without holes. Source: RisingWave #26917, which has ROWS frames only.

A batch drops rows of the pages that it reads for its changes. Of the others it sweeps a few whenever the horizon moves, at a
place that follows from the horizon: no state holds the place of the sweep, a batch that runs again sweeps the same pages, and in
time every page has its turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windowpane.arrays import Integers, Mask
from windowpane.engines.over.program import OverProgram
from windowpane.errors import MistakeError
from windowpane.kernels.over.protocol import CallKernel
from windowpane.kernels.over.rows import SortedRows
from windowpane.kernels.sorting.order_axis import order_axis
from windowpane.sizes import Size
from windowpane.windowing.frames import Bound, Frame, Offset, Side, Units, merge_rows_frames
from windowpane.windowing.intervals import MICROS_PER_DAY
from windowpane.windowing.times import MAX, MIN

_SLACK_DAYS = 4
"""Calendar offsets: v - 1 month <= t where t + 1 month is up to three days and a change of the clock short of v."""


@dataclass(frozen=True)
class Eviction:
    framed: tuple[Frame, ...]  # the frames of calls that do not run
    running: tuple[Frame | None, ...]  # those of calls that run; ``None`` for numbering
    descending: bool  # whether rows to come are before final ones
    null_is_final: bool  # whether rows without event time are final, once there is a watermark

    @classmethod
    def of(cls, program: OverProgram, calls: Sequence[CallKernel]) -> Self | None:
        """Return the eviction of a program, ``None`` if its rows are kept for ever."""
        order = program.spec.order_by
        if program.horizon(0) is None or not order or order[0].name != program.time_column:
            return None
        framed = dict.fromkeys(call.call.reach for call in calls if not call.is_running)
        running = dict.fromkeys(call.call.frame for call in calls if call.is_running)
        is_bounded = all(each.units is Units.SESSION or not (each.start.is_unbounded or each.end.is_unbounded) for each in framed)
        if not is_bounded or (order[0].descending and running):
            return None
        return cls(tuple(framed), tuple(running), order[0].descending, program.null_is_late)

    def dropped(self, rows: SortedRows, times: pa.ChunkedArray, horizon: int, cut_left: Mask, cut_right: Mask) -> Mask:
        """Return which rows no row to come can reach, those at or below ``horizon`` being final.

        Rows of a segment's partition may be missing on a side where it is cut: at the edge they keep an open session.
        """
        final = pc.fill_null(pc.less_equal(times, horizon), self.null_is_final and horizon > MIN)
        mask = np.asarray(final.to_numpy(), np.bool_)
        if not mask.any():
            return mask
        dropped: Mask = mask & ~_Partings(self, rows, mask, horizon).kept()
        if any(frame.units is Units.SESSION for frame in self.framed):
            dropped &= ~(cut_left if self.descending else cut_right)[rows.layout.segment]
        return dropped


class _Partings:
    """Rows parted at the edge of each segment."""

    def __init__(self, eviction: Eviction, rows: SortedRows, final: Mask, horizon: int) -> None:
        self._eviction = eviction
        self._rows = rows
        self._final = final
        kind = rows.column(rows.spec.order_by[0].name).type
        reached = horizon // MICROS_PER_DAY if pa.types.is_date32(kind) and horizon < MAX else horizon
        self._least = min(reached, MAX - 1) + 1
        self._slack = _SLACK_DAYS if pa.types.is_date32(kind) else _SLACK_DAYS * MICROS_PER_DAY

    def kept(self) -> Mask:
        """Return the rows from the one farthest from the edge that is needed."""
        needed = self._farthest(self._needed)
        held = self._affected & self._final
        for frame in self._eviction.framed:
            found = self._rows.frames(frame)
            needed = self._farther(needed, self._farthest(held, found.hi - 1 if self._eviction.descending else found.lo))
        for behind in self._eviction.running:
            needed = self._farther(needed, self._farthest(self._running(behind)) - 1)
        layout = self._rows.layout
        limits = layout.spread(needed)
        kept: Mask = layout.numbers <= limits if self._eviction.descending else layout.numbers >= limits
        return kept

    # --- what is affected, and needed -----------------------------------------------------------------------------------

    @cached_property
    def _affected(self) -> Mask:
        """The rows that a row to come can affect, and those that are not final."""
        found = ~self._final
        toward, _ = self._steps(Units.ROWS)
        found |= self._rows_away <= toward
        toward, _ = self._steps(Units.GROUPS)
        found |= self._groups_away <= toward
        for frame in self._of(Units.RANGE):
            offset = _looking(Side.PRECEDING, frame.start) if self._eviction.descending else _looking(Side.FOLLOWING, frame.end)
            if offset is not None:
                found |= self._moved(offset) >= self._least
        for frame in self._of(Units.SESSION):
            found |= self._open_session(frame)
        return found

    @property
    def _needed(self) -> Mask:
        """The rows that are affected, or that a row to come has in its frames."""
        found = self._affected.copy()
        for units, away in ((Units.ROWS, self._rows_away), (Units.GROUPS, self._groups_away)):
            found |= away <= self._steps(units)[1]
        for frame in self._of(Units.RANGE):
            offset = _looking(Side.FOLLOWING, frame.end) if self._eviction.descending else _looking(Side.PRECEDING, frame.start)
            if offset is not None:
                found |= self._reaches_edge(offset)
        return found

    def _running(self, frame: Frame | None) -> Mask:
        """The final rows from which a frame to come may end, but for one; running calls are never descending."""
        if frame is None or frame.end.side is Side.CURRENT_ROW:
            return ~self._final
        if frame.units is Units.RANGE:
            if frame.end.offset is None:
                raise MistakeError("it ends so much PRECEDING")
            return ~self._final | self._reaches_edge(frame.end.offset)
        away = self._rows_away if frame.units is Units.ROWS else self._groups_away
        return ~self._final | (away <= -(frame.end.steps or 0))

    def _open_session(self, frame: Frame) -> Mask:
        firsts = self._rows.frames(frame).lo
        layout = self._rows.layout
        is_open = layout.spread((self._moved(frame.session_gap) >= self._least)[self._edge_rows])
        session: Mask = is_open & (firsts == layout.spread(firsts[self._edge_rows]))
        return session

    def _steps(self, units: Units) -> tuple[int, int]:
        """How many rows or groups frames reach toward the edge, and away from it."""
        frames = self._of(units)
        if units is Units.ROWS:
            merged = merge_rows_frames(frames)
            before, after = merged.n_preceding or 0, merged.n_following or 0
        else:
            before = max((frame.n_preceding or 0 for frame in frames), default=0)
            after = max((frame.n_following or 0 for frame in frames), default=0)
        return (before, after) if self._eviction.descending else (after, before)

    def _of(self, units: Units) -> list[Frame]:
        return [frame for frame in self._eviction.framed if frame.units is units]

    # --- distances ------------------------------------------------------------------------------------------------------

    @cached_property
    def _edges(self) -> Integers:
        """The end of the final rows of each segment, descending their start."""
        layout = self._rows.layout
        counts = np.add.reduceat(self._final.astype(np.int64), layout.segment_firsts)
        return layout.segment_ends - counts if self._eviction.descending else layout.segment_firsts + counts

    @cached_property
    def _edge_rows(self) -> Integers:
        """The final row of each segment next to the edge; any, if there is none."""
        layout = self._rows.layout
        if self._eviction.descending:
            return np.minimum(self._edges, layout.segment_ends - 1)
        return np.maximum(self._edges - 1, layout.segment_firsts)

    @cached_property
    def _rows_away(self) -> Integers:
        """How many rows from the edge each final row is, the next 1."""
        layout = self._rows.layout
        edges = layout.spread(self._edges)
        return layout.numbers - edges + 1 if self._eviction.descending else edges - layout.numbers

    @cached_property
    def _groups_away(self) -> Integers:
        """How many groups from the edge each final row is, the next 1."""
        layout = self._rows.layout
        edges = layout.spread(layout.group[self._edge_rows])
        return (layout.group - edges if self._eviction.descending else edges - layout.group) + 1

    def _moved(self, offset: Offset) -> Integers:
        """The point of each row moved on by an offset; of a NULL, none that reaches anything."""
        axis = order_axis(self._rows.column(self._rows.spec.order_by[0].name), (offset,))
        return np.where(axis.valid, axis.shift(offset, True), MIN)

    def _reaches_edge(self, offset: Offset) -> Mask:
        slack = 0 if getattr(offset, "is_fixed", True) else self._slack
        reaches: Mask = self._moved(offset) >= max(self._least, MIN + slack) - slack
        return reaches

    def _farthest(self, mask: Mask, places: Integers | None = None) -> Integers:
        """Return for each segment the place, of those in a mask, that is farthest from the edge; the edge if there is none."""
        layout = self._rows.layout
        at = layout.numbers if places is None else places
        if self._eviction.descending:
            return np.maximum(np.maximum.reduceat(np.where(mask, at, -1), layout.segment_firsts), self._edges - 1)
        return np.minimum(np.minimum.reduceat(np.where(mask, at, layout.size), layout.segment_firsts), self._edges)

    def _farther(self, left: Integers, right: Integers) -> Integers:
        return np.maximum(left, right) if self._eviction.descending else np.minimum(left, right)


def _looking(side: Side, bound: Bound) -> Offset | None:
    return bound.offset if bound.side is side else None


PAGES = Size("OVER pages that a batch sweeps", 8, (1, 3))
"""How many pages a batch sweeps."""
_SPREAD = 0x9E3779B97F4A7C15
"""2**64 by the golden ratio: its multiples fall evenly (Knuth)."""


def swept(pages: int, horizon: int) -> Integers:
    first = (horizon * _SPREAD % (1 << 64)) * pages >> 64
    return np.arange(first, min(first + PAGES.value, pages))
