"""Encode: rows of an input partition -> one Arrow blob a bucket.

Runs in ``mapInArrow``. The rows it emits carry no event-time column, so Spark cannot drop late ones: the operator decides
what is late. Heartbeat rows end here, after they have moved the watermark; a filter in Spark's plan would be pushed below it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext

from windowpane.engines.buckets import bucket_numbers
from windowpane.engines.combiner import Combiner, Folding
from windowpane.engines.common.tagged import tagged
from windowpane.hidden_columns import PARTITION, PASSED, POSITION, TIME
from windowpane.kernels.keys.coded_texts import spelled, together
from windowpane.spark.internals.worker import prepare_worker
from windowpane.spark.stages.blobs import coded, pack, unpack
from windowpane.spark.stages.buckets import bucket_ids, state_partitions
from windowpane.spark.stages.layout import is_first_batch, probes
from windowpane.spark.stages.messages import HEARTBEAT, Mark, Moves, reported
from windowpane.spark.stages.next_watermark import NextWatermark
from windowpane.spark.stages.types import TIMESTAMP, arriving
from windowpane.windowing.times import MIN
from windowpane.windowing.watermarks import Watermarks

BUCKET = "bucket"
LATEST = "latest"
SCHEMA = "bucket int, blob binary"

_FLUSH_ROWS = 200_000
_FOLD_ROWS = 1 << 18
_FLUSH_BYTES = 64 << 20
_DECIDING_ROWS = 1 << 16  # So many first rows show whether those of a task fold; Spark's batches are smaller
_RADIX_SORTED = 2**16  # numpy sorts 16-bit numbers stably by radix, ten times as fast as wider ones


@dataclass(frozen=True)
class Encoder:
    """What to do with the columns that Spark projected."""

    keys: tuple[str, ...]  # names of the key columns; empty for one bucket
    event_time: str | None  # column to take the event time from, ``None`` for none; ignored where the rows carry ``TIME`` already
    window_end: bool  # whether ``event_time`` is the end of an earlier window, whose rows count as one microsecond before it
    heartbeat: str | None  # boolean column whose true rows are dropped, ``None`` for none
    dropped: tuple[str, ...]  # columns that were only needed here
    partitions: int  # number of state partitions where the task has no such setting
    combiner: Combiner | None = None  # folds the rows of a bucket before the shuffle, ``None`` to send them whole
    # how far the watermark may have come, where late rows of a stream must stay whole; ``None`` elsewhere
    next_watermark: NextWatermark | None = None
    own_watermark: Watermarks | None = None  # how the operator makes its watermark itself, ``None`` where it does not
    side: str | None = None  # the side of a join that the rows are of, ``None`` where there is one input
    follows_watermark: bool = False  # whether the rows come with the watermark of the operator before
    # whether the first batch of a query calls every bucket: rows of an earlier operator that carry no watermark are compared with
    # that of the batch before, which a bucket knows once it has been called
    calls_all: bool = False
    # whether a column ``LATEST`` beside each blob says the latest event time by then, for Spark to make the watermark of: its
    # node sees a row a blob, where on the rows themselves it copied each once more
    tells_time: bool = False

    @property
    def coded(self) -> frozenset[str]:
        """The columns whose texts may come as ``kernels.keys.coded_texts`` has them."""
        source = None if self.own_watermark is None else self.own_watermark.source
        return frozenset() if self.combiner is None else self.combiner.coded - {self.event_time, self.heartbeat, source}

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        prepare_worker()
        mark = Mark(None if self.own_watermark is None else self.own_watermark.source)
        if not self.tells_time:
            yield from self._encoded(batches, mark)
            return
        told = None
        for sent in self._encoded(batches, mark):
            told = mark.latest.get(None)
            yield _timed(sent, told)
        if mark.latest.get(None) != told:  # heartbeats came last, or alone
            yield self.sent(HEARTBEAT, mark.latest.get(None))

    def sent(self, blob: bytes, latest: int | None = None) -> pa.RecordBatch:
        """Return a blob on its way to the first bucket."""
        found = _sent(bucket_ids(state_partitions(self.partitions))[:1], [blob])
        return _timed(found, latest) if self.tells_time else found

    def _encoded(self, batches: Iterable[pa.RecordBatch], mark: Mark) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        partition = context.partitionId() if context is not None else 0
        ids = bucket_ids(state_partitions(self.partitions))
        yield from (_sent([bucket], [blob]) for bucket, blob in probes())
        if self.calls_all and is_first_batch():  # each task: the first one may be of another input, which does not call
            called = ids if self.keys else ids[:1]
            yield _sent(called, [HEARTBEAT] * len(called))
        bound = MIN if self.next_watermark is None else self.next_watermark.known()
        combiner = None if bound is None else self.combiner
        reports: list[Moves] = []
        position, pending, whole, folding, decided_by = 0, _Pending(), _Pending(), None, 0
        for batch in batches:
            rows, passed = _without_passed(pa.Table.from_batches([batch]), reports)
            if passed:
                yield _sent([ids[0]] * len(passed), passed)
            rows = self._prepared(rows, partition, position, mark)
            position += batch.num_rows
            if folding is None and rows.num_rows:
                folding = Folding.NOT if combiner is None else combiner.folding(rows)
                decided_by = rows.num_rows
            if combiner is not None and bound is not None:
                rows, late = combiner.parted(rows, bound)
                whole.add(late)
            if rows.num_rows:
                pending.add(combiner(rows) if combiner is not None and folding is Folding.PIECEWISE else rows)
            if combiner is not None and folding is Folding.TOGETHER and decided_by < _DECIDING_ROWS <= pending.rows:
                decided_by = pending.rows
                folding = Folding.NOT if combiner.folding(together(pending.tables)) is Folding.NOT else folding
            if pending.is_full(folding):
                yield from self._flush(pending.taken(), ids, folding)
            if whole.is_full(Folding.NOT):
                yield from self._flush(whole.taken(), ids, Folding.NOT)
        yield from self._flush(pending.taken(), ids, folding)
        yield from self._flush(whole.taken(), ids, Folding.NOT)
        known = pack(Moves.least(reports).report()) if reports else mark.blob() if self._reports_times else None
        if known is not None:
            yield _sent(ids, [known] * len(ids))

    @property
    def _reports_times(self) -> bool:
        """Whether buckets need the latest event times of the task."""
        return self.own_watermark is not None or self.next_watermark is not None

    def _prepared(self, table: pa.Table, partition: int, position: int, mark: Mark) -> pa.Table:
        rows = table.num_rows
        table = arriving(table)
        if self.combiner is None or self.combiner.needs_numbers:
            table = table.append_column(PARTITION, pa.array(np.full(rows, partition, np.int32)))
            table = table.append_column(POSITION, pa.array(np.arange(position, position + rows, dtype=np.int64)))
        if TIME not in table.column_names:
            table = table.append_column(TIME, self._times(table))
        if self._reports_times or self.tells_time:
            mark.see(table)
        if self.heartbeat is not None:
            table = table.filter(pc.invert(pc.fill_null(table[self.heartbeat], False)))
        return table

    def _times(self, table: pa.Table) -> pa.ChunkedArray | pa.Array:
        if self.event_time is None:
            return pa.nulls(table.num_rows, pa.int64())
        micros = table[self.event_time].cast(pa.int64())
        return pc.subtract(micros, 1) if self.window_end else micros

    def _flush(self, tables: list[pa.Table], ids: tuple[int, ...], folding: Folding | None) -> Iterator[pa.RecordBatch]:
        rows = together(tables) if tables else None
        if rows is None or not rows.num_rows:
            return
        folds = self.combiner is not None and folding is Folding.TOGETHER
        parts = self._parts(self.combiner(rows) if self.combiner is not None and folds else spelled(rows), len(ids))
        yield _sent([ids[number] for number, _ in parts], [pack(part) for _, part in parts])

    def _parts(self, rows: pa.Table, buckets: int) -> list[tuple[int, pa.Table]]:
        """Return the rows of each bucket that has some, with its number."""
        if (self.combiner is None or self.combiner.keeps_rows) and len(self.keys) == 1:
            rows = coded(rows, self.keys[0])
        body = rows.drop_columns([name for name in self.dropped if name in rows.column_names])
        body = body if self.side is None else tagged(body, side=self.side)
        if buckets == 1 or not self.keys:
            return [(0, body)]
        numbers = bucket_numbers(rows, self.keys, buckets)
        order = np.argsort(numbers.astype(np.uint16) if buckets <= _RADIX_SORTED else numbers, kind="stable")
        counts = np.bincount(numbers, minlength=buckets)
        body, ends = body.take(pa.array(order)), np.cumsum(counts)
        present = np.flatnonzero(counts).tolist()
        return [(number, body.slice(int(ends[number] - counts[number]), int(counts[number]))) for number in present]


def _without_passed(rows: pa.Table, reports: list[Moves]) -> tuple[pa.Table, list[bytes]]:
    """Return rows of the operator itself, and the blobs that are passed on; reports of a watermark are added to ``reports``."""
    if PASSED not in rows.column_names:
        return rows, []
    passed = []
    for blob in rows[PASSED].drop_null().to_pylist():
        watermark = reported(unpack(blob))
        if watermark is None:
            passed.append(blob)
        else:
            reports.append(watermark)
    return rows.filter(pc.is_null(rows[PASSED])).drop_columns([PASSED]), passed


def _sent(buckets: Sequence[int], blobs: Sequence[bytes] | pa.Array) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array(buckets, pa.int32()), pa.array(blobs, pa.binary())], [BUCKET, "blob"])


def _timed(sent: pa.RecordBatch, latest: int | None) -> pa.RecordBatch:
    return sent.append_column(LATEST, pa.array([latest] * sent.num_rows, TIMESTAMP))


@dataclass
class _Pending:
    tables: list[pa.Table] = field(default_factory=list)
    rows: int = 0
    size: int = 0

    def add(self, table: pa.Table) -> None:
        self.tables.append(table)
        self.rows += table.num_rows
        self.size += table.nbytes

    def is_full(self, folding: Folding | None) -> bool:
        """Whether it is time: rows that will not fold go early, so that Spark has them while it reads on."""
        most = _FLUSH_ROWS if folding is Folding.NOT else _FOLD_ROWS
        return self.size > _FLUSH_BYTES or self.rows >= most

    def taken(self) -> list[pa.Table]:
        tables, self.tables, self.rows, self.size = self.tables, [], 0, 0
        return tables
