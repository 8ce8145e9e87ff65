"""Lateness: when a window expires, and which elements are too late for every window.

Flink adds the allowed lateness in two ways, and both are kept. The cleanup time of a window is held inside int64: a window that
would be kept beyond the end of time is kept for ever. The sums that decide whether an element or a merged window is late overflow
as Java's ``long`` does, so that an enormous lateness makes late what it should keep. Source: Flink's ``WindowOperator``
(``cleanupTime``, ``isWindowLate``, ``isElementLate``, and the check of merged windows).

All times are microseconds; a window is given by its max timestamp, the last instant in it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from windowpane.arrays import Integers, Mask
from windowpane.windowing.times import MAX, MIN, add_clamped, wrap_int64


@dataclass(frozen=True)
class Lateness:
    """The rule of one program.

    Example:
        >>> Lateness(5, is_event_time=True).cleanup_time(99)
        104
    """

    allowed: int  # how long windows are kept behind the watermark
    # whether the watermark ends windows. The clock of the machine does so without any lateness, and nothing is late under it.
    is_event_time: bool

    def cleanup_time(self, max_timestamp: int) -> int:
        """Return when a window is over: at its max timestamp, or in event time so much later; at most ``MAX``."""
        return add_clamped(max_timestamp, self.allowed) if self.is_event_time else max_timestamp

    def cleanup_times(self, max_timestamps: Integers) -> Integers:
        if not self.is_event_time:
            return max_timestamps
        return np.minimum(max_timestamps, MAX - self.allowed) + self.allowed

    def is_over(self, max_timestamp: int, clock: int) -> bool:
        return self.cleanup_time(max_timestamp) <= clock

    def is_late(self, max_timestamp: int, watermark: int) -> bool:
        """Whether a window is over for an element that has just been assigned to it."""
        return self.is_event_time and self.is_over(max_timestamp, watermark)

    def is_behind(self, timestamp: int, watermark: int) -> bool:
        """Whether an element that no window took is late by itself, or a merged window by its max timestamp; overflows."""
        return self.is_event_time and wrap_int64(timestamp + self.allowed) <= watermark

    def are_behind(self, timestamps: Integers, watermark: int) -> Mask:
        """Return which elements are late by themselves; overflows."""
        if not self.is_event_time:
            return np.zeros(len(timestamps), np.bool_)
        with np.errstate(over="ignore"):
            behind: Mask = timestamps + np.int64(self.allowed) <= watermark
        return behind


def horizon(watermark: int, lateness: int) -> int:
    """Return the event time at or below which rows are late that are waited for so long; without a watermark none are.

    A watermark of ``MAX`` ends the input: every later element is late.
    """
    return watermark if watermark in (MIN, MAX) else add_clamped(watermark, -lateness)
