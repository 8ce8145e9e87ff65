"""Keys as the integers 0, 1, ...: equal keys of several columns, nulls included, share one, in the order of first appearance.

``key_codes`` are quicker to compute, but leave gaps; these can be used as indices.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windowpane.arrays import Integers
from windowpane.sizes import Size

_ADDRESSED = Size("possible pairs of codes a row that are addressed", 8, (0, 1000))
_INT32 = 2**31


class DenseCodes(NamedTuple):
    codes: Integers
    firsts: Integers


def dense_codes(columns: Sequence[pa.ChunkedArray], rows: int, numbers: Integers | None = None) -> DenseCodes:
    """Return the codes of the keys that ``columns``, and ``numbers``, make up; without columns all ``rows`` rows have one key.

    Example:
        >>> dense_codes([pa.chunked_array([["b", None, "b"]])], 3).codes.tolist()
        [0, 1, 0]
    """
    codes = np.zeros(rows, np.int64)
    for number, column in enumerate(columns):
        encoded = _encoded(column)
        codes = encoded if number == 0 else combined(codes, encoded)
    if numbers is not None and rows and (numbers != numbers[0]).any():
        codes = combined(codes, number_codes(numbers))
    return DenseCodes(codes, first_rows(codes))


def number_codes(numbers: Integers) -> Integers:
    """Return the codes of numbers.

    Example:
        >>> number_codes(np.array([7, 5, 7])).tolist()
        [0, 1, 0]
    """
    if not (numbers[1:] != numbers[:1]).any():
        return np.zeros(len(numbers), np.int64)
    return _encoded(pa.chunked_array([pa.array(numbers)]))


def struct_leaves(column: pa.ChunkedArray) -> list[pa.ChunkedArray] | None:
    """Return the columns that structs are made of, and where each struct is null; ``None`` where one holds lists or maps.

    Structs are equal where all these columns are. A column of another type is its own leaf.

    Example:
        >>> column = pa.chunked_array([pa.array([{"a": 1, "b": "x"}, None])])
        >>> [leaf.to_pylist() for leaf in struct_leaves(column)]
        [[True, False], [1, None], ['x', None]]
    """
    if not pa.types.is_struct(column.type):
        return None if pa.types.is_nested(column.type) else [column]
    leaves = [column.is_valid()]
    for place in range(column.type.num_fields):
        found = struct_leaves(pc.struct_field(column, [place]))
        if found is None:
            return None
        leaves += found
    return leaves


def combined(left: Integers, right: Integers) -> Integers:
    width = int(right.max(initial=0)) + 1
    return numbered(left * width + right)


def numbered(codes: Integers) -> Integers:
    """Return the numbers 0, 1, ... in place of codes, in the order of first appearance."""
    return _encoded(pa.chunked_array([pa.array(codes)]))


def first_rows(codes: Integers) -> Integers:
    firsts = np.zeros(int(codes.max(initial=-1)) + 1, np.int64)
    firsts[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)
    return firsts


def first_of_pairs(left: Integers, right: Integers) -> Integers:
    """Return, ascending, the first row of each different pair of codes.

    Example:
        >>> import numpy as np
        >>> first_of_pairs(np.array([0, 1, 0, 0]), np.array([2, 2, 2, 1])).tolist()
        [0, 1, 3]
    """
    rows, width = len(left), int(right.max(initial=0)) + 1
    pairs = (int(left.max(initial=0)) + 1) * width
    if pairs > _ADDRESSED.value * rows:
        return first_rows(combined(left, right))
    firsts = np.zeros(pairs, np.int32 if rows < _INT32 else np.int64)
    at = left * width + right
    numbers = np.arange(rows, dtype=firsts.dtype)
    firsts[at[::-1]] = numbers[::-1]
    return np.flatnonzero(firsts[at] == numbers)


def places_in(keys: pa.Table, others: pa.Table) -> Integers:
    """Return, for each row of ``keys``, the first row of ``others``, of the same columns, with the same key; -1 for none."""
    together = pa.concat_tables([others, keys])
    codes, firsts = dense_codes(together.columns, together.num_rows)
    places = firsts[codes[others.num_rows :]]
    return np.where(places < others.num_rows, places, -1)


def distinct(values: Integers) -> list[int]:
    return sorted(pc.unique(pa.array(values)).to_pylist())


def _encoded(column: pa.ChunkedArray) -> Integers:
    array = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    encoded = pc.dictionary_encode(array, null_encoding="encode")
    indices: Integers = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return indices
