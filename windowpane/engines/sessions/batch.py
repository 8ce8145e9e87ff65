"""One batch of one bucket of sessions: which pages it reads, and their sessions after it.

State, by name: ``header``, and pages ``p`` of open sessions by a hash of their key. A batch reads and writes the pages of its
keys, and those to which the clock makes something happen; one that would touch every page replaces them all at once. Who may
mutate: this batch. Recovery: read them back.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windowpane.arrays import Integers, Mask, Unsigned
from windowpane.engines.batch.driver import Left
from windowpane.engines.common.arrival import arrival_order
from windowpane.engines.common.columnar import group_columns, key_arrays, key_names, with_encoded_keys
from windowpane.engines.common.columnar_batch import ColumnarBatch
from windowpane.engines.common.held_panes import ELEMENTS, NEXT, PaneTables, Wanted
from windowpane.engines.common.pane_numbers import PaneNumbers
from windowpane.engines.common.results import Results
from windowpane.engines.messages import Message, Partials, Positions, Rows, tables_of
from windowpane.engines.program import Program
from windowpane.engines.sessions.carrying import in_pages, taken_out
from windowpane.engines.sessions.evictions import Evictions
from windowpane.engines.sessions.merging import Arrivals
from windowpane.engines.sessions.step import IS_SAME, Grown, SessionStep
from windowpane.engines.sessions.windows import row_windows
from windowpane.engines.spec import BucketEngine
from windowpane.errors import present
from windowpane.hidden_columns import END, FILLED, ROWS, START
from windowpane.kernels.grouping.grouped_fold import GroupedFold
from windowpane.kernels.keys.key_codes import key_hashes, plain_key
from windowpane.kernels.sessions.islands import sorted_by
from windowpane.sizes import Size
from windowpane.state.blob_store import BlobStore
from windowpane.state.hash_pages import HashPages, PageSummary
from windowpane.windowing.outputs import DELETE, INSERT, UPDATE_POSTIMAGE, UPDATE_PREIMAGE

PAGE_ROWS = Size("sessions of a page", 1 << 12, (2, 4))
DENSE_ROWS = Size("sessions of a page among pages that are all replaced", 1 << 18, (4, 8))
STEP_ROWS = Size("sessions and rows of a step", 1 << 20, (5, 12))
"""About so many are worked on at once: bounds the memory of a batch, whatever is open."""


class SessionBatch(ColumnarBatch):
    """Moves the clock and takes rows in one step, so that a page is touched once."""

    def __init__(
        self,
        engine: BucketEngine[Program],
        fold: GroupedFold,
        step: SessionStep,
        store: BlobStore,
        evictions: Evictions | None = None,
    ) -> None:
        super().__init__(engine, fold, store)
        self._evictions = evictions
        if evictions is not None:
            self.results = Results(self.program, evictions.results_fold)
        self._rule, self._steps = step.rule, step
        rows = taken_out(store, key_names(self.program), self.header.description, self.program.description)
        self._pages = HashPages(store, "p", self._hashes, self._summary, PAGE_ROWS.value, DENSE_ROWS.value)
        if rows is not None:
            self._pages.write(0, in_pages(rows, group_columns(self.program), self._rule.keeps_empty))
            self._pages.commit()
        self.widen(self._pages)
        self._moved: tuple[int, int] | None = None
        self._fired: list[pa.Table] = []
        self._refired: list[pa.Table] = []
        self._before: list[pa.Table] = []
        self._merges = 0

    def on_watermark(self, before: int) -> None:
        if self.is_event_time and self._moved is None:
            self._moved = before, before

    def on_processing_time(self, before: int) -> None:
        if not self.is_event_time and self._moved is None:
            self._moved = before, self.watermark

    def take(self, messages: Sequence[Message]) -> None:
        arrivals = self._arriving(messages)
        for part in arrivals if self.is_event_time else ():
            self._note_late(part, dropped=False)
        self._step(arrivals)

    def close(self) -> Left:
        if self._moved is not None:
            self._step([])
        pages = self._pages
        next_time = None if self.is_event_time else pages.next_due
        return self.left(pages.live, pages.byte_size, not len(pages), next_time, self._merges)

    def _hashes(self, table: pa.Table) -> Unsigned:
        return key_hashes([plain_key(table[name]) for name in group_columns(self.program)], table.num_rows)

    def _summary(self, sessions: pa.Table) -> PageSummary:
        due = self._rule.next_time(sessions[END].to_numpy(), self.clock)
        live = pc.sum(sessions[FILLED]).as_py() if FILLED in sessions.column_names else sessions.num_rows
        return PageSummary(int(due.min()), live)

    # Looking.

    def held(self, wanted: Wanted) -> Iterator[pa.Table]:
        """List open sessions, a page at a time: those of the key that is asked for, or those first that end first."""
        tables = PaneTables(self.program, self.results.fold, wanted, self.watermark)
        positions = self._pages.in_order_of_due()
        if wanted.key is not None:
            named = wanted.key.rename_columns(list(self.program.key_columns))
            hashes = self._hashes(with_encoded_keys(self.program, named))
            positions = np.unique(self._pages.locate(hashes)).tolist() if positions else []
        for position in positions:
            page, size = present(self._pages.read(position), "there are pages"), self._pages.size_of(position)
            if FILLED in page.column_names:
                page = page.filter(page[FILLED])
            starts, ends = page[START].to_numpy(), page[END].to_numpy()
            known = {NEXT: pa.array(self._rule.next_time(ends, self.clock))}
            if self._evictions is not None and page.num_rows:
                known[ELEMENTS] = pc.list_value_length(page[self.fold.columns[0]]).combine_chunks().cast(pa.int64())
                page = self._evictions.fired(page) if wanted.results else page
            is_wanted = wanted.take_windows(starts, ends) & wanted.of(key_arrays(self.program, page), page.num_rows)
            size = size if is_wanted.all() else int(size * is_wanted.sum() / max(len(is_wanted), 1))
            known = {name: column.filter(pa.array(is_wanted)) for name, column in known.items()}
            yield tables.of(page.filter(pa.array(is_wanted)), starts[is_wanted], ends[is_wanted], size, known)

    # A step.

    def _step(self, arrivals: list[Arrivals]) -> None:
        before, fired_under = self._moved or (None, self.watermark)
        self._moved = None
        begins = np.cumsum([0, *(len(part.ends) for part in arrivals)])

        def step(sessions: pa.Table | None, numbers: Integers) -> pa.Table | None:
            if len(numbers) == begins[-1]:
                return self._of_pages(sessions, arrivals, before)
            bounds = zip(begins, pairwise(np.searchsorted(numbers, begins).tolist()), strict=False)
            parts = zip(arrivals, bounds, strict=True)
            taken = [part.take(numbers[first:last] - begin) for part, (begin, (first, last)) in parts if first < last]
            return self._of_pages(sessions, taken, before)

        def hashes() -> Unsigned:
            return np.concatenate([np.zeros(0, np.uint64), *(self._hashes(part.table) for part in arrivals)])

        self._pages.each(int(begins[-1]), hashes, self.clock, STEP_ROWS.value, step)
        self._emit(fired_under)

    def _arriving(self, messages: Sequence[Message]) -> list[Arrivals]:
        arrivals = []
        if whole := tables_of(messages, Positions, Rows):
            rows = with_encoded_keys(self.program, self.arrived(whole)).combine_chunks()
            has_order = all(isinstance(message, Positions) for message in messages)
            arrivals.append(Arrivals(rows, *row_windows(self.program, rows, self.now), has_order=has_order))
        if pieces := tables_of(messages, Partials):
            folded = pa.concat_tables(pieces).combine_chunks()
            arrivals.append(Arrivals(folded, folded[START].to_numpy(), folded[END].to_numpy(), is_folded=True))
        return arrivals

    def _of_pages(self, sessions: pa.Table | None, arrivals: list[Arrivals], before: int | None) -> pa.Table | None:
        """Advance the clock over the sessions of some pages, let rows join them, and return those that stay and new ones."""
        if before is None and not arrivals:
            return None
        is_open = np.ones(0 if sessions is None else sessions.num_rows, bool)
        if sessions is not None and before is not None:
            fired, sessions, is_open = self._steps.advance(sessions, before, self.clock)
            self._fired.append(fired)
        grown = self._grown(sessions, is_open, arrivals) if arrivals else None
        if grown is not None:
            is_open[grown.joined] = False
        left = None if sessions is None else sessions.filter(pa.array(is_open))
        return _together(left, None if grown is None else grown.added)

    def _grown(self, sessions: pa.Table | None, is_open: Mask, arrivals: list[Arrivals]) -> Grown:
        order = None
        if len(arrivals) == 1 and arrivals[0].has_order:
            order = partial(self._in_arrival_order, arrivals[0].table)
        grown = self._steps.grow(sessions, is_open, arrivals, self.clock, order, self.watermark)
        self._merges += grown.merges
        for part, dropped in zip(arrivals, grown.dropped, strict=True):
            self._report_late(part.take(dropped))
        if grown.refired is not None:
            self._refired.append(grown.refired)
            self._before += [] if grown.before is None else [grown.before]
        return grown

    def _in_arrival_order(self, rows: pa.Table, numbers: Integers) -> Integers:
        order = arrival_order(rows.take(pa.array(numbers)), self.program.order_by)
        in_order: Integers = numbers[order.to_numpy()]
        return in_order

    # Emitting.

    def _note_late(self, part: Arrivals, dropped: bool) -> None:
        """Note rows whose own sessions have ended, that they are late; and those of them that no session took, as dropped."""
        behind = part.ends - 1 <= self.clock
        if behind.any():
            rows = part.table[ROWS].to_numpy() if part.is_folded else np.ones(len(part.ends), np.int64)
            times, lasts, rows = part.starts[behind], part.ends[behind] - 1, rows[behind]
            self.late_counts.note(times, lasts, self.clock, rows * (not dropped), rows * dropped)

    def _report_late(self, late: Arrivals) -> None:
        """Count rows that no session took; pieces are only made where late rows are not asked for."""
        self._note_late(late, dropped=True)
        if late.is_folded:
            self.missed.count_dropped(pc.sum(late.table[ROWS]).as_py() or 0)
        else:
            self.missed.drop(late.table, late.starts, late.ends)

    def _emit(self, fired_under: int) -> None:
        """Emit the sessions that the clock fired, in order of time as timers fire, then those that late rows fired again."""
        if self._fired:
            fired = pa.concat_tables(self._fired)
            ends = fired[END].to_numpy()
            in_time = fired.take(pa.array(sorted_by(np.zeros_like(ends), ends).order)) if len(ends) else fired
            self._emit_sessions(in_time, fired_under)
        options = self.program.spec.panes
        for before in self._before if options.retracts else ():
            self._emit_sessions(before, self.watermark, (DELETE, UPDATE_PREIMAGE), is_retraction=True)
        for refired in self._refired:
            self._emit_sessions(refired, self.watermark, (INSERT, UPDATE_POSTIMAGE))
        self._fired, self._refired, self._before = [], [], []

    def _emit_sessions(
        self, sessions: pa.Table, fired_under: int, words: tuple[str, str] | None = None, is_retraction: bool = False
    ) -> None:
        """Emit sessions; where results are changes, ``words`` are those for sessions that are new or removed, and that stay."""
        fired = sessions if self._evictions is None or not sessions.num_rows else self._evictions.fired(sessions)
        options, columns = self.program.spec.panes, list[pa.Array]()
        if options.shows_info:
            columns += PaneNumbers.kept(sessions).last_panes()
        if options.retracts and words is not None:
            is_same = sessions[IS_SAME].to_numpy()
            columns.append(pa.array(np.where(is_same, words[1], words[0]), pa.string()))
        starts, ends = sessions[START].to_numpy(), sessions[END].to_numpy()
        self.results.emit_panes(starts, ends, fired, fired_under, columns, is_retraction)


def _together(left: pa.Table | None, added: pa.Table | None) -> pa.Table | None:
    tables = [table for table in (left, added) if table is not None]
    return pa.concat_tables([table.select(tables[0].column_names) for table in tables]) if tables else None
