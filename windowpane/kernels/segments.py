"""Segments: which rows of a table belong to which group, as one permutation of the row numbers.

Invariant: ``order[offsets[g]:offsets[g + 1]]`` are the rows of group ``g`` in the order of the table, and every group has a row.
What a grouped kernel of Arrow cannot do is then done for all groups at once on the gathered columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Integers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

NOWHERE = -1
"""The row number that stands for no row."""


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
        """Return the segments of groups, given the row numbers of each."""
        return cls(rows.values.to_numpy(), rows.offsets.to_numpy().astype(np.int64))

    @property
    def count(self) -> int:
        """The number of groups."""
        return len(self.offsets) - 1

    @cached_property
    def numbers(self) -> Integers:
        """The group of each gathered row."""
        return np.repeat(np.arange(self.count), np.diff(self.offsets))

    def gather(self, column: Any) -> pa.Array:
        """Return a column with the rows of each group together."""
        return flat(column).take(pa.array(self.order))

    def picked(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return values, one a row, with those of each group together."""
        return values[self.order]

    def least(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the smallest of the gathered values of each group."""
        return np.minimum.reduceat(values, self.offsets[:-1]) if self.count else values[:0]

    def greatest(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the largest of the gathered values of each group."""
        return np.maximum.reduceat(values, self.offsets[:-1]) if self.count else values[:0]

    def total(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the sum of the gathered values of each group."""
        return np.add.reduceat(values, self.offsets[:-1]) if self.count else values[:0]

    def last_where(self, chosen: Mask) -> Integers:
        """Return the last gathered row of each group that is chosen, ``NOWHERE`` if none is."""
        return self.greatest(np.where(chosen, np.arange(len(chosen)), NOWHERE))


class Runs(Segments):
    """The rows of each group where they stand together already."""

    @classmethod
    def at(cls, offsets: Integers) -> Self:
        """Return runs that begin at ``offsets``; the last offset is the number of rows."""
        return cls(np.arange(offsets[-1]), offsets)

    def gather(self, column: Any) -> pa.Array:
        """Return the column as it is."""
        return flat(column)

    def picked(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the values as they are."""
        return values


def flat(column: Any) -> pa.Array:
    """Return a column as one array."""
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def take_or_null(column: Any, rows: Integers) -> pa.Array:
    """Return the values at the given rows, null for ``NOWHERE``."""
    return flat(column).take(pa.array(rows, mask=rows == NOWHERE))
