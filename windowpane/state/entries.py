"""Ordered entries: the map of bytes to bytes that keyed state and timers are kept in.

``SortedPages`` is the one for Spark, ``MemoryEntries`` the one for a single process. Order is that of the bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol


class Entries(Protocol):
    """A sorted map of byte strings."""

    def get(self, key: bytes) -> bytes | None:
        """Return the value of ``key``, ``None`` if there is none."""

    def put(self, key: bytes, value: bytes) -> None:
        """Set the value of ``key``."""

    def delete(self, key: bytes) -> None:
        """Remove ``key`` if it exists."""

    def scan(self, low: bytes, high: bytes | None = None) -> Iterator[tuple[bytes, bytes]]:
        """Yield the entries with ``low <= key < high`` in order; ``None`` means up to the last."""

    def keys(self, prefix: bytes) -> list[bytes]:
        """Return the keys that begin with ``prefix``, in order."""


class MemoryEntries:
    """Entries in a dict, sorted when scanned."""

    def __init__(self, entries: dict[bytes, bytes] | None = None) -> None:
        """Start from a copy of ``entries``."""
        self._entries = dict(entries or {})

    def get(self, key: bytes) -> bytes | None:
        """Return the value of ``key``, ``None`` if there is none."""
        return self._entries.get(key)

    def put(self, key: bytes, value: bytes) -> None:
        """Set the value of ``key``."""
        self._entries[key] = value

    def delete(self, key: bytes) -> None:
        """Remove ``key`` if it exists."""
        self._entries.pop(key, None)

    def scan(self, low: bytes, high: bytes | None = None) -> Iterator[tuple[bytes, bytes]]:
        """Yield the entries in the range as they were when the scan began."""
        keys = sorted(key for key in self._entries if key >= low and (high is None or key < high))
        return iter([(key, self._entries[key]) for key in keys])

    def keys(self, prefix: bytes) -> list[bytes]:
        """Return the keys that begin with ``prefix``, in order."""
        return sorted(key for key in self._entries if key.startswith(prefix))

    def __len__(self) -> int:
        """Return the number of entries."""
        return len(self._entries)

    def copy(self) -> dict[bytes, bytes]:
        """Return the entries as a dict."""
        return dict(self._entries)
