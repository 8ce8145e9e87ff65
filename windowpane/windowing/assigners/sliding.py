"""Sliding windows: fixed size, a new one each slide; and cumulating ones: a tumbling window seen at each step while it fills.

Where the slide is longer than the size, elements between two windows belong to none. Source of the rules: Flink's
SlidingEventTimeWindows and SlidingProcessingTimeWindows, with their bound of 10,000,000 windows an element, and Flink SQL's
CUMULATE: ``[0, step), [0, 2 step), ... [0, max size)``, then anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from windowpane.arrays.values import Value
from windowpane.errors import InvalidSpecError
from windowpane.windowing.assigners.base import AssignerContext, WindowAssigner
from windowpane.windowing.times import Duration, to_micros
from windowpane.windowing.windows import TimeWindow, time_window, window_start

MAX_WINDOWS_PER_ELEMENT = 10_000_000


@dataclass(frozen=True)
class _SlidingWindows(WindowAssigner):
    size: int
    slide: int
    offset: int = 0

    def __post_init__(self) -> None:
        given = f"but size is {self.size} µs, slide {self.slide} µs and offset {self.offset} µs"
        if self.size <= 0 or self.slide <= 0 or abs(self.offset) >= self.slide:
            raise InvalidSpecError(f"{type(self).__name__} parameters must satisfy abs(offset) < slide and size > 0, {given}.")
        if self.size // self.slide > MAX_WINDOWS_PER_ELEMENT:
            raise InvalidSpecError(
                f"{type(self).__name__} parameters must satisfy size / slide <= {MAX_WINDOWS_PER_ELEMENT}, {given}: "
                "each element would belong to more windows than that. Use a longer slide."
            )

    @classmethod
    def of(cls, size: Duration, slide: Duration, offset: Duration = 0) -> Self:
        """Return the assigner for windows of ``size``, one starting every ``slide``, shifted by ``offset``.

        Raises:
            InvalidSpecError: size or slide not positive, ``abs(offset) >= slide``, or size / slide > 10,000,000.
        """
        return cls(to_micros(size), to_micros(slide), to_micros(offset))

    def assign_windows(self, element: Value, timestamp: int, context: AssignerContext) -> Sequence[TimeWindow]:
        """Return the windows that hold the element, latest first; by event time, one without a timestamp is refused."""
        instant = self.instant_of(element, timestamp, context)
        last = window_start(instant, self.offset, self.slide)
        starts = range(last, instant - self.size, -self.slide)
        return [time_window(start, start + self.size, instant) for start in starts]


@dataclass(frozen=True)
class SlidingEventTimeWindows(_SlidingWindows):
    """Overlapping windows of fixed size by event time.

    Example:
        >>> SlidingEventTimeWindows.of("1 minute", "10 seconds")
        SlidingEventTimeWindows(size=60000000, slide=10000000, offset=0)
    """

    reads_elements = False


@dataclass(frozen=True)
class SlidingProcessingTimeWindows(_SlidingWindows):
    """Overlapping windows of fixed size by the clock of the machine that processes the element, as Flink has them.

    Example:
        >>> SlidingProcessingTimeWindows.of("1 minute", "10 seconds")
        SlidingProcessingTimeWindows(size=60000000, slide=10000000, offset=0)
    """

    reads_elements = False
    is_event_time = False


@dataclass(frozen=True)
class CumulateEventTimeWindows(WindowAssigner):
    """Windows that share a start and grow step by step up to the maximal size, by event time.

    Example:
        >>> CumulateEventTimeWindows.of("1 day", "1 hour")
        CumulateEventTimeWindows(max_size=86400000000, step=3600000000, offset=0)
    """

    reads_elements = False
    max_size: int
    step: int
    offset: int = 0

    def __post_init__(self) -> None:
        given = f"but max size is {self.max_size} µs, step {self.step} µs and offset {self.offset} µs"
        if self.max_size <= 0 or self.step <= 0 or self.max_size % self.step:
            raise InvalidSpecError(f"CumulateEventTimeWindows: max size must be a positive multiple of a positive step, {given}.")
        if abs(self.offset) >= self.max_size:
            raise InvalidSpecError(f"CumulateEventTimeWindows: abs(offset) must be smaller than max size, {given}.")

    @classmethod
    def of(cls, max_size: Duration, step: Duration, offset: Duration = 0) -> Self:
        """Return the assigner for windows growing by ``step`` up to ``max_size``.

        Raises:
            InvalidSpecError: ``max_size`` is no positive multiple of ``step``, or ``abs(offset) >= max_size``.
        """
        return cls(to_micros(max_size), to_micros(step), to_micros(offset))

    def assign_windows(self, element: Value, timestamp: int, context: AssignerContext) -> Sequence[TimeWindow]:
        """Return every window from the first step that holds ``timestamp`` up to the full one, shortest first."""
        instant = self.instant_of(element, timestamp, context)
        start = window_start(instant, self.offset, self.max_size)
        first_end = window_start(instant, self.offset, self.step) + self.step
        ends = range(first_end, start + self.max_size + 1, self.step)
        return [time_window(start, end, instant) for end in ends]
