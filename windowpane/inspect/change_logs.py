"""Change logs: what Spark's state store wrote since its last snapshot, one file a batch.

A file is a stream of blocks (LZ4) or one compressed stream (Zstandard) of records: put, with the key and the value, or remove.
Of LZ4 only the blocks in which a record begins are read; values are left where they are until they are asked for. Source:
Spark's ``StateStoreChangelogWriterV2`` and ``V4``, and the block format of ``LZ4BlockOutputStream``.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Iterator

import pyarrow as pa

from windowpane.errors import UnreadableStateError

_HEAD = struct.Struct("<8sBiii")
_EMPTY, _PUT, _DELETE = 0x00, 0x01, 0x10


class _Blocks:
    """A stream of LZ4 blocks, of which those that are asked for are decompressed; the last few are kept."""

    def __init__(self, file: pa.NativeFile, name: str) -> None:
        self._file = file
        self._starts: list[int] = []
        self._places: list[tuple[int, int, int, bool]] = []
        self._kept: tuple[int, bytes] = (-1, b"")
        at = start = 0
        size = file.size()
        while at + _HEAD.size <= size:
            magic, token, packed, length, _ = _HEAD.unpack(file.read_at(_HEAD.size, at))
            if magic != b"LZ4Block":
                raise UnreadableStateError(f"{name} is no stream of LZ4 blocks")
            at += _HEAD.size
            if length:
                self._starts.append(start)
                self._places.append((at, packed, length, token & 0xF0 == 0x20))
            at, start = at + packed, start + length

    def read(self, at: int, count: int) -> bytes:
        parts = []
        while count > 0:
            number = bisect_right(self._starts, at) - 1
            part = self._block(number)[at - self._starts[number] :][:count]
            if not part:
                raise EOFError
            parts.append(part)
            at, count = at + len(part), count - len(part)
        return b"".join(parts)

    def _block(self, number: int) -> bytes:
        if self._kept[0] != number:
            at, packed, length, is_packed = self._places[number]
            body = self._file.read_at(packed, at)
            self._kept = number, pa.decompress(body, length, "lz4_raw", asbytes=True) if is_packed else body
        return self._kept[1]


class _Whole:
    def __init__(self, body: bytes) -> None:
        self._body = body

    def read(self, at: int, count: int) -> bytes:
        return self._body[at : at + count]


class ChangeLog:
    """The changes of one batch: ``changes`` has for each key its place and length, ``None`` where it was removed."""

    def __init__(self, file: pa.NativeFile, codec: str, name: str) -> None:
        if codec == "lz4":
            self._stream: _Blocks | _Whole = _Blocks(file, name)
        elif codec == "zstd":
            self._stream = _Whole(pa.CompressedInputStream(file, "zstd").read())
        else:
            raise UnreadableStateError(f"{name} is compressed by {codec}: lz4, Spark's default, and zstd are read here")
        self.changes = dict(self._records(name))

    def value(self, key: bytes) -> bytes | None:
        place = self.changes[key]
        return None if place is None else self._stream.read(*place)

    def _records(self, name: str) -> Iterator[tuple[bytes, tuple[int, int] | None]]:
        version, at = self._text(0)
        if version not in ("v2", "v4"):
            raise UnreadableStateError(f"{name} has version {version!r}: 'v2' and 'v4' are read here")
        if version == "v4":
            _, at = self._text(at)  # which snapshots and logs came before
        while (kind := self._stream.read(at, 1)[0]) != _EMPTY:
            key_length = int.from_bytes(self._stream.read(at + 1, 4), "big")
            key = self._stream.read(at + 5, key_length)
            at += 5 + key_length
            length = int.from_bytes(self._stream.read(at, 4), "big", signed=True)
            at += 4
            if kind in (_PUT, _DELETE):  # else a value to merge: of lists, which no state of ours is
                yield key, (at, length) if kind == _PUT else None
            at += max(length, 0)

    def _text(self, at: int) -> tuple[str, int]:
        length = int.from_bytes(self._stream.read(at, 2), "big")
        return self._stream.read(at + 2, length).decode("utf-8", "replace"), at + 2 + length
