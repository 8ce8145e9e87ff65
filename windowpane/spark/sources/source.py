"""Source: the DataFrame a program reads, checked, and with its watermark set.

Rows of an earlier operator of the same query have a watermark already. Either their time is carried beside them (``upstream``),
or a column of theirs is marked by metadata as one that the earlier operator passed its watermark on with.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import TYPE_CHECKING, Any

from pyspark.sql import types as T

from windowpane.engines.program import Upstream
from windowpane.errors import InvalidSpecError, UnknownColumnError
from windowpane.spark.internals.query_plans import metrics_names
from windowpane.spark.sources.arrow_rows import ArrowRows, read_in_arrow
from windowpane.windowing.times import to_micros

if TYPE_CHECKING:
    from windowpane.spark.building.program import BuiltProgram

PASSED_ON = "windowpane.window"
"""Metadata of a column that an earlier operator passed its watermark on with: ``WINDOW_END`` or ``ROW_TIME``."""
WINDOW_END = "end"
"""The end of a window: as an event time it counts as the microsecond before."""
ROW_TIME = "row"
"""The event time of a row that came out of an OVER window."""
DELAY = "windowpane.delay"
"""Metadata of such a column: microseconds by which rows may stay behind the watermark."""

NAME = "windowpane"
"""Name of the counters of an operator that is given none."""
_WATERMARK = "spark.watermarkDelayMs"


@dataclass(frozen=True)
class Source:
    """Where rows come from.

    Args:
        dataframe: the DataFrame.
        event_time: name of the event-time column, ``None`` for none.
        watermark: delay of the watermark as Spark writes it, ``None`` for none (or one that the DataFrame has already).
        heartbeat: name of the boolean column that marks heartbeats, ``None`` for none.
        name: name of the counters in the query's progress.
        upstream: the earlier window the rows come from, ``None`` for a source.
        made: how the rows of ``dataframe`` are made in Python, ``None`` where they are Spark's.
    """

    dataframe: Any
    event_time: str | None = None
    watermark: Any = None
    heartbeat: str | None = None
    name: str = NAME
    upstream: BuiltProgram | None = None
    made: ArrowRows | None = None

    @classmethod
    def of(cls, rows: Any, event_time: str | None, watermark: Any, heartbeat: str | None, name: str) -> Source:
        """Return the source of a DataFrame, or of rows that are made in Python, checked.

        Raises:
            UnknownColumnError: it has no such event time or heartbeat.
            InvalidSpecError: something else was given than names, or Spark makes no watermark of the event time.
            InvalidDurationError: the watermark is no duration.
        """
        _check_names(event_time, heartbeat)
        if watermark is not None:
            to_micros(watermark)
        made = rows if isinstance(rows, ArrowRows) else read_in_arrow(rows)
        dataframe = rows.df if isinstance(rows, ArrowRows) else rows
        source = cls(dataframe, event_time, watermark, heartbeat, name, made=made)
        if hasattr(source.dataframe, "columns"):
            source = dataclasses.replace(source, name=_free_name(source))
            source.watermarked  # noqa: B018 (it is checked)
        return source

    def require(self, columns: Iterable[Any], role: str) -> None:
        """Refuse names of columns that the rows do not have; Columns are Spark's to resolve.

        Raises:
            UnknownColumnError: there is no such column.
        """
        known = getattr(self.dataframe, "columns", None)
        for name in columns:
            if known is not None and isinstance(name, str) and name not in known:
                raise UnknownColumnError(name, role, known)

    @cached_property
    def watermarked(self) -> Any:
        """The DataFrame, with the watermark.

        Raises:
            UnknownColumnError: it has no such event time or heartbeat.
            InvalidSpecError: the event time is no timestamp, or Spark makes no watermark of it.
        """
        dataframe = self.dataframe
        self.require([] if self.event_time is None else [self.event_time], "event_time")
        self.require([] if self.heartbeat is None else [self.heartbeat], "heartbeat")
        if self.event_time is not None and self.upstream is None:
            self._check_event_time()
        if self.watermark is None or not self.is_streaming or self.is_passed_on:
            return dataframe
        self._check_watermark()
        return dataframe.withWatermark(self.event_time, self.spark_watermark)

    @property
    def is_streaming(self) -> bool:
        """Whether the rows are a stream."""
        return bool(self.dataframe.isStreaming)

    @property
    def spark_watermark(self) -> str | None:
        """The delay of the watermark as Spark writes it, ``None`` for none or rows that are no stream."""
        if self.watermark is None or not self.is_streaming:
            return None
        return f"{to_micros(self.watermark) // 1000} milliseconds"

    @property
    def event_type(self) -> T.DataType | None:
        """The type of the event time column, ``None`` without one."""
        return None if self.event_time is None else self.dataframe.schema[self.event_time].dataType

    @property
    def is_passed_on(self) -> bool:
        """Whether the event time is a column that an earlier operator passed its watermark on with."""
        return self.upstream is None and self._metadata(PASSED_ON) is not None

    @property
    def is_window_end(self) -> bool:
        """Whether the event time is the end of an earlier window."""
        return self.upstream is None and self._metadata(PASSED_ON) == WINDOW_END

    @property
    def kind(self) -> Upstream:
        """Where rows come from, as a program has it."""
        if self.upstream is not None:
            return Upstream.JUDGED_WINDOW
        return Upstream.WINDOW if self.is_passed_on else Upstream.SOURCE

    @property
    def has_watermark(self) -> bool:
        """Whether Spark keeps a watermark for the query."""
        if self.upstream is not None:
            return self.upstream.source.has_watermark
        if self.is_passed_on or (self.watermark is not None and self.is_streaming):
            return True
        return any(_WATERMARK in field.metadata for field in self.dataframe.schema.fields)

    @property
    def delay(self) -> int:
        """Microseconds by which the operator's watermark stays behind Spark's."""
        if not self.is_passed_on:
            return 0
        return int(self._metadata(DELAY) or 0) + (0 if self.watermark is None else to_micros(self.watermark))

    def _metadata(self, name: str) -> Any:
        if self.event_time not in self.dataframe.columns:
            return None
        return self.dataframe.schema[self.event_time].metadata.get(name)

    def _check_event_time(self) -> None:
        kind = self.event_type
        if not isinstance(kind, T.TimestampType | T.TimestampNTZType):
            shown = kind.simpleString() if kind is not None else None
            raise InvalidSpecError(
                f"event_time: column {self.event_time!r} is {shown}, but an event time is a timestamp. "
                "Cast it first, for example with timestamp_millis or to_timestamp."
            )

    def _check_watermark(self) -> None:
        if self.event_time is None:
            raise InvalidSpecError("watermark= needs event_time=, the column it is made from.")
        if isinstance(self.event_type, T.TimestampNTZType):
            raise InvalidSpecError(
                f"event_time: column {self.event_time!r} is timestamp_ntz, and Spark makes watermarks only of timestamps with "
                "a time zone. Cast it to timestamp first."
            )


def _check_names(event_time: Any, heartbeat: Any) -> None:
    for role, given in (("event_time", event_time), ("heartbeat", heartbeat)):
        if given is not None and not isinstance(given, str):
            raise InvalidSpecError(
                f"{role}={given!r}: expected the name of a column, such as {role}='scheduled'. What has to be computed gets a "
                f"name before: df.withColumn('scheduled', ...)."
            )


def _free_name(source: Source) -> str:
    """Return the name of a source's counters; one that the user did not choose is numbered after those there are already."""
    if source.name != NAME or not source.is_streaming:
        return source.name
    taken = metrics_names(source.dataframe)
    numbered = (NAME if number == 1 else f"{NAME}_{number}" for number in count(1))
    return next(name for name in numbered if name not in taken)
