"""The reference engine of OVER windows: the reference operators on a bucket, for every program.

State, by name in the bucket's blob store: ``header``; pages ``s`` for keyed state, ``b`` for the sort buffer of mode close. Who
may mutate: this engine, once a batch. Recovery: read them back; the watermark is in the header.

Order of things in a batch: a bucket fed by a source first advances to the batch's watermark, which earlier rows made, then
takes its rows in arrival order. A bucket fed by a window takes rows under the watermark they were emitted under, and advances
last.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from windowpane.engines.batch.header import BucketHeader
from windowpane.engines.common.rows import python_rows
from windowpane.engines.over.program import CHANGE_TYPE, INSERT, LATE, Emit, Inconsistent, OverProgram
from windowpane.engines.program import MAIN, Upstream
from windowpane.engines.protocol import BucketOutput, Clock, Counters
from windowpane.errors import InconsistentChangeError, MissingOrderError, present
from windowpane.hidden_columns import FIRING_WATERMARK, PARTITION, POSITION, TIME
from windowpane.operators.over.on_close import OverOnClose
from windowpane.operators.over.on_update import OverOnUpdate
from windowpane.operators.over.row_order import RowOrder
from windowpane.operators.over.sort_buffer import SortBuffer
from windowpane.state.blob_store import BlobStore
from windowpane.state.keyed import KeyedState
from windowpane.state.sorted_pages import SortedPages
from windowpane.windowing.changes import Row
from windowpane.windowing.times import MIN

Entry = tuple[str, Row]
"""A change type and a row; the row also carries its TIME, and FIRING_WATERMARK where it is from a window."""


class OverReferenceEngine:
    """Runs any OVER program, one row at a time."""

    name = "over reference"

    def __init__(self, program: OverProgram) -> None:
        """Run ``program``."""
        self._program = program

    def run(self, store: BlobStore, rows: Sequence[pa.Table], clock: Clock) -> BucketOutput:
        """Run one batch of a bucket."""
        batch = _CloseBatch if self._program.mode is Emit.CLOSE else _UpdateBatch
        return batch(self._program, store).run(_entries(self._program, rows), clock)


def _entries(program: OverProgram, rows: Sequence[pa.Table]) -> list[Entry]:
    """The rows of a batch in order of arrival."""
    tables = [table for table in rows if table.num_rows]
    if not tables:
        return []
    merged = pa.concat_tables(tables, promote_options="permissive").sort_by([(PARTITION, "ascending"), (POSITION, "ascending")])
    firing = [FIRING_WATERMARK] if program.upstream is Upstream.WINDOW_WITH_WATERMARKS else []
    values = python_rows(merged.select([*program.columns.names, TIME, *firing]))
    words = merged[CHANGE_TYPE].to_pylist() if CHANGE_TYPE in merged.column_names else [INSERT] * merged.num_rows
    return list(zip(words, values, strict=True))


class _Batch(ABC):
    """One batch of one bucket: state opened, run, written back."""

    def __init__(self, program: OverProgram, store: BlobStore) -> None:
        self.program = program
        self.store = store
        self.header = BucketHeader.read(store, program.description, growing=program.growing)
        self.pages = [SortedPages(store, name) for name in ("s", "b")]
        self.state = KeyedState(self.pages[0])
        self.late: list[Row] = []
        self.inconsistent = 0

    def run(self, entries: list[Entry], clock: Clock) -> BucketOutput:
        before, watermark = self.header.watermark, max(self.header.watermark, clock.watermark)
        if self.program.upstream is Upstream.SOURCE:
            emitted = self.advance(watermark)
            emitted += self.take(self._punctual(entries, watermark))
        else:
            emitted = self.take(self._punctual(entries, before))
            emitted += self.advance(watermark)
        return self._close(emitted, self.program.fired_under(before), watermark, clock)

    @abstractmethod
    def take(self, entries: Iterable[Entry]) -> list[Entry]:
        """Take rows that are not late and return what is emitted."""

    @abstractmethod
    def advance(self, watermark: int) -> list[Entry]:
        """Advance to the watermark and return what is emitted."""

    @abstractmethod
    def waiting(self) -> int:
        """How many rows have not been emitted yet."""

    def report(self, error: InconsistentChangeError) -> None:
        """Take a change that cannot be."""
        if self.program.on_inconsistent is Inconsistent.ERROR:
            raise error
        self.inconsistent += 1

    def _punctual(self, entries: Iterable[Entry], watermark: int) -> Iterator[Entry]:
        for word, row in entries:
            horizon = self.program.horizon(row.get(FIRING_WATERMARK, watermark))
            if horizon is not None and self._is_late(row[TIME], horizon):
                self.late.append(row | {FIRING_WATERMARK: row.get(FIRING_WATERMARK, watermark)})
            else:
                yield word, row

    def _is_late(self, time: int | None, horizon: int) -> bool:
        return self.program.null_is_late and horizon > MIN if time is None else time <= horizon

    def _close(self, emitted: list[Entry], fired_under: int, watermark: int, clock: Clock) -> BucketOutput:
        self.state.flush()
        for pages in self.pages:
            pages.flush()
        now, waiting = max(clock.processing_time, self.header.processing_time), self.waiting()
        BucketHeader(self.program.description, watermark, now, waiting).write(self.store)
        late, size = len(self.late), sum(pages.byte_size for pages in self.pages)
        counters = Counters(late, late, len(emitted), 0, waiting, size, self.inconsistent)
        idle = not waiting and self.program.upstream is Upstream.SOURCE
        return BucketOutput(list(self._tables(emitted, fired_under)), counters, idle)

    def _tables(self, emitted: list[Entry], fired_under: int) -> Iterator[tuple[int, pa.Table]]:
        if emitted:
            rows = [row | {CHANGE_TYPE: word, FIRING_WATERMARK: fired_under} for word, row in emitted]
            yield MAIN, _table(rows, self.program.main_schema)
        if self.late and self.program.has_late_output:
            yield LATE, _table(self.late, self.program.late_schema)


class _UpdateBatch(_Batch):
    """Mode update: changes in, changes out; the watermark only says which rows are late."""

    def take(self, entries: Iterable[Entry]) -> list[Entry]:
        program = self.program
        operator = OverOnUpdate(program.spec, program.columns, program.outputs, self.state, self.report)
        return [entry for change in operator.process(entries) for entry in change.entries()]

    def advance(self, watermark: int) -> list[Entry]:
        return []

    def waiting(self) -> int:
        return 0


class _CloseBatch(_Batch):
    """Mode close: rows wait in the sort buffer for the watermark, then in the operator for their frames."""

    def __init__(self, program: OverProgram, store: BlobStore) -> None:
        super().__init__(program, store)
        order = RowOrder(program.spec, program.columns)
        self._buffer = SortBuffer(self.pages[1], self._identity, order.position, self.report)
        self._operator = OverOnClose(program.spec, program.columns, program.outputs, self.state)

    def _identity(self, row: Row) -> tuple[Any, ...]:
        return tuple(row[name] for name in self.program.spec.output_key)

    def take(self, entries: Iterable[Entry]) -> list[Entry]:
        for word, row in entries:
            if row[TIME] is None:
                raise MissingOrderError(self.program.spec.order_names[0], row)
            self._buffer.change(word, row[TIME], row)
        return []

    def advance(self, watermark: int) -> list[Entry]:
        closed = present(self.program.horizon(watermark), "mode close has a horizon")
        released = [row for _, row in self._buffer.release(closed)]
        return [(INSERT, row) for row in self._operator.process(released, closed)]

    def waiting(self) -> int:
        return len(self.pages[1]) + self._operator.waiting_partitions()


def _table(rows: list[Row], schema: pa.Schema) -> pa.Table:
    return pa.table([pa.array([row.get(field.name) for row in rows], field.type) for field in schema], schema=schema)
