"""Sort keys: the place of a row in the order (partition, ORDER BY, key) as bytes that compare as the rows do.

    | partition: fixed width | ORDER BY columns | key columns | 0x01 |

A column of fixed width is one byte that places NULL and its code in 8 bytes (16 for long decimals); text is escaped and ends with
two zero bytes, so no key is the beginning of another. Partitions need no order, only a place: if all their columns are of fixed
width the key holds these, else a 128-bit hash. The last byte keeps numpy from cutting off zeros. A key
compares within all keys of one spec and schema, whatever the batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from windowpane.arrays import Bytes, Integers, NumpyArray, Unsigned
from windowpane.arrays.columns import flat
from windowpane.arrays.values import Value
from windowpane.errors import LongSortKeyError
from windowpane.hidden_columns import SORT_KEY
from windowpane.kernels.keys.ordered_codes import has_codes, ordered_codes, validity
from windowpane.kernels.packed_order import lexical_order
from windowpane.windowing.over.spec import OrderColumn, OverSpec

_Hashes = npt.NDArray[np.void]

_HASH_BYTES = 16
_SIGN = np.int64(-(1 << 63))
_BINARY = pa.large_binary()


class SortKeys:
    def __init__(self, spec: OverSpec, columns: pa.Schema, with_order: bool = True) -> None:
        """Make keys for rows with ``columns``; without the order, they identify a row and not its place."""
        self._partition = [OrderColumn(name, nulls_first=False) for name in spec.partition_by]
        self._hashed = not all(has_codes(columns.field(name).type) for name in spec.partition_by)
        self._ordered = [*(spec.order_by if with_order else ()), *(OrderColumn(name, nulls_first=False) for name in spec.key)]
        widths = [_width(columns.field(each.name).type) or 0 for each in self._partition]
        self.partition_width = _HASH_BYTES if self._hashed else sum(widths)
        self.stored = [pa.field(SORT_KEY, pa.binary(_HASH_BYTES))] if self._hashed else []
        """What is stored of the keys, since it takes Python a look at single values: hashes of partitions, if there are any."""

    def of(self, table: pa.Table) -> Bytes:
        return self._closed(table, self._partition_part(table))

    def sorted(self, table: pa.Table) -> tuple[pa.Table, Bytes]:
        if not self._hashed:
            table = table.take(pa.array(lexical_order(self._sort_words(table, self._partition))))
            return table, self.of(table)
        hashes, numbers = self._hashes(table)
        order = lexical_order([_ranks(hashes)[numbers], *self._sort_words(table, ())])
        table = table.take(pa.array(order))
        return table, self._closed(table, _hashed_part(hashes, numbers[order]))

    def kept(self, keys: Bytes) -> pa.Array:
        """Return the hashes of partitions, which are stored, of rows with such keys."""
        hashes = keys.view(np.uint8).reshape(len(keys), keys.dtype.itemsize)[:, :_HASH_BYTES]
        return pa.Array.from_buffers(pa.binary(_HASH_BYTES), len(keys), [None, pa.py_buffer(np.ascontiguousarray(hashes))])

    def of_stored(self, table: pa.Table) -> Bytes:
        if not self.stored:
            return self.of(table)
        column = flat(table[SORT_KEY])
        hashes = np.frombuffer(column.buffers()[1], f"V{_HASH_BYTES}", len(column), column.offset * _HASH_BYTES)
        return self._closed(table, _Fixed([(hashes.dtype.str, hashes)]))

    @property
    def partition_by(self) -> list[str]:
        return [column.name for column in self._partition]

    def _sort_words(self, table: pa.Table, partition: Sequence[OrderColumn]) -> list[Unsigned]:
        """Return columns of words that compare as the keys do, the most significant first."""
        words = [np.zeros(table.num_rows, np.uint64)]
        for each in (*partition, *self._ordered):
            column = flat(table[each.name])
            if _width(column.type) is None:
                words += _words_of(_padded(_text(column, each)))
                continue
            flags, values = _flagged(column, each)
            words += [] if flags is None else [flags.astype(np.uint64)]
            words += list(values.T)
        return words

    def _closed(self, table: pa.Table, partition: _Fixed) -> Bytes:
        columns = ((flat(table[each.name]), each) for each in self._ordered)
        parts = [partition, *(_text(*each) if _width(each[0].type) is None else _fixed(*each) for each in columns)]
        fixed = [part for part in parts if isinstance(part, _Fixed)]
        if len(fixed) == len(parts):
            return _Fixed([field for part in fixed for field in part.fields]).closed(table.num_rows)
        return _padded(_joined([*(_as_binary(part, table.num_rows) for part in parts), pa.scalar(b"\x01", _BINARY)]))

    def _partition_part(self, table: pa.Table) -> _Fixed:
        if self._hashed:
            hashes, numbers = self._hashes(table)
            return _hashed_part(hashes, numbers)
        parts = [_fixed(flat(table[each.name]), each) for each in self._partition]
        return _Fixed([field for part in parts for field in part.fields])

    def _hashes(self, table: pa.Table) -> tuple[_Hashes, Integers]:
        return _hashes([flat(table[each.name]) for each in self._partition], table.num_rows)


MOST_BYTES = 2**32
"""Of the sort keys of rows that are sorted together: each is as long as the longest, and is copied twice."""


def sorting(keys: Bytes) -> Integers:
    varying = [word for word in _words_of(keys) if len(keys) and (word != word[0]).any()]
    return lexical_order(varying) if varying else np.arange(len(keys))


def _words_of(keys: Bytes) -> list[Unsigned]:
    """Return byte strings as columns of words that compare as they do, the most significant first."""
    width = keys.dtype.itemsize
    padded = np.zeros((len(keys), -(-width // 8) * 8), np.uint8)
    padded[:, :width] = keys.view(np.uint8).reshape(len(keys), width)
    return list(padded.view(">u8").astype(np.uint64).T)


@dataclass(frozen=True)
class _Fixed:
    fields: Sequence[tuple[str, NumpyArray | int]]

    def closed(self, rows: int) -> Bytes:
        """Return the columns side by side, with a byte behind them that keeps zeros at their end."""
        kinds = [*(kind for kind, _ in self.fields), "u1"]
        written = np.empty(rows, np.dtype([(f"f{number}", kind) for number, kind in enumerate(kinds)]))
        for number, values in enumerate([*(values for _, values in self.fields), 1]):
            written[f"f{number}"] = values
        return written.view(f"S{written.dtype.itemsize}")


def _width(kind: pa.DataType) -> int | None:
    if has_codes(kind):
        return 9
    return 17 if pa.types.is_decimal128(kind) else None


def _as_binary(part: _Fixed | pa.Array, rows: int) -> pa.Array:
    if not isinstance(part, _Fixed):
        return part
    written = part.closed(rows)
    return pa.Array.from_buffers(pa.binary(written.dtype.itemsize), rows, [None, pa.py_buffer(written)]).cast(_BINARY)


def _fixed(column: pa.Array, order: OrderColumn) -> _Fixed:
    flags, words = _flagged(column, order)
    return _Fixed([("u1", 1 if flags is None else flags), *((">u8", word) for word in words.T)])


def _flagged(column: pa.Array, order: OrderColumn) -> tuple[npt.NDArray[np.uint8] | None, Unsigned]:
    """Return bytes that place NULLs, 1 of a value, if there are NULLs, and words that compare as the values do."""
    words = ~_words(column) if order.descending else _words(column)
    if not column.null_count:
        return None, words
    valid = validity(column)
    words[~valid] = 0
    return np.where(valid, 1, 0 if order.nulls_first else 2).astype(np.uint8), words


def _words(column: pa.Array) -> Unsigned:
    if has_codes(column.type):
        return (ordered_codes(column) ^ _SIGN).view(np.uint64).reshape(-1, 1).copy()
    words = np.frombuffer(column.buffers()[1], np.uint64)[2 * column.offset : 2 * (column.offset + len(column))].reshape(-1, 2)
    words = words[:, ::-1].copy()
    words[:, 0] ^= np.uint64(1 << 63)
    return words


def _text(column: pa.Array, order: OrderColumn) -> pa.Array:
    """Return texts as binary values that compare as the texts do, none the beginning of another."""
    escaped = pc.replace_substring(column.cast(_BINARY), b"\x00", b"\x00\xff")
    body = _joined([escaped, pa.scalar(b"\x00\x00", _BINARY)])
    flagged = _joined([pa.scalar(b"\x01", _BINARY), _inverted(body) if order.descending else body])
    return pc.fill_null(flagged, b"\x00" if order.nulls_first else b"\x02")


def _joined(parts: Sequence[pa.Array | pa.Scalar]) -> pa.Array:
    return pc.binary_join_element_wise(*parts, pa.scalar(b"", _BINARY))


def _inverted(values: pa.Array) -> pa.Array:
    validity, offsets, content = values.buffers()
    turned = pa.py_buffer(~np.frombuffer(content or b"", np.uint8))
    return pa.Array.from_buffers(_BINARY, len(values), [validity, offsets, turned], offset=values.offset)


def _padded(values: pa.Array) -> Bytes:
    width = max(pc.max(pc.binary_length(values)).as_py() or 0, 1)
    if width * len(values) > MOST_BYTES:
        raise LongSortKeyError(width, len(values), MOST_BYTES)
    filled = pc.ascii_rpad(values.view(pa.large_string()), width, padding="\x00")
    return np.frombuffer(filled.buffers()[2] or b"", f"S{width}", len(values))


def _hashed_part(hashes: _Hashes, numbers: Integers) -> _Fixed:
    return _Fixed([(f"V{_HASH_BYTES}", hashes[numbers])])


def _ranks(hashes: _Hashes) -> Integers:
    """Return the place of each hash among them in the order of keys; equal ones share it."""
    order = sorting(hashes.view(f"S{_HASH_BYTES}"))
    ranks = np.empty(len(hashes), np.int64)
    ranks[order] = np.cumsum(np.append(False, hashes[order][1:] != hashes[order][:-1]))[: len(hashes)]
    return ranks


def _hashes(columns: Sequence[pa.Array], rows: int) -> tuple[_Hashes, Integers]:
    """Return 128-bit hashes of partitions, equal for equal ones and practically only for those; and which each row has."""
    hashes, numbers = np.zeros(1, f"V{_HASH_BYTES}"), np.zeros(rows, np.int64)
    for column in columns:
        encoded = column.dictionary_encode()
        added = _digests([*_written(encoded.dictionary), b"NoneType:None"])
        numbers_added = encoded.indices.fill_null(len(added) - 1).to_numpy(zero_copy_only=False)
        if len(columns) == 1:
            return added, numbers_added
        pairs = pa.array(numbers * len(added) + numbers_added).dictionary_encode()
        left, right = np.divmod(pairs.dictionary.to_numpy(), len(added))
        halves = np.stack([hashes[left], added[right]], axis=1)
        hashes, numbers = _digests(halves.view(f"V{2 * _HASH_BYTES}").ravel().tolist()), pairs.indices.to_numpy()
    return hashes, numbers


def _digests(contents: Sequence[bytes]) -> _Hashes:
    begun, digests = blake2b(digest_size=_HASH_BYTES), []
    for content in contents:
        digest = begun.copy()
        digest.update(content)
        digests.append(digest.digest())
    return np.frombuffer(b"".join(digests), f"V{_HASH_BYTES}")


def _written(values: pa.Array) -> list[bytes]:
    """Return what is hashed of values: type and content as Python writes them, of NaN a text; state on disk lies by it."""
    plain = _plain(values)
    if pa.types.is_binary(values.type):
        return [b"bytes:" + value for value in plain]
    if pa.types.is_floating(values.type):
        plain = [value + 0.0 if value == value else "NaN" for value in plain]
    return [f"{type(value).__name__}:{value!r}".encode() for value in plain]


def _plain(values: pa.Array) -> list[Value]:
    """Return values as Python has them; instants, dates and spans that it does not have, such as infinity, as their numbers."""
    try:
        plain: list[Value] = values.to_pylist()
    except (OverflowError, ValueError):
        return [_value_or_number(each) for each in values]
    return plain


def _value_or_number(scalar: pa.Scalar) -> Value:
    try:
        plain: Value = scalar.as_py()
    except (OverflowError, ValueError):
        plain = scalar.value
    return plain
