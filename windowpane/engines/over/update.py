"""The engine of OVER windows that emit on update: a changelog in, a changelog out.

Rows and their current outputs are stored in pages, ordered by (partition, ORDER BY, key). A batch reads the pages its changes
fall into, and around them as many as the frames of affected rows reach; kernels compute all affected rows together, however far
apart; what differs from the stored outputs is the changelog; pages that changed are written. Cost follows the changes and the
width of bounded frames. Running calls continue from the carry columns of the row before, and stop where these no longer change.

State, by name in the bucket's blob store: ``header``, and the row pages ``g``, whose rows are input columns, event time, outputs,
carry columns, and what is stored of sort keys. Who may mutate: this engine, once a batch. Recovery: read them back.
Invariants after every batch: each stored output is what its call gives on the stored rows; what was emitted so far adds up to the
stored rows and those dropped because no row to come can reach them.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windowpane.arrays import Integers, Mask
from windowpane.arrays.columns import flat
from windowpane.engines.batch.driver import Left
from windowpane.engines.over.batch import OverBatch
from windowpane.engines.over.changes import net_changes
from windowpane.engines.over.eviction import Eviction, swept
from windowpane.engines.over.output import changelog
from windowpane.engines.over.page_form import PageForm, PageWriter, run_firsts
from windowpane.engines.over.page_writing import Altered, write_pages
from windowpane.engines.over.program import OverProgram
from windowpane.engines.over.spans import Delta, InSpans, InTable, Live, MorePages, PageCache, Segments, Spans, around
from windowpane.engines.protocol import BucketOutput, Clock
from windowpane.engines.rows import python_rows
from windowpane.errors import InconsistentChangeError
from windowpane.hidden_columns import SORT_KEY, TIME
from windowpane.kernels.keys.codes import written_differently, written_differently_among
from windowpane.kernels.over import window as over_window
from windowpane.kernels.over.affected_rows import Merged, affected_by_frames, affected_by_running
from windowpane.kernels.over.protocol import CallKernel
from windowpane.kernels.over.rows import SortedRows
from windowpane.kernels.over.window import OverWindow, Values
from windowpane.kernels.segments import concatenated
from windowpane.kernels.sorting.sort_keys import SortKeys
from windowpane.state.blob_store import BlobStore
from windowpane.state.row_pages import RowPages
from windowpane.windowing.frames import Units, merge_rows_frames
from windowpane.windowing.outputs import DELETE, INSERT


class OverUpdateEngine:
    name = "over update"

    def __init__(self, program: OverProgram) -> None:
        self.program = program
        self.window = OverWindow(program.spec, program.columns)
        self.sort_keys = SortKeys(program.spec, program.columns)
        self.arriving = pa.schema([*program.columns, pa.field(TIME, pa.int64())])
        self.stored = pa.schema([*self.arriving, *program.outputs, *self.window.carries])
        self.form = self._page_form()
        self.framed = [call for call in self.window.calls if not call.is_running]
        self.running = [call for call in self.window.calls if call.is_running]
        reach = merge_rows_frames([call.call.reach for call in self.framed if call.call.reach.units is Units.ROWS])
        # How many rows around a change are likely to be needed: a guess that saves a second look.
        self.reach = min((reach.n_preceding or 0) + (reach.n_following or 0) + 1, 64)
        self.eviction = Eviction.of(program, self.window.calls)

    def _page_form(self) -> PageForm:
        """Return the form of pages: hashes of partitions, and their columns, are written once for all rows of a partition."""
        keys = self.sort_keys
        if not keys.stored:
            return PageForm(self.stored)
        runs = [*keys.stored, *(self.stored.field(name) for name in dict.fromkeys(keys.partition_by))]
        return PageForm(pa.schema([*runs, *(field for field in self.stored if field not in runs)]), len(runs))

    def run(self, store: BlobStore, rows: Sequence[pa.Table], clock: Clock) -> BucketOutput:
        return _Batch(self, store).run(rows, clock)


def refusal(program: OverProgram) -> str | None:
    return over_window.refusal(program.spec, program.columns)


@dataclass
class _Computed:
    live: InSpans  # which of the spans' rows they are
    by_frames: Mask  # where the values of calls that do not run are new; of other rows they may be anything
    by_running: Mask  # where those of running calls are
    values: Values  # the values


class _Batch(OverBatch):
    def __init__(self, engine: OverUpdateEngine, store: BlobStore) -> None:
        super().__init__(engine.program, store)
        self._engine = engine
        self._pages = RowPages(store, "g")
        if self.header.added:
            self._widen(self.header.added)
        self._horizon: int | None = None

    def _widen(self, added: Container[str]) -> None:
        """Write pages of rows without the columns ``added`` anew, with NULL in these."""
        form = self._engine.form
        held = PageForm(pa.schema([field for field in form.schema if field.name not in added]), form.runs)
        for ordinal in range(len(self._pages)):
            page = form.padded(held.from_blob(self._pages.read(ordinal)), held.schema)
            firsts = np.cumsum(page.counts) - page.counts
            writer = PageWriter(form, page.columns, firsts, page.repeated)
            self._pages.rewrite(ordinal, writer.blob(0, page.num_rows))

    def work(self, tables: list[pa.Table]) -> None:
        self._horizon = self.program.horizon(self.late_under)
        rows = self.arrived(tables) if tables else None
        emitted = None if rows is None else self._take(rows)
        if emitted is not None:
            self.emit(emitted)
        if self._horizon != self.program.horizon(self.before):
            self._sweep()

    def close(self) -> Left:
        self._pages.flush()
        return Left(0, self._pages.byte_size)

    def _take(self, rows: pa.Table) -> pa.Table | None:
        if not rows.num_rows:
            return None
        changes = net_changes(self.program, rows, self.report)
        names, sort_keys = self._engine.arriving.names, self._engine.sort_keys
        (deleted, deleted_keys), (inserted, inserted_keys) = (
            sort_keys.sorted(table.select(names).combine_chunks()) for table in (changes.deleted, changes.inserted)
        )
        delta = Delta(deleted_keys, inserted_keys, inserted)
        if not len(delta.keys):
            return None
        cache = self._cache()
        ordinals = _distinct(cache.pages_of(delta.keys)) if len(self._pages) else np.empty(0, np.int64)
        ordinals = self._dropped(cache, ordinals, self._final(deleted, inserted), whole=True)
        spans = Spans(cache, around(cache, ordinals, delta.keys, self._engine.reach), delta)
        self._check(spans, deleted, inserted)
        computed, pages = self._compute(spans), 1
        while isinstance(computed, MorePages):
            spans = Spans(cache, spans.extended(computed, pages), delta)
            computed, pages = self._compute(spans), 2 * pages
        return self._settle(cache, spans, computed)

    def _cache(self) -> PageCache:
        return PageCache(self._pages, self._engine.form, self._engine.stored, self._engine.sort_keys)

    # --- eviction ---------------------------------------------------------------------------------------------------------

    def _final(self, *changes: pa.Table) -> int | None:
        """Return the horizon up to which stored rows are final before the changes of the batch, ``None`` for none of them.

        It is below all changes: rows of another window may arrive behind the horizon of this one.
        """
        horizon = self._horizon
        for times in (table[TIME] for table in changes if horizon is not None):
            if times.null_count and self.program.null_is_late:
                return None
            least = pc.min(times).as_py()
            horizon = horizon if least is None else min(horizon, least - 1)
        return horizon

    def _sweep(self) -> None:
        if self._horizon is None or not len(self._pages):
            return
        cache = self._cache()
        ordinals = self._dropped(cache, swept(len(self._pages), self._horizon), self._horizon)
        if len(cache.dropped.rows):
            spans = Spans(cache, ordinals, Delta.none(self._engine.arriving))
            names = [*self.program.outputs.names, *self._engine.window.carries.names]
            current = {name: flat(spans.table[name]) for name in names}
            self._write(cache, spans, np.arange(len(spans.source)), current, np.zeros(len(spans.source), np.bool_))

    def _dropped(self, cache: PageCache, ordinals: Integers, horizon: int | None, whole: bool = False) -> Integers:
        """Drop rows that no row to come can reach from some pages, and return the pages.

        ``whole``: go on with pages beside these for as long as they have such rows of the same partitions.
        """
        if self._engine.eviction is None or horizon is None or not len(ordinals):
            return ordinals
        pages, more = 1, True
        while more:
            spans = Spans(cache, ordinals, Delta.none(self._engine.arriving))
            rows = self._engine.window.rows(spans.table, spans.starts, np.zeros(len(spans.firsts), np.bool_))
            dropped = self._engine.eviction.dropped(rows, spans.table[TIME], horizon, spans.cut_left, spans.cut_right)
            beyond = MorePages(dropped[spans.firsts] & spans.cut_left, dropped[spans.lasts] & spans.cut_right)
            more = whole and bool(beyond.left.any() or beyond.right.any())
            if more:
                ordinals, pages = spans.extended(beyond, pages), 2 * pages
        if dropped.any():
            cache.drop(ordinals, dropped, spans.starts)
        return ordinals

    def _check(self, spans: Spans, deleted: pa.Table, inserted: pa.Table) -> None:
        for word, rows, wrong, reason in (
            (DELETE, deleted, ~spans.is_known, "there is no such row in its partition"),
            (INSERT, inserted, spans.is_double, "its partition already has such a row"),
        ):
            for row in python_rows(rows.filter(pa.array(wrong)).select(self.program.columns.names)) if wrong.any() else ():
                self.report(InconsistentChangeError(word, row, reason))

    # --- computing --------------------------------------------------------------------------------------------------------

    def _compute(self, spans: Spans) -> _Computed | MorePages:
        """Return the rows of the spans computed, or what must be read before they can be."""
        merged = Merged(self._sorted(spans, None, spans.starts), spans.deleted, spans.inserted)
        by_frames = affected_by_frames(merged, self._engine.framed) if self._engine.framed else spans.deleted | spans.inserted
        by_running = affected_by_running(merged) if self._engine.running else by_frames
        rows, segment = merged.rows, merged.rows.layout.segment
        live = rows.layout.numbers
        if spans.deleted.any():
            live = np.flatnonzero(~spans.deleted)
            segment, by_frames, by_running = segment[live], by_frames[live], by_running[live]
            rows = self._sorted(spans, live, _starts(segment))
        rows.wanted = by_frames | by_running
        changed = spans.deleted | spans.inserted
        # Beyond a cut with a change, rows may be affected, or needed.
        more = MorePages(changed[spans.firsts] & spans.cut_left, changed[spans.lasts] & spans.cut_right)
        sides = _Sides(spans, rows, segment, more)
        sides.need(by_frames, self._engine.framed)
        sides.need_counters(by_running, self._engine.running)
        if more.left.any() or (more.right.any() and not self._engine.running):
            return more
        values = self._engine.window.values(rows)
        if self._engine.running:
            by_running = self._stopped(spans, rows, segment, live, values, by_running, more)
        if more.right.any():
            return more
        return _Computed(live, by_frames, by_running, values)

    def _sorted(self, spans: Spans, positions: InSpans | None, starts: Mask) -> SortedRows:
        names = dict.fromkeys([*self._engine.window.read, *self._engine.window.carries.names])
        seeded = self._seeded(spans)
        if positions is not None:
            present = np.zeros(len(seeded), np.bool_)
            present[(np.cumsum(spans.starts) - 1)[positions]] = True
            seeded = seeded[present]
        return self._engine.window.rows(spans.taken(list(names), positions), starts, seeded)

    def _seeded(self, spans: Spans) -> Mask:
        """Where a segment continues from the carry columns of its first row: rows before it are not read, or were dropped."""
        if not len(self._engine.window.carries):
            return np.zeros(len(spans.firsts), np.bool_)
        if self._engine.eviction is None:
            return spans.cut_left
        unchanged: Mask = ~(spans.deleted | spans.inserted)[spans.firsts]
        return spans.cut_left | unchanged

    def _stopped(
        self,
        spans: Spans,
        rows: SortedRows,
        segment: Segments,
        live: InSpans,
        values: Values,
        affected: Mask,
        more: MorePages,
    ) -> Mask:
        """Note where running calls must continue beyond a cut, and return the rows that are affected if they need not."""
        if not len(live):
            return affected
        lasts = rows.layout.segment_ends - 1
        stops = np.ones(len(spans.firsts), np.bool_)
        stops[segment[lasts]] = ~self._changes_reach(spans, rows, segment, live, values) | ~affected[lasts]
        right = more.right
        right |= spans.cut_right & ~stops
        beyond = np.zeros(rows.layout.size, np.bool_)
        for call in self._engine.running:
            beyond |= call.reaches_end(rows)
        beyond &= spans.cut_right[segment] & affected
        fresh = beyond & spans.inserted[live]
        right[segment[fresh]] = True
        return affected & ~beyond

    def _changes_reach(self, spans: Spans, rows: SortedRows, segment: Segments, live: InSpans, values: Values) -> Mask:
        """Return for each segment of ``rows`` whether rows beyond its cut on the right may change.

        Their frames end at the row where that of the segment's last row ends, or behind it. So nothing changes for them if from
        there on no row was inserted or deleted, and each has the carry columns that it had.
        """
        layout = rows.layout
        lasts = layout.segment_ends - 1
        firsts = lasts.copy()
        for call in self._engine.running:
            if call.call.frame is not None:
                firsts = np.minimum(firsts, rows.frames(call.call.frame).hi[lasts] - 1)
        whole = firsts < layout.segment_firsts
        firsts = np.maximum(firsts, layout.segment_firsts)
        begins = np.where(whole, spans.firsts[segment[lasts]], live[firsts])
        changed = np.append(0, np.cumsum(spans.deleted | spans.inserted))
        reach: Mask = changed[spans.lasts[segment[lasts]] + 1] > changed[begins]
        asked = np.flatnonzero(~reach & spans.cut_right[segment[lasts]])
        lengths = lasts[asked] + 1 - firsts[asked]
        number = np.repeat(asked, lengths)
        at = concatenated(firsts[asked], lengths)
        reach[number[self._carry_changes(spans, spans.source[live[at]], values, at)]] = True
        return reach

    def _carry_changes(self, spans: Spans, source: InTable, values: Values, at: Live) -> Mask:
        found = np.zeros(len(at), np.bool_)
        for name, new in zip(self._engine.window.carries.names, values.carries, strict=True):
            old = flat(spans.table[name].take(pa.array(source)))
            found |= written_differently(old, new.take(pa.array(at)))
        return found

    # --- emitting ---------------------------------------------------------------------------------------------------------

    def _settle(self, cache: PageCache, spans: Spans, computed: _Computed) -> pa.Table:
        source = spans.source[computed.live]
        names = [*self.program.outputs.names, *self._engine.window.carries.names]
        stored = {name: flat(spans.table[name].take(pa.array(source))) for name in names}
        fresh = dict(zip(names, [*computed.values.outputs, *computed.values.carries], strict=True))
        runs = {name: call.is_running for name, call in zip(self.program.outputs.names, self._engine.window.calls, strict=True)}
        affected = {name: computed.by_running if runs.get(name, True) else computed.by_frames for name in names}
        # Equal values may look different (a map's order): what was emitted stays as it was.
        inserted = spans.inserted[computed.live]
        differs = {name: written_differently_among(stored[name], fresh[name], affected[name] & ~inserted) for name in names}
        taken = {name: differs[name] | (affected[name] & inserted) if name in runs else affected[name] for name in names}
        current = {name: pc.if_else(pa.array(taken[name]), fresh[name], stored[name]) for name in names}
        emitted = changelog(self.program, spans, computed.live, current, self._before(spans, computed, stored))
        changed = np.logical_or.reduce([inserted, *differs.values()])
        self._write(cache, spans, computed.live, current, changed)
        return emitted

    def _before(self, spans: Spans, computed: _Computed, stored: dict[str, pa.Array]) -> dict[str, pa.Array]:
        """Return the outputs that were emitted for the rows: those of the row itself, or of the one it overwrites."""
        overwrites = spans.inserted[computed.live] & (spans.before[computed.live] >= 0)
        if not overwrites.any():
            return {name: stored[name] for name in self.program.outputs.names}
        before = spans.before[computed.live]
        rows = pa.array(before, mask=before < 0)
        return {name: flat(spans.table[name].take(rows)) for name in self.program.outputs.names}

    def _write(self, cache: PageCache, spans: Spans, live: InSpans, current: dict[str, pa.Array], changed: Mask) -> None:
        page, marked = spans.page[live], spans.deleted.copy()
        marked[live] = changed
        altered = Altered.of(spans.page, marked, spans.starts) | cache.dropped
        rows = np.flatnonzero(altered.among(page))
        places, names, runs = live[rows], self._engine.form.schema.names, self._engine.form.runs
        firsts, repeated = rows[:0], dict[str, pa.Array]()
        if runs:
            starts = _starts(np.cumsum(spans.starts, dtype=np.int64)[places])
            firsts = run_firsts(starts, self._engine.form.repeated, lambda name: self._columns(spans, places, [name])[name])
            repeated = self._columns(spans, places[firsts], names[:runs])
        columns = self._columns(spans, places, [name for name in names[runs:] if name not in current])
        columns |= {name: column.take(pa.array(rows)) for name, column in current.items()}
        ordered = [columns[name] for name in names[runs:]]
        writer = PageWriter(self._engine.form, ordered, firsts, list(repeated.values()))
        write_pages(self._pages, altered, writer, lambda row: spans.key_at(places[row]), page[rows])

    def _columns(self, spans: Spans, places: InSpans, names: Sequence[str]) -> dict[str, pa.Array]:
        keys, inputs = self._engine.sort_keys, [name for name in names if name != SORT_KEY]
        made = {SORT_KEY: keys.kept(spans.keys_at(places))} if SORT_KEY in names else {}
        return made | {name: flat(column) for name, column in zip(inputs, spans.taken(inputs, places).columns, strict=True)}


@dataclass
class _Sides:
    """Notes on which sides of which segments more must be read, for the rows that are affected."""

    spans: Spans
    rows: SortedRows
    segment: Segments
    more: MorePages

    def need(self, affected: Mask, calls: Sequence[CallKernel]) -> None:
        if not calls or not len(self.segment):
            return
        layout = self.rows.layout
        firsts, lasts = layout.segment_firsts, layout.segment_ends - 1
        self._note(self.more.left, self.segment[firsts[affected[firsts]]], self.spans.cut_left)
        self._note(self.more.right, self.segment[lasts[affected[lasts]]], self.spans.cut_right)
        for call in calls:
            self._note(self.more.left, self.segment[affected & call.reaches_first(self.rows)], self.spans.cut_left)
            self._note(self.more.right, self.segment[affected & call.reaches_end(self.rows)], self.spans.cut_right)

    def need_counters(self, affected: Mask, calls: Sequence[CallKernel]) -> None:
        """Note where running calls need counters of rows before a cut, or peers of a change are there: their frames hold it."""
        if not len(self.segment):
            return
        firsts = self.rows.layout.segment_firsts
        if any(call.call.frame is not None and call.call.frame.units is not Units.ROWS for call in calls):
            self._note(self.more.left, self.segment[firsts[affected[firsts]]], self.spans.cut_left)
        for call in calls:
            self._note(self.more.left, self.segment[affected & call.reaches_first(self.rows)], self.spans.cut_left)

    def _note(self, side: Mask, segments: Segments, cut: Mask) -> None:
        found = np.zeros(len(side), np.bool_)
        found[segments] = True
        side |= found & cut


def _distinct(ascending: Integers) -> Integers:
    return ascending[_starts(ascending)]


def _starts(segment: Segments) -> Mask:
    starts = np.ones(len(segment), np.bool_)
    starts[1:] = segment[1:] != segment[:-1]
    return starts
