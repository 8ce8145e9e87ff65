"""The reference engine of OVER windows: the reference operators on a bucket, for every program.

State, by name in the bucket's blob store: ``header``; pages ``s`` for keyed state, ``b`` for the sort buffer of mode close. Who
may mutate: this engine, once a batch. Recovery: read them back; the watermark is in the header.

Order of things in a batch: a bucket fed by a source first advances to the batch's watermark, which earlier rows made, then
takes its rows in arrival order. A bucket fed by a window takes rows under the watermark they were emitted under, and advances
last.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar

import pyarrow as pa

from windowpane.arrays.values import Row, Value
from windowpane.engines.batch.driver import Left
from windowpane.engines.batch.late_rows import late_table
from windowpane.engines.over.batch import OverBatch
from windowpane.engines.over.changed_calls import ChangedCalls
from windowpane.engines.over.program import Emit, OverProgram
from windowpane.engines.program import LATE, Upstream
from windowpane.engines.rows import python_rows
from windowpane.engines.spec import BucketEngine, reason_of_the_reference
from windowpane.errors import MissingOrderError, present
from windowpane.hidden_columns import FIRING_WATERMARK, PARTITION, POSITION, TIME
from windowpane.operators.over.on_close import OverOnClose, SortBuffer
from windowpane.operators.over.on_update import OverOnUpdate
from windowpane.operators.over.row_forms import RowForms
from windowpane.operators.over.row_order import RowOrder
from windowpane.state.blob_store import BlobStore
from windowpane.state.codec import encode_key
from windowpane.state.keyed import KeyedState
from windowpane.state.sorted_pages import SortedPages
from windowpane.windowing.outputs import CHANGE_TYPE, INSERT
from windowpane.windowing.times import MIN, add_clamped

Entry = tuple[str, Row]
"""A change type and a row; the row also carries its TIME, and FIRING_WATERMARK where it is from a window."""


class OverReferenceEngine(BucketEngine[OverProgram]):
    name = "over reference"
    state = "sorted pages: keyed state, and a sort buffer"
    holds: ClassVar = {"s": "rows by key", "b": "rows that wait"}

    @classmethod
    def reason_for(cls, program: OverProgram) -> str:
        return reason_of_the_reference(program.key_delay)

    def open(self, store: BlobStore) -> _Batch:
        if self.program.key_delay is not None:
            return _CloseByPartition(self, store)
        return _CloseBatch(self, store) if self.program.mode is Emit.CLOSE else _UpdateBatch(self, store)


def _entries(program: OverProgram, rows: Sequence[pa.Table]) -> list[Entry]:
    tables = [table for table in rows if table.num_rows]
    if not tables:
        return []
    merged = pa.concat_tables(tables, promote_options="permissive").sort_by([(PARTITION, "ascending"), (POSITION, "ascending")])
    firing = [FIRING_WATERMARK] if program.upstream is Upstream.WINDOW_WITH_WATERMARKS else []
    values = python_rows(merged.select([*program.columns.names, TIME, *firing]))
    words = merged[CHANGE_TYPE].to_pylist() if CHANGE_TYPE in merged.column_names else [INSERT] * merged.num_rows
    return list(zip(words, values, strict=True))


class _Batch(OverBatch):
    def __init__(self, engine: OverReferenceEngine, store: BlobStore) -> None:
        super().__init__(engine, store)
        self.pages = [SortedPages(store, name) for name in ("s", "b")]
        self.state = KeyedState(self.pages[0])
        self.late: list[Row] = []

    def work(self, tables: list[pa.Table]) -> None:
        self.take(self._punctual(_entries(self.program, tables)))

    @abstractmethod
    def take(self, entries: Iterable[Entry]) -> None:
        """Take rows that are not late."""

    def waiting(self) -> int:
        return 0

    def emit_entries(self, entries: Iterable[Entry]) -> None:
        rows = [{**row, CHANGE_TYPE: word} for word, row in entries]
        if rows:
            self.emit(_table(rows, self.program.result_schema))

    def _under(self, row: Row) -> int:
        """Return the watermark that a row is late under."""
        found: int = row.get(FIRING_WATERMARK, self.late_under)
        return found

    def _punctual(self, entries: Iterable[Entry]) -> Iterator[Entry]:
        for word, row in entries:
            fired_under = self._under(row)
            horizon = self.program.horizon(fired_under)
            if horizon is not None and self._is_late(row[TIME], horizon):
                self.late.append({**row, FIRING_WATERMARK: fired_under})
                self.late_counts.note_dropped(pa.array([row[TIME]], pa.int64()), fired_under)
            else:
                yield word, row

    def _is_late(self, time: int | None, horizon: int) -> bool:
        return self.program.null_is_late and horizon > MIN if time is None else time <= horizon

    def close(self) -> Left:
        self.state.flush()
        for pages in self.pages:
            pages.flush()
        self.counts |= {"late_elements": len(self.late), "late_dropped": len(self.late)}
        if self.late and self.program.has_late_output:
            system = [pa.field(TIME, pa.int64()), pa.field(FIRING_WATERMARK, pa.int64())]
            late = _table(self.late, pa.schema([*self.program.columns, *system]))
            under = late[FIRING_WATERMARK].to_numpy()
            self.outputs.append((LATE, late_table(self.program.late_schema, late, under, self.clocks)))
        return Left(self.waiting(), sum(pages.byte_size for pages in self.pages))


class _UpdateBatch(_Batch):
    """Mode update: changes in, changes out; the watermark only says which rows are late."""

    def take(self, entries: Iterable[Entry]) -> None:
        program, was = self.program, self.header.description
        operator = OverOnUpdate(program.spec, program.columns, program.outputs, self.state, self.report)
        touched: list[Value] = []
        if was.get("calls") != program.description.get("calls"):
            calls = ChangedCalls.of(program, was)
            self.state.rewrite(lambda rows: [(at, _renamed(row, calls)) for at, row in rows])
            touched = [key for key, _, _ in self.state.slots()]
        self.emit_entries(entry for change in operator.process(entries, touched) for entry in change.entries())


def _renamed(row: Row, calls: ChangedCalls) -> Row:
    """Return a row in state with the outputs of the calls of now, as they were emitted."""
    known = {name: old for name, old in calls.sources.items() if old is not None}
    known |= {name: name for name, was_there in calls.new.items() if was_there}
    return {**row, **{name: row[known[name]] if name in known else None for name in calls.sources}}


class _CloseBatch(_Batch):
    """Mode close: rows wait in the sort buffer for the watermark, then in the operator for their frames."""

    def __init__(self, engine: OverReferenceEngine, store: BlobStore) -> None:
        super().__init__(engine, store)
        program = self.program
        order = RowOrder(program.spec, program.columns)
        identity = RowForms(program.columns, program.spec.output_key)
        self._buffer = SortBuffer(self.pages[1], identity.spelled, order.position, self.report)
        self._operator = OverOnClose(program.spec, program.columns, program.outputs, self.state)

    def take(self, entries: Iterable[Entry]) -> None:
        for word, row in entries:
            if row[TIME] is None:
                raise MissingOrderError(self.program.spec.order_names[0], row)
            self._buffer.change(word, row[TIME], row)

    def on_watermark(self, before: int) -> None:
        closed = present(self.program.horizon(self.watermark), "mode close has a horizon")
        released = [row for _, row in self._buffer.release(closed)]
        self.emit_entries((INSERT, row) for row in self._operator.process(released, closed))

    def waiting(self) -> int:
        return len(self.pages[1]) + len(self._operator.waiting())


_CLOCK = "clock"


class _CloseByPartition(_CloseBatch):
    """Mode close where each partition has a watermark of its own: the latest of its rows so far, less a delay.

    Rows are late under the one that the batches before have made; then it moves, and the rows that it passes are released. State:
    the watermark of each partition, for good; entries of the sort buffer begin with their partition.
    """

    def __init__(self, engine: OverReferenceEngine, store: BlobStore) -> None:
        super().__init__(engine, store)
        self._partition = RowForms(self.program.columns, self.program.spec.partition_by)
        self._buffer.place = lambda row: encode_key(self._partition.spelled(row))
        self._latest: dict[bytes, tuple[tuple[Value, ...], int]] = {}

    def work(self, tables: list[pa.Table]) -> None:
        super().work(tables)
        for place, (partition, latest) in self._latest.items():
            delay = present(self.program.key_delay, "each partition has a watermark")
            watermark = max(self._clock(partition), add_clamped(latest, -delay - 1))
            self.state.put(None, _CLOCK, watermark)
            closed = present(self.program.horizon(watermark), "mode close has a horizon")
            released = [row for _, row in self._buffer.release(closed, place)]
            self.emit_entries((INSERT, row) for row in self._operator.process(released, closed, partition))

    def take(self, entries: Iterable[Entry]) -> None:
        for word, row in entries:
            super().take([(word, row)])
            partition = self._partition.spelled(row)
            place = encode_key(partition)
            _, latest = self._latest.get(place, (partition, MIN))
            self._latest[place] = partition, max(latest, row[TIME])

    def _under(self, row: Row) -> int:
        return self._clock(self._partition.spelled(row))

    def _clock(self, partition: tuple[Value, ...]) -> int:
        self.state.set_current_key(partition)
        found: int | None = self.state.get(None, _CLOCK)
        return MIN if found is None else found

    def on_watermark(self, before: int) -> None:
        """There is none of all partitions."""


def _table(rows: Sequence[Row], schema: pa.Schema) -> pa.Table:
    return pa.table([pa.array([row.get(field.name) for row in rows], field.type) for field in schema], schema=schema)
