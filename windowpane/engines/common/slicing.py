"""Slices shared by overlapping windows: the pieces, of the greatest common length, that windows of fixed size are made of.

A row is folded once into its slice, however many windows it is in; a window is the union of its slices. Slices are named by
their start. Source of the idea: Li et al., "No pane, no gain" (2005); Flink SQL's slice assigners.

Buckets may stagger their windows: the shift is settled by the first rows of a bucket, and kept under ``stagger`` in the blob
store. Who may mutate: the engine, once in the life of a bucket. Recovery: read it back. Source: Flink's WindowStagger.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from math import gcd
from typing import ClassVar, Protocol, Self

import numpy as np

from windowpane.arrays import Integers, Mask
from windowpane.errors import MistakeError, TimestampOverflowError, present
from windowpane.state.blob_store import BlobStore
from windowpane.state.codec import decode_int64, encode_int64, frame, unframe
from windowpane.windowing.assigners import (
    CalendarWindows,
    CumulateEventTimeWindows,
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
    WindowAssigner,
    WindowStagger,
)
from windowpane.windowing.spec import WindowSpec
from windowpane.windowing.times import MAX, MIN
from windowpane.windowing.windows import TimeWindow, window_start


class Slices(Protocol):
    """The pieces that the windows of an assigner are made of, named by their start; each window has an end of its own."""

    @property
    def has_gaps(self) -> bool:
        """Whether there are instants that no window holds."""

    def starts(self, times: Integers) -> Integers:
        """Return the slice of each element; in a gap, that of the window before it."""

    def covers(self, times: Integers, starts: Integers) -> Mask:
        """Return whether each element is in its slice, and not in the gap behind it."""

    def windows_of(self, start: int) -> tuple[TimeWindow, ...]:
        """Return the windows that hold the slice beginning at ``start``, in the order of the assigner."""

    def window_starts(self, ends: Integers) -> Integers:
        """Return the starts of the windows that end at ``ends``."""

    def between(self, start: int, end: int) -> Iterable[int]:
        """Return the starts of the slices from one bound of a window to another."""


def slices_of(assigner: WindowAssigner) -> Slices | None:
    """Return the slices of an assigner's windows (before any stagger), ``None`` if they have none."""
    return CalendarSlices(assigner) if type(assigner) is CalendarWindows else SharedSlices.of(assigner)


@dataclass(frozen=True)
class CalendarSlices:
    """The periods of calendar windows, or, where they cumulate within one, its steps."""

    windows: CalendarWindows
    has_gaps: ClassVar[bool] = False

    def starts(self, times: Integers) -> Integers:
        return self.windows.slice_starts(times)

    def covers(self, times: Integers, starts: Integers) -> Mask:
        return np.ones(len(times), np.bool_)

    def windows_of(self, start: int) -> tuple[TimeWindow, ...]:
        return self.windows.windows_at(start)

    def window_starts(self, ends: Integers) -> Integers:
        distinct, places = np.unique(ends, return_inverse=True)
        return np.array([self.windows.window_start(end) for end in distinct.tolist()], np.int64)[places]

    def between(self, start: int, end: int) -> Iterable[int]:
        return self.windows.slices_between(start, end)


@dataclass(frozen=True)
class SharedSlices:
    """Windows ``[start, start + n * step)`` for starts every ``slide`` and for n in ``sizes``, cut into slices of ``length``.

    Where the slide is longer than the windows there are gaps between them: elements there belong to no slice.
    """

    length: int  # length of a slice
    slide: int  # distance of window starts
    sizes: range  # lengths of the windows that begin at each start, ascending: one, or for cumulating windows each step
    offset: int  # shift of the window starts

    @classmethod
    def of(cls, assigner: WindowAssigner) -> Self | None:
        """Return the slices of an assigner's windows (before any stagger), ``None`` if they are no windows of fixed size."""
        if isinstance(assigner, TumblingEventTimeWindows | TumblingProcessingTimeWindows) and type(assigner) in _BUILT_IN:
            return cls(assigner.size, assigner.size, _one(assigner.size), assigner.offset)
        if isinstance(assigner, SlidingEventTimeWindows | SlidingProcessingTimeWindows) and type(assigner) in _BUILT_IN:
            has_gaps = assigner.slide > assigner.size
            length = assigner.size if has_gaps else gcd(assigner.size, assigner.slide)
            return cls(length, assigner.slide, _one(assigner.size), assigner.offset)
        if type(assigner) is CumulateEventTimeWindows:
            sizes = range(assigner.step, assigner.max_size + 1, assigner.step)
            return cls(assigner.step, assigner.max_size, sizes, assigner.offset)
        return None

    def shifted(self, shift: int) -> Self:
        """Return the slices of windows that a stagger shifts by ``shift``."""
        return replace(self, offset=(self.offset + shift) % self.slide)

    @property
    def reach(self) -> int:
        return self.sizes[-1]

    @property
    def has_gaps(self) -> bool:
        return self.slide > self.reach

    def starts(self, times: Integers) -> Integers:
        """Return the slice of each element; in a gap, that of the window before it.

        Raises:
            TimestampOverflowError: a window of an element does not fit into int64.
        """
        for extreme in {int(times.min()), int(times.max())} if len(times) else ():
            self._refuse_overflow(extreme)
        period = self.slide if self.has_gaps else self.length
        # numpy takes a remainder by division, one number at a time; a quotient by a constant takes a fifth of that.
        since = times - times // period * period
        since -= self.offset % period
        since += (since < 0) * period
        return times - since

    def _refuse_overflow(self, time: int) -> None:
        last = window_start(time, self.offset, self.slide)
        if time - last >= self.reach:
            return
        first = last - (last - time + self.reach - 1) // self.slide * self.slide
        if first < MIN or last + self.reach > MAX:
            start = first if first < MIN else last
            raise TimestampOverflowError(time, start, start + self.reach)

    def covers(self, times: Integers, starts: Integers) -> Mask:
        return times - starts < self.length

    @lru_cache(maxsize=1 << 14)  # noqa: B019 (a frozen value, compared by value)
    def windows_of(self, start: int) -> tuple[TimeWindow, ...]:
        last = window_start(start, self.offset, self.slide)
        found = []
        for first in range(last, start - self.reach, -self.slide):
            found += [TimeWindow(first, first + size) for size in self.sizes if first + size > start]
        return tuple(found)

    def window_starts(self, ends: Integers) -> Integers:
        if len(self.sizes) == 1:
            return ends - self.reach
        starts: Integers = ends - 1 - (ends - 1 - self.offset) % self.slide
        return starts

    def between(self, start: int, end: int) -> Iterable[int]:
        return range(start, end, self.length)


_BUILT_IN = (
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
)
"""Subclasses of these may assign otherwise."""


def _one(size: int) -> range:
    return range(size, size + 1)


_KEY, _KIND = "stagger", "window-stagger"


def is_staggered(assigner: WindowAssigner) -> bool:
    """Whether buckets shift an assigner's windows against each other."""
    return _stagger(assigner) is not WindowStagger.ALIGNED


def slicing_refusal(spec: WindowSpec) -> str | None:
    """Return why the slice of a row is not known outside its bucket, or not enough to fold it; ``None`` if it is."""
    slices = slices_of(spec.assigner)
    if is_staggered(spec.assigner):
        return "a bucket shifts its windows when its first rows come"
    if slices is not None and slices.has_gaps and spec.assigner.is_event_time:
        return "rows between windows are late by their own time"
    return "late rows fire one by one" if spec.refines_each else None


def staggered(slices: Slices, assigner: WindowAssigner, store: BlobStore, now: int | None) -> Slices:
    """Return slices shifted as this bucket's windows are: by the clock at its first rows, ``None`` before there are any."""
    stagger = _stagger(assigner)
    if stagger is WindowStagger.ALIGNED:
        return slices
    if not isinstance(slices, SharedSlices):
        raise MistakeError("windows that are staggered have one size")
    blob = store.get(_KEY)
    if blob is None and now is None:
        return slices
    if blob is None:
        clock = present(now, "windows by the clock have a clock")
        blob = frame(_KIND, encode_int64(stagger.offset(clock, slices.slide)))
        store.put(_KEY, blob)
    return slices.shifted(decode_int64(unframe(_KIND, blob)))


def _stagger(assigner: WindowAssigner) -> WindowStagger:
    if isinstance(assigner, TumblingEventTimeWindows | TumblingProcessingTimeWindows):
        return assigner.stagger
    return WindowStagger.ALIGNED
