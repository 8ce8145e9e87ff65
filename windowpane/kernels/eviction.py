"""Eviction on sorted rows: which of a list's elements a firing sees, for many lists and firings at once.

A *list* is a run of neighbouring rows: the elements of one key in a window, in arrival order. A firing sees the elements from the
list's beginning up to its own row, less the evicted ones. What one firing evicts the next one would evict, too, so each firing is
computed by itself. Where an evictor evicts after the function, a firing sees the elements that the eviction before it kept, and
all later ones. Source of the rules: Flink's CountEvictor and TimeEvictor.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from windowpane.arrays import Integers, Mask
from windowpane.errors import EvictionTimeError
from windowpane.kernels.grouping.grouped_fold import GroupedFold
from windowpane.kernels.grouping.range_merge import Ranges, exploded, fold_groups, fold_ranges
from windowpane.sizes import Size
from windowpane.windowing.evictors import NO_CUTOFF, UNTIMED

NEVER = -1
"""The row of a firing that has not been."""

BLOCK = Size("elements of a block of evictions", 1 << 21, (1, 5))
"""How many elements are gathered at a time where what firings see is no range."""


@dataclass(frozen=True)
class Firings:
    """Firings of lists: where the list of each begins, and the row it fires at, the last it sees. ``firsts`` ascend."""

    firsts: Integers
    lasts: Integers


class Survivors(ABC):
    @abstractmethod
    def fold(self, fold: GroupedFold, rows: pa.Table, times: Integers, firings: Firings) -> pa.Table:
        """Return the partials of what each firing sees, in the order of ``firings``."""

    @abstractmethod
    def fold_before_eviction(
        self, fold: GroupedFold, rows: pa.Table, times: Integers, firings: Firings, previous: Integers
    ) -> pa.Table:
        """Return the partials of what firings see that evict afterwards; at ``previous`` a list fired before, or ``NEVER``."""

    @abstractmethod
    def kept(self, times: Integers, firings: Firings, fires: bool = True) -> Mask:
        """Return which rows survive, where no list fires twice; rows that no firing sees do not.

        ``fires`` is false where nothing fires yet, and the question is what a later firing may see; then nothing is refused.
        """


@dataclass(frozen=True)
class LastSurvive(Survivors):
    """The last ``count`` elements survive, ``count > 0``."""

    count: int

    def fold(self, fold: GroupedFold, rows: pa.Table, times: Integers, firings: Firings) -> pa.Table:
        return fold_ranges(fold, rows, self._ranges(firings))

    def fold_before_eviction(
        self, fold: GroupedFold, rows: pa.Table, times: Integers, firings: Firings, previous: Integers
    ) -> pa.Table:
        left = np.where(previous == NEVER, firings.firsts, previous - self.count + 1)
        return fold_ranges(fold, rows, Ranges(np.maximum(firings.firsts, left), firings.lasts))

    def kept(self, times: Integers, firings: Firings, fires: bool = True) -> Mask:
        kept = np.zeros(len(times), bool)
        kept[exploded(self._ranges(firings))] = True
        return kept

    def _ranges(self, firings: Firings) -> Ranges:
        return Ranges(np.maximum(firings.firsts, firings.lasts - self.count + 1), firings.lasts)


@dataclass(frozen=True)
class YoungSurvive(Survivors):
    """Elements later than the newest less ``span`` survive, ``span > 0``; all do where the first has no time."""

    span: int  # microseconds
    no_time: int  # the value that means no time

    def fold(self, fold: GroupedFold, rows: pa.Table, times: Integers, firings: Firings) -> pa.Table:
        return _folded(fold, rows, self._survivors(times, firings, firings.lasts))

    def fold_before_eviction(
        self, fold: GroupedFold, rows: pa.Table, times: Integers, firings: Firings, previous: Integers
    ) -> pa.Table:
        return _folded(fold, rows, self._survivors(times, firings, previous))

    def kept(self, times: Integers, firings: Firings, fires: bool = True) -> Mask:
        kept = np.zeros(len(times), bool)
        for elements, _ in self._survivors(times, firings, firings.lasts, checks=fires):
            kept[elements] = True
        return kept

    def _refuse(self, times: Integers, newest: Integers, firsts: Integers, evicting: Integers) -> None:
        """Refuse elements of which only some have a time, and a cutoff before the first instant."""
        untimed = np.cumsum(times == self.no_time)
        if (untimed[evicting] > untimed[firsts]).any():
            raise EvictionTimeError(self.span, UNTIMED)
        if (newest[evicting] < np.iinfo(np.int64).min + self.span).any():
            raise EvictionTimeError(self.span, NO_CUTOFF)

    def _survivors(
        self, times: Integers, firings: Firings, evicting: Integers, checks: bool = True
    ) -> Iterator[tuple[Integers, Integers]]:
        """Yield the elements that firings see, and the firing of each; an eviction considered all rows up to ``evicting``."""
        newest = running_max(times, firings)
        evicts = (times[firings.firsts] != self.no_time) & (evicting != NEVER)
        lowest = np.iinfo(np.int64).min
        if checks:
            self._refuse(times, newest, firings.firsts[evicts], evicting[evicts])
        cutoffs = np.where(evicts, np.maximum(newest[evicting], lowest + self.span) - self.span, lowest)
        firsts = np.where(evicts, _first_above(newest, firings, cutoffs), firings.firsts)
        for block in _blocks(Ranges(firsts, firings.lasts)):
            ranges = Ranges(firsts[block], firings.lasts[block])
            elements = exploded(ranges)
            owners = np.repeat(np.arange(block.start, block.stop), ranges.lasts - ranges.firsts + 1)
            survive = (times[elements] > cutoffs[owners]) | ~evicts[owners] | (elements > evicting[owners])
            yield elements[survive], owners[survive]


def _folded(fold: GroupedFold, rows: pa.Table, blocks: Iterator[tuple[Integers, Integers]]) -> pa.Table:
    parts = [fold_groups(fold, rows.slice(0, 0), np.zeros(0, np.int64))]
    parts += [fold_groups(fold, rows.take(pa.array(elements)), owners) for elements, owners in blocks]
    return pa.concat_tables(parts)


def running_max(values: Integers, firings: Firings) -> Integers:
    """Return, for each row, the greatest value from the beginning of its list up to it."""
    begins = np.zeros(len(values), np.int64)
    begins[firings.firsts] = firings.firsts
    begins = np.maximum.accumulate(begins)
    places, step, result = np.arange(len(values)), 1, values
    longest = int((places - begins).max(initial=0))
    while step <= longest:
        has_earlier = places - step >= begins
        earlier = result[np.maximum(places - step, 0)]
        result = np.where(has_earlier, np.maximum(result, earlier), result)
        step *= 2
    return result


def _first_above(newest: Integers, firings: Firings, cutoffs: Integers) -> Integers:
    """Return, for each firing, the first row of its list whose running maximum is above the cutoff: by bisection, all at once.

    Up to there every element is at or below the cutoff; this one is above it.
    """
    low, high = firings.firsts.copy(), firings.lasts.copy()
    while (low < high).any():
        middle = (low + high) // 2
        is_above = newest[middle] > cutoffs
        high = np.where(is_above, middle, high)
        low = np.where(is_above, low, np.minimum(middle + 1, high))
    return low


def _blocks(ranges: Ranges) -> Iterator[slice]:
    held = np.cumsum(ranges.lasts - ranges.firsts + 1)
    at = 0
    while at < len(held):
        before = int(held[at - 1]) if at else 0
        end = max(at + 1, int(np.searchsorted(held, before + BLOCK.value, "right")))
        yield slice(at, end)
        at = end
