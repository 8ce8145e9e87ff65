"""Ranges: the rows of a key whose times lie between two bounds, for many keys and bounds at once.

Rows are sorted by (code of the key, time), each such place a number; then two binary searches find a range. Rows with a negative
code (a NULL in the key) match nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from windowpane.arrays import Integers
from windowpane.kernels.packed_order import stable_order
from windowpane.kernels.segments import concatenated
from windowpane.sizes import Size
from windowpane.windowing.times import MAX, MIN

_MOST_PAIRS = Size("pairs made at once", 256_000, (1, 3))
_MOST_BITS = Size("bits of a key and a time as one number", 62, (2, 5))


class Places(NamedTuple):
    """Rows sorted by key and time; equal ones stay in the order they arrived in."""

    order: Integers  # the rows, sorted
    # the place of each sorted row: its code times ``width``, then its time, counted from the first one or, where times are too
    # far apart for that, its rank
    numbers: Integers
    first_time: int  # the first time, and ``last_time`` the last one
    last_time: int
    width: int  # more than any time counts
    different: Integers | None  # the different times, ascending, ``None`` where times are counted from the first one

    @classmethod
    def of(cls, codes: Integers, times: Integers) -> Places:
        if not len(codes):
            return cls(np.zeros(0, np.int64), np.zeros(0, np.int64), 0, 0, 2, None)
        first_time, last_time = int(times.min()), int(times.max())
        width = last_time - first_time + 2
        different = None
        if width.bit_length() + int(codes.max()).bit_length() > _MOST_BITS.value:
            different = np.unique(times)
            width = len(different) + 1
        ranks = times - first_time if different is None else np.searchsorted(different, times)
        numbers = codes * width + ranks
        order = stable_order(numbers)
        return cls(order, numbers[order], first_time, last_time, width, different)

    def before(self, codes: Integers, times: Integers, *, or_at: bool) -> Integers:
        """Return how many sorted rows are before each (code, time), those at it included if ``or_at``."""
        if self.different is None:
            ranks = np.clip(times, self.first_time - 1, self.last_time) - self.first_time + or_at
            ranks = np.maximum(np.where(times > self.last_time, self.width - 1, ranks), 0)
        else:
            ranks = np.searchsorted(self.different, times, "right" if or_at else "left")
        return np.searchsorted(self.numbers, codes * self.width + ranks, "left")

    def first(self, codes: Integers) -> Integers:
        return np.searchsorted(self.numbers, codes * self.width, "left")


class Ranges(NamedTuple):
    """For each left row the sorted right rows that match it."""

    order: Integers  # the left rows, by key and lower bound: neighbours look for neighbours, which are at hand then
    starts: Integers  # where the range of each of them begins
    counts: Integers  # how long it is
    places: Places  # the right rows

    @classmethod
    def of(cls, codes: Integers, lowers: Integers, uppers: Integers, places: Places) -> Ranges:
        if not len(places.order) or not len(codes):
            nothing = np.zeros(0, np.int64)
            return cls(nothing, nothing, nothing, places)
        order = Places.of(codes, lowers).order
        codes, lowers, uppers = codes[order], lowers[order], uppers[order]
        starts = places.before(codes, lowers, or_at=False)
        counts = np.where(codes < 0, 0, np.maximum(places.before(codes, uppers, or_at=True) - starts, 0))
        return cls(order, starts, counts, places)

    @property
    def total(self) -> int:
        return int(self.counts.sum())

    @property
    def lefts(self) -> Integers:
        return self.order[self.counts > 0]

    @property
    def rights(self) -> Integers:
        count = len(self.places.order)
        some = self.counts > 0
        begins = np.bincount(self.starts[some], minlength=count + 1)
        ends = np.bincount((self.starts + self.counts)[some], minlength=count + 1)
        return self.places.order[np.cumsum(begins - ends)[:count] > 0]

    def pairs(self) -> Iterator[tuple[Integers, Integers]]:
        """Yield pairs of rows, as many at once as fit in memory, in the order of keys."""
        rows = np.flatnonzero(self.counts)
        groups = np.cumsum(self.counts[rows]) // _MOST_PAIRS.value  # one row may have more
        for part in np.split(rows, np.flatnonzero(np.diff(groups)) + 1):
            sizes = self.counts[part]
            yield self.order[np.repeat(part, sizes)], self.places.order[concatenated(self.starts[part], sizes)]


def moved(times: Integers, by: int) -> Integers:
    """Return times moved by a distance, held inside int64."""
    with np.errstate(over="ignore"):
        found: Integers = times + np.int64(by)
    if by >= 0:
        return np.where(times > MAX - by, np.int64(MAX), found)
    return np.where(times < MIN - by, np.int64(MIN), found)
