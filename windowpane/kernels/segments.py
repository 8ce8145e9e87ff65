"""Segments: which rows of a table belong to which group, as one permutation of the row numbers.

Invariant: ``order[offsets[g]:offsets[g + 1]]`` are the rows of group ``g`` in the order of the table, and every group has a row.
What a grouped kernel of Arrow cannot do is then done for all groups at once on the gathered columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
import pyarrow as pa

from windowpane.arrays import Integers, Mask, NumpyArray
from windowpane.arrays.columns import flat

NOWHERE = -1
"""The row number that means no row."""


@dataclass(frozen=True)
class Segments:
    """The rows of each group.

    Example:
        >>> segments = Segments.of(pa.array([[0, 2], [1]]))
        >>> segments.gather(pa.array(["a", "b", "c"])).to_pylist(), segments.offsets.tolist()
        (['a', 'c', 'b'], [0, 2, 3])
    """

    order: Integers
    offsets: Integers

    @classmethod
    def of(cls, rows: pa.ListArray) -> Self:
        return cls(rows.values.to_numpy(), rows.offsets.to_numpy().astype(np.int64))

    @property
    def count(self) -> int:
        return len(self.offsets) - 1

    @property
    def sizes(self) -> Integers:
        return np.diff(self.offsets)

    @property
    def members(self) -> Integers:
        return self.order[self.offsets[:-1]]

    @cached_property
    def numbers(self) -> Integers:
        """The group of each gathered row."""
        return np.repeat(np.arange(self.count), self.sizes)

    def rows_of(self, group: int) -> Integers:
        return self.order[self.offsets[group] : self.offsets[group + 1]]

    def gather(self, column: object) -> pa.Array:
        return flat(column).take(pa.array(self.order))

    def picked(self, values: NumpyArray) -> NumpyArray:
        return values[self.order]

    def rows_at(self, places: Integers) -> Integers:
        """Return the rows at places of a gathered column; ``NOWHERE`` stays."""
        return np.where(places == NOWHERE, NOWHERE, self.order[places])

    def least(self, values: NumpyArray) -> NumpyArray:
        return np.minimum.reduceat(values, self.offsets[:-1]) if self.count else values[:0]

    def greatest(self, values: NumpyArray) -> NumpyArray:
        return np.maximum.reduceat(values, self.offsets[:-1]) if self.count else values[:0]

    def total(self, values: NumpyArray) -> NumpyArray:
        return np.add.reduceat(values, self.offsets[:-1]) if self.count else values[:0]

    def last_where(self, chosen: Mask) -> Integers:
        """Return the last gathered row of each group that is chosen, ``NOWHERE`` if none is."""
        return self.greatest(np.where(chosen, np.arange(len(chosen)), NOWHERE))


class Runs(Segments):
    """The rows of each group where they are neighbours already."""

    @classmethod
    def at(cls, offsets: Integers) -> Self:
        """Return runs that begin at ``offsets``; the last offset is the number of rows."""
        return cls(np.arange(offsets[-1]), offsets)

    def gather(self, column: object) -> pa.Array:
        return flat(column)

    def picked(self, values: NumpyArray) -> NumpyArray:
        return values


def whole_numbers(column: pa.Array | pa.ChunkedArray) -> Integers | None:
    """Return a column as 64-bit integers; ``None`` if it has nulls, or values that are no integers or instants.

    Example:
        >>> whole_numbers(pa.array(["a"])) is None
        True
    """
    if column.null_count or not (pa.types.is_signed_integer(column.type) or pa.types.is_timestamp(column.type)):
        return None
    numbers: Integers = flat(column).cast(pa.int64()).to_numpy()
    return numbers


def starts_of_runs(*columns: NumpyArray) -> Mask:
    """Return which rows begin a run of neighbours that are equal in all columns."""
    starts: Mask = np.zeros(len(columns[0]), np.bool_)
    starts[:1] = True
    for column in columns:
        starts[1:] |= column[1:] != column[:-1]
    return starts


def concatenated(firsts: Integers, lengths: Integers) -> Integers:
    """Return the numbers of ranges, one range after the other.

    Example:
        >>> concatenated(np.array([5, 0]), np.array([2, 3])).tolist()
        [5, 6, 0, 1, 2]
    """
    ends = np.cumsum(lengths)
    numbers: Integers = np.arange(int(lengths.sum())) + np.repeat(firsts - (ends - lengths), lengths)
    return numbers


def interleaved(held: int, at: Integers) -> Integers:
    """Return the numbers of rows held, with those of inserted rows, which follow them, before the places ``at``."""
    merged = np.empty(held + len(at), np.int64)
    fresh = at + np.arange(len(at))
    merged[fresh] = np.arange(held, held + len(at))
    stays = np.ones(len(merged), np.bool_)
    stays[fresh] = False
    merged[stays] = np.arange(held)
    return merged


def take_or_null(column: object, rows: Integers) -> pa.Array:
    return flat(column).take(pa.array(rows, mask=rows == NOWHERE))
