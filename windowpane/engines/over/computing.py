"""Computing the rows that a batch affects, from the pages that were read; or which more must be read before they can be.

Running calls continue from the carry columns of the row before: what a change means for them ends where these stay the same.
Nothing here mutates state.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from windowpane.arrays import Mask
from windowpane.arrays.columns import flat
from windowpane.engines.over.spans import InSpans, Live, MorePages, Segments, Spans
from windowpane.kernels.keys.codes import written_differently
from windowpane.kernels.over.affected_rows import Merged, affected_by_frames, affected_by_running
from windowpane.kernels.over.rows import SortedRows
from windowpane.kernels.over.window import OverWindow, Values
from windowpane.kernels.segments import concatenated, starts_of_runs
from windowpane.windowing.frames import Units


@dataclass
class Computed:
    """The rows that stay after the changes, computed."""

    live: InSpans  # which of the spans' rows they are
    by_frames: Mask  # where the values of calls that do not run are new; of other rows they may be anything
    by_running: Mask  # where those of running calls are
    values: Values


def computed(window: OverWindow, spans: Spans, drops_rows: bool) -> Computed | MorePages:
    """Return the rows of the spans computed, or what must be read before they can be.

    ``drops_rows``: whether rows that no row to come can reach are dropped, so that a partition may begin with carry columns.
    """
    return _Attempt(window, spans, drops_rows).run()


class _Attempt:
    def __init__(self, window: OverWindow, spans: Spans, drops_rows: bool) -> None:
        self._window, self._spans = window, spans
        self._changed = spans.deleted | spans.inserted
        # A segment continues from the carry columns of its first row where rows before it are not read, or were dropped.
        seeded = spans.cut_left | ~self._changed[spans.firsts] if drops_rows else spans.cut_left
        self._seeded = seeded if len(window.carries) else np.zeros(len(spans.firsts), np.bool_)
        # Beyond a cut with a change, rows may be affected, or needed.
        self._more = MorePages(self._changed[spans.firsts] & spans.cut_left, self._changed[spans.lasts] & spans.cut_right)

    def run(self) -> Computed | MorePages:
        spans, window, more = self._spans, self._window, self._more
        merged = Merged(self._sorted(None, spans.starts), spans.deleted, spans.inserted)
        by_frames = affected_by_frames(merged, window.framed) if window.framed else self._changed
        by_running = affected_by_running(merged) if window.running else by_frames
        self._rows, segment = merged.rows, merged.rows.layout.segment
        live = self._rows.layout.numbers
        if spans.deleted.any():
            live = np.flatnonzero(~spans.deleted)
            segment, by_frames, by_running = segment[live], by_frames[live], by_running[live]
            self._rows = self._sorted(live, starts_of_runs(segment))
        self._rows.wanted = by_frames | by_running
        self._live, self._segment = live, segment
        if len(live):
            self._need(by_frames, by_running)
        if more.left.any() or (more.right.any() and not window.running):
            return more
        values = window.values(self._rows)
        if window.running and len(live):
            by_running = self._stopped(values, by_running)
        return more if more.right.any() else Computed(live, by_frames, by_running, values)

    def _sorted(self, positions: InSpans | None, starts: Mask) -> SortedRows:
        seeded = self._seeded
        if positions is not None:
            present = np.zeros(len(seeded), np.bool_)
            present[(np.cumsum(self._spans.starts) - 1)[positions]] = True
            seeded = seeded[present]
        names = list(dict.fromkeys([*self._window.read, *self._window.carries.names]))
        return self._window.rows(self._spans.taken(names, positions), starts, seeded)

    def _need(self, by_frames: Mask, by_running: Mask) -> None:
        """Note the rows beyond cuts that frames of affected rows need, and the edges that these reach."""
        rows, window = self._rows, self._window
        firsts, lasts = rows.layout.segment_firsts, rows.layout.segment_ends - 1
        if window.framed:
            self._note_left(self._segment[firsts[by_frames[firsts]]])
            self._note_right(self._segment[lasts[by_frames[lasts]]])
        for call in window.framed:
            self._note_left(self._segment[by_frames & call.reaches_first(rows)])
            self._note_right(self._segment[by_frames & call.reaches_end(rows)])
        if any(call.call.frame is not None and call.call.frame.units is not Units.ROWS for call in window.running):
            self._note_left(self._segment[firsts[by_running[firsts]]])  # peers of a change are in frames that hold it
        for call in window.running:
            self._note_left(self._segment[by_running & call.reaches_first(rows)])

    def _note_left(self, segments: Segments) -> None:
        self._more.left[segments] |= self._spans.cut_left[segments]

    def _note_right(self, segments: Segments) -> None:
        self._more.right[segments] |= self._spans.cut_right[segments]

    def _stopped(self, values: Values, affected: Mask) -> Mask:
        """Note where running calls must continue beyond a cut, and return the rows that are affected if they need not."""
        lasts = self._rows.layout.segment_ends - 1
        self._note_right(self._segment[lasts[self._changes_reach(values) & affected[lasts]]])
        beyond = np.zeros(self._rows.layout.size, np.bool_)
        for call in self._window.running:
            beyond |= call.reaches_end(self._rows)
        beyond &= self._spans.cut_right[self._segment] & affected
        self._note_right(self._segment[beyond & self._spans.inserted[self._live]])
        return affected & ~beyond

    def _changes_reach(self, values: Values) -> Mask:
        """Return for each segment whether rows beyond its cut on the right may change.

        Their frames end at the row where that of the segment's last row ends, or behind it. So nothing changes for them if from
        there on no row was inserted or deleted, and each has the carry columns that it had.
        """
        spans, layout = self._spans, self._rows.layout
        lasts = layout.segment_ends - 1
        firsts, segments = lasts.copy(), self._segment[lasts]
        for call in self._window.running:
            if call.call.frame is not None:
                firsts = np.minimum(firsts, self._rows.frames(call.call.frame).hi[lasts] - 1)
        whole = firsts < layout.segment_firsts
        firsts = np.maximum(firsts, layout.segment_firsts)
        begins = np.where(whole, spans.firsts[segments], self._live[firsts])
        changed = np.append(0, np.cumsum(self._changed))
        reach: Mask = changed[spans.lasts[segments] + 1] > changed[begins]
        asked = np.flatnonzero(~reach & spans.cut_right[segments])
        lengths = lasts[asked] + 1 - firsts[asked]
        at: Live = concatenated(firsts[asked], lengths)
        stored = spans.taken(self._window.carries.names, self._live[at])
        for name, new in zip(self._window.carries.names, values.carries, strict=True):
            differs = written_differently(flat(stored[name]), new.take(pa.array(at)))
            reach[np.repeat(asked, lengths)[differs]] = True
        return reach
