"""Sort keys: the place of a row in the order (partition, ORDER BY, key) as bytes that compare as the rows do.

    | partition: fixed width | ORDER BY columns | key columns | 0x01 |

A column of fixed width is one byte that places NULL and its code in 8 bytes (16 for long decimals); text is escaped and ends with
two zero bytes, so no key is the beginning of another. Partitions need no order, only a place: if all their columns are of fixed
width they stand there as they are, else as a 128-bit hash. The last byte keeps numpy from cutting off zeros. A key
compares within all keys of one spec and schema, whatever the batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windowpane.arrays import Bytes, Integers, Unsigned
from windowpane.hidden_columns import SORT_KEY
from windowpane.kernels.keys.ordered_codes import has_codes, ordered_codes, validity
from windowpane.kernels.sorting.packed_order import lexical_order
from windowpane.windowing.over.spec import OrderColumn, OverSpec

_Hashes = npt.NDArray[np.void]

_HASH_BYTES = 16
_SIGN = np.int64(-(1 << 63))


class SortKeys:
    """The sort keys of the rows of one window."""

    def __init__(self, spec: OverSpec, columns: pa.Schema, with_order: bool = True) -> None:
        """Make keys for rows with ``columns``; without the order, they say which row it is and not where it stands."""
        self._partition = [OrderColumn(name, nulls_first=False) for name in spec.partition_by]
        self._hashed = not all(has_codes(columns.field(name).type) for name in spec.partition_by)
        self._ordered = [*(spec.order_by if with_order else ()), *(OrderColumn(name, nulls_first=False) for name in spec.key)]
        widths = [_width(columns.field(each.name).type) or 0 for each in self._partition]
        self.partition_width = _HASH_BYTES if self._hashed else sum(widths)
        self._is_order_fixed = all(_width(columns.field(each.name).type) for each in self._ordered)
        kinds = ([pa.binary(_HASH_BYTES)] if self._hashed else []) if self._is_order_fixed else [pa.binary()]
        self.stored = [pa.field(SORT_KEY, kind) for kind in kinds]
        """What is stored of the keys, since it takes Python a look at single values: nothing, hashes of partitions, or keys."""

    def of(self, table: pa.Table) -> Bytes:
        """Return the key of each row."""
        return self._closed(table, self._partition_part(table))

    def _closed(self, table: pa.Table, partition: _Fixed) -> Bytes:
        rows = table.num_rows
        parts = [partition, *(_part(table[each.name].combine_chunks(), each) for each in self._ordered)]
        fixed = [part for part in parts if isinstance(part, _Fixed)]
        if len(fixed) == len(parts):
            return _Fixed([field for part in fixed for field in part.fields]).closed(rows)
        pieces = [part if isinstance(part, list) else part.closed(rows).tolist() for part in parts]
        joined = [b"".join(row) + b"\x01" for row in zip(*pieces, strict=True)]
        return np.array(joined, np.bytes_) if joined else np.empty(0, "S1")

    def sorted(self, table: pa.Table) -> tuple[pa.Table, Bytes]:
        """Return rows in the order of their keys, and the keys; rows with equal keys stay in their order."""
        if not self._is_order_fixed:
            keys = self.of(table)
            order = sorting(keys)
            return table.take(pa.array(order)), keys[order]
        if not self._hashed:
            table = table.take(pa.array(lexical_order(self._sort_words(table, self._partition))))
            return table, self.of(table)
        hashes, numbers = self._hashes(table)
        order = lexical_order([_ranks(hashes)[numbers], *self._sort_words(table, ())])
        table = table.take(pa.array(order))
        return table, self._closed(table, _hashed_part(hashes, numbers[order]))

    def kept(self, keys: Bytes) -> list[pa.Array]:
        """Return the columns ``stored`` of rows with such keys."""
        if not self.stored:
            return []
        if not self._is_order_fixed:
            return [pa.array(keys.tolist(), pa.binary())]
        hashes = keys.view(np.uint8).reshape(len(keys), keys.dtype.itemsize)[:, :_HASH_BYTES]
        return [pa.Array.from_buffers(pa.binary(_HASH_BYTES), len(keys), [None, pa.py_buffer(np.ascontiguousarray(hashes))])]

    def of_stored(self, table: pa.Table) -> Bytes:
        """Return the keys of stored rows, which have the columns ``stored``."""
        if not self.stored:
            return self.of(table)
        column = table[SORT_KEY].combine_chunks()
        if not self._is_order_fixed:
            return _stored_keys(column)
        hashes = np.frombuffer(column.buffers()[1], f"V{_HASH_BYTES}", len(column), column.offset * _HASH_BYTES)
        return self._closed(table, _Fixed([(hashes.dtype.str, hashes)]))

    def hashes_of(self, keys: pa.Array) -> pa.Array:
        """Return the hashes of partitions, which are stored today, of whole keys, which were stored before."""
        return self.kept(_stored_keys(keys))[0]

    @property
    def partition_by(self) -> list[str]:
        """The columns of the partition."""
        return [column.name for column in self._partition]

    def _sort_words(self, table: pa.Table, partition: Sequence[OrderColumn]) -> list[Unsigned]:
        """Return columns of words that compare as the keys do, the most significant first; all parts are of fixed width."""
        words = [np.zeros(table.num_rows, np.uint64)]
        for each in (*partition, *self._ordered):
            flags, values = _flagged(table[each.name].combine_chunks(), each)
            words += [] if flags is None else [flags.astype(np.uint64)]
            words += list(values.T)
        return words

    def _partition_part(self, table: pa.Table) -> _Fixed:
        if self._hashed:
            return _hashed_part(*self._hashes(table))
        parts = [_fixed(table[each.name].combine_chunks(), each) for each in self._partition]
        return _Fixed([field for part in parts for field in part.fields])

    def _hashes(self, table: pa.Table) -> tuple[_Hashes, Integers]:
        return _hashes([table[each.name].combine_chunks() for each in self._partition], table.num_rows)


def sorting(keys: Bytes) -> Integers:
    """Return the positions that sort keys; equal ones stay in their order."""
    width = keys.dtype.itemsize
    padded = np.zeros((len(keys), -(-width // 8) * 8), np.uint8)
    padded[:, :width] = keys.view(np.uint8).reshape(len(keys), width) if len(keys) else 0
    words = padded.view(">u8").astype(np.uint64)
    varying = [word for word in words.T if len(keys) and (word != word[0]).any()]
    return lexical_order(varying) if varying else np.arange(len(keys))


def _stored_keys(keys: pa.Array) -> Bytes:
    """Return whole sort keys as numpy has them."""
    if not len(keys):
        return np.empty(0, "S1")
    offsets = np.frombuffer(keys.buffers()[1], np.int32)[keys.offset : keys.offset + len(keys) + 1]
    widths = np.diff(offsets)
    width = int(widths[0])
    if (widths == width).all():
        return np.frombuffer(keys.buffers()[2], f"S{width}", len(keys), int(offsets[0]))
    return np.array(keys.to_pylist(), np.bytes_)


@dataclass(frozen=True)
class _Fixed:
    """Columns of fixed width: the type in which numpy writes each, and its values, or one for all rows."""

    fields: Sequence[tuple[str, npt.NDArray[Any] | int]]

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


def _part(column: pa.Array, order: OrderColumn) -> _Fixed | list[bytes]:
    return _text(column, order) if _width(column.type) is None else _fixed(column, order)


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
    """Return the value of each row as unsigned words, the most significant first."""
    if has_codes(column.type):
        return (ordered_codes(column) ^ _SIGN).view(np.uint64).reshape(-1, 1).copy()
    words = np.frombuffer(column.buffers()[1], np.uint64)[2 * column.offset : 2 * (column.offset + len(column))].reshape(-1, 2)
    words = words[:, ::-1].copy()
    words[:, 0] ^= np.uint64(1 << 63)
    return words


def _text(column: pa.Array, order: OrderColumn) -> list[bytes]:
    encoded = column.dictionary_encode()
    distinct = [_escaped(value, order.descending) for value in encoded.dictionary.to_pylist()]
    null = b"\x00" if order.nulls_first else b"\x02"
    return [null if code is None else distinct[code] for code in encoded.indices.to_pylist()]


def _escaped(value: str | bytes, descending: bool) -> bytes:
    raw = value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value
    body = raw.replace(b"\x00", b"\x00\xff") + b"\x00\x00"
    return b"\x01" + (bytes(255 - byte for byte in body) if descending else body)


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
        digests = [*_digests(encoded.dictionary), _digest(None)]
        added = np.frombuffer(b"".join(digests), hashes.dtype)
        numbers_added = encoded.indices.fill_null(len(digests) - 1).to_numpy(zero_copy_only=False)
        if len(columns) == 1:
            return added, numbers_added
        pairs, numbers = np.unique(numbers * len(added) + numbers_added, return_inverse=True)
        halves = zip(hashes[pairs // len(added)].tolist(), added[pairs % len(added)].tolist(), strict=True)
        rehashed = [blake2b(left + right, digest_size=_HASH_BYTES).digest() for left, right in halves]
        hashes = np.frombuffer(b"".join(rehashed), hashes.dtype)
    return hashes, numbers


def _digests(values: pa.Array) -> list[bytes]:
    if not pa.types.is_string(values.type):
        return [_digest(value) for value in values.to_pylist()]
    begun, digests = blake2b(b"str:", digest_size=_HASH_BYTES), []
    for value in values.to_pylist():
        digest = begun.copy()
        digest.update(_raw(value))
        digests.append(digest.digest())
    return digests


def _digest(value: object) -> bytes:
    if isinstance(value, float):
        value = value + 0.0 if value == value else "NaN"
    return blake2b(f"{type(value).__name__}:".encode() + _raw(value), digest_size=_HASH_BYTES).digest()


def _raw(value: object) -> bytes:
    return value if isinstance(value, bytes) else repr(value).encode("utf-8", "surrogatepass")
