"""When sessions fire and when they are over, on arrays of their ends: the rule of the default triggers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from windowpane.arrays import Integers, Mask
from windowpane.windowing.spec import WindowSpec
from windowpane.windowing.times import MAX


@dataclass(frozen=True)
class SessionRule:
    """The rule of one program; clocks are the watermark for event time, the machine's clock for processing time.

    Args:
        is_event_time: which clock.
        lateness: microseconds a session is kept behind the watermark; 0 for processing time.
        purges: whether a firing drops what the session held.
    """

    is_event_time: bool
    lateness: int
    purges: bool

    @classmethod
    def of(cls, spec: WindowSpec) -> Self:
        """Return the rule of a spec."""
        by_event_time = spec.assigner.is_event_time
        return cls(by_event_time, spec.allowed_lateness if by_event_time else 0, spec.purges)

    @property
    def keeps_empty(self) -> bool:
        """Whether a session may outlive what it held: purged, but open to late rows."""
        return self.purges and self.lateness > 0

    def fires(self, ends: Integers, before: int, now: int) -> Mask:
        """Return which sessions fire as the clock moves from ``before`` to ``now``."""
        due = ends - 1 <= now
        return due & (ends - 1 > before) if self.is_event_time else due

    def has_fired(self, ends: Integers, now: int) -> Mask:
        """Return which sessions have fired by ``now``, so that a row that joins them fires them again."""
        return ends - 1 <= now if self.is_event_time else np.zeros(len(ends), bool)

    def is_over(self, ends: Integers, now: int) -> Mask:
        """Return which sessions take no more rows."""
        return self._cleanup(ends) <= now

    def is_late(self, ends: Integers, now: int) -> Mask:
        """Return which rows are late by themselves: their own session would be over. By the clock no row is late."""
        return self.is_over(ends, now) if self.is_event_time else np.zeros(len(ends), bool)

    def next_time(self, ends: Integers, now: int) -> Integers:
        """Return when something next happens to each session: it fires, or it is over."""
        return np.where(self.has_fired(ends, now), self._cleanup(ends), ends - 1)

    def _cleanup(self, ends: Integers) -> Integers:
        return np.minimum(ends - 1, MAX - self.lateness) + self.lateness
