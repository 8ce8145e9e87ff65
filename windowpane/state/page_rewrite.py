"""Pages of sorted entries, their index, and the rewrite of both: what ``SortedPages.flush`` makes of the changes.

A rewrite changes nothing that is stored. It reads the pages that a change falls into, and neighbours that one of them joins,
and leaves the index to be and the pages with new content. The invariants of both are in ``sorted_pages``.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import accumulate
from typing import NamedTuple

import pyarrow as pa

from windowpane.arrays.values import Value
from windowpane.errors import UnreadableStateError
from windowpane.state.codec import frame, unframe

_PAGE_KIND, _INDEX_KIND = "sorted-pages-page", "sorted-pages-index"
_PAGE_SCHEMA = pa.schema([("key", pa.binary()), ("value", pa.binary())])
_INDEX_SCHEMA = pa.schema([("fence", pa.binary()), ("page", pa.int64()), ("rows", pa.int64()), ("bytes", pa.int64())])

ENTRY_OVERHEAD = 8  # Bytes an entry takes besides its key and value: two offsets of 32 bits


@dataclass(slots=True)
class Page:
    keys: list[bytes] = field(default_factory=list)
    entries: dict[bytes, bytes] = field(default_factory=dict)

    @classmethod
    def of(cls, entries: Iterable[tuple[bytes, bytes]]) -> Page:
        by_key = dict(entries)
        return cls(sorted(by_key), by_key)

    def get(self, key: bytes) -> bytes | None:
        return self.entries.get(key)

    def between(self, start: bytes, stop: bytes | None) -> list[bytes]:
        end = None if stop is None else bisect_left(self.keys, stop)
        return self.keys[bisect_left(self.keys, start) : end]

    def part(self, start: int, end: int) -> Page:
        keys = self.keys[start:end]
        return Page(keys, {key: self.entries[key] for key in keys})

    def sizes(self) -> list[int]:
        return [len(key) + len(self.entries[key]) + ENTRY_OVERHEAD for key in self.keys]

    def to_blob(self) -> bytes:
        values = [self.entries[key] for key in self.keys]
        return _to_blob(_PAGE_KIND, _PAGE_SCHEMA, [self.keys, values])

    @classmethod
    def from_blob(cls, blob: bytes) -> Page:
        keys, values = _from_blob(_PAGE_KIND, _PAGE_SCHEMA, blob)
        return cls(keys, dict(zip(keys, values, strict=True)))


@dataclass(slots=True)
class PageIndex:
    """Per page, in key order: first key, number, rows and bytes."""

    fences: list[bytes] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)

    def locate(self, key: bytes) -> int:
        """The position of the page whose range holds ``key``; -1 if it lies before the first fence."""
        return bisect_right(self.fences, key) - 1

    def copy(self) -> PageIndex:
        return PageIndex(self.fences[:], self.numbers[:], self.rows[:], self.sizes[:])

    def replace(self, start: int, end: int, pages: dict[int, Page]) -> None:
        self.fences[start:end] = [page.keys[0] for page in pages.values()]
        self.numbers[start:end] = pages
        self.rows[start:end] = [len(page.keys) for page in pages.values()]
        self.sizes[start:end] = [sum(page.sizes()) for page in pages.values()]

    def to_blob(self) -> bytes:
        columns: list[list[bytes] | list[int]] = [self.fences, self.numbers, self.rows, self.sizes]
        return _to_blob(_INDEX_KIND, _INDEX_SCHEMA, columns)

    @classmethod
    def from_blob(cls, blob: bytes) -> PageIndex:
        return cls(*_from_blob(_INDEX_KIND, _INDEX_SCHEMA, blob))


def _to_blob(kind: str, schema: pa.Schema, columns: Iterable[list[bytes] | list[int]]) -> bytes:
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    body: bytes = pa.RecordBatch.from_arrays(arrays, schema=schema).serialize().to_pybytes()
    return frame(kind, body)


def _from_blob(kind: str, schema: pa.Schema, blob: bytes) -> list[list[Value]]:
    body = unframe(kind, blob)
    try:
        batch = pa.ipc.read_record_batch(pa.py_buffer(body), schema)
    except (pa.ArrowException, OSError) as cause:
        raise UnreadableStateError(
            f"a state blob of kind {kind!r} ({len(body)} bytes) is damaged: {cause}; restart from an intact checkpoint"
        ) from cause
    return [column.to_pylist() for column in batch.columns]


class PageLimits(NamedTuple):
    """How large pages get."""

    rows: int
    bytes: int


class PageRewrite:
    """One flush before it writes: the index to be and, by number, the pages with new content (``dirty``)."""

    def __init__(self, before: PageIndex, limits: PageLimits, read: Callable[[int], Page]) -> None:
        self.index = before.copy()
        self.dirty: dict[int, Page] = {}
        self.altered = False
        self._seams: set[int] = set()  # pages that got another right neighbour, since theirs became empty
        self._limits = limits
        self._read = read
        # Above every number in use, so that no page is both removed and written by one flush.
        self._next_number = max(before.numbers, default=-1) + 1

    def apply(self, changes: dict[bytes, bytes | None]) -> None:
        """Apply the changes page by page, from the last to the first so that positions stay valid."""
        by_position: dict[int, list[bytes]] = {}
        for key in changes:
            by_position.setdefault(max(self.index.locate(key), 0), []).append(key)
        last = max(len(self.index.numbers) - 1, 0)
        for at in sorted(by_position, reverse=True):
            page = self._changed(at, {key: changes[key] for key in by_position[at]})
            if page is not None:
                self._replace(at, self._cut(page, fill=at == last))

    def _changed(self, at: int, changes: dict[bytes, bytes | None]) -> Page | None:
        old = self._read(self.index.numbers[at]).entries if self.index.numbers else {}
        if all(old.get(key) == value for key, value in changes.items()):
            return None
        merged = {**old, **changes}
        return Page.of((key, value) for key, value in merged.items() if value is not None)

    def _cut(self, page: Page, fill: bool) -> list[Page]:
        """Cut a page into such as keep the limits.

        Pages are cut in halves, so that both can grow. At the end of the key space (``fill``) they are filled
        one after the other instead: what is appended in order leaves full pages behind.
        """
        totals = list(accumulate(page.sizes(), initial=0))
        ends = self._filled(totals) if fill else self._halved(totals, 0, len(page.keys))
        starts = [0, *ends[:-1]]
        return [page.part(start, end) for start, end in zip(starts, ends, strict=True)] if page.keys else []

    def _filled(self, totals: list[int]) -> list[int]:
        ends = [0]
        while ends[-1] < len(totals) - 1:
            start = ends[-1]
            by_bytes = bisect_right(totals, totals[start] + self._limits.bytes) - 1
            ends.append(max(start + 1, min(start + self._limits.rows, by_bytes)))
        return ends[1:]

    def _halved(self, totals: list[int], start: int, end: int) -> list[int]:
        rows, size = end - start, totals[end] - totals[start]
        if rows == 1 or (rows <= self._limits.rows and size <= self._limits.bytes):
            return [end]
        middle = start + rows // 2
        if size > self._limits.bytes:
            middle = bisect_left(totals, totals[start] + size // 2, start + 1, end - 1)
        return self._halved(totals, start, middle) + self._halved(totals, middle, end)

    def _replace(self, at: int, pages: list[Page]) -> None:
        """Put ``pages`` in the place of the one at ``at``; the first of them inherits its number."""
        end = min(at + 1, len(self.index.numbers))
        inherited = self.index.numbers[at:end][: len(pages)]
        fresh = range(self._next_number, self._next_number + len(pages) - len(inherited))
        self._next_number = fresh.stop
        numbered = dict(zip([*inherited, *fresh], pages, strict=True))
        self.index.replace(at, end, numbered)
        self.dirty.update(numbered)
        self.altered = True
        if not pages and at > 0:
            self._seams.add(self.index.numbers[at - 1])

    def join_small_neighbours(self) -> None:
        """Join the rewritten pages with their neighbours where the limits say so.

        One pass from the end is enough: a join only makes a page fuller, so a boundary that stayed stays.
        """
        index = self.index
        for at in range(len(index.numbers) - 2, -1, -1):
            left, right = index.numbers[at : at + 2]
            touched = left in self.dirty or right in self.dirty or left in self._seams
            if touched and self._joins(index.rows[at : at + 2], index.sizes[at : at + 2]):
                first, second = (self.dirty.get(number) or self._read(number) for number in (left, right))
                self.dirty.pop(right, None)
                self.dirty[left] = Page.of((first.entries | second.entries).items())
                index.replace(at, at + 2, {left: self.dirty[left]})

    def _joins(self, rows: list[int], sizes: list[int]) -> bool:
        """Whether two neighbours become one: one is under a quarter full, both together under three."""
        limits = self._limits
        if 4 * sum(rows) > 3 * limits.rows or 4 * sum(sizes) > 3 * limits.bytes:
            return False
        return any(4 * row < limits.rows and 4 * size < limits.bytes for row, size in zip(rows, sizes, strict=True))
