"""The engines of labels that are a stream: each waits until the watermark has passed it, and is emitted once, with its features.

Rows and labels of a key are held together, in pages by a hash of the key. The due labels of a page are answered by an engine of
static labels, from the rows of the page: so both agree by construction::

    rows of a key      x   x  x        x
    labels                       ?          ?
    watermark                         |            the first label is emitted, with the rows before it; the second waits

A label may arrive after the watermark by up to the longest hop, a row by as much more as a window reaches back; later ones are
late. State, by name in the bucket's blob store: ``header``, and pages ``p``. Who may mutate: this engine, once a batch.
Recovery: read them back; the watermark is in the header.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from windowpane.arrays import Integers, Mask, Unsigned
from windowpane.arrays.columns import columns_by_text, padded
from windowpane.engines.batch.header import BucketHeader
from windowpane.engines.common.arrival import ordered
from windowpane.engines.nested_keys.writing import hashable_key
from windowpane.engines.program import MAIN
from windowpane.engines.protocol import BucketOutput, Clock, Counters, Engine
from windowpane.engines.rolling.point_in_time import PointInTimeEngine, PointInTimeReferenceEngine, check_label_times
from windowpane.engines.rolling.program import IS_LABEL, LATE, PointInTimeProgram
from windowpane.errors import TimestampOverflowError
from windowpane.hidden_columns import HASH, PARTITION, POSITION, TIME
from windowpane.kernels.keys.key_codes import key_hashes
from windowpane.sizes import Size
from windowpane.state.blob_store import BlobStore
from windowpane.state.hash_pages import HashPages, PageSummary, stored_hashes
from windowpane.state.memory import MemoryBlobStore
from windowpane.windowing.times import MAX, MIN

PAGE_ROWS = Size("rows and labels of a page", 1 << 12, (2, 8))
STEP_ROWS = Size("rows and labels in a step", 1 << 20, (4, 16))


class WaitingLabelsEngine:
    """Gives all labels that are due their features at once."""

    name = "waiting labels"

    def __init__(self, program: PointInTimeProgram) -> None:
        """Run ``program``."""
        self.program = program
        self.answering: Engine = PointInTimeEngine(program)

    def run(self, store: BlobStore, rows: Sequence[pa.Table], clock: Clock) -> BucketOutput:
        """Run one batch of a bucket."""
        return _Batch(self.program, self.answering, store).run(rows, clock)


class WaitingLabelsReferenceEngine(WaitingLabelsEngine):
    """Gives labels that are due their features one by one."""

    name = "waiting labels reference"

    def __init__(self, program: PointInTimeProgram) -> None:
        """Run ``program``."""
        self.program = program
        self.answering = PointInTimeReferenceEngine(program)


class _Batch:
    """One batch of one bucket: state opened, run, written back."""

    def __init__(self, program: PointInTimeProgram, answering: Engine, store: BlobStore) -> None:
        self._program = program
        self._answering = answering
        self._store = store
        growing = {"labels": columns_by_text(program.labels)}
        self._header = BucketHeader.read(store, program.description, growing=growing)
        self._arrivals = self._header.arrivals
        self._pages = HashPages(store, "p", stored_hashes, self._summary, PAGE_ROWS.value, PAGE_ROWS.value)
        self._patience = max(window.hop for window in program.spec.windows)
        self._out: list[pa.Table] = []

    def run(self, tables: Sequence[pa.Table], clock: Clock) -> BucketOutput:
        self._watermark = max(self._header.watermark, clock.watermark)
        rows, late = self._taken(tables)
        hashes = np.zeros(0, np.uint64) if rows is None else stored_hashes(rows)
        for positions, numbers, is_run in self._pages.steps(hashes, self._watermark, STEP_ROWS.value):
            self._step(positions, rows, numbers, is_run)
        self._pages.commit()
        return self._output(late, clock)

    def _taken(self, tables: Sequence[pa.Table]) -> tuple[pa.Table | None, pa.Table | None]:
        """Return the rows and labels of a batch as pages keep them, and those that are late."""
        rows = ordered(tables)
        if rows is None:
            return None, None
        check_label_times(self._program, rows)
        newest, needed = int(rows[TIME].to_numpy().max()), self._program.spec.reach + self._patience
        if newest > MAX - needed:
            raise TimestampOverflowError(newest, newest, newest + needed)
        is_label, times = _labels(rows), rows[TIME].to_numpy()
        is_late = np.where(is_label, times <= self._horizon(0), times <= self._horizon(self._program.spec.reach))
        numbers = np.arange(self._arrivals, self._arrivals + rows.num_rows)
        self._arrivals += rows.num_rows
        kept = rows.select(self._held_columns)
        kept = kept.append_column(PARTITION, pa.array(np.zeros(rows.num_rows, np.int32)))
        kept = kept.append_column(POSITION, pa.array(numbers)).append_column(HASH, pa.array(self._hashed(rows)))
        return kept.filter(pa.array(~is_late)).combine_chunks(), rows.filter(pa.array(is_late))

    @property
    def _held_columns(self) -> list[str]:
        program = self._program
        return [*program.keys.names, *program.columns.names, *program.labels.names, IS_LABEL, TIME]

    def _horizon(self, reach: int) -> int:
        """Return the time at or below which a label, or a row that windows can see for ``reach``, is late."""
        return max(self._watermark - reach - self._patience, MIN)

    def _hashed(self, rows: pa.Table) -> Unsigned:
        keys = [hashable_key(name, rows[name]) for name in self._program.keys.names]
        return key_hashes(keys, rows.num_rows)

    def _step(self, positions: Sequence[int], rows: pa.Table | None, numbers: Integers, is_run: bool) -> None:
        """Answer the labels that are due in some pages, and write those that wait then."""
        self._pages.prefetch(positions)
        pages = (self._pages.read(position) for position in positions)
        names = [*self._held_columns, PARTITION, POSITION, HASH]
        tables = [padded(page, self._program.labels, names) for page in pages if page is not None]
        if rows is not None and len(numbers):
            tables.append(rows.take(pa.array(numbers)))
        if not tables:
            return
        held = pa.concat_tables(tables).combine_chunks()
        is_label, moments = _labels(held), self._moments(held)
        is_due = moments <= self._watermark
        if (is_due & is_label).any():
            asked = held.filter(pa.array(is_due | ~is_label)).drop_columns([HASH])
            output = self._answering.run(MemoryBlobStore(), [asked], Clock(MIN, 0))
            self._out += [table for _, table in output.tables]
        self._pages.put(positions, held.filter(pa.array(~is_due)), is_run)

    def _moments(self, held: pa.Table) -> Integers:
        """Return the watermark at which each label is emitted, and each row is forgotten."""
        times = held[TIME].to_numpy()
        emitted_at = times if self._program.is_inclusive else times - 1
        moments: Integers = np.where(_labels(held), emitted_at, times + self._program.spec.reach + self._patience)
        return moments

    def _summary(self, table: pa.Table) -> PageSummary:
        return PageSummary(int(self._moments(table).min()), table.num_rows)

    def _output(self, late: pa.Table | None, clock: Clock) -> BucketOutput:
        program, dropped = self._program, 0 if late is None else late.num_rows
        now, held = max(clock.processing_time, self._header.processing_time), self._pages.rows
        BucketHeader(program.description, self._watermark, now, held, self._arrivals).write(self._store)
        tables = [(MAIN, table) for table in self._out]
        if late is not None and program.late_names is not None:
            labels = late.filter(pa.array(_labels(late)))
            if labels.num_rows:
                tables.append((LATE, labels.select(program.labels.names).rename_columns(list(program.late_names))))
        emitted = sum(table.num_rows for table in self._out)
        return BucketOutput(tables, Counters(dropped, dropped, emitted, 0, held, self._pages.byte_size), not held)


def _labels(table: pa.Table) -> Mask:
    is_label: Mask = table[IS_LABEL].to_numpy(zero_copy_only=False)
    return is_label
