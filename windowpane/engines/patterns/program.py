"""The program of a row pattern: everything an engine needs to run it on a bucket, as one picklable value.

Input tables carry the columns of ``PatternProgram.columns`` and the system columns TIME, PARTITION and POSITION. The main output
has the keys or, where rows of matches are shown, the columns ``passed``; then the measures. Timeouts
have the keys and measures, late rows the columns ``passed``.

Rows up to the watermark, less the allowed lateness, are known, in order of their times, then of ``order_by``, then of arrival.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Final

import pyarrow as pa

from windowpane.engines.batch.late_rows import late_schema
from windowpane.engines.program import LATE, BucketProgram
from windowpane.engines.protocol import Counters
from windowpane.windowing.lateness import horizon
from windowpane.windowing.over.spec import OrderColumn
from windowpane.windowing.patterns.spec import PatternSpec
from windowpane.windowing.patterns.tree import First, every_part
from windowpane.windowing.patterns.values import MatchNumber

TIMEOUTS = LATE + 1
"""Number of the output of timeouts."""


@dataclass(frozen=True)
class PatternCounters(Counters):
    """What a bucket of patterns did in one batch."""

    timeouts: int = 0
    overflow: int = 0
    bad_skips: int = 0


PATTERN_COUNTERS: Final = tuple(each.name for each in fields(PatternCounters))
"""The counters of a row pattern in a query's progress."""


@dataclass(frozen=True)
class PatternProgram(BucketProgram):
    """One row pattern, resolved against the types of its input."""

    spec: PatternSpec
    keys: tuple[str, ...]  # names of the key columns
    columns: pa.Schema  # names and types of the columns of rows
    measures: pa.Schema  # names and types of the measures
    passed: tuple[str, ...]  # names of the columns that late rows, and rows of matches, are emitted with
    event_time: str  # name of the event-time column
    order_by: tuple[OrderColumn, ...] = ()  # columns that order rows of one time
    allowed_lateness: int = 0  # microseconds by which rows are waited for behind the watermark
    retain: int | None = None  # microseconds that an idle key's last rows are kept behind the watermark; None: for ever
    has_late_output: bool = False  # whether late rows are emitted as output ``LATE``

    @property
    def shows_rows(self) -> bool:
        """Whether rows of matches are emitted, and not one row a match."""
        return self.spec.rows != "one"

    @property
    def main_schema(self) -> pa.Schema:
        shown = self.row_schema if self.shows_rows else self.key_schema
        return pa.schema([*shown, *self.measures])

    @property
    def timeout_schema(self) -> pa.Schema:
        return pa.schema([*self.key_schema, *self.measures])

    @property
    def key_schema(self) -> pa.Schema:
        return pa.schema([self.columns.field(name) for name in self.keys])

    @property
    def row_schema(self) -> pa.Schema:
        return pa.schema([self.columns.field(name) for name in self.passed])

    @property
    def late_schema(self) -> pa.Schema:
        return late_schema(self.row_schema, self.columns.field(self.event_time).type)

    @property
    def remembers_keys(self) -> bool:
        """Whether what was in a key before counts for ever: that there were rows, or how many matches."""
        asks_first = any(isinstance(part, First) for part in every_part(self.spec.pattern))
        return asks_first or any(isinstance(measure.value, MatchNumber) for measure in self.spec.measures)

    @property
    def leaves_rows_out(self) -> bool:
        """Whether rows that no variable takes need not be kept: they change no result, and no key is idle without them."""
        return self.spec.leaves_rows_out and self.retain is None

    def known(self, watermark: int) -> int:
        """Return the time up to which rows are known, and at or below which they are late."""
        return horizon(watermark, self.allowed_lateness)
