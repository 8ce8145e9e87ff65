"""One batch of one bucket in a columnar engine of windows: which windows are late, and what is emitted."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

import pyarrow as pa

from windowpane.engines.batch.driver import Left, OrderedBatch
from windowpane.engines.common.arrival import TaskNumbers, in_order, numbered
from windowpane.engines.common.changed_calls import changed_partials
from windowpane.engines.common.columnar import with_columns_of_now
from windowpane.engines.common.missed_windows import MissedWindows
from windowpane.engines.common.results import Results
from windowpane.engines.messages import Message, Positions, message_of
from windowpane.engines.program import MAIN, Program, Upstream
from windowpane.engines.spec import BucketEngine
from windowpane.errors import present
from windowpane.kernels.grouping.grouped_fold import GroupedFold
from windowpane.state.blob_store import BlobStore
from windowpane.windowing.windows import Window


class Rewritable(Protocol):
    def rewrite(self, change: Callable[[pa.Table], pa.Table]) -> None:
        """Put what a function makes of each in its place."""


class ColumnarBatch(OrderedBatch[Program]):
    """Results and late rows of a batch; a subclass defines what rows and clocks do."""

    def __init__(self, engine: BucketEngine[Program], fold: GroupedFold, store: BlobStore) -> None:
        super().__init__(engine, store)
        self.fold = fold
        self.results = Results(self.program, fold)
        self.missed = MissedWindows(self)
        self.lateness = self.program.spec.lateness
        self.is_event_time = self.lateness.is_event_time

    def work(self, tables: list[pa.Table]) -> None:
        if not tables:
            return
        if self.program.upstream is not Upstream.WINDOW_WITH_WATERMARKS:
            self.take([message_of(table) for table in tables])
            return
        for rows in self.by_watermark(pa.concat_tables(tables)):
            self.take([Positions(rows)])

    def widen(self, *held: Rewritable) -> None:
        """Rewrite what is held for the program of now, if another one has held it.

        Functions on Arrow tables see the columns of now, NULL in those that rows have got since; partials are those of the
        present calls. What follows from the program for a whole page, such as when it is due, is made anew.
        """
        if self.header.description == self.program.description:
            return
        change = changed_partials(self.program, self.fold, self.header.description)
        if self.program.arrow is not None:
            change = partial(with_columns_of_now, self.program, self.fold)
        for each in held:
            each.rewrite(change or (lambda table: table))

    @abstractmethod
    def take(self, messages: Sequence[Message]) -> None:
        """Take rows, at least one, under the present clocks."""

    def arrived(self, tables: list[pa.Table], always_in_order: bool = False, among: TaskNumbers | None = None) -> pa.Table:
        """Return rows together; in order of arrival if asked, and numbered as well where an aggregate needs it.

        ``among``: their numbers, where others of the batch were folded before the shuffle.
        """
        if not self.fold.is_ordered and not always_in_order:
            return pa.concat_tables(tables)
        ordered = present(in_order(self.program, tables), "there are rows")
        if among is not None:
            return among.numbered(ordered)
        first, self.arrivals = self.arrivals, self.arrivals + ordered.num_rows
        return numbered(ordered, first) if self.fold.is_ordered else ordered

    def task_numbers(self, tables: list[pa.Table]) -> TaskNumbers:
        """Return the numbers of rows and of partials that were folded before the shuffle; those of later rows are greater."""
        numbers = TaskNumbers.of(tables, self.arrivals)
        self.arrivals = numbers.following
        return numbers

    @property
    def clock(self) -> int:
        """The clock that windows end by."""
        return self.watermark if self.is_event_time else self.now

    def is_late(self, window: Window) -> bool:
        """Whether a window is cleaned up, or would be at once."""
        return self.lateness.is_over(window.max_timestamp, self.clock)

    def left(self, open_windows: int, state_bytes: int, is_idle: bool, next_processing_time: int | None, merges: int = 0) -> Left:
        missed = self.missed
        outputs = [(MAIN, self.results.table()), (self.program.late_output, missed.table())]
        self.outputs += [(number, table) for number, table in outputs if number is not None and table is not None]
        self.counts |= {
            "late_elements": missed.elements,
            "late_dropped": missed.dropped,
            "firings": self.results.firings,
            "merges": merges,
            "dropped_by_finished_trigger": missed.finished,
        }
        return Left(open_windows, state_bytes, is_idle and self.is_source, next_processing_time)
