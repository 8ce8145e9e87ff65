"""When sessions fire and when they are over, on arrays of their ends: the rule of the default triggers and of ``EachBatch``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from windowpane.arrays import Integers, Mask
from windowpane.windowing.lateness import Lateness
from windowpane.windowing.spec import WindowSpec


@dataclass(frozen=True)
class SessionRule:
    """The rule of one program; clocks are the watermark for event time, the machine's clock for processing time.

    Args:
        lateness: when sessions are over.
        purges: whether a firing drops what the session held.
        each_batch: whether sessions fire with each batch that has rows of theirs, and not at their end.
    """

    lateness: Lateness
    purges: bool
    each_batch: bool = False

    @classmethod
    def of(cls, spec: WindowSpec) -> Self:
        return cls(spec.lateness, spec.purges, spec.fires_each_batch)

    @property
    def is_event_time(self) -> bool:
        """Whether the watermark ends sessions, or the clock of the machine."""
        return self.lateness.is_event_time

    @property
    def outlives_firing(self) -> bool:
        """Whether a session is kept after it has fired, open to more rows."""
        return self.each_batch or (self.is_event_time and self.lateness.allowed > 0)

    @property
    def keeps_empty(self) -> bool:
        """Whether a session may outlive what it held: purged, but open to late rows."""
        return self.purges and self.outlives_firing

    def fires(self, ends: Integers, before: int, now: int) -> Mask:
        """Return which sessions fire as the clock moves from ``before`` to ``now``."""
        if self.each_batch:
            return np.zeros(len(ends), bool)
        due = ends - 1 <= now
        return due & (ends - 1 > before) if self.is_event_time else due

    def has_fired(self, ends: Integers, now: int) -> Mask:
        """Return which sessions have fired by ``now``, so that a row that joins them fires them again."""
        if self.each_batch:
            return np.ones(len(ends), bool)
        return ends - 1 <= now if self.is_event_time else np.zeros(len(ends), bool)

    def is_over(self, ends: Integers, now: int) -> Mask:
        """Return which sessions take no more rows."""
        return self.lateness.cleanup_times(ends - 1) <= now

    def is_late(self, ends: Integers, now: int) -> Mask:
        """Return which rows are late by themselves: their own session would be over. By the clock no row is late."""
        return self.is_over(ends, now) if self.is_event_time else np.zeros(len(ends), bool)

    def next_time(self, ends: Integers, now: int) -> Integers:
        """Return when something next happens to each session: it fires, or it is over."""
        return np.where(self.has_fired(ends, now), self.lateness.cleanup_times(ends - 1), ends - 1)
