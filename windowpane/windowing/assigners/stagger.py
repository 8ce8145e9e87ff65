"""Window stagger: shift the windows of each parallel instance so that they do not all fire at the same moment.

Source of the rule: Flink's WindowStagger. The offset is chosen once for each parallel instance (a bucket of keys) and kept.
"""

from __future__ import annotations

import random
from enum import Enum

from windowpane.windowing.assigners.base import AssignerContext
from windowpane.windowing.windows import window_start


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
