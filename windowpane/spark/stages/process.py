"""Process: an engine on the blobs and the state of a bucket, inside ``transformWithState``.

Once a batch Spark calls a bucket that has rows, then those whose timer is due. A bucket that is not idle sets a timer for the
next move of the watermark (or of the clock, in processing-time mode): one timer, one millisecond ahead. So every bucket
that could fire sees every watermark, and knows which one downstream has seen before.

Watermarks: Spark's w, in milliseconds, means nothing *below* w is still expected, Flink's means nothing at or below; so the
operator's is ``w - 1 µs``. Spark reports 0 while there is none: that is ``MIN``. Where the operator makes its watermark itself
(``OwnWatermark``), every bucket is called in every batch, with the clock of the machine: from the marks of a batch (``messages``)
a bucket makes the watermark of the next one (``windowing.watermarks``). An operator behind another one has the watermark of
that, by what the buckets of it report.

State of a watermark: one framed JSON blob under ``watermark``, written once a batch. Recovery reads it back: the watermark does
not go back, and another id of the run shows that the query was stopped between. The clock is that of the batch's plan, which
Spark repeats with the batch.
"""

from __future__ import annotations

import base64
import pickle
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from windowpane.arrays.values import Value
from windowpane.engines.batch.own_watermark import OWN_WATERMARK, read_state, write_state
from windowpane.engines.protocol import BucketOutput, Clock, Engine, coded_columns
from windowpane.hidden_columns import PREFIX
from windowpane.pickles import values_only
from windowpane.spark.internals.blob_state import SparkBlobStore
from windowpane.spark.internals.session import RUN, TOLD, task_property
from windowpane.spark.internals.worker import frame_of, prepare_worker, without_trace
from windowpane.spark.stages.layout import Layout
from windowpane.spark.stages.messages import Moves, Received, latest_of, received, taken_results
from windowpane.spark.stages.next_watermark import NextWatermark
from windowpane.spark.stages.wire import WATERMARK_ROW, Wire
from windowpane.state.blob_store import BlobStore
from windowpane.state.memory import HeldWrites
from windowpane.windowing.times import MIN
from windowpane.windowing.watermarks import Watermarks, WatermarkState, advance

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle, TimerValues

_NO_TIMERS = "None"
_PROCESSING_TIME = "ProcessingTime"


@dataclass(frozen=True)
class OwnWatermark:
    strategy: Watermarks

    def read(self, store: BlobStore) -> WatermarkState:
        """Return what earlier batches have written; nothing of sources, where another column names them now."""
        blob = store.get(OWN_WATERMARK)
        if blob is None:
            return WatermarkState()
        found, column = read_state(blob)
        return found if column == self.strategy.source else replace(found, sources={}, holders=())

    def moves(self, before: WatermarkState, marks: Iterable[pa.Table], now: int) -> Moves:
        """Return the watermark in a batch at ``now``: at its end it is that of its rows, where they may close windows at once.

        What the clock adds counts from the next batch on. How much that is depends on the run, and a batch that a run did not
        commit is repeated by another one: its results must be the same, since sinks take a batch once.
        """
        if not self.strategy.is_at_once:
            return Moves(before.watermark, before.watermark)
        clock = now if before.now is None else before.now
        return Moves(before.watermark, advance(self.strategy, before, latest_of(marks), clock, before.run).watermark)

    def advanced(self, store: BlobStore, before: WatermarkState, marks: Iterable[pa.Table], now: int) -> WatermarkState:
        """Return what is known after a batch at ``now``, and keep it."""
        after = advance(self.strategy, before, latest_of(marks), now, task_property(RUN) or "")
        store.put(OWN_WATERMARK, write_state(after, self.strategy.source))
        return after


Bucket = tuple[object, ...]
"""A bucket as Spark has it: the values of the columns that it groups by."""


@dataclass(eq=False)
class BucketProcessor(StatefulProcessor):
    """Runs a program on the buckets of one state partition, for one batch."""

    make_engine: Callable[[], Engine]
    wire: Wire  # how its outputs travel
    time_mode: str  # Spark's: ``EventTime``, ``ProcessingTime``, or ``None`` for a program that needs no clock
    delay: int = 0  # microseconds by which the operator's watermark stays behind Spark's
    own_watermark: Watermarks | None = None  # how the operator makes its watermark itself, ``None`` where it does not
    # whether its watermark is that of the operator before; else, and without one of its own, it is Spark's
    follows_watermark: bool = False
    begins_with_results: bool = False  # whether what a history gave may wait in its state, to be emitted
    watermark_delay: int | None = None  # by how much the watermark stays behind rows, as late rows show it
    next_watermark: NextWatermark | None = None  # writes a bound of the watermark for the tasks of the next batch
    holds_values_only: bool = False  # whether state is written and read without classes of the user's (``pickles``)
    name: str = ""  # of the operator, whose engine a start may tell of, empty for none

    def __post_init__(self) -> None:
        self._own = None if self.own_watermark is None else OwnWatermark(self.own_watermark)

    def init(self, handle: StatefulProcessorHandle) -> None:
        prepare_worker()
        values_only(self.holds_values_only)
        self._handle = handle
        told = task_property(TOLD + self.name) if self.name else None
        make_engine = self.make_engine if told is None else pickle.loads(base64.b64decode(told))
        self._engine = make_engine()
        self._store = SparkBlobStore(handle.getMapState(*SparkBlobStore.DECLARED))
        self._called: set[object] = set()

    def handleInputRows(self, key: Bucket, rows: Iterator[Value], timerValues: TimerValues) -> Iterator[pd.DataFrame]:  # noqa: N802, N803
        """Run the batch of a bucket that has rows (the names of method and parameters are Spark's)."""
        found = received((bytes(blob) for frame in rows for blob in frame["blob"]), coded_columns(self._engine))
        if found.is_called:
            yield from self._run(key, found, timerValues)
        else:
            self._compare_layouts(key)
            self._store.settle()

    def handleExpiredTimer(self, key: Bucket, timerValues: TimerValues, expiredTimerInfo: object) -> Iterator[pd.DataFrame]:  # noqa: N802, N803
        """Run the batch of a bucket that only its timer called; nothing if its rows have called it already."""
        if key not in self._called:
            yield from self._run(key, received([]), timerValues)

    def handleInitialState(self, key: Bucket, initialState: Value, timerValues: TimerValues) -> None:  # noqa: N802, N803
        """Keep the state that a bucket begins with, in the first batch of a query, and have its timer call it."""
        self._compare_layouts(key)
        for name, blob in zip(initialState["name"], initialState["blob"], strict=True):
            self._store.put(name, bytes(blob))
        self._store.settle()
        if self.time_mode != _NO_TIMERS:
            is_clock = self.time_mode == _PROCESSING_TIME
            tick = self._now(timerValues) if is_clock else timerValues.getCurrentWatermarkInMs()
            self._handle.registerTimer(tick + 1)

    def close(self) -> None:
        """Nothing to release."""

    def _run(self, key: Bucket, found: Received, timer_values: TimerValues) -> Iterator[pd.DataFrame]:
        """Yield what the batch of a bucket gives; Spark takes it while the last of the state is written."""
        self._called.add(key)
        spark_watermark = timer_values.getCurrentWatermarkInMs() if self.time_mode != _NO_TIMERS else 0
        now = self._now(timer_values)
        try:
            with without_trace():
                self._compare_layouts(key)
                own_watermark = led_by = None
                if self._own is not None:
                    before = self._own.read(self._store)
                    led_by = before.held_by.removeprefix(PREFIX)
                    moves = self._own.moves(before, found.marks, now * 1000)
                    own_watermark = self._own.advanced(self._store, before, found.marks, now * 1000)
                elif self.follows_watermark:
                    moves = Moves.least(found.reports)
                else:
                    reached = MIN if spark_watermark <= 0 else spark_watermark * 1000 - 1
                    moves = Moves(reached, reached)
                if self.next_watermark is not None:
                    after = moves.after if own_watermark is None else own_watermark.watermark
                    self.next_watermark.publish(self._store, after, found.marks)
                if self._own is not None or self.follows_watermark:
                    found.passed.append((WATERMARK_ROW, moves.report()))
                output = self._engine_output(found.rows, moves.less(self.delay), now * 1000, led_by)
                if self.begins_with_results:
                    output = replace(output, tables=[*taken_results(self._store), *output.tables])
                yield from map(frame_of, self.wire.frames(output, found.passed, own_watermark))
        finally:
            self._store.settle()
        if self.time_mode != _NO_TIMERS and (self._own is not None or not output.is_idle):
            tick = now if self.time_mode == _PROCESSING_TIME else spark_watermark
            self._handle.registerTimer(tick + 1)

    def _engine_output(self, rows: list[pa.Table], moves: Moves, now: int, led_by: str | None) -> BucketOutput:
        """Return what the engine emits: of rows, then of the watermark that they have made, if that is in force at once."""
        clock = Clock(moves.before, now, self.watermark_delay, led_by)
        if moves.after <= moves.before:
            return self._engine.run(self._store, rows, clock)
        store = HeldWrites(self._store)
        output = self._engine.run(store, rows, clock)
        output = output.followed_by(self._engine.run(store, [], replace(clock, watermark=moves.after)))
        store.write()
        return output

    def _compare_layouts(self, key: Bucket) -> None:
        layout = Layout.of_task()
        if layout is not None:
            layout.compare(tuple(key), self._store)

    def _now(self, timer_values: TimerValues) -> int:
        now = int(timer_values.getCurrentProcessingTimeInMs()) if self.time_mode != _NO_TIMERS else -1
        return now if now > 0 else time.time_ns() // 1_000_000
