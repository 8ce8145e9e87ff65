"""Writes that wait: several runs of an engine in one batch leave in the store what the last of them leaves.

Rows that the first run stores and the second takes out, as where a watermark is in force in the batch that makes it, so never
reach the store. Who may mutate: the runs of one bucket in one batch. Recovery: none, for what is not written yet is not there.
"""

from __future__ import annotations

from collections.abc import Sequence

from windowpane.state.blob_store import BlobStore


class HeldWrites:
    """A blob store over another, which is written to only by ``write``."""

    def __init__(self, store: BlobStore) -> None:
        """Hold the writes to ``store``."""
        self._store = store
        self._held: dict[str, bytes | None] = {}

    def get(self, key: str) -> bytes | None:
        """Return the blob under ``key``, or None."""
        return self._held[key] if key in self._held else self._store.get(key)

    def prefetch(self, keys: Sequence[str]) -> None:
        """Be told which blobs are about to be read."""
        self._store.prefetch([key for key in keys if key not in self._held])

    def put(self, key: str, blob: bytes) -> None:
        """Hold a blob."""
        self._held[key] = blob

    def remove(self, key: str) -> None:
        """Hold that there is none."""
        self._held[key] = None

    def write(self) -> None:
        """Write what is held."""
        for key, blob in self._held.items():
            if blob is None:
                self._store.remove(key)
            else:
                self._store.put(key, blob)
        self._held.clear()
