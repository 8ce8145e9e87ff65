"""The slices engine: tumbling, sliding and cumulating windows of built-in aggregates, on Arrow tables.

Rows fold once into slices that overlapping windows share; a window merges its slices when it fires; late rows fire again only
for the keys they touch. State, by name in the bucket's blob store: ``header``; a segment log ``s`` with one segment a slice,
whose rows are the partial aggregates of each key; for processing-time windows a segment log ``a`` (see ``_add_at_end``); for
staggered windows their ``stagger``. Who may mutate: this engine, once a batch. Recovery: read them back.

There are no timers: the windows of a slice follow from its start, and a window fires when the clock of its kind passes its end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

import numpy as np
import pyarrow as pa

from windowpane.arrays.columns import replaced, split
from windowpane.engines.batch.driver import Left
from windowpane.engines.common.arrival import TaskNumbers
from windowpane.engines.common.columnar import common_refusal, fold_of, with_plain_keys
from windowpane.engines.common.columnar_batch import ColumnarBatch
from windowpane.engines.common.held_panes import PaneTables, Wanted, WindowsEngine
from windowpane.engines.common.slicing import slices_of, slicing_refusal, staggered
from windowpane.engines.messages import Message, Partials, Positions, Rows, tables_of
from windowpane.engines.program import Program
from windowpane.engines.slices.each_refinement import EachRefinement
from windowpane.engines.slices.folding import SliceFolding, combiner
from windowpane.engines.slices.merging import merged_windows
from windowpane.engines.spec import Combining
from windowpane.errors import MistakeError
from windowpane.hidden_columns import PARTITION, POSITION, ROWS, SLICE, TIME, hidden
from windowpane.state.blob_store import BlobStore
from windowpane.state.segment_log import SegmentLog
from windowpane.windowing.windows import TimeWindow

_TOUCHED = hidden("touched")


def combining_refusal(program: Program) -> str | None:
    """Return why the windows of a row are not known outside its bucket, or not its order; ``None`` if they are."""
    fold = fold_of(program)
    if fold is not None and fold.is_ordered and program.order_by:
        return "order_by tells which row of a key comes first"
    return slicing_refusal(program.spec)


class _Batch(ColumnarBatch):
    def __init__(self, engine: SlicesEngine, store: BlobStore) -> None:
        super().__init__(engine, engine.folding.fold, store)
        self._engine = engine
        self._log = SegmentLog(store, "s")
        self._at_end = SegmentLog(store, "a")
        self.widen(self._log, self._at_end)
        self._slices = staggered(engine.folding.slices, engine.program.spec.assigner, store, None)
        self._purges = engine.program.spec.purges
        self._merged: dict[int, pa.Table] = {}

    # The clocks.

    def on_watermark(self, before: int) -> None:
        if self.is_event_time:
            self._fire_due(before, fired_under=before)

    def on_processing_time(self, before: int) -> None:
        if not self.is_event_time:
            self._fire_at_end()
            self._fire_due(before, fired_under=self.watermark)

    def _fire_due(self, before: int, fired_under: int) -> None:
        """Fire the windows that end between the clock before and now, then drop what no window needs."""
        windows = {w for s in self._log.segments() for w in self._slices.windows_of(s)}
        due = [w for w in windows if before < w.max_timestamp <= self.clock]
        due.sort(key=lambda w: (w.max_timestamp, w))
        read = {start for window in due for start in self._held_slices(window.start, window.end)}
        self._log.prefetch(read - self._merged.keys())
        for window, contents in zip(due, merged_windows(due, self._slices_between, self._merge), strict=True):
            self.results.emit(window, contents, fired_under)
        for start in self._log.segments():
            if all(self._is_over(window) for window in self._slices.windows_of(start)):
                self._log.drop(start)
                self._merged.pop(start, None)

    def _is_over(self, window: TimeWindow) -> bool:
        """Whether nothing will read a window's slices any more: it was cleaned up, or purged at its firing."""
        return self.is_late(window) or (self._purges and window.max_timestamp <= self.clock)

    def _merge(self, partials: Sequence[pa.Table]) -> pa.Table:
        return self.fold.merge(partials, self._engine.folding.groups)

    def _slices_between(self, start: int, end: int) -> list[pa.Table]:
        return [self._slice(start) for start in self._held_slices(start, end)]

    def _held_slices(self, start: int, end: int) -> list[int]:
        """Return the slices from one time to another that hold something."""
        return [start for start in self._slices.between(start, end) if start in self._log]

    def _slice(self, start: int) -> pa.Table:
        if start not in self._merged:
            chunks = self._log.read(start)
            merged = chunks[0] if len(chunks) == 1 else self.fold.merge(chunks, self._engine.folding.groups)
            if self._log.wants_compaction(start):
                self._log.replace(start, merged)
            self._merged[start] = merged
        return self._merged[start]

    # The rows.

    def take(self, messages: Sequence[Message]) -> None:
        self._slices = staggered(self._engine.folding.slices, self.program.spec.assigner, self.store, self.now)
        groups = [SLICE, *self._engine.folding.groups]
        whole = tables_of(messages, Positions)
        combined = [message for message in messages if not isinstance(message, Positions)]
        numbers = self.task_numbers([each.table for each in messages]) if combined and self.fold.is_ordered else None
        partials = [self._combined(combined, numbers)] if combined else []
        if whole:
            rows = self._engine.folding.sliced(self.arrived(whole, self._engine.refines_each, numbers), self._slices, self.now)
            if self.is_event_time:
                self.missed.report(self._slices, rows, rows[SLICE].to_numpy(), self.watermark, self.is_late)
            rows = with_plain_keys(self.program, self._without_gaps(rows))
            if self._engine.refines_each:
                self._refine_each(rows)
            partials.append(self.fold.fold(rows, groups))
        self._add(partials[0] if len(partials) == 1 else self.fold.merge(partials, groups))

    def _combined(self, messages: Sequence[Partials | Rows], numbers: TaskNumbers | None) -> pa.Table:
        """Return what the combiner sent, by slice and key."""
        partials, rows = tables_of(messages, Partials), tables_of(messages, Rows)
        if rows:
            partials.append(self._engine.folding.fold_rows(pa.concat_tables(rows)))
        folded = self._resliced(pa.concat_tables(partials))
        if numbers is not None:
            folded = self.fold.renumbered(folded, numbers.of_tasks(folded[PARTITION].to_numpy()))
            folded = folded.drop_columns([PARTITION, POSITION])
        if self.is_event_time:
            self.missed.count(self._slices, folded[SLICE].to_numpy(), folded[ROWS].to_numpy(), self.watermark, self.is_late)
            if not (self.program.late_output is None or not self.missed.elements):
                raise MistakeError("late rows that are asked for come whole")
        is_folded_once = rows and len(partials) == 1
        return folded.drop_columns([ROWS]) if is_folded_once else self.fold.merge([folded], [SLICE, *self._engine.folding.groups])

    def _resliced(self, folded: pa.Table) -> pa.Table:
        """Return partials from before the shuffle with the slice of the processing time, where that is their time."""
        if self.is_event_time:
            return folded
        start = self._slices.starts(np.array([self.now]))
        in_window = self._slices.covers(np.array([self.now]), start)[0]
        starts = pa.array(np.full(folded.num_rows, start[0]))
        folded = replaced(folded, SLICE, starts)
        return folded if in_window else folded.slice(0, 0)

    def _without_gaps(self, rows: pa.Table) -> pa.Table:
        if not self._slices.has_gaps:
            return rows
        starts = rows[SLICE].to_numpy()
        times = rows[TIME].to_numpy() if self.is_event_time else np.full(len(starts), self.now)
        return rows.filter(pa.array(self._slices.covers(times, starts)))

    def _add(self, partials: pa.Table) -> None:
        """Fire again the windows that partials are late for, for the keys they touch; then append them to their slices."""
        by_slice = [(start, rows.combine_chunks()) for start, rows in split(partials, SLICE)]
        if self.is_event_time and not self._engine.refines_each:
            self._refine(by_slice)
        for start, rows in by_slice:
            windows = self._slices.windows_of(start)
            if not self.is_event_time:
                self._add_at_end([window for window in windows if self._is_over(window)], rows)
            if not all(self._is_over(window) for window in windows):
                self._log.append(start, rows)
                self._merged.pop(start, None)

    def _refine(self, by_slice: list[tuple[int, pa.Table]]) -> None:
        touched: dict[TimeWindow, list[pa.Table]] = {}
        for start, rows in by_slice:
            for window in self._slices.windows_of(start):
                if self._is_refined(window):
                    touched.setdefault(window, []).append(rows)
        for window, late in touched.items():  # in the assigner's order, as Flink fires for a late element
            self.results.emit(window, self._refined(window, late), fired_under=self.watermark)

    def _is_refined(self, window: TimeWindow) -> bool:
        return not self.is_late(window) and window.max_timestamp <= self.watermark

    def _refine_each(self, rows: pa.Table) -> None:
        each = EachRefinement(self.fold, self._engine.folding.groups, self._purges, self._refined_windows, self._held)
        fired = each.firings(rows, rows[SLICE].to_numpy())
        if fired is not None:
            self.results.emit_panes(fired.starts, fired.ends, fired.partials, self.watermark)

    def _refined_windows(self, start: int) -> list[TimeWindow | None]:
        return [window if self._is_refined(window) else None for window in self._slices.windows_of(start)]

    def _held(self, window: TimeWindow) -> pa.Table | None:
        slices = self._slices_between(window.start, window.end)
        return self._merge(slices) if slices else None

    def _refined(self, window: TimeWindow, late: list[pa.Table]) -> pa.Table:
        """Return the contents that fire for late rows: new ones if the trigger purges, else all of the touched keys."""
        groups = self._engine.folding.groups
        earlier = [] if self._purges else self._slices_between(window.start, window.end)
        marked = [_marked(table, True) for table in late] + [_marked(table, False) for table in earlier]
        merged = self.fold.merge(marked, groups, [(_TOUCHED, "max")])
        return merged.filter(merged[_TOUCHED]).drop_columns([_TOUCHED])

    # Processing-time windows in the microsecond of their end.

    def _add_at_end(self, windows: list[TimeWindow], rows: pa.Table) -> None:
        """Keep rows for windows whose last instant is now.

        Such a window has fired and was removed, but rows still fall into it: it opens anew, for these rows alone, and fires when
        the clock is next read. So they must not be put into the slice that the window has in common with others.
        """
        for window in windows:
            self._at_end.append(window.end, rows)

    def _fire_at_end(self) -> None:
        for end in self._at_end.segments():
            start = self._slices.window_starts(np.array([end]))[0]
            window = TimeWindow(int(start), end)
            self.results.emit(window, self.fold.merge(self._at_end.read(end), self._engine.folding.groups), self.watermark)
            self._at_end.drop(end)

    # Looking.

    def held(self, wanted: Wanted) -> Iterator[pa.Table]:
        windows = {w for s in self._log.segments() for w in self._slices.windows_of(s)}
        tables = PaneTables(self.program, self.fold, wanted, self.watermark)
        for window in sorted((w for w in windows if not self._is_over(w)), key=lambda w: (w.max_timestamp, w)):
            if wanted.takes_window(window.start, window.end):
                slices = self._held_slices(window.start, window.end)
                self._log.prefetch(slices)
                partials = self._merge(self._slices_between(window.start, window.end))
                starts, ends = np.full(partials.num_rows, window.start), np.full(partials.num_rows, window.end)
                yield tables.of(partials, starts, ends, sum(map(self._log.size_of, slices)))
                for start in [start for start in self._merged if start < window.start]:
                    del self._merged[start]
        for end in self._at_end.segments():
            start = int(self._slices.window_starts(np.array([end]))[0])
            if wanted.takes_window(start, end):
                partials = self._merge(self._at_end.read(end))
                starts, ends = np.full(partials.num_rows, start), np.full(partials.num_rows, end)
                yield tables.of(partials, starts, ends, self._at_end.size_of(end))

    # Emitting.

    def close(self) -> Left:
        self._log.flush()
        self._at_end.flush()
        windows = {w for s in self._log.segments() for w in self._slices.windows_of(s)}
        ends = [w.max_timestamp for w in windows if not self._is_over(w)] + [end - 1 for end in self._at_end.segments()]
        following = None if self.is_event_time else min(ends, default=None)
        size = self._log.byte_size + self._at_end.byte_size
        return self.left(len(ends), size, not ends and not self._log.segments(), following)


class SlicesEngine(WindowsEngine):
    name = "slices"
    reason = "windows of fixed size over built-in aggregates share slices"
    state = "a segment log: partial aggregates by slice and key"
    holds: ClassVar = {"s": "partials by slice", "a": "partials of windows that end now"}
    combining = Combining(combiner, combining_refusal, folds_punctual=True, folds_ordered=True)
    batch = _Batch

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        self.folding = SliceFolding(program)
        self.refines_each = program.spec.refines_each

    @classmethod
    def refusal(cls, program: Program) -> str | None:
        spec = program.spec
        if slices_of(spec.assigner) is None:
            return f"{type(spec.assigner).__name__} has no shared slices"
        if not spec.fires_at_window_end:
            return f"{type(spec.trigger).__name__} fires key by key"
        if spec.evictor is not None:
            return "an evictor needs every row"
        return common_refusal(program, fires_again=spec.refines_each)

    @classmethod
    def explains(cls, program: Program) -> bool:
        return not program.spec.merges and program.spec.assigner.has_ends


def _marked(table: pa.Table, touched: bool) -> pa.Table:
    return table.append_column(_TOUCHED, pa.array(np.full(table.num_rows, touched)))
