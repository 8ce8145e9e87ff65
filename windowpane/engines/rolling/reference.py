"""The reference engine of rolling features: the reference operator on a bucket, for every program.

State, by name in the bucket's blob store: ``header``; pages ``s`` for rows and last results of keys, ``t`` for timers. Who may
mutate: this engine, once a batch. Recovery: read them back; the watermark is in the header.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from windowpane.engines.batch.header import BucketHeader
from windowpane.engines.common.arrival import ordered
from windowpane.engines.common.rows import key_values, python_keys, python_rows
from windowpane.engines.program import MAIN, Upstream
from windowpane.engines.protocol import BucketOutput, Clock
from windowpane.engines.rolling.history import after_cut, check_history, watermark_of
from windowpane.engines.rolling.program import AS_OF, LATE, RollingCounters, RollingProgram, bound_calls
from windowpane.errors import MissingEventTimeError
from windowpane.hidden_columns import TIME
from windowpane.operators.rolling.features import Features, HeldRow
from windowpane.operators.rolling.operator import RollingOperator, RollingRow
from windowpane.state.blob_store import BlobStore
from windowpane.state.codec import encode_key
from windowpane.state.keyed import KeyedState
from windowpane.state.sorted_pages import SortedPages
from windowpane.state.timers import TimerQueue
from windowpane.windowing.changes import DELETE, INSERT, UPDATE_POSTIMAGE
from windowpane.windowing.times import MIN


class RollingReferenceEngine:
    """Runs any rolling features, one row at a time."""

    name = "rolling reference"

    def __init__(self, program: RollingProgram) -> None:
        """Run ``program``."""
        self._program = program
        self._features = Features(program.spec, bound_calls(program.spec, program.columns))

    def run(self, store: BlobStore, rows: Sequence[pa.Table], clock: Clock) -> BucketOutput:
        """Run one batch of a bucket."""
        return _Batch(self._program, self._features, store).run(rows, clock)

    def begin(self, store: BlobStore, rows: Sequence[pa.Table], cut: int) -> None:
        """Put the rows of a history, all below ``cut``, into the empty state of a bucket."""
        _Batch(self._program, self._features, store).begin(rows, cut)


class _Batch:
    """One batch of one bucket: state opened, run, written back."""

    def __init__(self, program: RollingProgram, features: Features, store: BlobStore) -> None:
        self._program = program
        self._store = store
        self._header = BucketHeader.read(store, program.description)
        self._pages = [SortedPages(store, name) for name in ("s", "t")]
        self._state = KeyedState(self._pages[0])
        self._timers = TimerQueue(self._pages[1])
        self._operator = RollingOperator(program.spec, features, self._state, self._timers)
        self._late: list[int] = []
        self._arrivals = self._header.arrivals
        self._before_cut = 0

    def begin(self, tables: Sequence[pa.Table], cut: int) -> None:
        self._header = dataclasses.replace(self._header, cut=cut)
        rows, watermark = ordered(tables), watermark_of(cut)
        if rows is not None:
            refuse_null_times(self._program, rows)
            self._take(rows, watermark)
            self._operator.settle(watermark)
        self._write(watermark, MIN)

    def run(self, tables: Sequence[pa.Table], clock: Clock) -> BucketOutput:
        check_history(self._program, self._header)
        before = self._header.watermark
        watermark = max(before, self._program.limited(clock.watermark))
        is_first = self._program.upstream is Upstream.SOURCE
        late_under = watermark if is_first else before
        rows = ordered(tables)
        results = list(self._operator.advance(late_under))
        if rows is not None:
            refuse_null_times(self._program, rows)
            rows, self._before_cut = after_cut(rows, self._header)
            self._take(rows, late_under)
            results += self._operator.finish(late_under)
        results += self._operator.advance(watermark)
        return self._close(results, rows, watermark, clock)

    def _take(self, rows: pa.Table, late_under: int) -> None:
        """Take the rows that are not late."""
        horizon = self._program.spec.horizon(late_under)
        keys = python_keys(rows, self._program.key_columns)
        values = python_rows(rows.select(self._program.columns.names))
        for number, (key, row, time) in enumerate(zip(keys, values, rows[TIME].to_pylist(), strict=True)):
            if time <= horizon:
                self._late.append(number)
            else:
                self._operator.take(key, encode_key(key), HeldRow(time, self._arrivals + number, row))
        self._arrivals += rows.num_rows

    def _close(self, results: Sequence[RollingRow], rows: pa.Table | None, watermark: int, clock: Clock) -> BucketOutput:
        self._write(watermark, max(clock.processing_time, self._header.processing_time))
        keys, late = len(self._pages[1]), len(self._late)
        by_tick = sum(each.by_tick for each in results)
        counters = RollingCounters(
            late_elements=late,
            late_dropped=late,
            firings=len(results),
            open_windows=keys,
            state_bytes=sum(pages.byte_size for pages in self._pages),
            before_cut=self._before_cut,
            emitted_by_row=len(results) - by_tick,
            emitted_by_tick=by_tick,
            keys=keys,
            raw_rows=self._raw_rows(),
        )
        is_idle = not keys and self._program.upstream is Upstream.SOURCE
        return BucketOutput(list(self._tables(results, rows)), counters, is_idle)

    def _raw_rows(self) -> int:
        """Return how many rows are held."""
        return self._header.raw_rows + self._operator.taken - self._operator.forgotten

    def _write(self, watermark: int, processing_time: int) -> None:
        self._state.flush()
        for pages in self._pages:
            pages.flush()
        keys, cut, raw_rows = len(self._pages[1]), self._header.cut, self._raw_rows()
        header = BucketHeader(self._program.description, watermark, processing_time, keys, self._arrivals, cut, raw_rows)
        header.write(self._store)

    def _tables(self, results: Sequence[RollingRow], rows: pa.Table | None) -> Iterator[tuple[int, pa.Table]]:
        program = self._program
        if results:
            yield MAIN, _main_table(program, results)
        if self._late and program.late_columns is not None and rows is not None:
            yield LATE, rows.take(pa.array(self._late)).select(program.late_columns.names)


def _main_table(program: RollingProgram, results: Sequence[RollingRow]) -> pa.Table:
    keys = zip(*(key_values(each.key, len(program.keys)) for each in results), strict=True)
    columns: list[Any] = [list(values) for values in keys]
    instants = pa.array([each.as_of for each in results], pa.int64()).cast(program.instant)
    columns += [instants, *(list(values) for values in zip(*(each.values for each in results), strict=True))]
    if program.spec.deletes_empty:
        columns.append([_word(each) for each in results])
    if program.spec.corrects:
        columns.append([each.revision for each in results])
    schema = program.main_schema
    filled = [each if field.name == AS_OF else pa.array(each, field.type) for each, field in zip(columns, schema, strict=True)]
    return pa.table(filled, schema=schema)


def _word(row: RollingRow) -> str:
    return DELETE if not row.has_rows else INSERT if row.is_first else UPDATE_POSTIMAGE


def refuse_null_times(program: RollingProgram, rows: pa.Table) -> None:
    """Refuse a row without an event time, by its key.

    Raises:
        MissingEventTimeError: there is one.
    """
    if rows[TIME].null_count:
        row = rows.slice(rows[TIME].is_null().to_pylist().index(True), 1)
        raise MissingEventTimeError(python_keys(row, program.key_columns)[0])
