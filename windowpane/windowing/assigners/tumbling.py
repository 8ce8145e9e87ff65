"""Tumbling windows: fixed size, no overlap, each element in exactly one.

With a stagger the windows of each parallel instance (a bucket of keys) are shifted, by an offset that is chosen once and kept, so
that they do not all fire at the same moment. Source of the rules: Flink's TumblingEventTimeWindows, TumblingProcessingTimeWindows
and WindowStagger.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Self

from windowpane.arrays.values import Value
from windowpane.errors import InvalidSpecError
from windowpane.windowing.assigners.base import AssignerContext, WindowAssigner
from windowpane.windowing.times import Duration, to_micros
from windowpane.windowing.windows import TimeWindow, time_window, window_start


class WindowStagger(Enum):
    """How the windows of parallel instances are shifted against each other, as Flink has it.

    Example:
        >>> TumblingEventTimeWindows.of("1 hour", stagger=WindowStagger.RANDOM)
        TumblingEventTimeWindows(size=3600000000, offset=0, stagger=WindowStagger.RANDOM)
    """

    ALIGNED = "aligned"
    """All instances fire at the same time (the default)."""
    RANDOM = "random"
    """Each instance is shifted by a random part of the window size."""
    NATURAL = "natural"
    """Each instance's windows start when its first element arrives."""

    def offset(self, processing_time: int, size: int) -> int:
        """Return the shift in microseconds, ``0 <= shift < size``, for an instance whose first element arrives now."""
        if self is WindowStagger.ALIGNED:
            return 0
        if self is WindowStagger.RANDOM:
            return random.randrange(size)
        return max(0, processing_time - window_start(processing_time, 0, size))

    def staggered(self, offset: int, size: int, context: AssignerContext) -> int:
        """Return the window offset of this instance: the global ``offset`` plus the instance's own shift."""
        if self is WindowStagger.ALIGNED:
            return offset
        shift = context.remember("window-stagger", lambda: self.offset(context.current_processing_time, size))
        return (offset + shift) % size

    def __repr__(self) -> str:
        return f"WindowStagger.{self.name}"


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

    def assign_windows(self, element: Value, timestamp: int, context: AssignerContext) -> Sequence[TimeWindow]:
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
