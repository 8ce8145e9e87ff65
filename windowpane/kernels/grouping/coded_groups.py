"""Grouping by codes: the columns of a key, where they are whole numbers, as one number a row, which addresses the row's group.

Keys are often ids of a bounded range, or texts that are coded already, and slices are a few steps apart. Then the distances from
the least values, read as the digits of one number, are the place of a row's group in an array: nothing is hashed, nothing sorted,
and a row costs a few nanoseconds a column. Numbers that span much more than there are rows are numbered first, in one hash table
of plain words; that is worth it where groups are many. All else is grouped by its bytes: by sorted hashes where rows and groups
are many (``hashed_groups``), in Arrow's hash table elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from windowpane.arrays import Integers, NumpyArray
from windowpane.arrays.values import Value
from windowpane.kernels.segments import Segments, whole_numbers
from windowpane.sizes import Size

_FEWEST_ROWS = Size("rows worth grouping by codes", 1 << 13, (1, 4))
_CODES_A_ROW = Size("codes a row that are addressed", 4, (0, 40))
"""With more codes than that, most of the time would go into those that no row has."""
_FEWEST_NUMBERED = Size("rows worth numbering codes", 1 << 15, (2, 8))
_MANY = Size("groups a row that are worth numbering codes", 0.25, (0.0, 0.1))
_SAMPLE = Size("rows sampled before grouping by codes", 1 << 12, (1, 4))
_RADIX_SORTED = 1 << 16
"""numpy sorts 16-bit numbers stably by radix, ten times as fast as wider ones."""
_MOST_DISTANT = (1 << 63) - 1


@dataclass(frozen=True)
class CodedGroups:
    """The rows of each group, by the code of the group.

    Example:
        >>> groups = CodedGroups(np.array([2, 0, 2]), 4)
        >>> groups.count, groups.sizes.tolist(), groups.total(np.array([1, 5, 3])).tolist()
        (2, [1, 2], [5, 4])
    """

    codes: Integers  # the code of each row's group
    most: int  # how many codes there are, those that no row has included

    @property
    def count(self) -> int:
        return len(self._present)

    @property
    def sizes(self) -> Integers:
        return self._sizes[self._present]

    @property
    def members(self) -> Integers:
        rows = np.empty(self.most, np.int64)
        rows[self.codes] = np.arange(len(self.codes))
        return rows[self._present]

    def picked(self, values: NumpyArray) -> NumpyArray:
        """Return the values as they are: any order of the rows will do."""
        return values

    def least(self, values: NumpyArray) -> NumpyArray:
        return self._reduced(np.minimum, values, neutral(values.dtype, "min"))

    def greatest(self, values: NumpyArray) -> NumpyArray:
        return self._reduced(np.maximum, values, neutral(values.dtype, "max"))

    def total(self, values: NumpyArray) -> NumpyArray:
        return self._reduced(np.add, values, neutral(values.dtype, "sum"))

    def segments(self) -> Segments | None:
        """Return the groups with the rows of each in their order, groups in the same order; ``None`` where they are many."""
        if self.count > _RADIX_SORTED:
            return None
        numbers = np.empty(self.most, np.uint16)
        numbers[self._present] = np.arange(self.count, dtype=np.uint16)
        order = np.argsort(numbers[self.codes], kind="stable")
        return Segments(order, np.concatenate(([0], np.cumsum(self.sizes))))

    @cached_property
    def _sizes(self) -> Integers:
        return np.bincount(self.codes, minlength=self.most)

    @cached_property
    def _present(self) -> Integers:
        return np.flatnonzero(self._sizes)

    def _reduced(self, step: np.ufunc, values: NumpyArray, start: object) -> NumpyArray:
        found = np.full(self.most, start, values.dtype)
        step.at(found, self.codes, values)
        return found[self._present]


Groups = Segments | CodedGroups
"""Groups of rows whose values numpy can reduce."""


def neutral(kind: np.dtype[Any], kernel: str) -> Value:
    if kernel == "sum":
        return kind.type(0)
    if kind.kind == "f":
        return kind.type(np.inf if kernel == "min" else -np.inf)
    return np.iinfo(kind).max if kernel == "min" else np.iinfo(kind).min


def coded_groups(columns: Sequence[pa.ChunkedArray], is_numbered: bool = True) -> CodedGroups | None:
    """Return the rows of each group; ``None`` if the columns are no integers, or a hash table of their bytes is faster."""
    rows = len(columns[0])
    if rows < _FEWEST_ROWS.value:
        return None
    codes, most = np.zeros(rows, np.int64), 1
    for column in columns:
        digits = _digits(column, (_MOST_DISTANT if is_numbered else _CODES_A_ROW.value * rows) // most)
        if digits is None:
            return None
        if digits.radix > 1:
            codes *= digits.radix
            codes += digits.values
            most *= digits.radix
    if most <= _CODES_A_ROW.value * rows:
        return CodedGroups(codes, most)
    return _numbered(codes) if is_numbered and _makes_many(codes) else None


def _makes_many(codes: Integers) -> bool:
    if len(codes) < _FEWEST_NUMBERED.value:
        return False
    sample = codes[:: max(1, len(codes) // _SAMPLE.value)]
    return expected_groups(len(sample), len(np.unique(sample)), len(codes)) > _MANY.value * len(codes)


def _numbered(codes: Integers) -> CodedGroups:
    encoded = pa.array(codes).dictionary_encode()
    return CodedGroups(encoded.indices.to_numpy().astype(np.int64), len(encoded.dictionary))


class _Digits(NamedTuple):
    """A column as digits from 0 to below ``radix``."""

    values: Integers
    radix: int


def _digits(column: pa.ChunkedArray, most: int) -> _Digits | None:
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
    if step > 1 and not (values * step == distances).all():
        step, values = 1, distances
    return _Digits(values, span // step + 1) if span // step < most else None


_STEPS = 60


def expected_groups(sampled: int, groups: int, rows: int) -> float:
    """Return how many groups ``rows`` rows make if ``sampled`` of them, drawn at random, made ``groups``.

    Groups are taken for equally frequent: ``sampled`` rows from K groups meet about ``K * (1 - exp(-sampled / K))`` of them
    (the occupancy problem), which is solved for K. Skewed groups are more than that says, so the answer is a lower bound.

    Example:
        >>> round(expected_groups(10_000, 1_000, 1_000_000))
        1000
    """
    if groups >= sampled:
        return float(rows)
    low, high = math.log(max(groups, 1)), math.log(max(groups, 1)) + 40
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if _met(math.exp(middle), sampled) < groups else (low, middle)
    return _met(math.exp(high), rows)


def _met(groups: float, rows: int) -> float:
    return -groups * math.expm1(-rows / groups)
