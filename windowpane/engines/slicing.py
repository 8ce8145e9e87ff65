"""Slices shared by overlapping windows: the pieces, of the greatest common length, that windows of fixed size are made of.

A row is folded once into its slice, however many windows it is in; a window is the union of its slices. Slices are named by
their start. Source of the idea: Li et al., "No pane, no gain" (2005); Flink SQL's slice assigners.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd
from typing import Self

import numpy as np
import numpy.typing as npt

from windowpane.errors import TimestampOverflowError
from windowpane.windowing.assigners import (
    CumulateEventTimeWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
    WindowAssigner,
    WindowStagger,
)
from windowpane.windowing.times import MAX, MIN
from windowpane.windowing.windows import TimeWindow, window_start


@dataclass(frozen=True)
class SharedSlices:
    """Windows ``[start, start + n * step)`` for starts every ``slide`` and for n in ``sizes``, cut into slices of ``length``.

    Args:
        length: length of a slice.
        slide: distance of window starts.
        sizes: lengths of the windows that begin at each start, ascending: one, or for cumulating windows each step.
        offset: shift of the window starts.
    """

    length: int
    slide: int
    sizes: range
    offset: int

    @classmethod
    def of(cls, assigner: WindowAssigner) -> Self | None:
        """Return the slices of an assigner's windows, ``None`` if they cannot be made of slices that all elements fall into."""
        if type(assigner) is TumblingEventTimeWindows and assigner.stagger is WindowStagger.ALIGNED:
            return cls(assigner.size, assigner.size, range(assigner.size, assigner.size + 1), assigner.offset)
        if type(assigner) is SlidingEventTimeWindows and assigner.slide <= assigner.size:
            length = gcd(assigner.size, assigner.slide)
            return cls(length, assigner.slide, range(assigner.size, assigner.size + 1), assigner.offset)
        if type(assigner) is CumulateEventTimeWindows:
            sizes = range(assigner.step, assigner.max_size + 1, assigner.step)
            return cls(assigner.step, assigner.max_size, sizes, assigner.offset)
        return None

    @property
    def reach(self) -> int:
        """The length of the longest window."""
        return self.sizes[-1]

    def starts(self, times: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the slice of each element.

        Raises:
            TimestampOverflowError: a window of an element does not fit into int64.
        """
        if len(times):
            for extreme in (int(times.min()), int(times.max())):
                if extreme - self.reach < MIN + abs(self.offset) or extreme + self.reach > MAX - abs(self.offset):
                    raise TimestampOverflowError(extreme, extreme - self.reach, extreme + self.reach)
        starts: npt.NDArray[np.int64] = times - (times - self.offset) % self.length
        return starts

    def windows_of(self, start: int) -> list[TimeWindow]:
        """Return the windows that hold the slice beginning at ``start``."""
        last = window_start(start, self.offset, self.slide)
        found = []
        for first in range(last, start - self.reach, -self.slide):
            found += [TimeWindow(first, first + size) for size in self.sizes if first + size > start]
        return found

    def slices_of(self, window: TimeWindow) -> range:
        """Return the starts of the slices of a window."""
        return range(window.start, window.end, self.length)
