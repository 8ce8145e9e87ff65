"""Rows by pane, kept so that a batch reads and writes only what it touches.

Key layout: a segment log ``p`` whose rows have the key columns and whatever columns a pane keeps. Time windows have a segment
each, named by their end, so a window that is over is removed as a whole. The global window is cut into shards of about
``SHARD_ROWS`` rows by key hash; a segment is then ``depth * 2**32 + shard`` for ``2**depth`` shards, and all segments have one
depth: when rows outgrow it, all are cut anew.

Who may mutate: the engine of the bucket, once a batch: read segments, write them back. Recovery reads the log's index.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from windowpane.arrays import Integers
from windowpane.errors import present
from windowpane.hidden_columns import SEGMENT
from windowpane.kernels.keys.key_codes import key_hashes
from windowpane.sizes import Size
from windowpane.state.blob_store import BlobStore
from windowpane.state.segment_log import SegmentLog

SHARD_ROWS = Size("rows of a shard of panes", 8192, (3, 10))

_SHARD_BITS = 32


class PaneStore:
    """The rows of all panes of a bucket.

    Example:
        >>> from windowpane.state.memory import MemoryBlobStore
        >>> store = PaneStore(MemoryBlobStore(), ("k",), is_global=False)
        >>> store.write(pa.table({"k": ["JFK"], "n": [1], SEGMENT: [20]}), [20]); store.flush()
        >>> store.read([20]).num_rows
        1
    """

    def __init__(self, store: BlobStore, keys: Sequence[str], is_global: bool, name: str = "p") -> None:
        """Read the index of the log ``name``."""
        self._log = SegmentLog(store, name)
        self.keys = list(keys)
        self.is_global = is_global
        self._depth = max(self._log.segments(), default=0) >> _SHARD_BITS if is_global else 0

    def segments(self) -> list[int]:
        """Return the segments that hold something."""
        return self._log.segments()

    @property
    def byte_size(self) -> int:
        """The size of all rows in bytes."""
        return self._log.byte_size

    def row_count(self, segment: int) -> int:
        """Return the number of rows of a segment."""
        return self._log.row_count_of(segment)

    def shards(self, keys: pa.Table) -> Integers:
        """Return the segment of each key in the global window."""
        hashes = key_hashes([keys[name] for name in self.keys], keys.num_rows)
        shards = (hashes & np.uint64((1 << self._depth) - 1)).astype(np.int64)
        return shards + (self._depth << _SHARD_BITS)

    def read(self, segments: Sequence[int]) -> pa.Table | None:
        """Return the rows of segments, with the column ``SEGMENT``; ``None`` if there are none."""
        self._log.prefetch(segments)
        parts = [_named(table, segment) for segment in segments for table in self._log.read(segment)]
        return pa.concat_tables(parts) if parts else None

    def write(self, rows: pa.Table, segments: Sequence[int]) -> None:
        """Put ``rows``, with their ``SEGMENT``, in place of what the segments held."""
        for segment in segments:
            self._log.drop(segment)
        for segment, part in split(rows, SEGMENT):
            self._log.append(segment, part)
        if self.is_global:
            self._grow()

    def rewrite(self, change: Callable[[pa.Table], pa.Table]) -> None:
        """Put what a function makes of the rows that some batch wrote of a segment in their place."""
        self._log.rewrite(change)

    def drop(self, segment: int) -> None:
        """Forget a segment."""
        self._log.drop(segment)

    def flush(self) -> None:
        """Write the index."""
        self._log.flush()

    def _grow(self) -> None:
        """Cut all shards anew if they have outgrown their size."""
        rows = self._log.row_count
        if rows <= 2 * SHARD_ROWS.value << self._depth:
            return
        held = self.segments()
        everything = present(self.read(held), "there are too many rows")
        while rows > SHARD_ROWS.value << self._depth:
            self._depth += 1
        everything = everything.drop_columns([SEGMENT])
        self.write(everything.append_column(SEGMENT, pa.array(self.shards(everything))), held)


def split(rows: pa.Table, column: str) -> list[tuple[int, pa.Table]]:
    """Return (value, its rows without the column) for each value of an int64 column, in order; rows keep theirs."""
    if not rows.num_rows:
        return []
    values, body = rows[column].to_numpy(), rows.drop_columns([column])
    if (values == values[0]).all():
        return [(int(values[0]), body)]
    order = np.argsort(values, kind="stable")
    present, firsts = np.unique(values[order], return_index=True)
    body = body.take(pa.array(order))
    ends = [*firsts[1:].tolist(), len(values)]
    spans = zip(present.tolist(), firsts.tolist(), ends, strict=True)
    return [(value, body.slice(first, end - first)) for value, first, end in spans]


def _named(table: pa.Table, segment: int) -> pa.Table:
    return table.append_column(SEGMENT, pa.array(np.full(table.num_rows, segment)))
