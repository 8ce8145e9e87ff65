"""The driver of a batch: it opens the state of a bucket, lets rows and clocks do their work, and writes the header.

A batch of an engine is a subclass, which says what happens to the rows of a bucket between two clocks. ``BucketBatch`` has both
clocks of the batch at once. In an ``OrderedBatch`` they advance one by one, around the rows, in Flink's order::

    a source feeds the bucket     watermark, made from earlier rows | processing time | rows
    an operator feeds it          processing time | rows, under the watermark of the batch before | watermark

Rows of a source are late under the watermark of their batch, those of an operator under that of the batch before. No clock goes
back. Who may mutate: the engine, once a batch; the header is written last. Recovery: read it back.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import ClassVar, Generic, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windowpane.arrays import Mask
from windowpane.engines.batch.header import BucketHeader
from windowpane.engines.batch.late_counts import LateCounts
from windowpane.engines.batch.late_rows import late_table
from windowpane.engines.changes import Description
from windowpane.engines.program import LATE, MAIN, BucketProgram, Upstream
from windowpane.engines.protocol import BucketOutput, Clock, Counters
from windowpane.engines.spec import BucketEngine
from windowpane.errors import ChangedPlanError
from windowpane.hidden_columns import FIRING_WATERMARK, TIME
from windowpane.state.blob_store import BlobStore


def rows_behind(cut: int | None, tables: Sequence[pa.Table]) -> tuple[list[pa.Table], int | None]:
    """Return the tables that have rows, without rows below a cut, and how many these are; ``None`` where there is no cut.

    Raises:
        ChangedPlanError: rows arrive folded, of which nobody knows their time.
    """
    filled = [table for table in tables if table.num_rows]
    if cut is None:
        return filled, None
    if any(TIME not in table.column_names for table in filled):
        note = "  its state began with a history, which result.start(...) knows of, and result.df does not"
        raise ChangedPlanError({"began with": ("a history", "nothing")}, [note])
    kept = [table.filter(pc.fill_null(pc.greater_equal(table[TIME], cut), True)) for table in filled]
    passed_over = sum(table.num_rows for table in filled) - sum(table.num_rows for table in kept)
    return [table for table in kept if table.num_rows], passed_over


P = TypeVar("P", bound=BucketProgram)


@dataclass(frozen=True)
class Left:
    """What a batch leaves in its bucket."""

    open_windows: int  # windows, keys or rows that wait for a clock
    state_bytes: int  # the size of the state
    # whether no clock could change anything in a bucket that a source feeds; ``None``: where nothing waits
    is_idle: bool | None = None
    next_processing_time: int | None = None  # the earliest timer of the clock, ``None`` if there is none
    gauges: Mapping[str, int] = field(default_factory=dict)  # further counters of the state


class BucketBatch(ABC, Generic[P]):
    """One batch of one bucket.

    Attributes:
        header: what the batch before left.
        before: the watermark of the batch before; ``watermark`` is the present one.
        now: the processing time.
        clocks: those that the batch was given.
        arrivals: how many rows were numbered by arrival.
        raw_rows: rows that are in state one by one, where an engine counts them.
        outputs: what is emitted: numbers of outputs and rows.
        counts: counters of the batch by name.
    """

    counters: ClassVar[type[Counters]] = Counters

    def __init__(
        self,
        engine: BucketEngine[P],
        store: BlobStore,
        accepts: Callable[[Description], bool] | None = None,
    ) -> None:
        self.program = engine.program
        self.store = store
        self.header = BucketHeader.read(store, self.program.description, accepts)
        self.before = self.watermark = self.header.watermark
        self.now = self.header.processing_time
        self.clocks = Clock(self.watermark, self.now)
        self.arrivals, self.raw_rows = self.header.arrivals, self.header.raw_rows
        self.outputs: list[tuple[int, pa.Table]] = []
        self.counts: dict[str, int] = {}
        self.late_counts = LateCounts(self.header.late)

    def run(self, tables: Sequence[pa.Table], clock: Clock) -> BucketOutput:
        self.clocks = clock
        self.watermark, self.now = max(self.before, clock.watermark), max(self.now, clock.processing_time)
        self.work(self.after_cut(tables))
        return self.ended()

    def after_cut(self, tables: Sequence[pa.Table]) -> list[pa.Table]:
        """Return the tables that have rows, without those that the history has which the state began with; these are counted."""
        kept, passed_over = rows_behind(self.header.cut, tables)
        if passed_over is not None:
            self.count("before_cut", passed_over)
        return kept

    @abstractmethod
    def work(self, tables: list[pa.Table]) -> None:
        """Take rows, none of the tables empty, and do what the clocks say."""

    @abstractmethod
    def close(self) -> Left:
        """Write the state but for the header."""

    @property
    def is_source(self) -> bool:
        return self.program.upstream is Upstream.SOURCE

    @property
    def late_under(self) -> int:
        """The watermark that the rows of the batch are late under."""
        return self.watermark if self.is_source else self.before

    def punctual(self, rows: pa.Table, is_late: Mask, late_schema: pa.Schema | None, under: str | None = None) -> pa.Table | None:
        """Return the rows that are not late, ``None`` for none; count the others, and emit them where there is a ``late_schema``.

        ``under``: the column with the watermark that each is late under, ``None`` where it is that of the batch.
        """
        if not is_late.any():
            return rows
        late, rest = rows.filter(pa.array(is_late)), rows.filter(pa.array(~is_late)).combine_chunks()
        self.late_counts.note_dropped(late[TIME], self.late_under)
        self.count("late_elements", late.num_rows)
        self.count("late_dropped", late.num_rows)
        if late_schema is not None:
            mark = self.late_under if under is None else late[under].to_numpy()
            self.outputs.append((LATE, late_table(late_schema, late, mark, self.clocks)))
        return rest if rest.num_rows else None

    def emit(self, results: pa.Table) -> None:
        """Emit rows of the main output, and count them as firings."""
        if results.num_rows:
            self.outputs.append((MAIN, results))
            self.count("firings", results.num_rows)

    def count(self, name: str, number: int) -> None:
        self.counts[name] = self.counts.get(name, 0) + number

    def ended(self) -> BucketOutput:
        """Write the state, and return what was emitted."""
        left = self.close()
        gauges = {"open_windows": left.open_windows, "state_bytes": left.state_bytes, **left.gauges}
        before = self.header.totals
        totals = {name: before.get(name, 0) + number for name, number in self.counts.items() if number or name in before}
        self.write_header(left.open_windows, {**before, **totals, **gauges})
        counters = self.counters(**self.counts | gauges)
        is_idle = self.is_source and not left.open_windows if left.is_idle is None else left.is_idle
        return BucketOutput(self.tables(), counters, is_idle, left.next_processing_time)

    def tables(self) -> Sequence[tuple[int, pa.Table]]:
        """Return what is emitted, by output, the main one first."""
        return sorted(self.outputs, key=itemgetter(0))

    def write_header(self, open_windows: int, totals: Mapping[str, int] | None = None) -> None:
        replace(
            self.header,
            description=self.program.description,
            watermark=self.watermark,
            processing_time=self.now,
            open_windows=open_windows,
            arrivals=self.arrivals,
            raw_rows=self.raw_rows,
            late=self.late_counts.cells(),
            totals=self.header.totals if totals is None else totals,
        ).write(self.store)


class OrderedBatch(BucketBatch[P]):
    """A batch whose clocks advance around its rows; ``watermark`` and ``now`` are the present ones."""

    def run(self, tables: Sequence[pa.Table], clock: Clock) -> BucketOutput:
        self.clocks = clock
        filled = self.after_cut(tables)
        if self.is_source:
            self.advance_watermark(clock.watermark)
            self.advance_processing_time(clock.processing_time)
            self.work(filled)
        else:
            self.advance_processing_time(clock.processing_time)
            self.work(filled)
            self.advance_watermark(clock.watermark)
        return self.ended()

    def advance_watermark(self, watermark: int) -> None:
        """Advance the watermark; one that is behind changes nothing."""
        before, self.watermark = self.watermark, max(watermark, self.watermark)
        self.on_watermark(before)

    def advance_processing_time(self, time: int) -> None:
        """Advance the clock; one that was set back fires nothing: timers of the instant that it was have to wait."""
        if time >= self.now:
            before, self.now = self.now, time
            self.on_processing_time(before)

    def by_watermark(self, rows: pa.Table) -> Iterator[pa.Table]:
        """Advance to each watermark that rows of an operator were emitted under, in order, and yield its rows."""
        marks = rows[FIRING_WATERMARK].to_numpy()
        for mark in np.unique(marks).tolist():
            self.advance_watermark(mark)
            yield rows.filter(pa.array(marks == mark))

    @property
    def late_under(self) -> int:
        return self.watermark

    def on_watermark(self, before: int) -> None:
        """React to the watermark, which was ``before``."""

    def on_processing_time(self, before: int) -> None:
        """React to the processing time, which was ``before``."""
