"""Append-only tables by segment (a time slice, say): a batch appends its rows, a segment is removed as a whole.

Key layout, for a log named ``name``::

    name.i               the index: for each segment its first chunk, number of chunks, rows and bytes
    name.<segment>.<n>   one chunk: the rows that one batch appended, or a whole segment after a compaction

Appending costs what is appended and reads nothing; dropping a segment deletes its chunks; reading one merges them. Past
``MAX_CHUNKS`` chunks a segment wants compaction: ``replace`` what ``read`` gave by its merge.

Who may mutate: one ``SegmentLog`` object at a time for a name. Chunks are written at once, the index at ``flush``; the blob store
commits both or neither. Recovery reads the index.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass

import pyarrow as pa

from windowpane.errors import MistakeError
from windowpane.sizes import Size
from windowpane.state.blob_store import BlobStore
from windowpane.state.codec import frame, unframe
from windowpane.state.compact import from_stream, to_stream, with_plain_texts

MAX_CHUNKS = Size("chunks of a segment", 8, (1, 2))

_LARGE = Size("bytes of a chunk worth compressing", 1 << 16, (1, 512))

_CHUNK_KIND, _INDEX_KIND = "segment-log-chunk", "segment-log-index"
_INDEX_FIELDS = 5


@dataclass
class _Segment:
    first: int = 0
    chunks: int = 0
    rows: int = 0
    size: int = 0


class SegmentLog:
    """Tables by segment, an int64 that orders them.

    Example:
        >>> from windowpane.state.memory import MemoryBlobStore
        >>> log = SegmentLog(MemoryBlobStore(), "s")
        >>> log.append(0, pa.table({"k": ["JFK"], "n": [1]})); log.flush()
        >>> [table.num_rows for table in log.read(0)]
        [1]
    """

    def __init__(self, store: BlobStore, name: str, coded: Container[str] = ()) -> None:
        """Read the index; texts of the columns ``coded`` may be codes when they are read and appended."""
        self._store = store
        self._name = name
        self._segments = self._read_index()
        self._changed = False
        self._coded = coded

    def segments(self) -> list[int]:
        return sorted(self._segments)

    def __contains__(self, segment: int) -> bool:
        return segment in self._segments

    def wants_compaction(self, segment: int) -> bool:
        held = self._segments.get(segment)
        return held is not None and held.chunks > MAX_CHUNKS.value

    @property
    def byte_size(self) -> int:
        return sum(segment.size for segment in self._segments.values())

    @property
    def row_count(self) -> int:
        return sum(segment.rows for segment in self._segments.values())

    @property
    def chunk_count(self) -> int:
        return sum(segment.chunks for segment in self._segments.values())

    def size_of(self, segment: int) -> int:
        return self._segments.get(segment, _Segment()).size

    def row_count_of(self, segment: int) -> int:
        return self._segments.get(segment, _Segment()).rows

    def append(self, segment: int, table: pa.Table) -> None:
        if not table.num_rows:
            return
        held = self._segments.setdefault(segment, _Segment())
        blob = _to_blob(table)
        self._store.put(self._chunk_key(segment, held.first + held.chunks), blob)
        held.chunks += 1
        held.rows += table.num_rows
        held.size += len(blob)
        self._changed = True

    def prefetch(self, segments: Iterable[int]) -> None:
        self._store.prefetch([key for segment in segments for key in self._chunk_keys(segment)])

    def read(self, segment: int) -> list[pa.Table]:
        keys = self._chunk_keys(segment)
        self._store.prefetch(keys)
        return [_from_blob(self._store.get(key), self._coded) for key in keys]

    def replace(self, segment: int, table: pa.Table) -> None:
        following = self._segments[segment].first + self._segments[segment].chunks
        self.drop(segment)
        self._segments[segment] = _Segment(first=following)
        self.append(segment, table)

    def rewrite(self, change: Callable[[pa.Table], pa.Table]) -> None:
        """Put what a function makes of each chunk in its place: as many rows."""
        for segment, held in self._segments.items():
            blobs = [_to_blob(change(chunk)) for chunk in self.read(segment)]
            for key, blob in zip(self._chunk_keys(segment), blobs, strict=True):
                self._store.put(key, blob)
            held.size, self._changed = sum(map(len, blobs)), True

    def drop(self, segment: int) -> None:
        for key in self._chunk_keys(segment):
            self._store.remove(key)
        self._changed |= self._segments.pop(segment, None) is not None

    def flush(self) -> None:
        """Write the index if it changed; an empty log leaves nothing."""
        if not self._changed:
            return
        if self._segments:
            numbers = array("q")
            for segment, held in sorted(self._segments.items()):
                numbers.extend((segment, held.first, held.chunks, held.rows, held.size))
            self._store.put(self._index_key, frame(_INDEX_KIND, numbers.tobytes()))
        else:
            self._store.remove(self._index_key)
        self._changed = False

    @property
    def _index_key(self) -> str:
        return f"{self._name}.i"

    def _chunk_keys(self, segment: int) -> list[str]:
        held = self._segments.get(segment, _Segment())
        return [self._chunk_key(segment, number) for number in range(held.first, held.first + held.chunks)]

    def _chunk_key(self, segment: int, number: int) -> str:
        return f"{self._name}.{segment:x}.{number:x}"

    def _read_index(self) -> dict[int, _Segment]:
        blob = self._store.get(self._index_key)
        if blob is None:
            return {}
        numbers = array("q", unframe(_INDEX_KIND, blob))
        starts = range(0, len(numbers), _INDEX_FIELDS)
        return {numbers[at]: _Segment(*numbers[at + 1 : at + _INDEX_FIELDS]) for at in starts}


def _to_blob(table: pa.Table) -> bytes:
    """Return a chunk, compressed where moving it costs more than that: Spark takes 10 ms and more for a megabyte, zstd two."""
    is_large = table.nbytes >= _LARGE.value
    stream = to_stream(
        table if is_large else with_plain_texts(table), "zstd" if is_large else None, lists=is_large, texts=is_large
    )
    return frame(_CHUNK_KIND, stream)


def _from_blob(blob: bytes | None, coded: Container[str]) -> pa.Table:
    if blob is None:
        raise MistakeError("the index names only chunks that were written")
    return from_stream(unframe(_CHUNK_KIND, blob), coded)
