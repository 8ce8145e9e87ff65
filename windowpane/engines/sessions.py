"""The sessions engine: session windows of built-in aggregates, with a fixed gap or one told by row, on Arrow tables.

A batch's rows and the open sessions of their keys become islands in one sort; an island's rows are folded and its sessions'
partials merged, so a session costs the same however many rows it has. State, by name in the bucket's blob store: ``header``, and
pages ``p`` of open sessions by a hash of their key. A batch reads and writes the pages of its keys, and those to which the clock
makes something happen. Who may mutate: this engine, once a batch. Recovery: read them back.

There are no timers: a session fires when the clock passes its end, is over when it passes its cleanup time, and each page
knows the first time at which one of its sessions does either.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import zip_longest

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windowpane.engines.arrival import arrival_order
from windowpane.engines.bucket_header import BucketHeader
from windowpane.engines.columnar import common_refusal, fold_of
from windowpane.engines.late_rows import late_table
from windowpane.engines.program import JUDGED, MAIN, POSITION, Program, Upstream
from windowpane.engines.protocol import BucketOutput, Clock, Counters
from windowpane.engines.results import Results
from windowpane.engines.session_meeting import END, FILLED, ROWS, START, Arrivals
from windowpane.engines.session_rule import Mask, SessionRule
from windowpane.engines.session_step import Grown, SessionStep
from windowpane.engines.session_windows import row_windows
from windowpane.engines.slices import fires_at_window_end
from windowpane.kernels.islands import Int64s, order_by
from windowpane.kernels.key_codes import Hashes, key_hashes, plain_key
from windowpane.state.blob_store import BlobStore
from windowpane.state.hash_pages import HashPages, PageSummary
from windowpane.windowing.assigners import EventTimeSessionWindows, ProcessingTimeSessionWindows
from windowpane.windowing.windows import TimeWindow

_WORTH_FOLDING = 3
"""Rows a piece must have on average to be worth making: pieces have more columns than rows, and are sorted once more."""


class SessionsEngine:
    """Runs what ``refusal`` does not refuse."""

    name = "sessions"

    step_rows = 1 << 20
    """About how many sessions and rows are worked on at once: bounds the memory of a batch, whatever is open."""

    page_rows = 1 << 15
    """Most sessions of a page."""

    def __init__(self, program: Program) -> None:
        """Run ``program``."""
        fold = fold_of(program)
        assert fold is not None, "the planner asked"
        self.program = program
        self.rule = SessionRule.of(program.spec)
        self.step = SessionStep(self.rule, fold, program.key_columns)
        self.fold = fold

    def run(self, store: BlobStore, rows: Sequence[pa.Table], clock: Clock) -> BucketOutput:
        """Run one batch of a bucket."""
        return _Batch(self, store).run(rows, clock)

    @property
    def can_fold_before_shuffle(self) -> bool:
        """Whether the window of a row is known outside its bucket."""
        return self.rule.is_event_time

    def fold_rows(self, rows: pa.Table) -> pa.Table:
        """Return the sessions rows make among themselves: the combiner, before the shuffle. Rows too scattered stay as they are.

        Raises:
            MissingTimestampError, InvalidSessionGapError, TimestampOverflowError, UserFunctionError: a row has no window.
        """
        arrivals = Arrivals(rows, *row_windows(self.program, rows, 0))
        return self.step.fold(arrivals) if self.step.rows_a_piece(arrivals) >= _WORTH_FOLDING else rows

    def hashes(self, table: pa.Table) -> Hashes:
        """Return the hash of each row's key."""
        return key_hashes([plain_key(table[name]) for name in self.program.key_columns], table.num_rows)


def refusal(program: Program) -> str | None:
    """Return why the sessions engine cannot run a program, ``None`` if it can."""
    spec = program.spec
    if type(spec.assigner) not in (EventTimeSessionWindows, ProcessingTimeSessionWindows):
        return f"{type(spec.assigner).__name__} makes no sessions"
    if not fires_at_window_end(spec):
        return f"{type(spec.trigger).__name__} fires by more than the end of a session"
    if spec.evictor is not None:
        return "an evictor needs every row"
    if spec.refine != "last" and spec.assigner.is_event_time and spec.allowed_lateness:
        return "refine='each' fires for every late row"
    return common_refusal(program, respells_keys=True, runs_user_code=True)


class _Batch:
    """One batch of one bucket: state opened, run, written back."""

    def __init__(self, engine: SessionsEngine, store: BlobStore) -> None:
        self._engine = engine
        self._program = engine.program
        self._rule = engine.rule
        self._store = store
        self._header = BucketHeader.read(store, engine.program.description)
        self._watermark = self._header.watermark
        self._processing_time = self._header.processing_time
        self._pages = HashPages(store, "p", engine.hashes, self._summary, engine.page_rows)
        self._results = Results(engine.program, engine.fold)
        self._fired: list[pa.Table] = []
        self._refired: list[pa.Table] = []
        self._late: list[pa.Table] = []
        self._late_elements = self._merges = 0

    def run(self, rows: Sequence[pa.Table], clock: Clock) -> BucketOutput:
        arrived = [table for table in rows if table.num_rows]
        if self._program.upstream is Upstream.SOURCE:
            self._step(clock.watermark, clock.processing_time, arrived)
        else:
            self._take_from_window(arrived, clock.processing_time)
            self._end_with(clock.watermark)
        return self._close()

    def _take_from_window(self, rows: list[pa.Table], processing_time: int) -> None:
        """Take rows of an earlier window: each under the watermark it came with, before that of this batch."""
        if not rows or self._program.upstream is Upstream.WINDOW or not self._rule.is_event_time:
            self._step(self._watermark, processing_time, rows)
            return
        arrived = pa.concat_tables(rows)
        for judged in sorted(set(arrived[JUDGED].to_pylist())):
            self._step(judged, processing_time, [arrived.filter(pc.equal(arrived[JUDGED], judged))])

    def _end_with(self, watermark: int) -> None:
        """Move the watermark after the rows of an earlier window: the clock of the machine moved before them."""
        if self._rule.is_event_time:
            self._step(watermark, self._processing_time, [])
        self._watermark = max(watermark, self._watermark)

    # A step.

    @property
    def _now(self) -> int:
        return self._watermark if self._rule.is_event_time else self._processing_time

    def _summary(self, sessions: pa.Table) -> PageSummary:
        due = self._rule.next_time(sessions[END].to_numpy(), self._now)
        live = pc.sum(sessions[FILLED]).as_py() if FILLED in sessions.column_names else sessions.num_rows
        return PageSummary(int(due.min()), live)

    def _step(self, watermark: int, processing_time: int, rows: list[pa.Table]) -> None:
        """Move the clocks, fire what is due, take rows, fire again what late ones touched."""
        before, judged = self._now, self._watermark
        self._watermark = max(watermark, self._watermark)
        self._processing_time = max(processing_time, self._processing_time)
        if not self._rule.is_event_time:
            judged = self._watermark  # the clock moves after the watermark, so downstream has seen that
        for positions, arrivals in self._groups(self._arrivals(rows), self._pages.due(self._now)):
            self._run_group(positions, arrivals, before)
        self._pages.commit()
        self._emit(judged)

    def _arrivals(self, tables: list[pa.Table]) -> list[Arrivals]:
        """Return the rows and the pieces of a batch."""
        arrivals = []
        whole = [table for table in tables if ROWS not in table.column_names]
        pieces = [table for table in tables if ROWS in table.column_names]
        if whole:
            rows = pa.concat_tables(whole).combine_chunks()
            arrivals.append(Arrivals(rows, *row_windows(self._program, rows, self._processing_time)))
        if pieces:
            folded = pa.concat_tables(pieces).combine_chunks()
            arrivals.append(Arrivals(folded, folded[START].to_numpy(), folded[END].to_numpy(), is_folded=True))
        return arrivals

    def _groups(self, arrivals: list[Arrivals], due: list[int]) -> Iterator[tuple[list[int], list[Arrivals]]]:
        """Yield pages with what arrives for them, as many at once as ``_STEP_ROWS`` allows."""
        pages = len(self._pages)
        if pages <= 1:
            if arrivals or due:
                yield [0], arrivals
            return
        located = [self._pages.locate(self._engine.hashes(part.table)) for part in arrivals]
        counts = np.bincount(np.concatenate([np.zeros(0, np.int64), *located]), minlength=pages)
        touched = sorted({*np.flatnonzero(counts).tolist(), *due})
        for positions in self._cut(touched, counts):
            wanted = np.isin(np.arange(pages), positions)
            parts = [part.select(wanted[at]) for part, at in zip(arrivals, located, strict=True)]
            yield positions, [part for part in parts if len(part.ends)]

    def _cut(self, touched: list[int], counts: Int64s) -> Iterator[list[int]]:
        """Yield the touched pages in groups of bounded size."""
        sizes = np.cumsum([self._pages.rows_of(position) + int(counts[position]) for position in touched])
        groups = sizes // self._engine.step_rows
        for group in np.unique(groups):
            yield [position for position, which in zip(touched, groups, strict=True) if which == group]

    def _run_group(self, positions: list[int], arrivals: list[Arrivals], before: int) -> None:
        """Move the clock over the sessions of some pages, let rows join them, and write what is left and what is new."""
        pages = [page for position in positions if (page := self._pages.read(position)) is not None]
        sessions, is_open = None, np.zeros(0, bool)
        if pages:
            fired, sessions, is_open = self._engine.step.advance(pa.concat_tables(pages).combine_chunks(), before, self._now)
            self._fired.append(fired)
        grown = self._grown(sessions, is_open, arrivals) if arrivals else None
        if grown is not None:
            is_open[grown.joined] = False
        ends = np.cumsum([page.num_rows for page in pages]).tolist()
        left = [
            sessions.slice(end - page.num_rows, page.num_rows).filter(pa.array(is_open[end - page.num_rows : end]))
            for page, end in zip(pages, ends, strict=True)
            if sessions is not None
        ]
        self._write(positions, left, grown.added if grown is not None else None)

    def _grown(self, sessions: pa.Table | None, is_open: Mask, arrivals: list[Arrivals]) -> Grown:
        """Return what rows make of the open sessions."""
        order = None
        if len(arrivals) == 1 and POSITION in arrivals[0].table.column_names:
            order = partial(self._in_arrival_order, arrivals[0].table)
        grown = self._engine.step.grow(sessions, is_open, arrivals, self._now, order)
        self._merges += grown.merges
        for part, dropped in zip(arrivals, grown.dropped, strict=True):
            self._report_late(part, dropped)
        if grown.refired is not None:
            self._refired.append(grown.refired)
        return grown

    def _in_arrival_order(self, rows: pa.Table, numbers: Int64s) -> Int64s:
        """Return numbers of rows in the order in which the row engine takes them."""
        order = arrival_order(rows.take(pa.array(numbers)), self._program.order_by)
        in_order: Int64s = numbers[order.to_numpy()]
        return in_order

    def _write(self, positions: list[int], left: list[pa.Table], added: pa.Table | None) -> None:
        """Write the pages at ``positions``: what is left of each, and those of the added sessions that belong there."""
        parts = self._by_page(positions, added) if added is not None else [None] * len(positions)
        for position, kept, new in zip_longest(positions, left, parts):
            tables = [table for table in (kept, new) if table is not None]
            if tables:
                self._pages.write(position, pa.concat_tables([table.select(tables[0].column_names) for table in tables]))

    def _by_page(self, positions: list[int], sessions: pa.Table) -> list[pa.Table]:
        """Return sessions by the page that each belongs to."""
        if len(positions) == 1:
            return [sessions]
        places = self._pages.locate(self._engine.hashes(sessions))
        order = order_by(places, np.zeros_like(places))
        sessions, places = sessions.take(pa.array(order)), places[order]
        starts, ends = np.searchsorted(places, positions).tolist(), np.searchsorted(places, positions, side="right").tolist()
        return [sessions.slice(start, end - start) for start, end in zip(starts, ends, strict=True)]

    # What comes out.

    def _report_late(self, part: Arrivals, dropped: Int64s) -> None:
        """Count what no session took, and keep it where late data is asked for."""
        if not len(dropped):
            return
        late = part.take(dropped)
        self._late_elements += pc.sum(late.table[ROWS]).as_py() if part.is_folded else len(dropped)
        if self._program.late_output is not None:
            missed = [[TimeWindow(start, end)] for start, end in zip(late.starts.tolist(), late.ends.tolist(), strict=True)]
            numbers = range(len(dropped))
            self._late.append(late_table(self._program, late.table, numbers, missed, [True] * len(dropped)))

    def _emit(self, judged: int) -> None:
        """Emit what the clock fired, in order of time as timers fire, then what late rows fired again."""
        if self._fired:
            fired = pa.concat_tables(self._fired)
            ends = fired[END].to_numpy()
            in_time = fired.take(pa.array(order_by(np.zeros_like(ends), ends))) if len(ends) else fired
            self._emit_sessions(in_time, judged)
        for refired in self._refired:
            self._emit_sessions(refired, self._watermark)
        self._fired, self._refired = [], []

    def _emit_sessions(self, sessions: pa.Table, judged: int) -> None:
        self._results.emit_panes(sessions[START].to_numpy(), sessions[END].to_numpy(), sessions, judged)

    def _close(self) -> BucketOutput:
        pages = self._pages
        header = BucketHeader(self._program.description, self._watermark, self._processing_time, pages.live)
        header.write(self._store)
        late = self._late_elements
        counters = Counters(late, late, self._results.firings, self._merges, pages.live, pages.byte_size)
        results = self._results.table()
        tables = [] if results is None else [(MAIN, results)]
        if self._late and self._program.late_output is not None:
            tables.append((self._program.late_output, pa.concat_tables(self._late)))
        idle = not len(pages) and self._program.upstream is Upstream.SOURCE
        return BucketOutput(tables, counters, idle, None if self._rule.is_event_time else pages.next_due)
