"""Keyed state: values and lists by (key, window, name), over ordered entries.

Entry layout, in the order of the bytes::

    key | window | name | 0x00                  -> the pickled value
    key | window | name | 0x01 | chunk number   -> a pickled list of elements, appended by one flush

so all state of a window is stored together, and all of a key. Appending to a list writes one new chunk and reads none; a list of
more than ``MAX_CHUNKS`` chunks is rewritten as one when it is next read and flushed.

Who may mutate: the operator of the bucket, one element at a time, under the current key. Changes live in a cache of Python
objects until ``flush`` writes them to the entries; recovery needs no more than the entries. Payloads are pickled Python
objects: a checkpoint is trusted storage.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from windowpane import pickles
from windowpane.arrays.values import Value
from windowpane.errors import MistakeError, present
from windowpane.sizes import Size
from windowpane.state.codec import decode_key_at, encode_key
from windowpane.state.entries import Entries, decode_namespace, encode_namespace
from windowpane.windowing.windows import Window

MAX_CHUNKS = Size("chunks of a list", 8, (1, 2))

_VALUE, _CHUNK = b"\x00", b"\x01"
_ABSENT: Value = object()


class _List:
    """A list in the cache: the chunks that the entries hold, their elements if they were read, and those appended since."""

    __slots__ = ("appended", "chunks", "rewrite", "stored")

    def __init__(self, chunks: list[bytes]) -> None:
        self.chunks = chunks
        self.stored: list[Value] | None = None
        self.appended: list[Value] = []
        self.rewrite = False


class KeyedState:
    """Values and lists of the current key, by window and name.

    Example:
        >>> from windowpane.state.entries import MemoryEntries
        >>> state = KeyedState(MemoryEntries())
        >>> state.set_current_key(("JFK",))
        >>> state.put(None, "seen", 1); state.get(None, "seen")
        1
    """

    def __init__(self, entries: Entries) -> None:
        self._entries = entries
        self._values: dict[bytes, Value] = {}
        self._lists: dict[bytes, _List] = {}
        self._dirty_values: set[bytes] = set()
        self._dirty_lists: set[bytes] = set()
        self._names: dict[str, bytes] = {}
        self.current_key: Value = None
        self.current_key_bytes = encode_key(None)
        # The window last spoken of, and what addresses in it begin with.
        self._window: Window | None = None
        self._prefix: bytes | None = None

    def set_current_key(self, key: object, key_bytes: bytes | None = None) -> None:
        self.current_key = key
        self.current_key_bytes = encode_key(key) if key_bytes is None else key_bytes
        self._prefix = None

    def get(self, window: Window | None, name: str) -> Value:
        return self.get_at(self.address(window, name))

    def put(self, window: Window | None, name: str, value: object) -> None:
        self.put_at(self.address(window, name), value)

    def get_at(self, address: bytes) -> Value:
        value = self._values.get(address, _ABSENT)
        if value is _ABSENT:
            stored = self._entries.get(address + _VALUE)
            value = self._values[address] = None if stored is None else pickles.loads(stored)
        return value

    def put_at(self, address: bytes, value: object) -> None:
        self._values[address] = value
        self._dirty_values.add(address)

    def remove(self, window: Window | None, name: str) -> None:
        if self.get(window, name) is not None:
            self.put(window, name, None)

    def append(self, window: Window | None, name: str, element: object) -> None:
        address = self.address(window, name)
        self._cached_list(address).appended.append(element)
        self._dirty_lists.add(address)

    def get_list(self, window: Window | None, name: str) -> list[Value]:
        cached = self._read_list(self.address(window, name))
        if cached.stored is None:
            raise MistakeError("it was read from the store")
        return cached.stored + cached.appended

    def put_list(self, window: Window | None, name: str, elements: list[Value]) -> None:
        address = self.address(window, name)
        cached = self._read_list(address)
        cached.stored, cached.appended, cached.rewrite = [], list(elements), True
        self._dirty_lists.add(address)

    def has_list(self, window: Window | None, name: str) -> bool:
        cached = self._cached_list(self.address(window, name))
        if cached.appended or cached.stored is not None:
            return bool(cached.appended or cached.stored)
        return bool(cached.chunks)

    def flush(self) -> None:
        for address in self._dirty_lists:
            self._flush_list(address, self._lists[address])
        for address in self._dirty_values:
            if self._values[address] is None:
                self._entries.delete(address + _VALUE)
            else:
                self._entries.put(address + _VALUE, pickles.dumps(self._values[address]))
        for cache in (self._dirty_values, self._dirty_lists, self._values, self._lists):
            cache.clear()

    def rewrite(self, change: Callable[[Value], Value]) -> None:
        """Put what a function makes of each value, and of each list of elements, in its place; flushes first."""
        self.flush()
        for entry, stored in list(self._entries.scan(b"")):
            self._entries.put(entry, pickles.dumps(change(pickles.loads(stored))))

    def count(self) -> int:
        """Return the number of values and lists that are not empty, over all keys; flushes first."""
        self.flush()
        return len({address_of(entry) for entry, _ in self._entries.scan(b"")})

    def slots(self) -> Iterator[tuple[Value, Window | None, str]]:
        """Yield (key, window, name) of every value and list that is not empty; flushes first."""
        self.flush()
        for address in sorted({address_of(entry) for entry, _ in self._entries.scan(b"")}):
            key, at = decode_key_at(address, 0)
            window, at = decode_namespace(address, at)
            yield key, window, str(decode_key_at(address, at)[0])

    def sizes(self, key_bytes: bytes = b"") -> Iterator[tuple[Value, bytes, Window | None, str, int]]:
        """Yield (key, encoded key, window, name, stored bytes) of every value and list, of one key where it is given."""
        high = key_bytes + b"\xff" if key_bytes else None
        for entry, stored in self._entries.scan(key_bytes, high):
            key, end = decode_key_at(entry, 0)
            window, at = decode_namespace(entry, end)
            yield key, entry[:end], window, str(decode_key_at(entry, at)[0]), len(entry) + len(stored)

    def address(self, window: Window | None, name: str) -> bytes:
        """Return where the value or list of a name is stored, of the current key."""
        encoded = self._names.get(name)
        if encoded is None:
            encoded = self._names[name] = encode_key(name)
        if self._prefix is None or window is not self._window:
            self._window, self._prefix = window, self.current_key_bytes + encode_namespace(window)
        return self._prefix + encoded

    def _cached_list(self, address: bytes) -> _List:
        cached = self._lists.get(address)
        if cached is None:
            cached = self._lists[address] = _List(self._entries.keys(address + _CHUNK))
        return cached

    def _read_list(self, address: bytes) -> _List:
        cached = self._cached_list(address)
        if cached.stored is None:
            cached.stored = []
            for key in cached.chunks:
                chunk = present(self._entries.get(key), "nobody else deletes chunks")
                cached.stored.extend(pickles.loads(chunk))
            cached.rewrite = len(cached.chunks) >= MAX_CHUNKS.value
        return cached

    def _flush_list(self, address: bytes, cached: _List) -> None:
        elements, number = cached.appended, 0
        if cached.rewrite:
            elements = (cached.stored or []) + elements
            for key in cached.chunks:
                self._entries.delete(key)
        elif cached.chunks:
            number = int.from_bytes(cached.chunks[-1][-8:], "big") + 1
        if elements:
            key = address + _CHUNK + number.to_bytes(8, "big")
            self._entries.put(key, pickles.dumps(elements))


def address_of(entry: bytes) -> bytes:
    """Return the key, the window and the name of an entry."""
    _, at = decode_key_at(entry, 0)
    _, at = decode_namespace(entry, at)
    _, at = decode_key_at(entry, at)
    return entry[:at]
