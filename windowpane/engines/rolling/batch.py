"""What both engines of rolling features do with a batch: its history, the end of a static input, late rows.

State may begin with a history: rows before a cut, which are in the state before the first row of the stream arrives. The cut is
kept in the header of each bucket. A row of the stream below it is skipped, in this run and in all later ones: the history has the
rows of that time. So no row below the cut is still expected, which is what a watermark of ``cut - 1`` means.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Protocol

import numpy as np
import pyarrow as pa

from windowpane.engines.batch.driver import BucketBatch
from windowpane.engines.protocol import BucketOutput, Clock
from windowpane.engines.rolling.program import RollingCounters, RollingProgram
from windowpane.errors import HistoryAfterStartError
from windowpane.hidden_columns import TIME
from windowpane.state.blob_store import BlobStore
from windowpane.windowing.times import MIN


class BeginsWithHistory(Protocol):
    def begin(self, store: BlobStore, rows: list[pa.Table], cut: int) -> None:
        """Put rows below ``cut`` into the empty state of a bucket; nothing is emitted."""


class RollingBatch(BucketBatch[RollingProgram]):
    counters = RollingCounters

    def run(self, tables: Sequence[pa.Table], clock: Clock) -> BucketOutput:
        if self.program.cut is not None and self.header.cut is None:
            raise HistoryAfterStartError()
        return super().run(tables, Clock(self.program.limited(clock.watermark), clock.processing_time))

    def begin_before(self, cut: int) -> None:
        self.header = dataclasses.replace(self.header, cut=cut)
        self.before = self.watermark = max(cut - 1, MIN)

    def after_cut(self, rows: pa.Table) -> pa.Table:
        """Return the rows that the history does not have."""
        if self.header.cut is None:
            return rows
        is_before = rows[TIME].to_numpy() < self.header.cut
        self.count("before_cut", int(np.count_nonzero(is_before)))
        return rows.filter(pa.array(~is_before)).combine_chunks() if is_before.any() else rows

    def on_time(self, rows: pa.Table, late_schema: pa.Schema | None) -> pa.Table | None:
        """Return the rows that are not late, ``None`` for none; count and emit the others."""
        return self.punctual(rows, rows[TIME].to_numpy() <= self.program.spec.horizon(self.late_under), late_schema)
