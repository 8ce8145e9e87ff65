"""Ordered entries: the map of bytes to bytes that keyed state and timers are kept in, and windows as parts of their keys.

``SortedPages`` is the one for Spark, ``MemoryEntries`` the one for a single process. Order is that of the bytes. The bytes of a
window keep the order of time windows, and say where they end.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from windowpane import pickles
from windowpane.state.codec import decode_int64, encode_int64_pair
from windowpane.windowing.windows import GLOBAL_WINDOW, TimeWindow, Window

_NONE, _TIME, _GLOBAL, _OTHER = b"\x00", b"\x01", b"\x02", b"\x03"


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
    def __init__(self, entries: dict[bytes, bytes] | None = None) -> None:
        self._entries = dict(entries or {})

    def get(self, key: bytes) -> bytes | None:
        return self._entries.get(key)

    def put(self, key: bytes, value: bytes) -> None:
        self._entries[key] = value

    def delete(self, key: bytes) -> None:
        self._entries.pop(key, None)

    def scan(self, low: bytes, high: bytes | None = None) -> Iterator[tuple[bytes, bytes]]:
        """Yield the entries in the range as they were when the scan began."""
        keys = sorted(key for key in self._entries if key >= low and (high is None or key < high))
        return iter([(key, self._entries[key]) for key in keys])

    def keys(self, prefix: bytes) -> list[bytes]:
        return sorted(key for key in self._entries if key.startswith(prefix))

    def __len__(self) -> int:
        return len(self._entries)

    def copy(self) -> dict[bytes, bytes]:
        return dict(self._entries)


def encode_namespace(window: Window | None) -> bytes:
    """Return the bytes of a window; ``None`` is the namespace of what belongs to a key and no window."""
    if type(window) is TimeWindow:
        return _TIME + encode_int64_pair(window.start, window.end)
    if window is None:
        return _NONE
    if window == GLOBAL_WINDOW:
        return _GLOBAL
    body = pickles.dumps(window)
    return _OTHER + len(body).to_bytes(4, "big") + body


def decode_namespace(data: bytes, at: int = 0) -> tuple[Window | None, int]:
    """Return the window that begins at ``at``, and where it ends."""
    tag = data[at : at + 1]
    if tag == _TIME:
        return TimeWindow(decode_int64(data[at + 1 : at + 9]), decode_int64(data[at + 9 : at + 17])), at + 17
    if tag == _OTHER:
        end = at + 5 + int.from_bytes(data[at + 1 : at + 5], "big")
        window: Window = pickles.loads(data[at + 5 : end])
        return window, end
    return (GLOBAL_WINDOW if tag == _GLOBAL else None), at + 1
