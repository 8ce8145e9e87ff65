"""Blob stores in memory: one for tests, the harness and the embedded engine, and one that holds the writes to another.

Key layout: the callers' names, as they are. Who may mutate: the owner of the object, from one thread; of held writes the runs of
one bucket in one batch. Recovery: none of its own; ``snapshot`` gives bytes that ``restore`` takes back, in this process or
another. What is held and not written yet is not there.
"""

from collections.abc import Iterator, Sequence

from windowpane.errors import MistakeError
from windowpane.state.blob_store import BlobStore
from windowpane.state.codec import decode_key, encode_key, frame, unframe

_KIND = "memory-blobs"


class MemoryBlobStore:
    """A ``BlobStore`` over a dict that counts its calls in ``reads``, ``writes`` and ``removes``.

    >>> store = MemoryBlobStore()
    >>> store.put("a", b"1")
    >>> store.get("a"), store.writes
    (b'1', 1)
    """

    def __init__(self) -> None:
        self.reads = 0
        self.writes = 0
        self.removes = 0
        self._blobs: dict[str, bytes] = {}

    def get(self, key: str) -> bytes | None:
        self.reads += 1
        return self._blobs.get(key)

    def prefetch(self, keys: Sequence[str]) -> None:
        """Nothing is far away."""

    def put(self, key: str, blob: bytes) -> None:
        self.writes += 1
        self._blobs[key] = blob

    def remove(self, key: str) -> None:
        self.removes += 1
        self._blobs.pop(key, None)

    def __contains__(self, key: str) -> bool:
        return key in self._blobs

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def keys(self) -> list[str]:
        return sorted(self._blobs)

    def snapshot(self) -> bytes:
        """Return the whole content as one blob; equal contents give equal bytes."""
        return frame(_KIND, encode_key(self._blobs))

    def restore(self, snapshot: bytes) -> None:
        """Replace the content by that of a ``snapshot``; the counters stay."""
        blobs = decode_key(unframe(_KIND, snapshot))
        if not isinstance(blobs, dict):
            raise MistakeError("a snapshot is a map of blobs")
        self._blobs = blobs


class HeldWrites:
    """A blob store over another, which is written to only by ``write``.

    So several runs of an engine in one batch leave there what the last of them leaves: rows that the first run stores and the
    second takes out, as where a watermark is in force in the batch that makes it, never reach it.
    """

    def __init__(self, store: BlobStore) -> None:
        self._store = store
        self._held: dict[str, bytes | None] = {}

    def get(self, key: str) -> bytes | None:
        return self._held[key] if key in self._held else self._store.get(key)

    def prefetch(self, keys: Sequence[str]) -> None:
        self._store.prefetch([key for key in keys if key not in self._held])

    def put(self, key: str, blob: bytes) -> None:
        self._held[key] = blob

    def remove(self, key: str) -> None:
        self._held[key] = None

    def write(self) -> None:
        for key, blob in self._held.items():
            if blob is None:
                self._store.remove(key)
            else:
                self._store.put(key, blob)
        self._held.clear()
