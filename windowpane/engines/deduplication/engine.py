"""The deduplication engine: rows of a batch meet the held ones of their keys on Arrow tables.

State, by name in the bucket's blob store: ``header``, and pages ``p`` by a hash of the key. A row of a page is a run: the hash,
the values of the key, where the run ends, and for *last* where it starts and its newest row. A batch reads the pages of its
keys, and of these compares only runs whose hash is in the batch.

A run that is near to no row any more changes no result, so it may stay a while: it goes when its page is read for something else,
or when half of the runs of its page are such.

Who may mutate: this engine, once a batch. Recovery: read them back; the clocks stand in the header.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windowpane.arrays import Integers, Unsigned
from windowpane.engines.common.bucket_header import BucketHeader
from windowpane.engines.common.rows import python_keys
from windowpane.engines.deduplication.arriving import arriving, clocks, refuse_null_times
from windowpane.engines.deduplication.changes import Runs, changelog
from windowpane.engines.deduplication.program import LATE, DeduplicationProgram, Keep
from windowpane.engines.program import MAIN, Upstream
from windowpane.engines.protocol import BucketOutput, Clock, Counters
from windowpane.hidden_columns import END, START, TIME, hidden
from windowpane.kernels.deduplication.first import first_rows
from windowpane.kernels.keys.codes import canonical, is_nested
from windowpane.kernels.keys.key_codes import key_codes, key_hashes
from windowpane.sizes import Size
from windowpane.state.blob_store import BlobStore
from windowpane.state.codec import encode_key
from windowpane.state.hash_pages import HashPages, PageSummary
from windowpane.windowing.times import MIN

PAGE_ROWS = Size("held rows of a page", 1 << 12, (2, 4))
DENSE_ROWS = Size("held rows of a page among pages that are all replaced", 1 << 18, (4, 8))
STEP_ROWS = Size("held and new rows of a step", 1 << 22, (5, 12))
"""About so many are worked on at once: bounds the memory of a batch, whatever is held."""

_HASH = hidden("hash")


class DeduplicationEngine:
    """Runs every program."""

    name = "deduplication"

    def __init__(self, program: DeduplicationProgram) -> None:
        """Run ``program``."""
        self.program = program
        self.key_names = [hidden(f"key_of_run_{number}") for number in range(len(program.keys))]

    def run(self, store: BlobStore, rows: Sequence[pa.Table], clock: Clock) -> BucketOutput:
        """Run one batch of a bucket."""
        return _Batch(self, store).run(rows, clock)

    def keyed(self, rows: pa.Table) -> pa.Table:
        """Return rows as runs of one row each: hash, key, start and end, then the rows themselves."""
        columns = [self._key(name, rows) for name in self.program.keys]
        hashes = key_hashes([pa.chunked_array([column]) for column in columns], rows.num_rows)
        runs = pa.table([pa.array(hashes), *columns, rows[TIME], rows[TIME]], names=[_HASH, *self.key_names, START, END])
        for name in self.program.passed:
            runs = runs.append_column(name, rows[name])
        return runs

    def _key(self, name: str, rows: pa.Table) -> pa.Array:
        if is_nested(rows[name].type):
            return pa.array(map(encode_key, python_keys(rows, [name])), pa.binary())
        return canonical(rows[name])

    def held_columns(self) -> list[str]:
        """The columns of a page."""
        rows = [START, *self.program.passed] if self.program.keep is Keep.LAST else []
        return [_HASH, *self.key_names, END, *rows]


class _Batch:
    """One batch of one bucket: state opened, run, written back."""

    def __init__(self, engine: DeduplicationEngine, store: BlobStore) -> None:
        self._engine = engine
        self._program = engine.program
        self._store = store
        self._header = BucketHeader.read(store, engine.program.description)
        self._pages = HashPages(store, "p", _hashes, self._summary, PAGE_ROWS.value, DENSE_ROWS.value)
        self._out: list[pa.Table] = []
        self._kept: list[Integers] = []
        self._forgotten = MIN

    def run(self, tables: Sequence[pa.Table], clock: Clock) -> BucketOutput:
        program = self._program
        watermark, now, judged = clocks(program, self._header, clock)
        rows = arriving(program, tables, now)
        late = None
        limit = program.horizon(judged, now)
        if rows is not None:
            refuse_null_times(program, rows)
            is_late = rows[TIME].to_numpy() <= limit
            if is_late.any():
                late, rows = rows.filter(pa.array(is_late)), rows.filter(pa.array(~is_late)).combine_chunks()
        self._forgotten = program.forgotten(limit)
        duplicates = self._take(rows)
        BucketHeader(program.description, watermark, now, self._pages.live).write(self._store)
        return self._output(late, duplicates)

    def _output(self, late: pa.Table | None, duplicates: int) -> BucketOutput:
        program, dropped = self._program, 0 if late is None else late.num_rows
        tables = [(MAIN, table.cast(program.main_schema)) for table in self._out if table.num_rows]
        out = sum(table.num_rows for _, table in tables)
        if late is not None and program.has_late_output:
            tables.append((LATE, late.select(program.passed)))
        held = self._pages.live
        counters = Counters(dropped, dropped, out, 0, held, self._pages.byte_size, duplicates=duplicates)
        is_idle = not (held and program.is_event_time) and program.upstream is Upstream.SOURCE
        return BucketOutput(tables, counters, is_idle)

    def _take(self, rows: pa.Table | None) -> int:
        """Let rows that are not late meet the held ones; return how many are duplicates of those that came out."""
        arriving = None if rows is None or not rows.num_rows else self._engine.keyed(rows)
        hashes = np.zeros(0, np.uint64) if arriving is None else _hashes(arriving)
        for positions, numbers, is_run in self._pages.steps(hashes, self._forgotten, STEP_ROWS.value):
            self._step(positions, arriving, numbers, is_run)
        self._pages.commit()
        if arriving is None or rows is None or self._program.keep is Keep.LAST:
            return 0
        kept = np.sort(np.concatenate(self._kept))
        self._out.append(rows.select(self._program.passed).take(pa.array(kept)))
        return int(rows.num_rows - len(kept))

    # Pages.

    def _summary(self, held: pa.Table) -> PageSummary:
        ends = held[END].to_numpy()
        half = int(np.partition(ends, len(ends) // 2)[len(ends) // 2])
        return PageSummary(half, held.num_rows)

    def _step(self, positions: Sequence[int], arriving: pa.Table | None, numbers: Integers, is_run: bool) -> None:
        """Let rows meet what some pages hold, and write what these hold then."""
        self._pages.prefetch(positions)
        pages = [page for position in positions if (page := self._pages.read(position)) is not None]
        held = pa.concat_tables(pages).combine_chunks() if pages else None
        if held is not None:
            held = held.filter(pc.greater(held[END], self._forgotten))
        if arriving is not None and len(numbers):
            rows = arriving if len(numbers) == arriving.num_rows else arriving.take(pa.array(numbers))
            asked = _of_same_hash(held, rows) if held is not None else np.zeros(0, np.int64)
            added, replaced = self._meet(None if held is None else held.take(pa.array(asked)), rows, numbers)
            if held is not None and len(replaced):
                stays = np.ones(held.num_rows, np.bool_)
                stays[asked[replaced]] = False
                held = held.filter(pa.array(stays))
            held = added if held is None else pa.concat_tables([held, added.select(held.column_names)])
        if held is None:
            return
        self._pages.put(positions, held, is_run)

    def _meet(self, held: pa.Table | None, rows: pa.Table, numbers: Integers) -> tuple[pa.Table, Integers]:
        """Return the runs that are new, and the numbers of the held ones that they replace."""
        count = 0 if held is None else held.num_rows
        keys = self._engine.key_names
        both = [rows[name] if held is None else pa.chunked_array([*held[name].chunks, *rows[name].chunks]) for name in keys]
        codes = key_codes(both, count + rows.num_rows)
        if self._program.keep is Keep.FIRST:
            ends = np.zeros(0, np.int64) if held is None else held[END].to_numpy()
            kept = first_rows(codes[count:], rows[END].to_numpy(), codes[:count], ends, self._program.within)
            self._kept.append(numbers[kept])
            return rows.select(self._engine.held_columns()).filter(pa.array(kept)), np.zeros(0, np.int64)
        names = self._engine.held_columns()
        spans = rows.select(names) if held is None else pa.concat_tables([held.select(names), rows.select(names)])
        runs = Runs.of(codes, spans[START].to_numpy(), spans[END].to_numpy(), count, self._program.within)
        self._out.append(changelog(runs, spans, self._program))
        newest = spans.take(pa.array(runs.newest))
        newest = newest.set_column(newest.column_names.index(START), START, pa.array(runs.starts))
        return newest, runs.held


def _hashes(table: pa.Table) -> Unsigned:
    hashes: Unsigned = table[_HASH].to_numpy()
    return hashes


def _of_same_hash(held: pa.Table, rows: pa.Table) -> Integers:
    """Return the numbers of the held runs whose hash some row has."""
    hashes = _hashes(held)
    order = np.argsort(hashes, kind="stable")
    asked, in_order = np.unique(_hashes(rows)), hashes[order]
    first, end = np.searchsorted(in_order, asked), np.searchsorted(in_order, asked, side="right")
    counts = end - first
    places = np.repeat(first - np.cumsum(counts) + counts, counts) + np.arange(int(counts.sum()))
    found: Integers = order[places]
    return found
