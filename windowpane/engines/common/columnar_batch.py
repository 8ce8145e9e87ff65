"""One batch of one bucket in a columnar engine: the order of clocks and rows, the header, and what is emitted.

Order of things: a bucket fed by a source first advances to the batch's watermark, which earlier rows made, then takes its rows.
A bucket fed by another window takes rows under the watermark they were emitted under, and advances last. Processing time is the
machine's for all: no rows are taken before it has advanced.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from windowpane.engines.batch.header import BucketHeader
from windowpane.engines.common.arrival import TaskNumbers, in_order, numbered
from windowpane.engines.common.columnar import with_added_columns
from windowpane.engines.common.missed_windows import MissedWindows
from windowpane.engines.common.results import Results
from windowpane.engines.program import MAIN, Program, Upstream
from windowpane.engines.protocol import BucketOutput, Clock, Counters
from windowpane.errors import present
from windowpane.hidden_columns import FIRING_WATERMARK
from windowpane.kernels.grouping.grouped_fold import GroupedFold
from windowpane.state.blob_store import BlobStore
from windowpane.windowing.windows import Window


class Rewritable(Protocol):
    """Tables in state."""

    def rewrite(self, change: Callable[[pa.Table], pa.Table]) -> None:
        """Put what a function makes of each in its place."""


class ColumnarBatch(ABC):
    """Clocks, results and late rows of a batch; a subclass defines what rows and clocks do.

    ``watermark`` and ``now`` are microseconds; they advance here, and only forward.
    """

    def __init__(self, program: Program, fold: GroupedFold, store: BlobStore) -> None:
        """Read the header of the bucket.

        Raises:
            ChangedPlanError: another program wrote the state.
        """
        self.program = program
        self.fold = fold
        self.store = store
        self.header = BucketHeader.read(store, program.description, growing=program.growing)
        self.watermark, self.now = self.header.watermark, self.header.processing_time
        self._arrivals = self.header.arrivals
        self.results = Results(program, fold)
        self.missed = MissedWindows(program)
        self.lateness = program.spec.lateness
        self.is_event_time = self.lateness.is_event_time

    def run(self, rows: Sequence[pa.Table], clock: Clock) -> BucketOutput:
        """Run the batch."""
        arrived = [table for table in rows if table.num_rows]
        if self.program.upstream is Upstream.SOURCE:
            self._advance_watermark(clock.watermark)
            self._advance_processing_time(clock.processing_time)
            self._take_any(arrived)
        else:
            self._advance_processing_time(clock.processing_time)
            self._take_from_window(arrived)
            self._advance_watermark(clock.watermark)
        return self.close()

    def widen(self, *held: Rewritable) -> None:
        """Put NULL into columns that rows have got since they were held, where functions on Arrow tables see them."""
        if self.header.added and self.program.arrow is not None:
            for each in held:
                each.rewrite(partial(with_added_columns, self.program, self.fold))

    @abstractmethod
    def on_watermark(self, before: int) -> None:
        """React to the watermark, which was ``before``."""

    @abstractmethod
    def on_processing_time(self, before: int) -> None:
        """React to the processing time, which was ``before``."""

    @abstractmethod
    def take(self, tables: list[pa.Table]) -> None:
        """Take rows, at least one, under the present clocks."""

    @abstractmethod
    def close(self) -> BucketOutput:
        """Write the state and return what was emitted, by ``output``."""

    def arrived(self, tables: list[pa.Table], always_in_order: bool = False, among: TaskNumbers | None = None) -> pa.Table:
        """Return rows together; in order of arrival if asked, and numbered as well where an aggregate needs it.

        Args:
            tables: the rows.
            always_in_order: whether their order is asked for.
            among: their numbers, where others of the batch were folded before the shuffle.
        """
        if not self.fold.is_ordered and not always_in_order:
            return pa.concat_tables(tables)
        ordered = present(in_order(self.program, tables), "there are rows")
        if among is not None:
            return among.numbered(ordered)
        first, self._arrivals = self._arrivals, self._arrivals + ordered.num_rows
        return numbered(ordered, first) if self.fold.is_ordered else ordered

    def task_numbers(self, tables: list[pa.Table]) -> TaskNumbers:
        """Return the numbers of rows and of partials that were folded before the shuffle; those of later rows are greater."""
        numbers = TaskNumbers.of(tables, self._arrivals)
        self._arrivals = numbers.following
        return numbers

    @property
    def clock(self) -> int:
        """The clock that windows end by."""
        return self.watermark if self.is_event_time else self.now

    def is_late(self, window: Window) -> bool:
        """Whether a window is cleaned up, or would be at once."""
        return self.lateness.is_over(window.max_timestamp, self.clock)

    def output(
        self, open_windows: int, state_bytes: int, is_idle: bool, next_processing_time: int | None, merges: int = 0
    ) -> BucketOutput:
        """Write the header and return what was emitted."""
        BucketHeader(self.program.description, self.watermark, self.now, open_windows, self._arrivals).write(self.store)
        missed = self.missed
        firings, finished = self.results.firings, missed.finished
        counters = Counters(
            missed.elements, missed.dropped, firings, merges, open_windows, state_bytes, dropped_by_finished_trigger=finished
        )
        outputs = [(MAIN, self.results.table()), (self.program.late_output, missed.table())]
        tables = [(number, table) for number, table in outputs if number is not None and table is not None]
        idle = is_idle and self.program.upstream is Upstream.SOURCE
        return BucketOutput(tables, counters, idle, next_processing_time)

    def _advance_watermark(self, watermark: int) -> None:
        before, self.watermark = self.watermark, max(watermark, self.watermark)
        self.on_watermark(before)

    def _advance_processing_time(self, time: int) -> None:
        if time >= self.now:  # a clock that was set back fires nothing: timers of the instant that it was have to wait
            before, self.now = self.now, time
            self.on_processing_time(before)

    def _take_any(self, tables: list[pa.Table]) -> None:
        if tables:
            self.take(tables)

    def _take_from_window(self, tables: list[pa.Table]) -> None:
        if not tables or self.program.upstream is Upstream.WINDOW:
            self._take_any(tables)
            return
        arrived = pa.concat_tables(tables)
        for fired_under in sorted(set(arrived[FIRING_WATERMARK].to_pylist())):
            self._advance_watermark(fired_under)
            self.take([arrived.filter(pc.equal(arrived[FIRING_WATERMARK], fired_under))])
