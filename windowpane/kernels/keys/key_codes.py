"""Keys as integers: codes that tell keys apart within a table, and hashes that are the same in every process.

A code costs one subtraction for a single integer column, one dictionary encoding a column otherwise. A hash is that of the
values: integers through SplitMix64, text by at most its first and last 32 bytes. So keys that hash alike are legal, and
whoever partitions by hash must take them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windowpane.arrays import Integers, Unsigned
from windowpane.kernels.keys.codes import canonical
from windowpane.kernels.keys.splitmix import GAMMA, stepped
from windowpane.sizes import Size

_MOST_BITS = Size("bits of integer keys as codes", 40, (1, 3))
_EDGE = Size("hashed bytes at the ends of a text", 32, (8,))


def plain_key(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a key column with one spelling for equal keys: one NaN, no negative zero."""
    return pa.chunked_array([canonical(column)]) if pa.types.is_floating(column.type) else column


def key_codes(columns: Sequence[pa.ChunkedArray], rows: int) -> Integers:
    """Return an integer for each of ``rows`` rows, not negative, equal exactly for equal keys (NULL equals NULL)."""
    codes = np.zeros(rows, np.int64)
    if not rows:
        return codes
    for number, column in enumerate(columns):
        added = _codes(column)
        bits = int(added.max()).bit_length()
        if int(codes.max()).bit_length() + bits > 63:
            codes = np.unique(codes, return_inverse=True)[1]
            added = np.unique(added, return_inverse=True)[1]
            bits = int(added.max()).bit_length()
        codes = (codes << bits) | added if number else added
    return codes


def _codes(column: pa.ChunkedArray) -> Integers:
    if pa.types.is_integer(column.type) and not column.null_count:
        bounds = pc.min_max(column).as_py()
        if (bounds["max"] - bounds["min"]).bit_length() <= _MOST_BITS.value:
            offsets: Integers = np.subtract(column.to_numpy(), bounds["min"], dtype=np.int64)
            return offsets
    encoded = column.combine_chunks().dictionary_encode(null_encoding="encode")
    codes: Integers = encoded.indices.to_numpy().astype(np.int64)
    return codes


def key_hashes(columns: Sequence[pa.ChunkedArray], rows: int) -> Unsigned:
    """Return a hash for each of ``rows`` rows."""
    hashes = np.zeros(rows, np.uint64)
    for column in columns:
        hashes = stepped(hashes * np.uint64(31) + _hashes(column))
    return hashes


def _hashes(column: pa.ChunkedArray) -> Unsigned:
    if pa.types.is_integer(column.type) and not column.null_count:
        return stepped(column.to_numpy().astype(np.int64).view(np.uint64))
    encoded = column.combine_chunks().dictionary_encode()
    hashes = np.append(_hashes_of_values(encoded.dictionary), GAMMA)
    found: Unsigned = hashes[pc.fill_null(encoded.indices, len(encoded.dictionary)).to_numpy()]
    return found


def _hashes_of_values(values: pa.Array) -> Unsigned:
    if not (pa.types.is_string(values.type) or pa.types.is_binary(values.type)):
        values = values.cast(pa.int64()) if _is_fixed(values.type) else values.cast(pa.string())
    if pa.types.is_integer(values.type):
        return stepped(values.to_numpy(zero_copy_only=False).astype(np.int64).view(np.uint64))
    heads = pc.binary_slice(values.cast(pa.binary()), 0, _EDGE.value)
    tails = pc.binary_slice(values.cast(pa.binary()), -_EDGE.value)
    lengths = pc.binary_length(values).to_numpy().astype(np.uint64)
    return stepped(_byte_hashes(heads, lengths) ^ (_byte_hashes(tails, lengths) << np.uint64(1)))


def _is_fixed(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_timestamp(kind))


def _byte_hashes(values: pa.Array, seeds: Unsigned) -> Unsigned:
    """Return hashes of byte strings, column of bytes by column of bytes."""
    padded = np.array(values.to_pylist(), dtype=f"S{_EDGE.value}") if len(values) else np.zeros(0, f"S{_EDGE.value}")
    words = padded.view(np.uint64).reshape(len(values), _EDGE.value // 8)
    hashes = seeds
    for word in words.T:
        hashes = stepped(hashes ^ word)
    return hashes
