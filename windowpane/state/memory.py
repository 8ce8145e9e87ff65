"""A blob store in memory: for tests, the harness and the embedded engine.

Key layout: the callers' names, as they are. Who may mutate: the owner of the object, from one thread.
Recovery: none of its own; ``snapshot`` gives bytes that ``restore`` takes back, in this process or another.
"""

from collections.abc import Sequence

from windowpane.state.codec import decode_key, encode_key, frame, unframe

_KIND = "memory-blobs"
_VERSION = 1


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
        """Return the blob under ``key``, or None."""
        self.reads += 1
        return self._blobs.get(key)

    def prefetch(self, keys: Sequence[str]) -> None:
        """Nothing is far away."""

    def put(self, key: str, blob: bytes) -> None:
        """Store ``blob`` under ``key``, in place of what was there."""
        self.writes += 1
        self._blobs[key] = blob

    def remove(self, key: str) -> None:
        """Forget ``key``; an absent key is no error."""
        self.removes += 1
        self._blobs.pop(key, None)

    def keys(self) -> list[str]:
        """Return the keys in sorted order; not counted as a call."""
        return sorted(self._blobs)

    def snapshot(self) -> bytes:
        """Return the whole content as one blob; equal contents give equal bytes."""
        return frame(_KIND, _VERSION, encode_key(self._blobs))

    def restore(self, snapshot: bytes) -> None:
        """Replace the content by that of a ``snapshot``; the counters stay.

        Raises:
            UnknownStateFormatError: the bytes are no snapshot, or one of an unknown version.
        """
        blobs = decode_key(unframe(_KIND, _VERSION, snapshot))
        assert isinstance(blobs, dict)
        self._blobs = blobs
