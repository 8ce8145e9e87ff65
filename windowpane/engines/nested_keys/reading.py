"""Bytes -> keys: ``decode_key`` of whole columns whose type is known.

All rows are read up to the same place of the type, then all continue from there. Bytes that are not what ``writing``
makes for the type are left to ``decode_key``, row by row: it knows every value, and raises the error for it.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windowpane.arrays import Integers, NumpyArray
from windowpane.arrays.columns import flat
from windowpane.engines.nested_keys.writing import UTC_ZONE
from windowpane.state.codec import decode_key, encode_key, encode_length

_LONG = 255
_LONGEST = 64
"""Arrays of more items are read row by row: here each place costs a step over all rows."""
_DAY_ZERO = 719_163

_Bytes = npt.NDArray[np.uint8]
_Read = tuple[pa.Array, Integers]
"""Values, and where the bytes of each end."""


class _UnlikeError(Exception):
    """Bytes that are no encoding of their type."""


def decoded_keys(encoded: pa.ChunkedArray, kind: pa.DataType) -> pa.Array:
    """Return the keys of a type that ``encoded_keys`` made these bytes of.

    Raises:
        UnreadableStateError: bytes that are no encoding.

    Example:
        >>> decoded_keys(pa.chunked_array([[encode_key([1, None])]]), pa.list_(pa.int8())).to_pylist()
        [[1, None]]
    """
    values = flat(encoded)
    offsets = np.frombuffer(values.buffers()[1], np.int32)[values.offset : values.offset + len(values) + 1].astype(np.int64)
    try:
        keys, ends = _read(kind, np.frombuffer(values.buffers()[2] or b"", np.uint8), offsets[:-1])
        if np.array_equal(ends, offsets[1:]):
            return keys
    except (_UnlikeError, IndexError, pa.ArrowInvalid):
        pass
    return pa.array(map(decode_key, values.to_pylist()), kind)


def _read(kind: pa.DataType, content: _Bytes, at: Integers) -> _Read:
    present = content[at] != ord("N")
    if present.all():
        return _present(kind, content, at)
    rows, ends, places = np.flatnonzero(present), at + 1, np.zeros(len(at), np.int64)
    found, ends[rows] = _present(kind, content, at[rows])
    places[rows] = np.arange(len(rows))
    return found.take(pa.array(places, mask=~present)), ends


def _present(kind: pa.DataType, content: _Bytes, at: Integers) -> _Read:
    """Read values of which none is NULL."""
    types = pa.types
    if types.is_struct(kind):
        return _structs(kind, content, at)
    if types.is_list(kind):
        return _arrays(kind, content, at)
    if types.is_string(kind) or types.is_large_string(kind):
        return _texts(pa.string(), content, _behind(content, at, b"s"), kind)
    if types.is_binary(kind) or types.is_large_binary(kind):
        return _texts(pa.binary(), content, _behind(content, at, b"b"), kind)
    if types.is_decimal128(kind):
        return _texts(pa.string(), content, _behind(content, at, b"D"), kind)
    if types.is_signed_integer(kind):
        return _words(content, _behind(content, at, b"i"), ">i8", kind)
    if types.is_floating(kind):
        return _words(content, _behind(content, at, b"f"), ">f8", kind)
    if types.is_boolean(kind):
        truths = content[at] == ord("T")
        _behind(content, at[~truths], b"F")
        return pa.array(truths), at + 1
    if types.is_date32(kind):
        ordinals, ends = _numbers(content, _behind(content, at, b"d"), ">u4")
        return pa.array((ordinals.astype(np.int64) - _DAY_ZERO).astype(np.int32)).cast(kind), ends
    if kind == pa.duration("us"):
        return _words(content, _behind(content, at, b"pi"), ">i8", kind)
    if kind == pa.timestamp("us"):
        return _words(content, _behind(content, at, b"t"), ">i8", kind)
    if kind == pa.timestamp("us", "UTC"):
        instants, ends = _words(content, _behind(content, at, b"z"), ">i8", kind)
        return instants, _behind(content, ends, UTC_ZONE)
    raise _UnlikeError


def _structs(kind: pa.DataType, content: _Bytes, at: Integers) -> _Read:
    places = {encode_key(field.name): place for place, field in enumerate(kind)}
    columns: dict[int, pa.Array] = {}
    at = _behind(content, at, b"{" + encode_length(kind.num_fields))
    for label in sorted(places):
        columns[places[label]], at = _read(kind.field(places[label]).type, content, _behind(content, at, label))
    return pa.StructArray.from_arrays([columns[place] for place in range(kind.num_fields)], fields=list(kind)), at


def _arrays(kind: pa.DataType, content: _Bytes, at: Integers) -> _Read:
    lengths, at = _lengths(content, _behind(content, at, b"["))
    longest = int(lengths.max(initial=0))
    if longest > _LONGEST:
        raise _UnlikeError
    items, owners = [pa.array([], kind.value_type)], [np.zeros(0, np.int64)]
    for place in range(longest):
        rows = np.flatnonzero(lengths > place)
        found, at[rows] = _read(kind.value_type, content, at[rows])
        items.append(found)
        owners.append(rows)
    order = np.argsort(np.concatenate(owners), kind="stable")
    offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int32())
    return pa.ListArray.from_arrays(offsets, pa.concat_arrays(items).take(pa.array(order)), type=kind), at


def _texts(found: pa.DataType, content: _Bytes, at: Integers, kind: pa.DataType) -> _Read:
    lengths, starts = _lengths(content, at)
    ends = starts + lengths
    bounds = np.empty(2 * len(at), np.int64)
    bounds[::2], bounds[1::2] = starts, ends
    if (np.diff(bounds, append=len(content)) < 0).any():
        raise _UnlikeError
    # Texts and what lies between them, by turns: rows lie one behind the other.
    buffers = [None, pa.py_buffer(np.append(bounds, len(content)).astype(np.int32)), pa.py_buffer(content)]
    pieces = pa.Array.from_buffers(found, len(bounds), buffers)
    return pieces.take(pa.array(np.arange(0, len(bounds), 2))).cast(kind), ends


def _lengths(content: _Bytes, at: Integers) -> tuple[Integers, Integers]:
    """Read the lengths at ``at``; return them, and where they end."""
    lengths, ends = content[at].astype(np.int64), at + 1
    are_long = np.flatnonzero(lengths == _LONG)
    lengths[are_long], ends[are_long] = _numbers(content, ends[are_long], ">i8")
    return lengths, ends


def _words(content: _Bytes, at: Integers, word: str, kind: pa.DataType) -> _Read:
    numbers, ends = _numbers(content, at, word)
    return pa.array(numbers.astype(word.replace(">", "="))).cast(kind), ends


def _numbers(content: _Bytes, at: Integers, word: str) -> tuple[NumpyArray, Integers]:
    width = np.dtype(word).itemsize
    return np.ascontiguousarray(_gathered(content, at, width)).view(word)[:, 0], at + width


def _behind(content: _Bytes, at: Integers, expected: bytes) -> Integers:
    """Return the places after bytes that must be at ``at``."""
    if (_gathered(content, at, len(expected)) != np.frombuffer(expected, np.uint8)).any():
        raise _UnlikeError
    return at + len(expected)


def _gathered(content: _Bytes, at: Integers, width: int) -> _Bytes:
    """Return so many bytes from each place on, a row for each place."""
    if not len(at):
        return np.empty((0, width), np.uint8)
    if len(content) < width:
        raise _UnlikeError
    return np.lib.stride_tricks.sliding_window_view(content, width)[at]
