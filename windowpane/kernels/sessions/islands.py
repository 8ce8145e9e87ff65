"""Islands: the sessions that intervals of one key make together, found by one sort and one running maximum.

    key a   |--1--|  |--2--|
               |--3--|          |--4--|      islands  1 2 3 | 4

Sorted by (key, start), an interval begins a new island exactly if it is the first of its key or starts after everything before
it has ended. Invariant: intervals that touch (``end == start``) are one island, as in Flink. Source of the idea: the
gaps-and-islands query of SQL.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from windowpane.arrays import Integers
from windowpane.kernels.segments import Segments
from windowpane.sizes import Size

_BITS = Size("bits of a packed word of islands", 63, (30,))


@dataclass(frozen=True)
class Islands:
    order: Integers  # the numbers of the intervals, sorted by key and start
    heads: Integers  # for each island, the place in ``order`` of its interval that starts first
    starts: Integers  # the start of each island
    ends: Integers  # the end of each island
    growths: int  # how many intervals made an island longer that an earlier one had begun

    @cached_property
    def of(self) -> Integers:
        """The number of the island of each interval."""
        of = np.empty(len(self.order), np.int64)
        of[self.order] = self._in_order
        return of

    @property
    def first(self) -> Integers:
        """For each island, the number of its interval that starts first."""
        first: Integers = self.order[self.heads]
        return first

    @cached_property
    def sizes(self) -> Integers:
        return np.diff(self.heads, append=len(self.order))

    def members(self, low: int, high: int) -> tuple[Integers, Segments]:
        """Return the islands that have intervals numbered from ``low`` to below ``high``, and these, numbered from 0, of each."""
        if low == 0 and high == len(self.order):
            return np.arange(len(self.heads)), Segments(self.order, np.append(self.heads, high))
        is_member = self.order >= low if high == len(self.order) else (self.order >= low) & (self.order < high)
        so_far = np.cumsum(is_member)
        counts = np.diff(so_far[self.heads + self.sizes - 1], prepend=0)
        islands = np.flatnonzero(counts)
        offsets = np.zeros(len(islands) + 1, np.int64)
        np.cumsum(counts[islands], out=offsets[1:])
        return islands, Segments(self.order[is_member] - low, offsets)

    @cached_property
    def _in_order(self) -> Integers:
        return np.repeat(np.arange(len(self.heads)), self.sizes)


class Sorted(NamedTuple):
    order: Integers
    major: Integers
    minor: Integers


def find_islands(keys: Integers, starts: Integers, ends: Integers) -> Islands:
    """Return the islands of intervals ``[start, end)``, whose keys are not negative."""
    if not len(keys):
        none = np.zeros(0, np.int64)
        return Islands(none, none, none, none, 0)
    order, key, start = sorted_by(keys, starts)
    is_first = np.ones(len(order), bool)
    np.not_equal(key[1:], key[:-1], out=is_first[1:])
    cover = ends[order]
    if not (is_first[1:] | (cover[1:] >= cover[:-1])).all():  # equally long intervals end in the order in which they start
        fits = int(key[-1]).bit_length() + _width(cover) <= _BITS.value
        cover = running_maximum(key if fits else np.cumsum(is_first, dtype=np.int64), cover)
    is_head = is_first.copy()
    is_head[1:] |= start[1:] > cover[:-1]
    heads = np.flatnonzero(is_head)
    tails = np.append(heads[1:], len(order)) - 1
    growths = int(np.count_nonzero(~is_head[1:] & (cover[1:] > cover[:-1])))
    return Islands(order, heads, start[heads], cover[tails], growths)


def sorted_by(major: Integers, minor: Integers) -> Sorted:
    """Return two columns sorted, the first not negative, and their order.

    Both and the position are packed into one integer where they fit: NumPy sorts integers several times faster than it finds an
    order, and what is sorted need not be gathered.
    """
    least = int(minor.min())
    minor_bits = (int(minor.max()) - least).bit_length()
    position_bits = len(major).bit_length()
    bits = int(major.max()).bit_length() + minor_bits
    if bits + position_bits > _BITS.value:
        packed = (major << minor_bits) | (minor - least) if bits <= _BITS.value else None
        order = np.lexsort((minor, major)) if packed is None else np.argsort(packed)
        return Sorted(order, major[order], minor[order])
    packed = major << minor_bits
    packed |= minor - least
    packed <<= position_bits
    packed |= np.arange(len(major))
    packed.sort()
    order = packed & ((1 << position_bits) - 1)
    packed >>= position_bits
    return Sorted(order, packed >> minor_bits, (packed & ((1 << minor_bits) - 1)) + least)


def running_maximum(groups: Integers, values: Integers) -> Integers:
    """Return, at each place, the greatest value so far of its group; groups follow one after the other, numbered upward."""
    least, bits = int(values.min()), _width(values)
    if int(groups[-1]).bit_length() + bits > _BITS.value:
        distinct, ranks = np.unique(values, return_inverse=True)
        return distinct[running_maximum(groups, ranks)]
    running: Integers = groups << bits
    running |= values - least
    np.maximum.accumulate(running, out=running)
    running &= (1 << bits) - 1
    running += least
    return running


def _width(values: Integers) -> int:
    return (int(values.max()) - int(values.min())).bit_length()
