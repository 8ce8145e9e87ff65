"""Keys -> bytes where they repeat: each distinct key is written once, and rows have its number.

Structs are equal where all their columns are, so the values of the columns are numbered, and no bytes are written for every row.
A fold groups by the numbers, as it does with texts (``kernels.keys.coded_texts``).
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windowpane.arrays import Integers
from windowpane.arrays.columns import flat
from windowpane.engines.nested_keys.writing import encoded_keys
from windowpane.kernels.grouping.coded_groups import expected_groups
from windowpane.kernels.keys.dense_codes import struct_leaves
from windowpane.kernels.keys.key_codes import key_codes, plain_key
from windowpane.sizes import Size

_FEWEST_ROWS = Size("rows worth coding nested keys", 1 << 13, (1, 4))
_SAMPLE = Size("rows sampled before coding nested keys", 1 << 12, (1, 4))
_MANY = Size("distinct nested keys a row that are many", 0.2, (0.5, 1.1))
_PLACES_A_ROW = Size("places of nested keys a row", 4, (1, 40))
"""Codes that are larger are numbered by a hash table."""


def coded_keys(name: str, column: pa.ChunkedArray) -> pa.Array:
    """Return ``encoded_keys``, coded where keys are structs that repeat.

    Args:
        name: the name of the column, for messages.
        column: the keys, of any type.

    Raises:
        UnrepresentableValueError: a key that Python has no type for.
    """
    keys = flat(column)
    codes = _codes(keys)
    if codes is None:
        return encoded_keys(name, pa.chunked_array([keys]))
    most = int(codes.max()) + 1
    if most > _PLACES_A_ROW.value * len(codes):
        codes = pa.array(codes).dictionary_encode().indices.to_numpy()
        most = int(codes.max()) + 1
    rows, numbers = np.full(most, -1, np.int64), np.empty(most, np.int32)
    rows[codes] = np.arange(len(codes))
    present = np.flatnonzero(rows >= 0)
    numbers[present] = np.arange(len(present))
    distinct = encoded_keys(name, pa.chunked_array([keys.take(pa.array(rows[present]))]))
    return pa.DictionaryArray.from_arrays(pa.array(numbers[codes]), distinct)


def _codes(keys: pa.Array) -> Integers | None:
    """Return a number for each row, equal exactly for equal keys; ``None`` where keys are no structs, or hardly repeat."""
    rows = len(keys)
    if not pa.types.is_struct(keys.type) or rows < _FEWEST_ROWS.value:
        return None
    leaves = struct_leaves(pa.chunked_array([keys]))
    if not leaves or not all(_is_coded(leaf.type) for leaf in leaves):
        return None
    at = np.arange(0, rows, max(1, rows // _SAMPLE.value))
    seen = len(np.unique(_numbered([leaf.take(pa.array(at)) for leaf in leaves], len(at))))
    if expected_groups(len(at), seen, rows) > _MANY.value * rows:
        return None
    return _numbered(leaves, rows)


def _numbered(leaves: list[pa.ChunkedArray], rows: int) -> Integers:
    differing = [leaf for leaf in leaves if not (pa.types.is_boolean(leaf.type) and pc.all(leaf, skip_nulls=False).as_py())]
    return key_codes([plain_key(leaf) for leaf in differing], rows)


def _is_coded(kind: pa.DataType) -> bool:
    types = pa.types
    is_text = types.is_string(kind) or types.is_large_string(kind) or types.is_binary(kind) or types.is_large_binary(kind)
    is_number = types.is_signed_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_decimal128(kind)
    return bool(is_text or is_number or types.is_date32(kind) or types.is_timestamp(kind) or types.is_duration(kind))
