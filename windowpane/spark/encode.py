"""Encode: rows of an input partition -> one Arrow blob a bucket.

Runs in ``mapInArrow``. The rows it emits carry no event-time column, so Spark cannot drop late ones: that is the operator's
to judge. Heartbeat rows end here, after they have moved the watermark; a filter in Spark's plan would be pushed below it.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext

from windowpane.engines.program import PARTITION, POSITION, TIME
from windowpane.engines.rows import python_keys
from windowpane.spark.arriving import arriving
from windowpane.spark.blobs import pack
from windowpane.spark.buckets import bucket_ids, state_partitions
from windowpane.state.codec import encode_key

KEY_HASH = "__windowpane_key_hash"
BUCKET = "bucket"
SCHEMA = "bucket int, blob binary"

_FLUSH_ROWS = 100_000
_FLUSH_BYTES = 16 << 20


@dataclass(frozen=True)
class Encoder:
    """What to do with the columns that Spark projected.

    Args:
        keys: names of the key columns; empty for one bucket.
        event_time: column to take the event time from, ``None`` for none; ignored where the rows carry ``TIME`` already.
        window_end: whether ``event_time`` is the end of an earlier window, whose rows count as one microsecond before it.
        heartbeat: boolean column whose true rows are dropped, ``None`` for none.
        dropped: columns that were only needed here.
        partitions: number of state partitions if the task does not tell.
        combiner: folds the rows of a bucket before the shuffle, ``None`` to send them whole.
    """

    keys: tuple[str, ...]
    event_time: str | None
    window_end: bool
    heartbeat: str | None
    dropped: tuple[str, ...]
    partitions: int
    combiner: Callable[[pa.Table], pa.Table] | None = None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Encode the batches of one input partition."""
        context = TaskContext.get()
        partition = context.partitionId() if context is not None else 0
        ids = bucket_ids(state_partitions(self.partitions))
        position, pending, size = 0, [], 0
        for batch in batches:
            table = self._prepared(pa.Table.from_batches([batch]), partition, position)
            position += batch.num_rows
            pending.append(table)
            size += table.nbytes
            if size > _FLUSH_BYTES or sum(waiting.num_rows for waiting in pending) > _FLUSH_ROWS:
                yield from self._flush(pending, ids)
                pending, size = [], 0
        yield from self._flush(pending, ids)

    def _prepared(self, table: pa.Table, partition: int, position: int) -> pa.Table:
        rows = table.num_rows
        table = arriving(table)
        table = table.append_column(PARTITION, pa.array(np.full(rows, partition, np.int32)))
        table = table.append_column(POSITION, pa.array(np.arange(position, position + rows, dtype=np.int64)))
        if TIME not in table.column_names:
            table = table.append_column(TIME, self._times(table))
        if self.heartbeat is not None:
            table = table.filter(pc.invert(pc.fill_null(table[self.heartbeat], False)))
        return table

    def _times(self, table: pa.Table) -> pa.ChunkedArray | pa.Array:
        if self.event_time is None:
            return pa.nulls(table.num_rows, pa.int64())
        micros = table[self.event_time].cast(pa.int64())
        return pc.subtract(micros, 1) if self.window_end else micros

    def _flush(self, tables: list[pa.Table], ids: tuple[int, ...]) -> Iterator[pa.RecordBatch]:
        if not tables or not sum(table.num_rows for table in tables):
            return
        rows = pa.concat_tables(tables)
        buckets = self._buckets(rows, len(ids))
        body = rows.drop_columns([name for name in self.dropped if name in rows.column_names])
        order = np.argsort(buckets, kind="stable")
        body = body.take(pa.array(order))
        present, starts = np.unique(buckets[order], return_index=True)
        ends = [*starts[1:].tolist(), len(order)]
        parts = [body.slice(start, end - start) for start, end in zip(starts.tolist(), ends, strict=True)]
        blobs = [pack(part if self.combiner is None else self.combiner(part)) for part in parts]
        numbers = [ids[number] for number in present.tolist()]
        yield pa.RecordBatch.from_arrays([pa.array(numbers, pa.int32()), pa.array(blobs, pa.binary())], [BUCKET, "blob"])

    def _buckets(self, rows: pa.Table, buckets: int) -> np.ndarray:
        """Return the number of the bucket of each row."""
        if not self.keys:
            return np.zeros(rows.num_rows, np.int64)
        if KEY_HASH in rows.column_names:
            hashes: np.ndarray = rows[KEY_HASH].to_numpy()
        else:
            hashes = np.array([zlib.crc32(encode_key(key)) for key in python_keys(rows, self.keys)], np.int64)
        return hashes % buckets
