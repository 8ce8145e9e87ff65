"""The reference engine of rolling features: the reference operator on a bucket, for every program.

State, by name in the bucket's blob store: ``header``; pages ``s`` for rows and last results of keys, ``t`` for timers. Who may
mutate: this engine, once a batch. Recovery: read them back; the watermark is in the header.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import pyarrow as pa

from windowpane.arrays.values import Value
from windowpane.engines.batch.driver import Left
from windowpane.engines.common.arrival import ordered
from windowpane.engines.rolling.batch import BeginningEngine, RollingBatch
from windowpane.engines.rolling.growth import places_in
from windowpane.engines.rolling.program import AS_OF, RollingProgram
from windowpane.engines.rows import key_values, python_keys, python_rows, refuse_missing_times
from windowpane.errors import present
from windowpane.hidden_columns import TIME
from windowpane.kernels.rolling import bound_calls
from windowpane.operators.rolling.features import Features, HeldRow
from windowpane.operators.rolling.operator import RollingOperator, RollingRow
from windowpane.state.blob_store import BlobStore
from windowpane.state.codec import encode_key
from windowpane.state.keyed import KeyedState
from windowpane.state.sorted_pages import SortedPages
from windowpane.state.timers import TimerQueue
from windowpane.windowing.outputs import DELETE, INSERT, UPDATE_POSTIMAGE


class _Batch(RollingBatch):
    def __init__(self, engine: RollingReferenceEngine, store: BlobStore) -> None:
        program = engine.program
        super().__init__(engine, store, accepts=lambda was: places_in(program, was) is not None)
        self._pages = [SortedPages(store, name) for name in ("s", "t")]
        self._state = KeyedState(self._pages[0])
        self._operator = RollingOperator(program.spec, engine.features, self._state, TimerQueue(self._pages[1]))
        if self.header.description != program.description:
            places = present(places_in(program, self.header.description), "the header was accepted")
            self._operator.take_over(places, self.before)

    def begin(self, tables: Sequence[pa.Table], cut: int) -> None:
        self.begin_before(cut)
        rows = ordered(tables)
        if rows is not None:
            refuse_missing_times(rows, self.program.key_columns, "rolling features go")
            self._take(rows)
            self._operator.settle(self.watermark)
        self.write_header(self.close().open_windows)

    def work(self, tables: list[pa.Table]) -> None:
        rows, late_under = ordered(tables), self.late_under
        results = list(self._operator.advance(late_under))
        if rows is not None:
            refuse_missing_times(rows, self.program.key_columns, "rolling features go")
            self._take(rows)
            results += self._operator.finish(late_under)
        results += self._operator.advance(self.watermark)
        by_tick = sum(each.by_tick for each in results)
        self.count("emitted_by_tick", by_tick)
        self.count("emitted_by_row", len(results) - by_tick)
        if results:
            self.emit(_main_table(self.program, results))

    def _take(self, rows: pa.Table) -> None:
        program = self.program
        punctual = self.on_time(rows, program.late_schema)
        if punctual is None:
            return
        keys, values = python_keys(punctual, program.key_columns), python_rows(punctual.select(program.columns.names))
        for key, row, time in zip(keys, values, punctual[TIME].to_pylist(), strict=True):
            self._operator.take(key, encode_key(key), HeldRow(time, self.arrivals, row))
            self.arrivals += 1

    def close(self) -> Left:
        self._state.flush()
        for pages in self._pages:
            pages.flush()
        self.raw_rows += self._operator.taken - self._operator.forgotten
        keys = len(self._pages[1])
        size = sum(pages.byte_size for pages in self._pages)
        return Left(keys, size, gauges={"keys": keys, "raw_rows": self.raw_rows})


class RollingReferenceEngine(BeginningEngine):
    name = "rolling reference"
    reason = "the reference operator runs all rolling features"
    state = "sorted pages: by key the rows that a window can still see, and when features change"
    holds: ClassVar = {"s": "rows by key", "t": "timers"}
    batch = _Batch

    def __init__(self, program: RollingProgram) -> None:
        super().__init__(program)
        self.features = Features(program.spec, bound_calls(program.spec, program.columns))


def _main_table(program: RollingProgram, results: Sequence[RollingRow]) -> pa.Table:
    keys = zip(*(key_values(each.key, len(program.keys)) for each in results), strict=True)
    columns: list[Value] = [list(values) for values in keys]
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
