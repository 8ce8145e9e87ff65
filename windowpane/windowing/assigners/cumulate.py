"""Cumulating windows: a tumbling window of the maximal size, seen at each step while it fills.

``[0, step), [0, 2 step), ... [0, max size)``, then anew. Source of the rule: Flink SQL's CUMULATE and its cumulative slices.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

from windowpane.errors import InvalidSpecError
from windowpane.windowing.assigners.base import AssignerContext, WindowAssigner
from windowpane.windowing.times import Duration, to_micros
from windowpane.windowing.windows import TimeWindow, time_window, window_start


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

    def assign_windows(self, element: Any, timestamp: int, context: AssignerContext) -> Sequence[TimeWindow]:
        """Return every window from the first step that holds ``timestamp`` up to the full one, shortest first."""
        instant = self.instant_of(element, timestamp, context)
        start = window_start(instant, self.offset, self.max_size)
        first_end = window_start(instant, self.offset, self.step) + self.step
        ends = range(first_end, start + self.max_size + 1, self.step)
        return [time_window(start, end, instant) for end in ends]
