"""What both engines of deduplication do with a batch before its rows are compared: order, times, late rows, spelling of keys."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
import pyarrow as pa

from windowpane.arrays import Unsigned
from windowpane.arrays.columns import replaced
from windowpane.engines.batch.driver import BucketBatch, Left
from windowpane.engines.common.arrival import ordered
from windowpane.engines.deduplication.program import DeduplicationProgram
from windowpane.engines.nested_keys.writing import hashable_key
from windowpane.engines.rows import refuse_missing_times
from windowpane.hidden_columns import TIME, hidden
from windowpane.kernels.keys.key_codes import key_hashes


class DeduplicationBatch(BucketBatch[DeduplicationProgram]):
    def work(self, tables: list[pa.Table]) -> None:
        program, rows = self.program, ordered(tables, self.program.order_by)
        limit = program.horizon(self.late_under, self.now)
        if rows is not None:
            if not program.is_event_time:
                now = pa.array(np.full(rows.num_rows, self.now, np.int64))
                rows = replaced(rows, TIME, now)
            refuse_missing_times(rows, program.keys, "deduplication goes")
            rows = self.punctual(rows, rows[TIME].to_numpy() <= limit, program.late_schema if program.has_late_output else None)
        self.deduplicate(rows, program.forgotten(limit))

    @abstractmethod
    def deduplicate(self, rows: pa.Table | None, forgotten: int) -> None:
        """Take rows, in order of arrival, none of them late; rows at or below ``forgotten`` are near to none of these."""

    def left(self, rows: int, state_bytes: int) -> Left:
        return Left(rows, state_bytes, None if self.program.is_event_time else self.is_source)


def key_columns(program: DeduplicationProgram, rows: pa.Table) -> dict[str, pa.ChunkedArray]:
    """Return the key of each row, by hidden names; nested values as bytes."""
    named = zip(key_names(program), program.keys, strict=True)
    return {hidden_name: hashable_key(name, rows[name]) for hidden_name, name in named}


def key_names(program: DeduplicationProgram) -> list[str]:
    return [hidden(f"key_of_run_{number}") for number in range(len(program.keys))]


def hashes_of(keys: pa.Table) -> Unsigned:
    return key_hashes(keys.columns, keys.num_rows)
