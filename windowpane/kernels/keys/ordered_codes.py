"""Values as int64 codes whose order is Spark SQL's order of the values: what sorting, peers, min and max work on.

Invariant: for values a, b of one column, code(a) < code(b) exactly when a < b, and equal codes mean equal values. NaN is one
value and the largest, -0.0 is 0.0. The code of a NULL is 0 and means nothing: validity is passed beside it.

Fixed-width types are coded one value at a time, so codes of different tables compare. All others are coded by their rank
among the values of one column (``ranked_codes``), which compare within that column only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windowpane.arrays import Doubles, Integers, Mask
from windowpane.errors import present
from windowpane.sizes import Size

_SIGN_BITS = np.int64(0x7FFFFFFFFFFFFFFF)
_MOST_DIGITS = Size("digits of decimals as whole numbers", 18, (2, 5))
"""Decimals of so many digits fit into int64 when scaled to whole numbers."""


def are_negative_zeros(column: pa.Array) -> Mask:
    """Return which values of a column of floating point are -0.0, which equals 0.0 and is written otherwise."""
    numbers = column.cast(pa.float64()).fill_null(1.0).to_numpy(zero_copy_only=False)
    zeros: Mask = (numbers == 0) & np.signbit(numbers)
    return zeros


def validity(column: pa.Array) -> Mask:
    if column.null_count == 0:
        return np.ones(len(column), np.bool_)
    valid: Mask = pc.is_valid(column).to_numpy(zero_copy_only=False)
    return valid


def all_valid(columns: Iterable[pa.Array], rows: int) -> Mask:
    found = np.ones(rows, np.bool_)
    for column in columns:
        found &= validity(column)
    return found


def has_codes(kind: pa.DataType) -> bool:
    return _coder(kind) is not None


def ordered_codes(column: pa.Array) -> Integers:
    coder = present(_coder(column.type), "callers check has_codes first")
    codes = coder(column)
    return codes if column.null_count == 0 else np.where(validity(column), codes, 0)


def decoded(codes: Integers, valid: Mask, kind: pa.DataType) -> pa.Array:
    """Return the values of codes of ``ordered_codes``, NULL where not ``valid``."""
    mask = None if valid.all() else ~valid
    if pa.types.is_floating(kind):
        bits = codes ^ ((codes >> np.int64(63)) & _SIGN_BITS)
        return pa.array(bits.view(np.float64), pa.float64(), mask=mask).cast(kind)
    if pa.types.is_boolean(kind):
        return pa.array(codes != 0, mask=mask)
    if pa.types.is_decimal128(kind):
        return decimals_of(codes, codes >> np.int64(63), valid, kind)
    if pa.types.is_integer(kind):
        return pa.array(codes, mask=mask).cast(kind)
    storage = pa.int32() if kind.bit_width == 32 else pa.int64()
    return pa.array(codes, mask=mask).cast(storage).view(kind)


def ranked_codes(column: pa.Array) -> tuple[Integers, pa.Array]:
    """Return the codes of a column of any ordered Arrow type, and the values by code."""
    encoded = column.dictionary_encode()
    order = pc.sort_indices(encoded.dictionary)
    rank = np.empty(len(order), np.int64)
    rank[order.to_numpy()] = np.arange(len(order))
    indices = pc.fill_null(encoded.indices, 0).to_numpy(zero_copy_only=False)
    codes = rank[indices] if len(rank) else np.zeros(len(column), np.int64)
    return codes, encoded.dictionary.take(order)


def has_ranks(kind: pa.DataType) -> bool:
    """Whether Arrow sorts values of a type as Spark does, besides those that have codes."""
    return any(test(kind) for test in (pa.types.is_string, pa.types.is_binary, pa.types.is_decimal128))


def is_sortable(kind: pa.DataType) -> bool:
    return has_codes(kind) or has_ranks(kind)


def codes_of(column: pa.Array) -> Integers:
    """Return codes that compare within the column, whose type ``is_sortable``; of NULLs any."""
    return ordered_codes(column) if has_codes(column.type) else ranked_codes(column)[0]


def _coder(kind: pa.DataType) -> Callable[[pa.Array], Integers] | None:
    if pa.types.is_signed_integer(kind) or (pa.types.is_unsigned_integer(kind) and kind.bit_width < 64):
        return _integers
    if pa.types.is_boolean(kind):
        return _integers
    if pa.types.is_floating(kind):
        return None if kind == pa.float16() else _floats
    if pa.types.is_temporal(kind) and not pa.types.is_interval(kind):
        return _times
    if pa.types.is_decimal128(kind) and kind.precision <= _MOST_DIGITS.value:
        return decimals_as_whole
    return None


def _integers(column: pa.Array) -> Integers:
    filled = column if column.null_count == 0 else pc.fill_null(column, pa.scalar(0).cast(column.type))
    numbers: Integers = filled.cast(pa.int64()).to_numpy()
    return numbers


def _floats(column: pa.Array) -> Integers:
    return coded_floats(column.cast(pa.float64()).fill_null(0.0).to_numpy())


def coded_floats(numbers: Doubles) -> Integers:
    """Return the codes of doubles: their bits, with those of negative numbers turned round."""
    bits = plain_bits(numbers)
    codes: Integers = bits ^ ((bits >> np.int64(63)) & _SIGN_BITS)
    return codes


def plain_bits(numbers: Doubles) -> Integers:
    """Return the bits of doubles, equal where those are: of one NaN, and of one zero."""
    bits: Integers = np.where(np.isnan(numbers), np.nan, numbers + 0.0).view(np.int64)
    return bits


def _times(column: pa.Array) -> Integers:
    return _integers(column.view(pa.int32() if column.type.bit_width == 32 else pa.int64()))


def decimals_as_whole(column: pa.Array) -> Integers:
    """Return decimals of at most 18 digits as whole numbers of their last decimal place; NULL is any number."""
    words = np.frombuffer(column.buffers()[1], np.int64)
    return words[2 * column.offset : 2 * (column.offset + len(column)) : 2].copy()


def decimals_of(low: Integers, high: Integers, valid: Mask, kind: pa.DataType) -> pa.Array:
    """Return decimals of ``kind`` from the low and the high words of whole numbers of their last decimal place."""
    words = np.stack([low, high], axis=1)
    bitmap = None if valid.all() else pa.array(valid).buffers()[1]
    return pa.Array.from_buffers(kind, len(low), [bitmap, pa.py_buffer(words)])
