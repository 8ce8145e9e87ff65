"""Source: the DataFrame a program reads, checked, and with its watermark set.

Rows of an earlier operator of the same query have a watermark already. Either their time is carried beside them (``upstream``),
or a column of theirs is marked by metadata as one that the earlier operator passed its watermark on with.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pyspark.sql import types as T

from windowpane.engines.program import Upstream
from windowpane.errors import InvalidSpecError, UnknownColumnError
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
    name: str = "windowpane"
    upstream: BuiltProgram | None = None
    made: ArrowRows | None = None

    @classmethod
    def of(cls, rows: Any, event_time: str | None, watermark: Any, heartbeat: str | None, name: str) -> Source:
        """Return the source of a DataFrame, or of rows that are made in Python."""
        if isinstance(rows, ArrowRows):
            return cls(rows.df, event_time, watermark, heartbeat, name, made=rows)
        return cls(rows, event_time, watermark, heartbeat, name, made=read_in_arrow(rows))

    @cached_property
    def watermarked(self) -> Any:
        """The DataFrame, with the watermark.

        Raises:
            UnknownColumnError: it has no such event time or heartbeat.
            InvalidSpecError: the event time is no timestamp, or Spark makes no watermark of it.
        """
        dataframe = self.dataframe
        for name, role in ((self.event_time, "event_time"), (self.heartbeat, "heartbeat")):
            if name is not None and name not in dataframe.columns:
                raise UnknownColumnError(name, role, dataframe.columns)
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
