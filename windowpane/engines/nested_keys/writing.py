"""Keys -> bytes: ``encode_key`` of whole columns.

Arrow does not group, sort or hash nested values; engines and state know them by their canonical encoding. Columns of a struct are
written one by one and then joined row by row, the items of an array likewise. What has no form here (maps, instants in other
zones, days that Python does not know) is written value by value.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windowpane.arrays import Integers, NumpyArray
from windowpane.arrays.columns import flat
from windowpane.engines.rows import python_keys
from windowpane.hidden_columns import hidden
from windowpane.kernels.grouping.coded_groups import expected_groups
from windowpane.kernels.keys.codes import is_nested
from windowpane.kernels.keys.dense_codes import struct_leaves
from windowpane.kernels.keys.key_codes import key_codes, plain_key
from windowpane.sizes import Size
from windowpane.state.codec import encode_key, encode_length
from windowpane.windowing.aggregates.canonical import is_array

_NULL = encode_key(None)
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896
_FIRST_INSTANT, _LAST_INSTANT = _FIRST_DAY * 86_400_000_000, (_LAST_DAY + 1) * 86_400_000_000 - 1
"""The years 1 to 9999, which are all that Python knows."""
UTC_ZONE = b"+" + bytes(8)
ENCODED = hidden("key_")
"""What the name of the column begins with that has the bytes of a nested key, beside the column of the key or in its place."""


def hashable_key(name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a key column that Arrow groups and hashes: nested values as bytes, others with one spelling for equal keys.

    Raises:
        UnrepresentableValueError: a nested key that Python has no type for.
    """
    return pa.chunked_array([encoded_keys(name, column)]) if is_nested(column.type) else plain_key(column)


def hashable_keys(rows: pa.Table, keys: Sequence[str]) -> list[pa.ChunkedArray]:
    """Return ``hashable_key`` of the key columns of rows or partials, which may have the bytes of nested keys already."""
    return [rows[ENCODED + name] if ENCODED + name in rows.column_names else hashable_key(name, rows[name]) for name in keys]


def encoded_keys(name: str, column: pa.ChunkedArray) -> pa.Array:
    """Return ``encode_key`` of each value of a column.

    Raises:
        UnrepresentableValueError: a key that Python has no type for (a timestamp after the year 9999).

    Example:
        >>> encoded_keys("k", pa.chunked_array([["a", None]])).to_pylist() == [encode_key("a"), encode_key(None)]
        True
    """
    return _joined(_written(name, flat(column), b""))


def _written(name: str, values: pa.Array, before: bytes) -> list[pa.Array | bytes]:
    """Return ``before`` and the bytes of each value in parts, columns and bytes of every row: they are joined once."""
    kind = values.type
    head = b"" if values.null_count else before
    nested = _structs if pa.types.is_struct(kind) else _arrays if is_array(kind) else None
    parts = _scalars(values, head) if nested is None else nested(name, values, head)
    if parts is None:
        return [before, pa.array(map(encode_key, python_keys(pa.table({name: values}), [name])), pa.binary())]
    return [before, pc.if_else(values.is_valid(), _joined(parts), _NULL)] if values.null_count else parts


def _structs(name: str, values: pa.Array, before: bytes) -> list[pa.Array | bytes] | None:
    labels = {encode_key(field.name): place for place, field in enumerate(values.type)}
    if not labels or len(labels) < values.type.num_fields:
        return None
    parts: list[pa.Array | bytes] = []
    before += b"{" + encode_length(len(labels))
    for label in sorted(labels):
        parts += _written(name, pc.struct_field(values, [labels[label]]), before + label)
        before = b""
    return parts


def _arrays(name: str, values: pa.Array, before: bytes) -> list[pa.Array | bytes]:
    lengths = pc.list_value_length(values)
    offsets = np.concatenate([[0], np.cumsum(pc.fill_null(lengths, 0).to_numpy())])
    items = pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), _joined(_written(name, values.flatten(), b"")))
    return [_heads(before + b"[", lengths), pc.binary_join(items, b"")]


def _scalars(values: pa.Array, before: bytes) -> list[pa.Array | bytes] | None:
    """Return the bytes of values that hold no others, anything for NULL; ``None`` where they have no form here."""
    kind, types = values.type, pa.types
    if types.is_string(kind) or types.is_large_string(kind):
        return _content(before + b"s", values)
    if types.is_binary(kind) or types.is_large_binary(kind):
        return _content(before + b"b", values)
    if types.is_signed_integer(kind):
        return _words(before + b"i", _numbers(values, pa.int64()).astype(">i8"))
    if types.is_floating(kind):
        doubles = _numbers(values, pa.float64())
        spelled = np.where(np.isnan(doubles), np.nan, doubles + 0.0)  # -0.0 + 0.0 is 0.0
        return _words(before + b"f", spelled.astype(">f8"))
    if types.is_boolean(kind):
        return [pc.if_else(values, before + b"T", before + b"F")]
    if types.is_decimal128(kind):
        return _content(before + b"D", _decimal_texts(values))
    if types.is_date32(kind):
        days = _numbers(values, pa.int32())
        are_known = _lie_within(days, _FIRST_DAY, _LAST_DAY)
        return _words(before + b"d", (days - (_FIRST_DAY - 1)).astype(">u4")) if are_known else None
    if kind == pa.duration("us"):
        return _words(before + b"pi", _numbers(values, pa.int64()).astype(">i8"))
    if kind in (pa.timestamp("us"), pa.timestamp("us", "UTC")):
        instants = _numbers(values, pa.int64())
        tag, tail = (b"t", b"") if kind.tz is None else (b"z", UTC_ZONE)
        are_known = _lie_within(instants, _FIRST_INSTANT, _LAST_INSTANT)
        return _words(before + tag, instants.astype(">i8"), tail) if are_known else None
    return None


def _numbers(values: pa.Array, kind: pa.DataType) -> NumpyArray:
    numbers: NumpyArray = pc.fill_null(values.cast(kind), 0).to_numpy()
    return numbers


def _lie_within(numbers: NumpyArray, first: int, last: int) -> bool:
    return not len(numbers) or (first <= int(numbers.min()) and int(numbers.max()) <= last)


def _words(head: bytes, words: NumpyArray, tail: bytes = b"") -> list[pa.Array | bytes]:
    """Return words of one width, each between the same bytes."""
    width, first = words.dtype.itemsize, len(head)
    rows = np.empty((len(words), first + width + len(tail)), np.uint8)
    rows[:, :first] = np.frombuffer(head, np.uint8)
    rows[:, first : first + width] = words.view(np.uint8).reshape(len(words), width)
    rows[:, first + width :] = np.frombuffer(tail, np.uint8)
    buffers = [None, pa.py_buffer(rows)]
    return [pa.FixedSizeBinaryArray.from_buffers(pa.binary(rows.shape[1]), len(rows), buffers).cast(pa.binary())]


def _content(tag: bytes, values: pa.Array) -> list[pa.Array | bytes]:
    """Return bytes or texts behind their lengths."""
    content = values.cast(pa.binary())
    return [_heads(tag, pc.binary_length(content)), content]


def _heads(tag: bytes, lengths: pa.Array) -> pa.Array:
    """Return the tag with each length after it."""
    coded = lengths.dictionary_encode()
    heads = pa.array([tag + encode_length(length) for length in coded.dictionary.to_pylist()], pa.binary())
    return heads.take(coded.indices)


def _decimal_texts(values: pa.Array) -> pa.Array:
    """Return the one text of each decimal: its digits up to the last that is not zero, and a power of ten."""
    whole = pa.Array.from_buffers(pa.decimal128(38, 0), len(values), values.buffers(), offset=values.offset)
    digits = whole.cast(pa.string())
    significant = pc.utf8_rtrim(digits, "0")
    powers = pc.subtract(pc.subtract(pc.utf8_length(digits), pc.utf8_length(significant)), values.type.scale)
    texts = pc.binary_join_element_wise(significant, powers.cast(pa.string()), "E")
    return pc.if_else(pc.equal(significant, ""), "0", texts)


def _joined(parts: list[pa.Array | bytes]) -> pa.Array:
    return parts[0] if len(parts) == 1 else pc.binary_join_element_wise(*parts, b"")


_FEWEST_ROWS = Size("rows worth coding nested keys", 1 << 13, (1, 4))
_SAMPLE = Size("rows sampled before coding nested keys", 1 << 12, (1, 4))
_MANY = Size("distinct nested keys a row that are many", 0.2, (0.5, 1.1))
_PLACES_A_ROW = Size("places of nested keys a row", 4, (1, 40))
"""Codes that are larger are numbered by a hash table."""


def coded_keys(name: str, column: pa.ChunkedArray) -> pa.Array:
    """Return ``encoded_keys``, coded where keys are structs that repeat.

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
