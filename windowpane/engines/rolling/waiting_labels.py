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

from typing import ClassVar

import numpy as np
import pyarrow as pa

from windowpane.arrays import Integers, Mask, Unsigned
from windowpane.arrays.columns import padded
from windowpane.engines.batch.driver import BucketBatch, Left
from windowpane.engines.batch.late_rows import late_table
from windowpane.engines.common.arrival import ordered
from windowpane.engines.nested_keys.writing import hashable_key
from windowpane.engines.program import LATE
from windowpane.engines.protocol import Clock
from windowpane.engines.rolling.point_in_time import PointInTimeEngine, PointInTimeReferenceEngine, check_label_times
from windowpane.engines.rolling.program import IS_LABEL, PointInTimeProgram
from windowpane.engines.spec import BucketEngine
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


class _Batch(BucketBatch[PointInTimeProgram]):
    def __init__(self, engine: WaitingLabelsEngine, store: BlobStore) -> None:
        super().__init__(engine, store)
        self._names = [*self._held_columns, PARTITION, POSITION, HASH]
        self._answering = engine.answering
        self._pages = HashPages(store, "p", stored_hashes, self._summary, PAGE_ROWS.value, PAGE_ROWS.value)
        self._patience = max(window.hop for window in self.program.spec.windows)

    def work(self, tables: list[pa.Table]) -> None:
        def step(held: pa.Table | None, new: pa.Table | None) -> pa.Table | None:
            known = [] if held is None else [padded(held, self.program.labels, self._names)]
            parts = known if new is None else [*known, new]
            return self._answered(pa.concat_tables(parts).combine_chunks()) if parts else None

        self._pages.meet(self._taken(tables), self.watermark, STEP_ROWS.value, step)

    def close(self) -> Left:
        held = self._pages.rows
        return Left(held, self._pages.byte_size, is_idle=not held)

    def _taken(self, tables: list[pa.Table]) -> pa.Table | None:
        rows = ordered(tables)
        if rows is None:
            return None
        check_label_times(self.program, rows)
        newest, needed = int(rows[TIME].to_numpy().max()), self.program.spec.reach + self._patience
        if newest > MAX - needed:
            raise TimestampOverflowError(newest, newest, newest + needed)
        is_label, times = _labels(rows), rows[TIME].to_numpy()
        is_late = np.where(is_label, times <= self._horizon(0), times <= self._horizon(self.program.spec.reach))
        numbers = np.arange(self.arrivals, self.arrivals + rows.num_rows)
        self.arrivals += rows.num_rows
        kept = rows.select(self._held_columns)
        kept = kept.append_column(PARTITION, pa.array(np.zeros(rows.num_rows, np.int32)))
        kept = kept.append_column(POSITION, pa.array(numbers)).append_column(HASH, pa.array(self._hashed(rows)))
        if self.program.late_names is not None and (is_late & is_label).any():
            late = rows.filter(pa.array(is_late & is_label))
            names = [*self.program.late_names, TIME]
            labels = late.select([*self.program.labels.names, TIME]).rename_columns(names)
            self.outputs.append((LATE, late_table(self.program.late_schema, labels, self.watermark, self.clocks)))
        return self.punctual(kept, is_late, None)

    @property
    def _held_columns(self) -> list[str]:
        program = self.program
        return [*program.keys.names, *program.columns.names, *program.labels.names, IS_LABEL, TIME]

    def _horizon(self, reach: int) -> int:
        """Return the time at or below which a label, or a row that windows can see for ``reach``, is late."""
        return max(self.watermark - reach - self._patience, MIN)

    def _hashed(self, rows: pa.Table) -> Unsigned:
        keys = [hashable_key(name, rows[name]) for name in self.program.keys.names]
        return key_hashes(keys, rows.num_rows)

    def _answered(self, held: pa.Table) -> pa.Table:
        is_label, moments = _labels(held), self._moments(held)
        is_due = moments <= self.watermark
        if (is_due & is_label).any():
            asked = held.filter(pa.array(is_due | ~is_label)).drop_columns([HASH])
            for _, table in self._answering.run(MemoryBlobStore(), [asked], Clock(MIN, 0)).tables:
                self.emit(table)
        return held.filter(pa.array(~is_due))

    def _moments(self, held: pa.Table) -> Integers:
        """Return the watermark at which each label is emitted, and each row is forgotten."""
        times = held[TIME].to_numpy()
        emitted_at = times if self.program.is_inclusive else times - 1
        moments: Integers = np.where(_labels(held), emitted_at, times + self.program.spec.reach + self._patience)
        return moments

    def _summary(self, table: pa.Table) -> PageSummary:
        return PageSummary(int(self._moments(table).min()), table.num_rows)


class WaitingLabelsEngine(BucketEngine[PointInTimeProgram]):
    name = "waiting labels"
    reason = "labels that are due find their rows by one search, and kernels fold them"
    state = "hash pages: labels that wait and the rows that windows can see, by a hash of the key"
    holds: ClassVar = {"p": "labels and rows"}
    batch = _Batch
    answers: ClassVar[type[BucketEngine[PointInTimeProgram]]] = PointInTimeEngine

    def __init__(self, program: PointInTimeProgram) -> None:
        super().__init__(program)
        self.answering = self.answers(program)

    @classmethod
    def serves(cls, program: PointInTimeProgram) -> bool:
        return program.is_streaming

    @classmethod
    def refusal(cls, program: PointInTimeProgram) -> str | None:
        return cls.answers.refusal(program)


class WaitingLabelsReferenceEngine(WaitingLabelsEngine):
    name = "waiting labels reference"
    reason = "rows and labels of a key meet one by one when the watermark has passed them"
    answers = PointInTimeReferenceEngine


def _labels(table: pa.Table) -> Mask:
    is_label: Mask = table[IS_LABEL].to_numpy(zero_copy_only=False)
    return is_label
