"""Lists by group: the list-valued partials of aggregates that keep their values.

Invariant: lists are never null; the values of a group are neighbours, so concatenating the lists of the gathered rows of a
group only changes the offsets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from windowpane.arrays import Integers
from windowpane.arrays.columns import flat
from windowpane.kernels.keys.dense_codes import combined, first_of_pairs
from windowpane.kernels.segments import Segments, concatenated


@dataclass(frozen=True)
class Lists:
    """The values of all lists, one list after the other, and where each begins."""

    values: pa.Array
    offsets: Integers

    @classmethod
    def of(cls, column: pa.Array | pa.ChunkedArray) -> Lists:
        lists = flat(column)
        offsets = lists.offsets.to_numpy().astype(np.int64)
        first, last = int(offsets[0]), int(offsets[-1])
        return cls(lists.values.slice(first, last - first), offsets - first)

    @classmethod
    def of_one(cls, values: pa.Array | pa.ChunkedArray) -> Lists:
        """Return a list of one value for each that is not null, and an empty list for each that is."""
        column = flat(values)
        valid = column.is_valid().to_numpy(zero_copy_only=False)
        return cls(column.drop_null(), np.concatenate(([0], np.cumsum(valid, dtype=np.int64))))

    @property
    def numbers(self) -> Integers:
        return np.repeat(np.arange(len(self.offsets) - 1), self.lengths)

    @property
    def lengths(self) -> Integers:
        return np.diff(self.offsets)

    def within(self, segments: Segments) -> Lists:
        return Lists(self.values, self.offsets[segments.offsets])

    def gathered(self, segments: Segments) -> tuple[Integers, Integers]:
        """Return the places of the values of each group, group by group, and where each group begins among those."""
        lengths, starts = segments.picked(self.lengths), segments.picked(self.offsets[:-1])
        offsets = np.concatenate(([0], np.cumsum(lengths, dtype=np.int64)))
        return concatenated(starts, lengths), offsets[segments.offsets]

    def chosen(self, at: Integers) -> Lists:
        """Return the lists of only the values at these places; the places of a list must be neighbours."""
        return Lists(self.values.take(pa.array(at)), offsets_of(self.numbers[at], len(self.offsets) - 1))

    def to_arrow(self) -> pa.ListArray:
        return list_array(self.offsets, self.values)


def offsets_of(numbers: Integers, count: int) -> Integers:
    return np.concatenate(([0], np.cumsum(np.bincount(numbers, minlength=count), dtype=np.int64)))


def list_array(offsets: Integers, values: pa.Array | pa.ChunkedArray) -> pa.ListArray:
    return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), values)


def gathered_lists(column: pa.Array | pa.ChunkedArray, segments: Segments) -> Lists:
    lists = Lists.of(column)
    if (lists.lengths == 1).all():
        return Lists(segments.gather(lists.values), segments.offsets)
    return Lists.of(segments.gather(column)).within(segments)


def by_arrival(values: Lists, arrivals: Lists) -> tuple[Lists, Lists]:
    times, numbers = arrivals.values.to_numpy(), arrivals.numbers
    if np.all((np.diff(times) > 0) | (np.diff(numbers) > 0)):
        return values, arrivals
    order = pa.array(np.lexsort((times, numbers)))
    return Lists(values.values.take(order), values.offsets), Lists(arrivals.values.take(order), arrivals.offsets)


def first_of_each(numbers: Integers, columns: Sequence[Integers]) -> Integers:
    """Return, ascending, where each combination of the codes in ``columns`` first occurs in each of the numbered lists."""
    *others, last = columns
    for codes in others:
        numbers = combined(numbers, codes)
    return first_of_pairs(numbers, last)
