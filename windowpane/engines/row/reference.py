"""The reference engine of windows: the reference operator on a bucket, an element at a time, for every program.

It has no fast path: it is what every other engine of windows is compared with.

State, by name in the bucket's blob store: ``header``; pages ``s`` for keyed state, ``e`` and ``p`` for event-time and
processing-time timers. Who may mutate: this engine, once a batch. Recovery: read them back; the clocks are in the header.

Order of things in a batch: a bucket fed by a source first advances to the batch's watermark, which earlier rows made, then
takes its rows in arrival order (or ``order_by``). A bucket fed by another window takes rows under the watermark they were
emitted under, and advances last. Processing time is the machine's for all: no rows are taken before it has advanced.
Where each key has a watermark of its own, rows are taken under those of the batch before, then the keys that had rows advance.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Any

import pyarrow as pa

from windowpane.engines.batch.header import BucketHeader
from windowpane.engines.collecting import OutputCollector
from windowpane.engines.common.arrival import in_order
from windowpane.engines.common.rows import python_keys, python_rows
from windowpane.engines.program import Program, Upstream
from windowpane.engines.protocol import BucketOutput, Clock, Counters
from windowpane.errors import MissingTimestampError
from windowpane.hidden_columns import FIRING_WATERMARK, TIME
from windowpane.kernels.keys.key_codes import plain_key
from windowpane.operators.window.key_clocks import KeyTimerService
from windowpane.operators.window.operator import WindowOperator
from windowpane.operators.window.timer_service import TimerService
from windowpane.state.blob_store import BlobStore
from windowpane.state.codec import encode_key
from windowpane.state.keyed import KeyedState
from windowpane.state.sorted_pages import SortedPages
from windowpane.state.timers import KeyTimerQueue, TimerQueue
from windowpane.windowing.evictors import TimestampedValue
from windowpane.windowing.times import MIN


class ReferenceEngine:
    """Runs any program of windows, one row at a time."""

    name = "reference"

    def __init__(self, program: Program, make_state: Callable[[SortedPages], KeyedState] = KeyedState) -> None:
        """Run ``program``; ``make_state`` makes the keyed state of a batch."""
        self._program = program
        self._make_state = make_state

    def run(self, store: BlobStore, rows: Sequence[pa.Table], clock: Clock) -> BucketOutput:
        """Run one batch of a bucket."""
        return WindowBatch(self._program, store, self._make_state).run(rows, clock)


class AddedColumns:
    """Makes rows in state that were written before their source had all the columns of now such rows: they get NULL in those.

    Functions of users see whole rows, and keep them as they like: a dict that has exactly the columns of before is such a row. So
    is a result that has columns of the rows.
    """

    def __init__(self, added: frozenset[str], *rows: Sequence[str]) -> None:
        """Take the columns that were added, and all columns of each kind of row, in their order; first those of the input."""
        self.columns = rows[0]
        self._rows = {frozenset(names) - added: names for names in rows}

    def __call__(self, held: Any) -> Any:
        """Return what state holds, a value or a list of elements, with the columns of now."""
        if isinstance(held, dict):
            names = self._rows.get(frozenset(held))
            if names is not None:
                return {name: held.get(name) for name in names}
            return {key: self(value) for key, value in held.items()}
        if isinstance(held, TimestampedValue):
            return dataclasses.replace(held, value=self(held.value))
        return type(held)(map(self, held)) if type(held) in (list, tuple) else held


class WindowBatch:
    """One batch of one bucket: state opened, run by the operator, written back."""

    added_columns: type[AddedColumns] = AddedColumns

    def __init__(self, program: Program, store: BlobStore, make_state: Callable[[SortedPages], KeyedState]) -> None:
        self._program = program
        self._store = store
        self._header = BucketHeader.read(store, program.description, growing=program.growing)
        self._pages = [SortedPages(store, name) for name in ("s", "e", "p")]
        self._state = make_state(self._pages[0])
        if self._header.added:
            self._state.rewrite(self.added_columns(self._header.added, program.values, program.main.names))
        self._timers = self._timer_service()
        self._timers.restore_clocks(self._header.watermark, self._header.processing_time)
        self._collector = OutputCollector(program, self._timers)
        self._operator = self._make_operator()

    def _make_operator(self) -> WindowOperator:
        return WindowOperator(self._program.spec, self._state, self._timers, self._collector)

    def _timer_service(self) -> TimerService:
        by_clock, delay = TimerQueue(self._pages[2]), self._program.key_delay
        if delay is None:
            return TimerService(TimerQueue(self._pages[1]), by_clock)
        return KeyTimerService(self._state, KeyTimerQueue(self._pages[1]), by_clock, delay)

    def run(self, rows: Sequence[pa.Table], clock: Clock) -> BucketOutput:
        arrived = in_order(self._program, rows)
        self._collector.rows = arrived
        if self._program.upstream is Upstream.SOURCE:
            self._advance_watermark(clock.watermark)
            self._advance_processing_time(clock.processing_time)
            self._take(arrived)
        else:
            self._advance_processing_time(clock.processing_time)
            self._take_from_window(arrived)
            self._advance_watermark(clock.watermark)
        return self._close()

    def _advance_watermark(self, watermark: int) -> None:
        if watermark > self._timers.watermark:  # a timer registered behind the watermark waits for its next move, as in Flink
            self._operator.advance_watermark(watermark)

    def _advance_processing_time(self, time: int) -> None:
        if time >= self._timers.processing_time:  # a clock that was set back fires nothing
            self._operator.advance_processing_time(time)

    def _take(self, rows: pa.Table | None, start: int = 0) -> None:
        """Take the rows of one watermark; ``start`` is the number of the first of them in the batch."""
        if rows is not None:
            self._process(rows, self._spelled(rows.select(self._program.values)), start)
        self._operator.finish_batch()

    def _process(self, rows: pa.Table, seen: pa.Table, start: int) -> None:
        """Hand rows to the operator; of each row functions see what ``seen`` has."""
        values = python_rows(seen)
        keys = python_keys(rows, self._program.key_columns)
        for number, (key, value, time) in enumerate(zip(keys, values, rows[TIME].to_pylist(), strict=True), start):
            if time is None and self._program.spec.assigner.is_event_time:
                raise MissingTimestampError(self._program.spec.assigner, key, value)
            self._collector.row_number = number
            self._operator.process_element(key, value, MIN if time is None else time, encode_key(key))

    def _take_from_window(self, rows: pa.Table | None) -> None:
        if rows is None or self._program.upstream is Upstream.WINDOW:
            self._take(rows)
            return
        for watermark, start, length in _runs(rows[FIRING_WATERMARK].to_pylist()):
            self._advance_watermark(watermark)
            self._take(rows.slice(start, length), start)

    def _spelled(self, values: pa.Table) -> pa.Table:
        """Return what aggregates read with key columns spelled as keys are: engines that group by them keep no other spelling."""
        if self._program.aggregates or self._program.arrow is not None:
            for name in set(self._program.key_columns) & set(values.column_names):
                values = values.set_column(values.column_names.index(name), name, plain_key(values[name]))
        return values

    def _close(self) -> BucketOutput:
        self._state.flush()
        for pages in self._pages:
            pages.flush()
        counted = self._operator.counters
        opened = self._header.open_windows + counted.windows_opened - counted.windows_closed
        timers = self._timers
        watermark = MIN if self._program.key_delay is not None else timers.watermark
        BucketHeader(self._program.description, watermark, timers.processing_time, opened).write(self._store)
        counters = Counters(
            counted.late_elements,
            counted.late_dropped,
            counted.firings,
            counted.merges,
            opened,
            sum(pages.byte_size for pages in self._pages),
            dropped_by_finished_trigger=counted.dropped_by_finished_trigger,
        )
        next_processing_time = timers.processing_time_queue.next_time()
        idle = not any(len(pages) for pages in self._pages) and self._program.upstream is Upstream.SOURCE
        return BucketOutput(self._collector.tables(), counters, idle, next_processing_time)


def _runs(values: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Yield (value, start, length) of each run of equal values."""
    start = 0
    for value, run in groupby(values):
        length = sum(1 for _ in run)
        yield value, start, length
        start += length
