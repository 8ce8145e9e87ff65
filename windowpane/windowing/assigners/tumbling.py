"""Tumbling windows: fixed size, no overlap, each element in exactly one.

Source of the rules: Flink's TumblingEventTimeWindows and TumblingProcessingTimeWindows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

from windowpane.errors import InvalidSpecError
from windowpane.windowing.assigners.base import AssignerContext, WindowAssigner
from windowpane.windowing.assigners.stagger import WindowStagger
from windowpane.windowing.times import Duration, to_micros
from windowpane.windowing.windows import TimeWindow, time_window, window_start


@dataclass(frozen=True)
class _TumblingWindows(WindowAssigner):
    size: int
    offset: int = 0
    stagger: WindowStagger = WindowStagger.ALIGNED

    def __post_init__(self) -> None:
        if self.size <= 0 or abs(self.offset) >= self.size:
            raise InvalidSpecError(
                f"{type(self).__name__} parameters must satisfy abs(offset) < size and size > 0, but size is {self.size} µs and "
                f"offset is {self.offset} µs. An offset shifts the window starts within one size."
            )

    @classmethod
    def of(cls, size: Duration, offset: Duration = 0, stagger: WindowStagger = WindowStagger.ALIGNED) -> Self:
        """Return the assigner for windows of ``size``, starting at multiples of it plus ``offset``.

        Args:
            size: length of a window.
            offset: shift of all starts from the epoch; may be negative, ``abs(offset) < size``.
            stagger: shift of each parallel instance.

        Raises:
            InvalidSpecError: the size is not positive or the offset not smaller than it.
        """
        return cls(to_micros(size), to_micros(offset), stagger)

    def assign_windows(self, element: Any, timestamp: int, context: AssignerContext) -> Sequence[TimeWindow]:
        """Return the one window that holds the element; by event time, one without a timestamp is refused."""
        instant = self.instant_of(element, timestamp, context)
        offset = self.stagger.staggered(self.offset, self.size, context)
        start = window_start(instant, offset, self.size)
        return (time_window(start, start + self.size, instant),)


@dataclass(frozen=True)
class TumblingEventTimeWindows(_TumblingWindows):
    """Windows of fixed size by event time.

    Example:
        >>> TumblingEventTimeWindows.of("1 hour", offset="15 minutes")
        TumblingEventTimeWindows(size=3600000000, offset=900000000, stagger=WindowStagger.ALIGNED)
    """

    reads_elements = False


@dataclass(frozen=True)
class TumblingProcessingTimeWindows(_TumblingWindows):
    """Windows of fixed size by the clock of the machine that processes the element, as Flink has them.

    Example:
        >>> TumblingProcessingTimeWindows.of("1 minute")
        TumblingProcessingTimeWindows(size=60000000, offset=0, stagger=WindowStagger.ALIGNED)
    """

    reads_elements = False
    is_event_time = False
