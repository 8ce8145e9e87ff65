"""Session windows: activity of a key with no pause as long as the gap; windows that overlap or touch merge.

Source of the rules: Flink's EventTimeSessionWindows, ProcessingTimeSessionWindows and their dynamic variants. As in Flink, an
element without a timestamp is accepted and opens the session ``[MIN, MIN + gap)``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self

from windowpane.arrays.values import Value
from windowpane.errors import InvalidSessionGapError, InvalidSpecError
from windowpane.windowing.assigners.base import AssignerContext, MergingWindowAssigner
from windowpane.windowing.assigners.closed_sessions import ClosedSessionWindows
from windowpane.windowing.expressions import Argument, ColumnLike
from windowpane.windowing.times import Duration, to_micros
from windowpane.windowing.windows import TimeWindow, time_window

GapFunction = Callable[[Value], Duration]


@dataclass(frozen=True)
class GapColumn:
    """The gap of a row that a column of it holds: an interval, or a duration as text.

    Args:
        column: its name; a Column or an expression until the program is built.
    """

    column: Argument

    def __call__(self, row: Value) -> Duration:
        gap: Duration | None = row[self.column]
        if gap is None:
            raise InvalidSessionGapError(gap, row)
        return gap


@dataclass(frozen=True)
class _SessionWindows(MergingWindowAssigner):
    gap: int | GapFunction

    def __post_init__(self) -> None:
        if not callable(self.gap) and self.gap <= 0:
            raise InvalidSpecError(f"{type(self).__name__}: the gap must be greater than zero, but is {self.gap} µs.")

    def _calls_gap(self) -> bool:
        """Whether a function computes the gap of each element."""
        return callable(self.gap) and not isinstance(self.gap, GapColumn)

    @property
    def columns(self) -> tuple[str, ...]:  # type: ignore[override]
        """The column of the gap, by the name that rows have it under."""
        return (self.gap.column,) if isinstance(self.gap, GapColumn) and isinstance(self.gap.column, str) else ()

    @classmethod
    def with_gap(cls, gap: Duration) -> Self:
        """Return the assigner whose sessions end after a pause of ``gap``.

        Raises:
            InvalidSpecError: the gap is not positive.
        """
        return cls(to_micros(gap))

    @classmethod
    def with_dynamic_gap(cls, gap_of: GapFunction | Argument) -> Self:
        """Return the assigner whose gap each element says.

        Args:
            gap_of: a column of the rows, by its name or as an expression, of day-time intervals or of durations as text; Spark
                computes it. Or a function that takes the element (a row as a dict) and returns a duration, row by row in
                Python. An ``InvalidSessionGapError`` names the element whose gap is NULL or not greater than zero.

        Example:
            >>> from pyspark.sql import functions as F
            >>> EventTimeSessionWindows.with_dynamic_gap(F.when(F.col("tier") == "gold", "30 min").otherwise("5 min"))
            >>> EventTimeSessionWindows.with_dynamic_gap(lambda row: "30 min" if row["tier"] == "gold" else "5 min")

        Source: Flink's ``withDynamicGap``; the gap as a column is that of Spark's ``session_window``.
        """
        return cls(gap_of if callable(gap_of) else GapColumn(gap_of))

    def assign_windows(self, element: Value, timestamp: int, context: AssignerContext) -> Sequence[TimeWindow]:
        """Return ``[time, time + gap)`` of the element, to be merged with the key's open sessions."""
        instant = timestamp if self.is_event_time else context.current_processing_time
        gap = to_micros(self.gap(element)) if callable(self.gap) else self.gap
        if gap <= 0:
            raise InvalidSessionGapError(gap, element)
        return (time_window(instant, instant + gap, instant),)


@dataclass(frozen=True)
class EventTimeSessionWindows(_SessionWindows):
    """Sessions by event time.

    Example:
        >>> EventTimeSessionWindows.with_gap("30 minutes")
        EventTimeSessionWindows(gap=1800000000)
    """

    reads_elements = property(_SessionWindows._calls_gap)

    def closed_by(
        self,
        condition: ColumnLike | None = None,
        *,
        count: int | None = None,
        size: tuple[ColumnLike, int] | None = None,
        duration: Duration | None = None,
    ) -> ClosedSessionWindows:
        """Return the assigner whose sessions also end otherwise; whatever is first ends a session.

        The row that closes a session belongs to it, and the next one of its key opens another. Rows of a key are cut in the order
        of event time, those of one instant in order of arrival, once the watermark has passed them; so a result is final, and
        every row behind the watermark is late. A session that a row closes ends a microsecond after that row, another one ``gap``
        after its last row, at most ``duration`` after its first one.

        Args:
            condition: a row where it is true closes; a text of Spark SQL or a Column. NULL is not true.
            count: the row that is the so many-th of its session closes.
            size: ``("bytes", 1_000_000)``: the row with which the sum of the column reaches this closes. A column of whole
                numbers that are not negative, or a Column of them; NULL adds nothing.
            duration: a row so much after the first one of a session, or later, opens another.

        Raises:
            InvalidSpecError: nothing that closes, a limit that is not greater than zero, or a gap that is computed by row. When
                the program is built: triggers, evictors, lateness, or a function that is not folded row by row.

        Source: the idle gap, maximal duration and end condition of Timeplus's ``session``; the maximal duration of Azure Stream
        Analytics' ``SessionWindow``.

        Example:
            >>> EventTimeSessionWindows.with_gap("30 minutes").closed_by("type = 'logout'", duration="8 hours")
        """
        if callable(self.gap):
            raise InvalidSpecError(
                f"closed_by needs one gap, such as with_gap('30 minutes'), and {self.gap!r} computes one by row."
            )
        return ClosedSessionWindows(self.gap, condition, count, size, None if duration is None else to_micros(duration))


@dataclass(frozen=True)
class ProcessingTimeSessionWindows(_SessionWindows):
    """Sessions by the clock of the machine that processes the element, as Flink has them.

    Example:
        >>> ProcessingTimeSessionWindows.with_gap("30 minutes")
        ProcessingTimeSessionWindows(gap=1800000000)
    """

    reads_elements = property(_SessionWindows._calls_gap)

    is_event_time = False
