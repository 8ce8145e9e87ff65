"""The reference engine of windows: the reference operator on a bucket, an element at a time, for every program.

It has no fast path: it is what every other engine of windows is compared with.

State, by name in the bucket's blob store: ``header``; pages ``s`` for keyed state, ``e`` and ``p`` for event-time and
processing-time timers. Who may mutate: this engine, once a batch. Recovery: read them back; the clocks are in the header.

Rows are taken in arrival order (or ``order_by``); those of another window under the watermark they were emitted under.
Where each key has a watermark of its own, rows are taken under those of the batch before, then the keys that had rows advance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import ClassVar

import pyarrow as pa

from windowpane.arrays.columns import with_columns
from windowpane.arrays.values import Value
from windowpane.engines.batch.driver import Left, OrderedBatch
from windowpane.engines.changes import ChangedColumns, begins_anew, matched_calls
from windowpane.engines.collecting import OutputCollector
from windowpane.engines.common.arrival import in_order
from windowpane.engines.common.held_panes import Wanted, WindowsEngine
from windowpane.engines.program import Program, Upstream
from windowpane.engines.row.held_windows import HeldWindows
from windowpane.engines.rows import python_keys, python_rows
from windowpane.engines.spec import reason_of_the_reference
from windowpane.errors import MissingTimestampError, present
from windowpane.hidden_columns import TIME
from windowpane.kernels.keys.key_codes import plain_key
from windowpane.operators.window.operator import WindowOperator
from windowpane.operators.window.timer_service import KeyTimerService, TimerService
from windowpane.state.blob_store import BlobStore
from windowpane.state.codec import encode_key
from windowpane.state.keyed import KeyedState
from windowpane.state.sorted_pages import SortedPages
from windowpane.state.timers import KeyTimerQueue, TimerQueue
from windowpane.windowing.evictors import TimestampedValue
from windowpane.windowing.times import MIN

_COUNTED = ("late_elements", "late_dropped", "firings", "merges", "dropped_by_finished_trigger")


HOLDS_OF_ROWS = {"s": "keyed state", "e": "event-time timers", "p": "processing-time timers"}


class ElementsEngine(WindowsEngine):
    """An engine whose batches are the operator's; what is kept of a key may be another kind of state."""

    state = "sorted pages: keyed state, event-time timers, processing-time timers"
    holds: ClassVar = HOLDS_OF_ROWS

    def __init__(self, program: Program, make_state: Callable[[SortedPages], KeyedState] = KeyedState) -> None:
        super().__init__(program)
        self.make_state = make_state


class ColumnsOfNow:
    """Makes rows in state that were written with other columns rows of now: they get NULL in new ones, and lose those gone.

    Functions of users see whole rows, and keep them as they like: a dict that has exactly the columns of before is such a row. So
    is a result that has columns of the rows.
    """

    def __init__(self, changed: Sequence[ChangedColumns], *names: Sequence[str]) -> None:
        """Take how columns differ, and those of now: of rows, and of results if they are in state."""
        self.columns = names[0]
        self._rows = {each.before(of_now): of_now for each, of_now in zip(changed, names, strict=False)}

    def __call__(self, held: Value) -> Value:
        """Return what state holds, a value or a list of elements, with the columns of now."""
        if isinstance(held, dict):
            names = self._rows.get(frozenset(held))
            if names is not None:
                return {name: held.get(name) for name in names}
            return {key: self(value) for key, value in held.items()}
        if isinstance(held, TimestampedValue):
            return replace(held, value=self(held.value))
        return type(held)(map(self, held)) if type(held) in (list, tuple) else held


def values_seen(program: Program, rows: pa.Table) -> pa.Table:
    """Return what functions see of rows.

    Aggregates read key columns spelled as keys are: engines that group by them keep no other spelling.
    """
    values = rows.select(program.values)
    if not program.aggregates and program.arrow is None:
        return values
    return with_columns(values, {name: plain_key(values[name]) for name in program.key_columns if name in program.values})


class WindowBatch(OrderedBatch[Program]):
    """One batch of one bucket, run by the operator."""

    columns_of_now: type[ColumnsOfNow] = ColumnsOfNow

    def __init__(self, engine: ElementsEngine, store: BlobStore) -> None:
        super().__init__(engine, store)
        program = self.program
        self._pages = [SortedPages(store, name) for name in ("s", "e", "p")]
        self._state = engine.make_state(self._pages[0])
        if any(map(any, self.header.columns)):
            self._state.rewrite(self.columns_of_now(self.header.columns, program.values, program.main.names))
        self._timers = self._timer_service()
        self._timers.restore_clocks(self.watermark, self.now)
        self._collector = OutputCollector(program, self._timers, self.late_counts)
        self._operator = self._make_operator()
        was, now = self.header.description, program.description
        numbers = matched_calls(was.get("calls", ()), now.get("calls", ()))
        if numbers != tuple(range(len(was.get("calls", ())))):
            self._operator.keep_calls([present(number, "none is added") for number in numbers])
        self._is_carried = was.get("allowed lateness") != now.get("allowed lateness")
        if begins_anew(was, now):
            self._operator.begin_anew()
        elif self._is_carried:
            self._operator.keep_for(replace(program.spec.lateness, allowed=was["allowed lateness"]))

    def _make_operator(self) -> WindowOperator:
        return WindowOperator(self.program.spec, self._state, self._timers, self._collector)

    def _timer_service(self) -> TimerService:
        by_clock, delay = TimerQueue(self._pages[2]), self.program.key_delay
        if delay is None:
            return TimerService(TimerQueue(self._pages[1]), by_clock)
        return KeyTimerService(self._state, KeyTimerQueue(self._pages[1]), by_clock, delay)

    def work(self, tables: list[pa.Table]) -> None:
        rows = self._collector.rows = in_order(self.program, tables)
        self._collector.clock = self.clocks
        if rows is None or self.program.upstream is not Upstream.WINDOW_WITH_WATERMARKS:
            self._take(rows)
            return
        taken = 0
        for part in self.by_watermark(rows):
            self._take(part, taken)
            taken += part.num_rows

    def advance_watermark(self, watermark: int) -> None:
        # a timer registered behind the watermark waits for its next move, as in Flink, but not for a lateness of before
        if watermark > self._timers.watermark or self._is_carried:
            self._is_carried = False
            self._operator.advance_watermark(max(watermark, self._timers.watermark))

    def advance_processing_time(self, time: int) -> None:
        if time >= self._timers.processing_time:  # a clock that was set back fires nothing
            self._operator.advance_processing_time(time)

    def _take(self, rows: pa.Table | None, start: int = 0) -> None:
        """Take the rows of one watermark; ``start`` is the number of the first of them in the batch."""
        if rows is not None:
            self._process(rows, values_seen(self.program, rows), start)
        self._operator.finish_batch()

    def _process(self, rows: pa.Table, seen: pa.Table, start: int) -> None:
        """Hand rows to the operator; of each row functions see what ``seen`` has."""
        values = python_rows(seen)
        keys = python_keys(rows, self.program.key_columns)
        for number, (key, value, time) in enumerate(zip(keys, values, rows[TIME].to_pylist(), strict=True), start):
            if time is None and self.program.spec.assigner.is_event_time:
                raise MissingTimestampError(self.program.spec.assigner, key, value)
            self._collector.row_number = number
            self._operator.process_element(key, value, MIN if time is None else time, encode_key(key))

    def held(self, wanted: Wanted) -> Iterator[pa.Table]:
        return HeldWindows(self.program, self._state, self._operator, self._timers, wanted).tables()

    def close(self) -> Left:
        self._state.flush()
        for pages in self._pages:
            pages.flush()
        timers, counted = self._timers, self._operator.counters
        self.watermark = MIN if self.program.key_delay is not None else timers.watermark
        self.now = timers.processing_time
        self.counts |= {name: getattr(counted, name) for name in _COUNTED}
        self.outputs += self._collector.tables()
        return Left(
            self.header.open_windows + counted.windows_opened - counted.windows_closed,
            sum(pages.byte_size for pages in self._pages),
            self.is_source and not any(len(pages) for pages in self._pages),
            timers.processing_time_queue.next_time(),
        )


class ReferenceEngine(ElementsEngine):
    """Runs any program of windows, one row at a time."""

    name = "reference"
    batch = WindowBatch

    @classmethod
    def reason_for(cls, program: Program) -> str:
        return reason_of_the_reference(program.key_delay)
