"""Timer queues: timers by time, over ordered entries.

Entry layout: ``time (order-preserving) | key | window -> empty``. An entry is its timer, so a timer is unique per (key, window,
time), setting it twice is setting it once, and the due timers are a prefix of the map. Who may mutate: the timer service of the
bucket. Recovery needs no more than the entries.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import NamedTuple

from windowpane.arrays.values import Value
from windowpane.state.codec import decode_int64, decode_key_at, encode_int64
from windowpane.state.entries import Entries, decode_namespace, encode_namespace
from windowpane.windowing.times import MAX
from windowpane.windowing.windows import Window


class Timer(NamedTuple):
    time: int
    key: Value
    window: Window | None
    key_bytes: bytes


class TimerQueue:
    """The timers of one time domain, earliest first; timers of one time in the order of key and window."""

    def __init__(self, entries: Entries) -> None:
        self._entries = entries
        self._due: list[bytes] = []
        self._loaded: bytes | None = b""  # entries below are in _due as well; None: all of them
        self._last: tuple[int, bytes, Window | None] | None = None  # the timer set last, if it still is

    def add(self, time: int, key_bytes: bytes, window: Window | None) -> None:
        last = self._last
        if last is not None and last[1] is key_bytes and last[2] is window and last[0] == time:
            return  # a trigger's timer and the cleanup are often one, and so are those of one window's elements
        self._last = time, key_bytes, window
        entry = encode_int64(time) + key_bytes + encode_namespace(window)
        if self._loaded is None or entry < self._loaded:
            heapq.heappush(self._due, entry)
        self._entries.put(entry, b"")

    def remove(self, time: int, key_bytes: bytes, window: Window | None) -> None:
        self._last = None
        self._entries.delete(encode_int64(time) + key_bytes + encode_namespace(window))

    def poll(self, now: int) -> Timer | None:
        """Return and remove the earliest timer with ``time <= now``, also one set meanwhile; ``None`` if none is due."""
        self._load(now)
        self._last = None
        while self._due and decode_int64(self._due[0][:8]) <= now:
            entry = heapq.heappop(self._due)
            if self._entries.get(entry) is not None:
                self._entries.delete(entry)
                return _timer(entry)
        return None

    def _load(self, now: int) -> None:
        high = None if now == MAX else encode_int64(now + 1)
        if self._loaded is None or (high is not None and high <= self._loaded):
            return
        for entry, _ in self._entries.scan(self._loaded, high):
            heapq.heappush(self._due, entry)
        self._loaded = high

    def next_time(self) -> int | None:
        first = next(self._entries.scan(b""), None)
        return None if first is None else decode_int64(first[0][:8])

    def __iter__(self) -> Iterator[Timer]:
        return (_timer(entry) for entry, _ in self._entries.scan(b""))


class KeyTimerQueue(TimerQueue):
    """Timers of one time domain, of which those of one key are due at a time.

    Entry layout: ``key | time (order-preserving) | window -> empty``.
    """

    def __init__(self, entries: Entries) -> None:
        super().__init__(entries)
        self._key_bytes = b""

    def enter_key(self, key_bytes: bytes) -> None:
        self._key_bytes = key_bytes

    def add(self, time: int, key_bytes: bytes, window: Window | None) -> None:
        self._entries.put(key_bytes + encode_int64(time) + encode_namespace(window), b"")

    def remove(self, time: int, key_bytes: bytes, window: Window | None) -> None:
        self._entries.delete(key_bytes + encode_int64(time) + encode_namespace(window))

    def poll(self, now: int) -> Timer | None:
        high = self._key_bytes + (encode_int64(now + 1) if now < MAX else _BEYOND)
        found = next(iter(self._entries.scan(self._key_bytes, high)), None)
        if found is None:
            return None
        self._entries.delete(found[0])
        return _timer_of_key(found[0])

    def next_time(self) -> int | None:
        return min((timer.time for timer in self), default=None)

    def __iter__(self) -> Iterator[Timer]:
        return (_timer_of_key(entry) for entry, _ in self._entries.scan(b""))


_BEYOND = b"\xff" * 9  # Above every encoded time


def _timer_of_key(entry: bytes) -> Timer:
    key, end = decode_key_at(entry, 0)
    return Timer(decode_int64(entry[end : end + 8]), key, decode_namespace(entry, end + 8)[0], entry[:end])


def _timer(entry: bytes) -> Timer:
    key, end = decode_key_at(entry, 8)
    return Timer(decode_int64(entry[:8]), key, decode_namespace(entry, end)[0], entry[8:end])
