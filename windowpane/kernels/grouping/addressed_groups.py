"""Grouping by address: integers that span little more than there are rows number their groups themselves.

Keys are often ids of a bounded range, and slices are a few steps apart. Then the distances from the least values, read as the
digits of one number, are the place of a row's group in an array: nothing is hashed, nothing sorted, and a row costs a few
nanoseconds a column. Hashing a hundred thousand groups costs ten times that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from windowpane.arrays import Integers
from windowpane.kernels.grouping.group_folds import neutral
from windowpane.kernels.grouping.segments import Segments, Values, whole_numbers
from windowpane.sizes import Size

_FEWEST_ROWS = Size("rows worth grouping by address", 1 << 13, (1, 4))
_PLACES_A_ROW = Size("places by address a row", 4, (1, 40))
"""With more places than that, most of the time would go into those that stay empty."""
_SAMPLE = Size("rows sampled before grouping by address", 1 << 10, (1, 4))
_RADIX_SORTED = 1 << 16
"""numpy sorts 16-bit numbers stably by radix, ten times as fast as wider ones."""
_MOST_DISTANT = (1 << 63) - 1


@dataclass(frozen=True)
class AddressedGroups:
    """The rows of each group, by the place of the group; groups ascend by their columns.

    Args:
        places: the place of each row's group.
        most: how many places there are, those that stay empty included.

    Example:
        >>> groups = AddressedGroups(np.array([2, 0, 2]), 4)
        >>> groups.count, groups.sizes.tolist(), groups.total(np.array([1, 5, 3])).tolist()
        (2, [1, 2], [5, 4])
    """

    places: Integers
    most: int

    @property
    def count(self) -> int:
        """The number of groups."""
        return len(self._present)

    @property
    def sizes(self) -> Integers:
        """The number of rows of each group."""
        return self._sizes[self._present]

    @property
    def members(self) -> Integers:
        """One row of each group."""
        rows = np.empty(self.most, np.int64)
        rows[self.places] = np.arange(len(self.places))
        return rows[self._present]

    def picked(self, values: Values) -> Values:
        """Return the values as they are: any order of the rows will do."""
        return values

    def least(self, values: Values) -> Values:
        """Return the smallest of the values of each group."""
        return self._reduced(np.minimum, values, neutral(values.dtype, "min"))

    def greatest(self, values: Values) -> Values:
        """Return the largest of the values of each group."""
        return self._reduced(np.maximum, values, neutral(values.dtype, "max"))

    def total(self, values: Values) -> Values:
        """Return the sum of the values of each group."""
        return self._reduced(np.add, values, neutral(values.dtype, "sum"))

    def segments(self) -> Segments | None:
        """Return the groups with the rows of each in their order, groups in the same order; ``None`` where they are many."""
        if self.count > _RADIX_SORTED:
            return None
        numbers = np.empty(self.most, np.uint16)
        numbers[self._present] = np.arange(self.count, dtype=np.uint16)
        order = np.argsort(numbers[self.places], kind="stable")
        return Segments(order, np.concatenate(([0], np.cumsum(self.sizes))))

    @cached_property
    def _sizes(self) -> Integers:
        return np.bincount(self.places, minlength=self.most)

    @cached_property
    def _present(self) -> Integers:
        return np.flatnonzero(self._sizes)

    def _reduced(self, step: np.ufunc, values: Values, start: Any) -> Values:
        found = np.full(self.most, start, values.dtype)
        step.at(found, self.places, values)
        return found[self._present]


def addressed_groups(columns: Sequence[pa.ChunkedArray]) -> AddressedGroups | None:
    """Return the rows of each group; ``None`` if the columns are no integers, or span too much for so few rows.

    Args:
        columns: the group columns, at least one.

    Example:
        >>> addressed_groups([pa.chunked_array([["a", "b"] * 10_000])]) is None
        True
    """
    rows = len(columns[0])
    if rows < _FEWEST_ROWS.value:
        return None
    places, most = np.zeros(rows, np.int64), 1
    for column in columns:
        digits = _digits(column, _PLACES_A_ROW.value * rows // most)
        if digits is None:
            return None
        if digits.radix > 1:
            places *= digits.radix
            places += digits.values
            most *= digits.radix
    return AddressedGroups(places, most)


class _Digits(NamedTuple):
    """A column as digits from 0 to below ``radix``."""

    values: Integers
    radix: int


def _digits(column: pa.ChunkedArray, most: int) -> _Digits | None:
    """Return the digits of a column, ``None`` if it needs a radix of more than ``most``."""
    numbers = whole_numbers(column)
    if numbers is None:
        return None
    least, span = int(numbers.min()), int(numbers.max()) - int(numbers.min())
    if span > _MOST_DISTANT:
        return None
    distances = numbers - least
    # What divides the distances of a few rows is likely to divide all: that is looked at, not taken for granted.
    step = max(1, int(np.gcd.reduce(distances[:: max(1, len(distances) // _SAMPLE.value)])))
    if span // step >= most:
        return None
    values = distances if step == 1 else distances // step
    return _Digits(values, span // step + 1) if step == 1 or (values * step == distances).all() else None
