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

from collections.abc import Container, Iterator, Sequence
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windowpane.arrays import Integers, Mask
from windowpane.arrays.columns import flat
from windowpane.engines.batch.driver import Left
from windowpane.engines.over.batch import OverBatch, calls_in_words
from windowpane.engines.over.changed_calls import ChangedCalls
from windowpane.engines.over.changes import net_changes
from windowpane.engines.over.computing import Computed, computed
from windowpane.engines.over.eviction import Eviction, swept
from windowpane.engines.over.output import changelog
from windowpane.engines.over.page_form import PageForm, PageWriter, run_firsts
from windowpane.engines.over.page_writing import Altered, write_pages
from windowpane.engines.over.program import Emit, OverProgram
from windowpane.engines.over.spans import Delta, InSpans, MorePages, PageCache, Spans, around
from windowpane.engines.rows import python_rows
from windowpane.engines.spec import BucketEngine
from windowpane.errors import InconsistentChangeError
from windowpane.hidden_columns import SORT_KEY, TIME
from windowpane.kernels.keys.codes import written_differently_among
from windowpane.kernels.over import window as over_window
from windowpane.kernels.over.window import OverWindow
from windowpane.kernels.segments import starts_of_runs
from windowpane.kernels.sorting.sort_keys import SortKeys
from windowpane.state.blob_store import BlobStore
from windowpane.state.row_pages import RowPages
from windowpane.windowing.frames import Units, merge_rows_frames
from windowpane.windowing.outputs import DELETE, INSERT

_PAGES = "g"


class OverUpdateEngine(BucketEngine[OverProgram]):
    name = "over update"
    state = "row pages: rows with their results, by partition and order"
    holds: ClassVar = {_PAGES: "rows with their results"}

    def __init__(self, program: OverProgram) -> None:
        super().__init__(program)
        self.window = OverWindow(program.spec, program.columns)
        self.sort_keys = SortKeys(program.spec, program.columns)
        self.arriving = pa.schema([*program.columns, pa.field(TIME, pa.int64())])
        self.stored = pa.schema([*self.arriving, *program.outputs, *self.window.carries])
        self.form = self._page_form()
        reach = merge_rows_frames([call.call.reach for call in self.window.framed if call.call.reach.units is Units.ROWS])
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

    @classmethod
    def serves(cls, program: OverProgram) -> bool:
        return program.mode is Emit.UPDATE

    @classmethod
    def refusal(cls, program: OverProgram) -> str | None:
        return over_window.refusal(program.spec, program.columns)

    @classmethod
    def reason_for(cls, program: OverProgram) -> str:
        return f"pages of rows and outputs, affected rows computed by kernels on sorted arrays: {calls_in_words(program)}"

    def open(self, store: BlobStore) -> _Batch:
        return _Batch(self, store)

    def held(self, store: BlobStore) -> pa.Table:
        """Return the rows of a bucket, as pages have them."""
        pages = RowPages(store, _PAGES)
        return self.form.table([self.form.from_blob(pages.read(ordinal)) for ordinal in range(len(pages))])

    def put(self, store: BlobStore, held: pa.Table) -> None:
        """Write rows, as pages have them, into an empty bucket."""
        pages = RowPages(store, _PAGES)
        self.put_into(pages, held)
        pages.flush()

    def put_into(self, pages: RowPages, held: pa.Table) -> None:
        """Write rows in place of those of all pages."""
        pages.replace(0, len(pages), [])
        keys = self.sort_keys.of_stored(held)
        order = np.argsort(keys, kind="stable")
        held, keys, runs = held.take(pa.array(order)).combine_chunks(), keys[order], self.form.runs
        columns = [flat(column) for column in held.columns]
        writer = PageWriter(self.form, columns[runs:], np.arange(held.num_rows if runs else 0), columns[:runs])
        nothing = np.zeros(held.num_rows, np.int64)
        write_pages(pages, Altered(nothing, nothing[:1]), writer, lambda row: bytes(keys[row]), nothing)

    def held_rows(self, store: BlobStore) -> Iterator[pa.Table]:
        """List the rows that are stored, a page at a time."""
        pages = RowPages(store, _PAGES)
        for ordinal in range(len(pages)):
            yield self.form.table([self.form.from_blob(pages.read(ordinal))])


class _Batch(OverBatch):
    def __init__(self, engine: OverUpdateEngine, store: BlobStore) -> None:
        super().__init__(engine, store)
        self._engine = engine
        self._pages = RowPages(store, _PAGES)
        self._changed: ChangedCalls | None = None
        was = self.header.description
        if was.get("calls") != self.program.description.get("calls"):
            self._changed = ChangedCalls.of(self.program, was)
            before = OverUpdateEngine(self.program.writer_of(was))
            held = self._changed.recomputed(self._engine.window, before.held(store), self._engine.form.schema)
            self._engine.put_into(self._pages, held)
            self.program = self._changed.telling
        elif self.header.added:
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
        if self._changed is not None:
            emitted = self._changed.changelog(emitted)
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
            sort_keys.sorted(table.select(names).combine_chunks()) for table in changes
        )
        delta = Delta(deleted_keys, inserted_keys, inserted)
        if not len(delta.keys):
            return None
        cache = self._cache()
        ordinals = cache.pages_of(delta.keys) if len(self._pages) else np.empty(0, np.int64)
        ordinals = ordinals[starts_of_runs(ordinals)]
        ordinals = self._dropped(cache, ordinals, self._final(deleted, inserted), whole=True)
        spans = Spans(cache, around(cache, ordinals, delta.keys, self._engine.reach), delta)
        self._check(spans, deleted, inserted)
        drops, pages = self._engine.eviction is not None, 1
        while isinstance(found := computed(self._engine.window, spans, drops), MorePages):
            spans, pages = Spans(cache, spans.extended(found, pages), delta), 2 * pages
        return self._settle(cache, spans, found)

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

    # --- emitting ---------------------------------------------------------------------------------------------------------

    def _settle(self, cache: PageCache, spans: Spans, found: Computed) -> pa.Table:
        source = spans.source[found.live]
        names = [*self.program.outputs.names, *self._engine.window.carries.names]
        stored = {name: flat(spans.table[name].take(pa.array(source))) for name in names}
        fresh = dict(zip(names, [*found.values.outputs, *found.values.carries], strict=True))
        runs = {name: call.is_running for name, call in zip(self.program.outputs.names, self._engine.window.calls, strict=True)}
        affected = {name: found.by_running if runs.get(name, True) else found.by_frames for name in names}
        # Equal values may look different (a map's order): what was emitted stays as it was.
        inserted = spans.inserted[found.live]
        differs = {name: written_differently_among(stored[name], fresh[name], affected[name] & ~inserted) for name in names}
        taken = {name: differs[name] | (affected[name] & inserted) if name in runs else affected[name] for name in names}
        current = {name: pc.if_else(pa.array(taken[name]), fresh[name], stored[name]) for name in names}
        emitted = changelog(self.program, spans, found.live, current, self._before(spans, found, stored))
        changed = np.logical_or.reduce([inserted, *differs.values()])
        self._write(cache, spans, found.live, current, changed)
        return emitted

    def _before(self, spans: Spans, found: Computed, stored: dict[str, pa.Array]) -> dict[str, pa.Array]:
        """Return the outputs that were emitted for the rows: those of the row itself, or of the one it overwrites."""
        overwrites = spans.inserted[found.live] & (spans.before[found.live] >= 0)
        if not overwrites.any():
            return {name: stored[name] for name in self.program.outputs.names}
        before = spans.before[found.live]
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
            starts = starts_of_runs(np.cumsum(spans.starts, dtype=np.int64)[places])
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
