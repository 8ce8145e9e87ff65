"""Slices: the disjoint pieces that overlapping windows of fixed size are made of, each named by its end.

An element goes into one slice; a window is the union of its slices, so a row is folded once however many windows it is in.
What follows when the window that ends at ``window_end`` fires is told by the slices alone: which to combine, which to drop,
and which window is next. Source of the rules: the slice assigners of Flink SQL.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

from windowpane.errors import InvalidSpecError
from windowpane.windowing.windows import window_start


class SliceMerge(NamedTuple):
    """How a window comes out of its slices: ``slices`` are combined into the state of ``result``.

    ``result`` is ``None`` where they are combined on the fly, since they are shared with other windows and must stay.
    """

    result: int | None
    slices: list[int]


class Slices(ABC):
    """The slices of one family of windows. Times are microseconds, slices and windows are named by their end."""

    @abstractmethod
    def slice_end(self, timestamp: int) -> int:
        """Return the slice of an element."""

    @abstractmethod
    def window_start(self, window_end: int) -> int:
        """Return where the window that ends at ``window_end`` begins."""

    @abstractmethod
    def expired(self, window_end: int) -> list[int]:
        """Return the slices that no window needs any more once the one that ends at ``window_end`` has fired."""

    @abstractmethod
    def merge(self, window_end: int) -> SliceMerge:
        """Return the slices to combine for a window, the latest first."""

    @abstractmethod
    def next_window(self, window_end: int, is_empty: bool) -> int | None:
        """Return the window to fire next, if this one, which ``is_empty`` or not, is followed by one; else ``None``."""


@dataclass(frozen=True)
class TumblingSlices(Slices):
    """Tumbling windows: each is one slice.

    Example:
        >>> TumblingSlices(10).slice_end(12)
        20
    """

    size: int
    offset: int = 0

    def __post_init__(self) -> None:
        """Refuse a size that is not positive, and an offset of a size or more."""
        if self.size <= 0 or abs(self.offset) >= self.size:
            raise InvalidSpecError(
                f"TumblingSlices must satisfy size > 0 and abs(offset) < size, but size is {self.size} µs and offset "
                f"{self.offset} µs."
            )

    def slice_end(self, timestamp: int) -> int:
        return window_start(timestamp, self.offset, self.size) + self.size

    def window_start(self, window_end: int) -> int:
        return window_end - self.size

    def expired(self, window_end: int) -> list[int]:
        return [window_end]

    def merge(self, window_end: int) -> SliceMerge:
        return SliceMerge(window_end, [])

    def next_window(self, window_end: int, is_empty: bool) -> int | None:
        return None


@dataclass(frozen=True)
class HoppingSlices(Slices):
    """Sliding windows whose size is a multiple of the slide: a slice is as long as the slide.

    Example:
        >>> HoppingSlices(size=30, slide=10).merge(30)
        SliceMerge(result=None, slices=[30, 20, 10])
    """

    size: int
    slide: int
    offset: int = 0

    def __post_init__(self) -> None:
        """Refuse windows that are no whole number of slides."""
        given = f"but size is {self.size} µs, slide {self.slide} µs and offset {self.offset} µs"
        if self.size <= 0 or self.slide <= 0 or abs(self.offset) >= self.slide:
            raise InvalidSpecError(f"HoppingSlices must satisfy slide > 0, size > 0 and abs(offset) < slide, {given}.")
        if self.size % self.slide:
            raise InvalidSpecError(f"HoppingSlices require a size that is a multiple of the slide, {given}.")

    def slice_end(self, timestamp: int) -> int:
        return window_start(timestamp, self.offset, self.slide) + self.slide

    def window_start(self, window_end: int) -> int:
        return window_end - self.size

    def expired(self, window_end: int) -> list[int]:
        return [self.window_start(window_end) + self.slide]

    def merge(self, window_end: int) -> SliceMerge:
        return SliceMerge(None, list(range(window_end, window_end - self.size, -self.slide)))

    def next_window(self, window_end: int, is_empty: bool) -> int | None:
        return None if is_empty else window_end + self.slide


@dataclass(frozen=True)
class CumulativeSlices(Slices):
    """Cumulating windows: slices as long as a step, folded into the first one of their full window.

    Example:
        >>> CumulativeSlices(max_size=30, step=10).merge(30)
        SliceMerge(result=10, slices=[30])
    """

    max_size: int
    step: int
    offset: int = 0

    def __post_init__(self) -> None:
        """Refuse a full window that is no whole number of steps."""
        given = f"but max size is {self.max_size} µs, step {self.step} µs and offset {self.offset} µs"
        if self.max_size <= 0 or self.step <= 0 or abs(self.offset) >= self.max_size:
            raise InvalidSpecError(f"CumulativeSlices must satisfy max size > 0, step > 0 and abs(offset) < max size, {given}.")
        if self.max_size % self.step:
            raise InvalidSpecError(f"CumulativeSlices require a max size that is a multiple of the step, {given}.")

    def slice_end(self, timestamp: int) -> int:
        return window_start(timestamp, self.offset, self.step) + self.step

    def window_start(self, window_end: int) -> int:
        return window_start(window_end - 1, self.offset, self.max_size)

    def _first(self, window_end: int) -> int:
        return self.window_start(window_end) + self.step

    def expired(self, window_end: int) -> list[int]:
        """The first slice holds the sum and goes last; the others go as soon as they are folded into it."""
        first = self._first(window_end)
        if window_end == first:
            return [first] if self.step == self.max_size else []
        is_full = window_end == self.window_start(window_end) + self.max_size
        return [window_end, first] if is_full else [window_end]

    def merge(self, window_end: int) -> SliceMerge:
        first = self._first(window_end)
        return SliceMerge(first, [] if window_end == first else [window_end])

    def next_window(self, window_end: int, is_empty: bool) -> int | None:
        following = window_end + self.step
        return following if following <= self.window_start(window_end) + self.max_size else None
