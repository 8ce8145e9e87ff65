"""The programs of rolling features: everything an engine needs to run them on a bucket, as picklable values.

A table that an engine is given holds the columns of ``keys``, those of ``columns``, and the system columns TIME, PARTITION and
POSITION; late rows need ``late_columns`` besides. The main table has ``keys``, ``as_of``, the features, ``CHANGE_TYPE`` where
keys without rows are deleted, and ``revision`` where ticks are corrected.

A bucket advances to the batch's watermark, takes its rows, and gives out what these changed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

import pyarrow as pa

from windowpane.engines.batch.late_rows import INSTANT, late_schema
from windowpane.engines.program import BucketProgram
from windowpane.engines.protocol import Counters
from windowpane.hidden_columns import hidden
from windowpane.kernels.rolling import bound_calls
from windowpane.windowing.outputs import CHANGE_TYPE
from windowpane.windowing.rolling import RollingSpec
from windowpane.windowing.times import MAX

AS_OF = "as_of"
"""The column with the instant that features are of."""
REVISION = "revision"
"""The column with how often a tick of a key has been emitted again, where ticks are corrected."""
IS_LABEL = hidden("is_label")
"""Whether a row of a point-in-time program is a label."""


@dataclass(frozen=True)
class RollingCounters(Counters):
    gauges: ClassVar[tuple[str, ...]] = (*Counters.gauges, "keys", "tiles", "raw_rows")

    emitted_by_row: int = 0  # rows of features that were emitted because rows arrived
    emitted_by_tick: int = 0  # rows of features that were emitted because a tick has passed
    keys: int = 0  # keys that have rows, or had until a tick to come
    tiles: int = 0  # partial aggregates of the rows of a length of time
    raw_rows: int = 0  # rows, or partial aggregates of the rows of an instant, which exact edges need


ROLLING_COUNTERS: Final = (
    "late_dropped",
    "before_cut",
    "keys",
    "tiles",
    "raw_rows",
    "emitted_by_row",
    "emitted_by_tick",
    "state_bytes",
)
"""The counters of rolling features in a query's progress."""


@dataclass(frozen=True)
class RollingProgram(BucketProgram):
    spec: RollingSpec  # the features
    keys: pa.Schema  # names and types of the key columns in the output
    key_columns: tuple[str, ...]  # names of the key columns in the input
    columns: pa.Schema  # names and types of the columns that calls read
    instant: pa.DataType  # type of ``as_of``, that of the event time
    late_columns: pa.Schema | None = None  # names and types of the columns of late rows; ``None`` if they are not emitted
    until: int | None = None  # where the watermark ends on a static input, ``None`` on a stream
    cut: int | None = None  # the time below which rows are in the history that this start brings, ``None`` where it brings none

    @property
    def main_schema(self) -> pa.Schema:
        rest = [pa.field(CHANGE_TYPE, pa.string())] if self.spec.deletes_empty else []
        rest += [pa.field(REVISION, pa.int32())] if self.spec.corrects else []
        return pa.schema([*self.keys, pa.field(AS_OF, self.instant), *feature_schema(self.spec, self.columns), *rest])

    @property
    def late_schema(self) -> pa.Schema | None:
        return None if self.late_columns is None else late_schema(self.late_columns, self.instant)

    def limited(self, watermark: int) -> int:
        """Return the watermark; the end of a static input is not the end of time."""
        return self.until if watermark == MAX and self.until is not None else watermark


@dataclass(frozen=True)
class PointInTimeProgram(BucketProgram):
    """Rolling features as of the times of labels; rows and labels are both static, or both streams.

    A table holds rows and labels: the key columns, IS_LABEL, the columns of ``columns`` (of a label
    NULL) and of ``labels`` (of a row NULL), TIME, PARTITION and POSITION.
    """

    spec: RollingSpec  # the features
    keys: pa.Schema  # names and types of the key columns
    columns: pa.Schema  # names and types of the columns that calls read
    labels: pa.Schema  # names and types of the label columns as they travel
    label_names: tuple[str, ...]  # their names in the output
    is_inclusive: bool = False  # whether rows at the time of a label count
    # the column of rows with the microsecond from which on a row was known, ``None`` for its event time
    known_at: str | None = None
    is_streaming: bool = False  # whether labels wait for the watermark
    late_names: tuple[str, ...] | None = None  # the names of the columns of late labels, ``None`` if they are not emitted
    instant: pa.DataType = INSTANT  # type of the event time

    @property
    def main_schema(self) -> pa.Schema:
        named = [pa.field(name, field.type) for name, field in zip(self.label_names, self.labels, strict=True)]
        return pa.schema([*named, *feature_schema(self.spec, self.columns)])

    @property
    def late_schema(self) -> pa.Schema:
        named = zip(self.labels, self.late_names or (), strict=False)
        return late_schema(pa.schema([field.with_name(name) for field, name in named]), self.instant)


def feature_schema(spec: RollingSpec, columns: pa.Schema) -> pa.Schema:
    bound = zip(spec.calls, bound_calls(spec, columns), strict=True)
    return pa.schema([pa.field(call.name, aggregate.result_type) for call, aggregate in bound])
