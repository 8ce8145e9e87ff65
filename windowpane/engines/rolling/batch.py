"""What both engines of rolling features do with a batch: its history, the end of a static input, late rows."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import pyarrow as pa

from windowpane.engines.batch.driver import BucketBatch
from windowpane.engines.protocol import BucketOutput, Clock
from windowpane.engines.rolling.program import RollingCounters, RollingProgram
from windowpane.engines.spec import BucketEngine
from windowpane.errors import HistoryAfterStartError
from windowpane.hidden_columns import TIME
from windowpane.state.blob_store import BlobStore
from windowpane.windowing.times import MIN


class BeginningEngine(BucketEngine[RollingProgram]):
    """Puts the rows of a history into state as they are, without their features."""

    def begin(self, store: BlobStore, rows: Sequence[pa.Table], cut: int) -> None:
        self.open(store).begin(rows, cut)


class RollingBatch(BucketBatch[RollingProgram]):
    counters = RollingCounters

    def run(self, tables: Sequence[pa.Table], clock: Clock) -> BucketOutput:
        if self.program.cut is not None and self.header.cut is None:
            raise HistoryAfterStartError()
        return super().run(tables, dataclasses.replace(clock, watermark=self.program.limited(clock.watermark)))

    def begin_before(self, cut: int) -> None:
        self.header = dataclasses.replace(self.header, cut=cut)
        self.before = self.watermark = max(cut - 1, MIN)

    def on_time(self, rows: pa.Table, late_schema: pa.Schema | None) -> pa.Table | None:
        """Return the rows that are not late, ``None`` for none; count and emit the others."""
        return self.punctual(rows, rows[TIME].to_numpy() <= self.program.spec.horizon(self.late_under), late_schema)
