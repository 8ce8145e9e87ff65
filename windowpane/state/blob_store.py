"""The one thing windowpane needs of a state backend: a map of short names to blobs.

Key layout: the callers own the names; each data structure prefixes its own. Who may mutate: the one task that
runs the bucket. Recovery: the backend's. A store is transactional per micro-batch, all of a batch's calls or
none survive, so nothing built on it needs a write-ahead log.
"""

from collections.abc import Sequence
from typing import Protocol


class BlobStore(Protocol):
    """A map of short ``str`` keys to ``bytes``.

    Over Spark's ``transformWithState`` every call costs about 200 µs whatever the size of the blob, so
    callers keep the number of calls low and the blobs large. A store with a true ``is_near`` holds them in the process, where a
    call costs little.
    """

    def get(self, key: str) -> bytes | None:
        """Return the blob under ``key``, or None."""

    def prefetch(self, keys: Sequence[str]) -> None:
        """Take note that the blobs under ``keys`` are about to be read, each once: a distant store reads them together."""

    def put(self, key: str, blob: bytes) -> None:
        """Store ``blob`` under ``key``, in place of an earlier one."""

    def remove(self, key: str) -> None:
        """Forget ``key``; an absent key is no error."""


class Below:
    """The blobs of a store whose names begin in one way, known by the rest of their names."""

    def __init__(self, store: BlobStore, prefix: str) -> None:
        self._store, self._prefix = store, prefix

    def _name(self, key: str) -> str:
        return self._prefix + key

    def get(self, key: str) -> bytes | None:
        """Return the blob under ``key``, ``None`` if there is none."""
        return self._store.get(self._name(key))

    def prefetch(self, keys: Sequence[str]) -> None:
        """Read the blobs under ``keys``, which are needed next, together."""
        self._store.prefetch(list(map(self._name, keys)))

    def put(self, key: str, blob: bytes) -> None:
        """Store ``blob`` under ``key``."""
        self._store.put(self._name(key), blob)

    def remove(self, key: str) -> None:
        """Forget ``key``."""
        self._store.remove(self._name(key))


def note_layout(store: BlobStore, name: str, layout: object) -> None:
    """Tell a store with a dict ``layouts`` what is laid out over it under ``name``: who moves keys to it writes them by that."""
    layouts: dict[str, object] | None = getattr(store, "layouts", None)
    if layouts is not None:
        layouts[name] = layout
