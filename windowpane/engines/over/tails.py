"""The tails of partitions: the rows that a window that emits on close still needs, in shards.

State, by name in the bucket's blob store: ``<name>.i``, the index (how many rows each shard holds, how many of them wait to be
emitted, its size), and ``<name>.<shard>``, an Arrow table with the rows of the partitions whose hash falls into it; the rows of a
partition are in their order. Who may mutate: this class, at ``write``. Recovery: read back.

A batch reads and writes the shards of its partitions only. There are twice as many shards when they get large on average.
"""

from __future__ import annotations

from array import array
from collections.abc import Container, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windowpane.arrays import Integers
from windowpane.arrays.columns import padded
from windowpane.hidden_columns import hidden
from windowpane.kernels.keys.key_codes import key_hashes, plain_key
from windowpane.sizes import Size
from windowpane.state.blob_store import BlobStore
from windowpane.state.codec import frame, unframe
from windowpane.state.tables import table_from_blob, table_to_blob

EMITTED = hidden("emitted")
"""The column that says whether a row was emitted; the others wait to be."""
_SHARD_KIND, _INDEX_KIND = "over-tail", "over-tails-index"
SHARD_ROWS = Size("rows of a shard of tails", 16_384, (2, 8))
"""Rows of a shard, on average, past which there are twice as many."""


class Tails:
    """Rows by partition."""

    def __init__(self, store: BlobStore, name: str, schema: pa.Schema, partition_by: Sequence[str]) -> None:
        """Open the tails, tables of ``schema`` with the column ``EMITTED``."""
        self._store = store
        self._name = name
        self._schema = schema
        self._partition_by = partition_by
        blob = store.get(f"{name}.i")
        body = bytes(24) if blob is None else unframe(_INDEX_KIND, blob)
        self._rows, self._waiting, self._sizes = (list(array("q", body)[part::3]) for part in range(3))

    @property
    def waiting(self) -> list[int]:
        """The shards with rows that wait to be emitted."""
        return [shard for shard, waits in enumerate(self._waiting) if waits]

    @property
    def waiting_rows(self) -> int:
        """How many rows wait to be emitted."""
        return sum(self._waiting)

    @property
    def byte_size(self) -> int:
        """The size of all shards in bytes."""
        return sum(self._sizes)

    def shards(self, rows: pa.Table) -> Integers:
        """Return the shard of each row."""
        hashes = key_hashes([plain_key(rows[name]) for name in self._partition_by], rows.num_rows)
        return (hashes & np.uint64(len(self._rows) - 1)).astype(np.int64)

    def touched(self, rows: pa.Table) -> list[int]:
        """Return the shards that some rows are of."""
        if len(self._rows) == 1:
            return [0] if rows.num_rows else []
        return np.flatnonzero(np.bincount(self.shards(rows))).tolist()

    def read(self, shards: Sequence[int]) -> pa.Table:
        """Return the rows of some shards."""
        filled = [shard for shard in shards if self._rows[shard]]
        self._store.prefetch([self._key(shard) for shard in filled])
        held = [self._read(shard) for shard in filled]
        return pa.concat_tables(held) if held else self._schema.empty_table()

    def write(self, shards: Sequence[int], rows: pa.Table) -> None:
        """Put ``rows`` in place of all rows of ``shards``."""
        if len(shards) == 1 and len(self._rows) == 1:
            self._write(0, rows)
        else:
            numbers = self.shards(rows)
            for shard in shards:
                self._write(shard, rows.filter(pa.array(numbers == shard)))
        while sum(self._rows) > SHARD_ROWS.value * len(self._rows):
            self._split()
        self._write_index()

    def _write_index(self) -> None:
        index = array("q", [number for each in zip(self._rows, self._waiting, self._sizes, strict=True) for number in each])
        self._store.put(f"{self._name}.i", frame(_INDEX_KIND, index.tobytes()))

    def widen(self, added: Container[str]) -> None:
        """Write shards of rows without the columns ``added`` anew, with NULL in these."""
        held = pa.schema([field for field in self._schema if field.name not in added])
        for shard in (shard for shard, rows in enumerate(self._rows) if rows):
            rows = table_from_blob(_SHARD_KIND, self._store.get(self._key(shard)), held)
            self._write(shard, padded(rows, self._schema))
        self._write_index()

    def _split(self) -> None:
        """Part each shard in two by the next bit of the hash."""
        count = len(self._rows)
        self._rows, self._waiting, self._sizes = (2 * each for each in (self._rows, self._waiting, self._sizes))
        for shard in range(count):
            if not self._rows[shard]:
                continue
            rows = self._read(shard)
            stays = pa.array(self.shards(rows) == shard)
            self._write(shard + count, rows.filter(pc.invert(stays)))
            self._write(shard, rows.filter(stays))

    def _read(self, shard: int) -> pa.Table:
        return table_from_blob(_SHARD_KIND, self._store.get(self._key(shard)), self._schema)

    def _key(self, shard: int) -> str:
        return f"{self._name}.{shard:x}"

    def _write(self, shard: int, rows: pa.Table) -> None:
        key = self._key(shard)
        blob = table_to_blob(_SHARD_KIND, rows) if rows.num_rows else b""
        if blob:
            self._store.put(key, blob)
        elif self._rows[shard]:
            self._store.remove(key)
        waiting = rows.num_rows - (pc.sum(rows[EMITTED]).as_py() or 0)
        self._rows[shard], self._waiting[shard], self._sizes[shard] = rows.num_rows, waiting, len(blob)
