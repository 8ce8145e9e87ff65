"""The program of a deduplication: everything an engine needs to run it on a bucket, as one picklable value.

Input tables carry the columns of ``DeduplicationProgram.columns`` and the system columns TIME, PARTITION and POSITION. The main
output has the columns ``passed``, and ``CHANGE_TYPE`` where the last rows are kept; late rows have the columns ``passed``.

The rule: two rows of a key are *near* if their times differ by less than ``within``.

- *first*: rows are taken in order of arrival. A row is emitted if no row of its key that was emitted before is near.
- *last*: rows of a key that are near belong to one run, as in a session window. Of each run the newest row stays; of those of
  one time that which arrived last. The output is the changelog of these rows.

State holds the rows that a row above the horizon can still be near to. So when others are forgotten changes no result.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import pyarrow as pa

from windowpane.engines.batch.late_rows import INSTANT, late_schema
from windowpane.engines.program import BucketProgram
from windowpane.windowing.lateness import horizon
from windowpane.windowing.outputs import CHANGE_TYPE
from windowpane.windowing.over.spec import OrderColumn
from windowpane.windowing.times import MIN


class Keep(Enum):
    FIRST = "first"
    LAST = "last"


@dataclass(frozen=True)
class DeduplicationProgram(BucketProgram):
    keys: tuple[str, ...]  # names of the key columns
    columns: pa.Schema  # names and types of the columns of rows
    passed: tuple[str, ...]  # names of those that are emitted
    within: int  # microseconds; rows of a key that are this far apart are no duplicates
    keep: Keep = Keep.FIRST  # which row stays
    is_event_time: bool = True  # whether times are those of the rows; else that of their batch
    allowed_lateness: int = 0  # how long in microseconds rows behind the watermark are waited for
    order_by: tuple[OrderColumn, ...] = ()  # columns that order the rows of a batch, before arrival order
    has_late_output: bool = False  # whether late rows are emitted as output ``LATE``
    instant: pa.DataType = INSTANT  # type of the event time

    @property
    def main_schema(self) -> pa.Schema:
        changes = [pa.field(CHANGE_TYPE, pa.string())] if self.keep is Keep.LAST else []
        return pa.schema([*self.row_schema, *changes])

    @property
    def row_schema(self) -> pa.Schema:
        return pa.schema([self.columns.field(name) for name in self.passed])

    @property
    def late_schema(self) -> pa.Schema:
        return late_schema(self.row_schema, self.instant)

    def horizon(self, watermark: int, now: int) -> int:
        """Return the time at or below which rows are late; by the clock none is, since it does not go back."""
        return horizon(watermark, self.allowed_lateness) if self.is_event_time else now - 1

    def forgotten(self, limit: int) -> int:
        """Return the time at or below which a row is near to none above the horizon ``limit``."""
        return max(limit - self.within + 1, MIN)
