"""First rows: of a batch, those that are near to no row of their key that was emitted before.

Rows whose hash no other row has, neither of the batch nor of those that were emitted, are first rows at once; only the
others are compared by the values of their keys.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from windowpane.arrays import Integers, Mask, Unsigned
from windowpane.engines.batch.driver import Left
from windowpane.engines.deduplication.batch import DeduplicationBatch, hashes_of, key_columns
from windowpane.engines.deduplication.kept_keys import KeptKeys
from windowpane.engines.deduplication.program import DeduplicationProgram
from windowpane.engines.spec import BucketEngine
from windowpane.hidden_columns import TIME
from windowpane.kernels.deduplication import first_rows
from windowpane.kernels.keys.key_codes import key_codes
from windowpane.kernels.segments import starts_of_runs
from windowpane.state.blob_store import BlobStore


class FirstRows(DeduplicationBatch):
    def __init__(self, engine: BucketEngine[DeduplicationProgram], store: BlobStore) -> None:
        super().__init__(engine, store)
        self._kept = KeptKeys(store)

    def deduplicate(self, rows: pa.Table | None, forgotten: int) -> None:
        self._kept.forget(forgotten)
        if rows is not None:
            first = rows.select(self.program.passed).filter(pa.array(self._first(rows)))
            self.emit(first.cast(self.program.main_schema))
            self.count("duplicates", rows.num_rows - first.num_rows)
        self._kept.commit(forgotten)

    def close(self) -> Left:
        return self.left(self._kept.rows, self._kept.byte_size)

    def _first(self, rows: pa.Table) -> Mask:
        keys = pa.table(key_columns(self.program, rows))
        hashes, times = hashes_of(keys), rows[TIME].to_numpy()
        order = np.argsort(hashes)
        kept = np.ones(len(order), np.bool_)
        doubtful, held_times, held_keys = self._doubtful(hashes[order])
        numbers = np.sort(order[doubtful])
        if len(numbers):
            both = pa.concat_tables([*held_keys, keys.take(pa.array(numbers))])
            codes, count = key_codes(both.columns, both.num_rows), len(held_times)
            kept[numbers] = first_rows(codes[count:], times[numbers], codes[:count], held_times, self.program.within)
        new = order[kept[order]]
        self._kept.add(hashes[new], times[new], keys.take(pa.array(new)))
        return kept

    def _doubtful(self, hashes: Unsigned) -> tuple[Mask, Integers, list[pa.Table]]:
        """Return which hashes, in order, are not the only ones of their value, and times and keys that are held under these."""
        is_new = starts_of_runs(hashes)
        counts = np.diff(np.append(np.flatnonzero(is_new), len(hashes)))
        doubtful, times, keys = counts > 1, [np.zeros(0, np.int64)], list[pa.Table]()
        for found, at, held in self._kept.with_hashes(hashes[is_new]):
            doubtful[found] = True
            times.append(at)
            keys.append(held)
        return np.repeat(doubtful, counts), np.concatenate(times), keys
