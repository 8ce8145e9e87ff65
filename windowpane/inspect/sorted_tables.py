"""Sorted tables: the files (SST) in which RocksDB keeps entries by key, read a block at a time.

A file ends with a footer, which says where the index block is; the index has, for each data block, a key that no key of the block
is above. So one key costs the index, which is read once, and one block. Blocks are compressed by themselves. Source: RocksDB's
documentation of the block-based table format, versions 2 to 5; Spark writes version 5.

Of several entries of a key the one with the greatest sequence number holds; it may say that the key was removed.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Iterator
from typing import Any, NamedTuple

import pyarrow as pa

from windowpane.errors import UnreadableStateError, present

_MAGIC = b"\xf7\xcf\xf4\x85\xb7\x41\xe2\x88"
_FOOTER = 53
_TRAILER = 5  # after each block: how it is compressed, and a checksum
_CODECS = {1: "snappy", 4: "lz4_raw", 7: "zstd"}
_VALUE = 1
_LENGTH = struct.Struct("<I")


class Entry(NamedTuple):
    """One entry of a key: its number in the order of writes, and its value, ``None`` where the key was removed."""

    number: int
    value: bytes | None


class SortedTable:
    """One file; ``file`` is open, and reads at a place."""

    def __init__(self, file: pa.NativeFile, name: str) -> None:
        self._file, self._name = file, name
        footer = file.read_at(_FOOTER, file.size() - _FOOTER)
        version = _LENGTH.unpack_from(footer, 41)[0]
        if footer[-8:] != _MAGIC or not 2 <= version <= 5:
            raise UnreadableStateError(f"{name} is no sorted table of RocksDB in a format of version 2 to 5")
        meta, at = _handle(footer, 1)
        index, _ = _handle(footer, at)
        places = {key: _handle(value, 0)[0] for key, value in _entries(self._block(*meta))}
        held = dict(_entries(self._block(*present(places.get(b"rocksdb.properties"), "a table has properties"))))
        self._has_deltas = held.get(b"rocksdb.index.value.is.delta.encoded", b"\0")[:1] == b"\1"
        is_user_key = held.get(b"rocksdb.index.key.is.user.key", b"\0")[:1] == b"\1"
        self._cut = 0 if is_user_key else 8
        kind = held.get(b"rocksdb.block.based.table.index.type", b"\0")[0]
        entries = self._index(*index)
        if kind == 2:  # two levels
            entries = [each for _, place in entries for each in self._index(*place)]
        self._fences = [key for key, _ in entries]
        self._places = [place for _, place in entries]

    def get(self, key: bytes) -> Entry | None:
        found = next(self.scan(key), None)
        return found[1] if found is not None and found[0] == key else None

    def scan(self, low: bytes) -> Iterator[tuple[bytes, Entry]]:
        """Yield the entries from a key on: by key, and of one key the newest first."""
        for place in self._places[bisect_left(self._fences, low) :]:
            for internal, value in _entries(self._block(*place)):
                key, (tag,) = internal[:-8], struct.unpack("<Q", internal[-8:])
                if key >= low:
                    yield key, Entry(tag >> 8, bytes(value) if tag & 0xFF == _VALUE else None)

    def _index(self, offset: int, size: int) -> list[tuple[bytes, tuple[int, int]]]:
        found: list[tuple[bytes, tuple[int, int]]] = []
        block, at, key = self._block(offset, size), 0, b""
        end = _restarts(block)
        place = (0, 0)
        while at < end:
            shared, at = _varint(block, at)
            rest, at = _varint(block, at)
            if not self._has_deltas:
                _, at = _varint(block, at)
            key, at = key[:shared] + bytes(block[at : at + rest]), at + rest
            if self._has_deltas and shared:
                delta, at = _varint(block, at)
                place = (place[0] + place[1] + _TRAILER, place[1] + (delta >> 1 ^ -(delta & 1)))
            else:
                place, at = _handle(block, at)
            found.append((key[: len(key) - self._cut], place))
        return found

    def _block(self, offset: int, size: int) -> Any:
        held = self._file.read_at(size + _TRAILER, offset)
        kind = held[size]
        if kind == 0:
            return memoryview(held)[:size]
        if kind not in _CODECS:
            raise UnreadableStateError(f"{self._name} is compressed in a way that is not read here: lz4, snappy and zstd are")
        length, at = _varint(held, 0)
        return memoryview(pa.decompress(memoryview(held)[at:size], length, _CODECS[kind])).cast("B")  # Arrow's bytes are signed


def _entries(block: Any) -> Iterator[tuple[bytes, Any]]:
    key, at, end = b"", 0, _restarts(block)
    while at < end:
        shared, at = _varint(block, at)
        rest, at = _varint(block, at)
        length, at = _varint(block, at)
        key, at = key[:shared] + bytes(block[at : at + rest]), at + rest
        yield key, block[at : at + length]
        at += length


def _restarts(block: Any) -> int:
    """Return where the entries of a block end; its restarts follow, which a search could begin at."""
    (count,) = _LENGTH.unpack_from(block, len(block) - 4)
    return len(block) - 4 - 4 * (int(count) & 0x7FFFFFFF)


def _handle(data: Any, at: int) -> tuple[tuple[int, int], int]:
    offset, at = _varint(data, at)
    size, at = _varint(data, at)
    return (offset, size), at


def _varint(data: Any, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number, at
        shift += 7
