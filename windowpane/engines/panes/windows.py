"""Panes: what one window holds of one key. Rows of a batch as elements of panes, and the codes of the panes they meet.

A window is named by its end, which no other window of the same assigner has; the global window by ``GLOBAL_END``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from windowpane.arrays import Integers, Mask
from windowpane.engines.common.columnar import refuse_null_times
from windowpane.engines.common.columnar_batch import ColumnarBatch
from windowpane.engines.common.slicing import Slices, slices_of, staggered
from windowpane.errors import present
from windowpane.hidden_columns import ROWS, SLICE, TIME
from windowpane.kernels.grouping.range_merge import Ranges, exploded
from windowpane.kernels.keys.dense_codes import dense_codes
from windowpane.windowing.times import MAX
from windowpane.windowing.windows import GLOBAL_WINDOW, TimeWindow, Window

GLOBAL_END = MAX


@dataclass(frozen=True)
class Elements:
    """Rows of a batch, one element for each window a row is in, in the order in which an operator takes them."""

    rows: pa.Table
    numbers: Integers  # the row of each element
    ends: Integers  # the end of the window of each element

    def where(self, wanted: Mask) -> Elements:
        return self if wanted.all() else Elements(self.rows, self.numbers[wanted], self.ends[wanted])

    def columns(self, names: Sequence[str]) -> pa.Table:
        selected = self.rows.select(list(names))
        is_each_once = np.array_equal(self.numbers, np.arange(selected.num_rows))
        return selected if is_each_once else selected.take(pa.array(self.numbers))


class PaneWindows:
    """The windows of a program on one bucket: fixed-size ones by their slices, or the global one."""

    def __init__(self, batch: ColumnarBatch) -> None:
        self._batch = batch
        self._assigner = batch.program.spec.assigner
        self.is_global = not self._assigner.has_ends
        base = slices_of(self._assigner)
        self._slices = None if base is None else staggered(base, self._assigner, batch.store, None)

    def window(self, end: int) -> Window:
        if self._slices is None:
            return GLOBAL_WINDOW
        return TimeWindow(int(self._slices.window_starts(np.array([end]))[0]), end)

    def starts(self, ends: Integers) -> Integers:
        return present(self._slices, "the global window has no start").window_starts(ends)

    def sliced(self, rows: pa.Table) -> tuple[pa.Table, Integers]:
        """Return the rows that are in windows, and their slices: rows of one slice are in the same windows.

        Rows that missed windows are reported.

        Raises:
            MissingTimestampError: a row without an event time in event-time windows.
            TimestampOverflowError: a row whose windows do not fit into int64.
        """
        count = rows.num_rows
        if self.is_global:
            return rows, np.full(count, GLOBAL_END)
        batch, slices = self._batch, self._settled()
        if batch.is_event_time:
            refuse_null_times(batch.program, rows)
            times = rows[TIME].to_numpy()
        else:
            times = np.full(count, batch.now)
        starts = slices.starts(times)
        if batch.is_event_time:
            batch.missed.report(slices, rows, starts, batch.watermark, batch.is_late)
        if slices.has_gaps:
            inside = slices.covers(times, starts)
            rows, starts = rows.filter(pa.array(inside)), starts[inside]
        return rows, starts

    def folded(self, rows: pa.Table) -> tuple[pa.Table, Integers]:
        """Return partials from before the shuffle that are in windows, and their slices; rows that missed some are counted."""
        if self.is_global:
            return rows, np.full(rows.num_rows, GLOBAL_END)
        batch, slices = self._batch, self._settled()
        if batch.is_event_time:
            starts = rows[SLICE].to_numpy()
            batch.missed.count(slices, starts, rows[ROWS].to_numpy(), batch.watermark, batch.is_late)
            return rows, starts
        now = np.array([batch.now])
        start = slices.starts(now)
        rows = rows if slices.covers(now, start)[0] else rows.slice(0, 0)
        return rows, np.full(rows.num_rows, start[0])

    def in_open_windows(self, rows: pa.Table, starts: Integers) -> Elements:
        """Return rows in the windows of their slices that are not late."""
        if self.is_global:
            return Elements(rows, np.arange(rows.num_rows), starts)
        codes, firsts = dense_codes([pa.chunked_array([pa.array(starts)])], len(starts))
        ends = [[window.end for window in self.open_windows(start)] for start in starts[firsts].tolist()]
        counts = np.array([len(each) for each in ends], np.int64)
        flat = np.array([end for each in ends for end in each], np.int64)
        offsets = np.cumsum(counts) - counts
        numbers = np.repeat(np.arange(len(starts)), counts[codes])
        places = exploded(Ranges(offsets[codes], offsets[codes] + counts[codes] - 1))
        return Elements(rows, numbers, flat[places])

    def open_windows(self, start: int) -> list[TimeWindow]:
        """Return the windows of a slice that are not late, in the assigner's order."""
        slices, is_event_time = present(self._slices, "the global window has no slices"), self._batch.is_event_time
        return [window for window in slices.windows_of(start) if not (is_event_time and self._batch.is_late(window))]

    def _settled(self) -> Slices:
        base = present(slices_of(self._assigner), "windows are global or of fixed size")
        self._slices = staggered(base, self._assigner, self._batch.store, self._batch.now)
        return self._slices
