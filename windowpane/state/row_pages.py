"""Rows in one order of byte keys, cut into pages: a B+tree of three levels over a blob store, read and written a batch at a time.

What a page looks like inside is its owner's: here it is a blob.

Key layout, for pages named ``name``::

    name.r        the root: for each block of the index its fence, number and page count; the next free number
    name.b<hex>   a block of the index: for each of its pages in order the fence and the number
    name.p<hex>   a page: rows, in a form of the owner's

        root    | fence block 0 | fence block 4 | ...
        block   | fence page 7 | fence page 2 | fence page 9 | ...
        page    rows whose keys are at or above its fence and below the next page's

Pages are small, so that changes far apart cost little each; the index has two levels, so that none of it grows with the state.
A page is addressed by its ordinal, its place among all pages; ordinals hold until ``replace``. A fence is a lower bound: it stays
when the first row of its page is removed, so that the index changes only when pages are cut or joined. The first page has no
lower bound.

Who may mutate: one object at a time for a name. Pages are written at once, blocks and root at ``flush``. Recovery: none, the blob
store commits all of a batch or nothing.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from windowpane.arrays import Bytes, Integers
from windowpane.errors import UnreadableStateError
from windowpane.sizes import Size
from windowpane.state.blob_store import BlobStore
from windowpane.state.codec import frame, unframe

_BLOCK, _ROOT = "row-pages-block", "row-pages-root"
BLOCK_PAGES = Size("pages of a block of row pages", 512, (4, 6))  # Most pages of an index block


@dataclass(frozen=True)
class NewPage:
    fence: bytes
    blob: bytes


@dataclass
class _Block:
    """Fences in order, the number that belongs to each, and in the root how many pages are below it."""

    fences: Bytes
    numbers: Integers
    counts: Integers

    @classmethod
    def of(cls, fences: Sequence[bytes], numbers: Sequence[int], counts: Sequence[int] | None = None) -> _Block:
        counted = [1] * len(numbers) if counts is None else counts
        return cls(np.array(fences or [], "S" if fences else "S1"), np.array(numbers, np.int64), np.array(counted, np.int64))

    def to_bytes(self) -> bytes:
        head = np.array([len(self.numbers), self.fences.dtype.itemsize], np.int64)
        return b"".join(each.tobytes() for each in (head, self.numbers, self.counts, self.fences))

    @classmethod
    def from_bytes(cls, body: bytes) -> _Block:
        rows, width = np.frombuffer(body, np.int64, 2).tolist()
        numbers, counts = (np.frombuffer(body, np.int64, rows, 16 + 8 * rows * part) for part in range(2))
        return cls(np.frombuffer(body, f"S{width}", rows, 16 + 16 * rows), numbers, counts)

    def locate(self, keys: Bytes) -> Integers:
        """Return the entry whose range holds each key, of keys that ascend: the fewer are looked up among the more."""
        if len(keys) <= len(self.fences):
            return np.maximum(np.searchsorted(self.fences, keys, side="right") - 1, 0)
        reached = np.bincount(np.searchsorted(keys, self.fences), minlength=len(keys) + 1)
        return np.maximum(np.cumsum(reached)[: len(keys)] - 1, 0)

    def splice(self, start: int, end: int, new: _Block) -> None:
        self.fences = np.concatenate([self.fences[:start], new.fences, self.fences[end:]])
        self.numbers = np.concatenate([self.numbers[:start], new.numbers, self.numbers[end:]])
        self.counts = np.concatenate([self.counts[:start], new.counts, self.counts[end:]])

    def part(self, start: int, end: int) -> _Block:
        return _Block(self.fences[start:end], self.numbers[start:end], self.counts[start:end])


class RowPages:
    def __init__(self, store: BlobStore, name: str) -> None:
        self._store = store
        self.are_near = bool(getattr(store, "is_near", False))
        self._name = name
        self._sizes: dict[int, int] = {}
        self._blocks: dict[int, _Block] = {}
        self._changed: set[int] = set()
        self._removed: set[int] = set()
        self._altered = False
        self._known_offsets: list[int] | None = None
        blob = store.get(f"{name}.r")
        body = np.zeros(2, np.int64).tobytes() + _Block.of([], []).to_bytes() if blob is None else unframe(_ROOT, blob)
        self._next, self.byte_size = np.frombuffer(body, np.int64, 2).tolist()
        self._root = _Block.from_bytes(body[16:])

    def __len__(self) -> int:
        return self._offsets()[-1]

    # --- reads ----------------------------------------------------------------------------------------------------------

    def locate(self, keys: Bytes) -> Integers:
        """Return the ordinal of the page whose range holds each key, of keys that ascend; 0 while there are no pages."""
        ordinals = np.zeros(len(keys), np.int64)
        if not len(self._root.numbers):
            return ordinals
        places, offsets = self._root.locate(keys), self._offsets()
        firsts = np.flatnonzero(np.append(True, places[1:] != places[:-1])[: len(places)]).tolist()
        for low, high in pairwise([*firsts, len(keys)]):
            place = int(places[low])
            ordinals[low:high] = offsets[place] + self._block(place).locate(keys[low:high])
        return ordinals

    def fence(self, ordinal: int) -> bytes:
        place, slot = self._address(ordinal)
        return bytes(self._block(place).fences[slot])

    def prefetch(self, ordinals: Sequence[int]) -> None:
        self._store.prefetch([self._page_key(self._number(ordinal)) for ordinal in ordinals])

    def read(self, ordinal: int) -> bytes:
        number = self._number(ordinal)
        blob = self._store.get(self._page_key(number))
        if blob is None:
            key = self._page_key(number)
            raise UnreadableStateError(f"page {key!r} of an index is missing: restart from an intact checkpoint")
        self._sizes[number] = len(blob)
        return blob

    # --- changes --------------------------------------------------------------------------------------------------------

    def rewrite(self, ordinal: int, blob: bytes) -> None:
        self._write_page(self._number(ordinal), blob)

    def replace(self, start: int, end: int, pages: Sequence[NewPage]) -> None:
        """Put new pages in place of the pages at [start, end), which were read. Ordinals from ``start`` on change."""
        self._altered = True
        old = self._remove(start, end)
        kept = old[: len(pages)]
        numbers = [*kept, *range(self._next, self._next + len(pages) - len(kept))]
        self._next += len(pages) - len(kept)
        for number in old[len(pages) :]:
            self._store.remove(self._page_key(number))
            self.byte_size -= self._sizes.pop(number, 0)
        for number, page in zip(numbers, pages, strict=True):
            self._write_page(number, page.blob)
        if pages:
            self._insert(start, _Block.of([page.fence for page in pages], numbers))

    def flush(self) -> None:
        if not self._altered:
            return
        for number in self._removed:
            self._store.remove(self._block_key(number))
        for number in self._changed - self._removed:
            self._store.put(self._block_key(number), frame(_BLOCK, self._blocks[number].to_bytes()))
        body = np.array([self._next, self.byte_size], np.int64).tobytes() + self._root.to_bytes()
        self._store.put(f"{self._name}.r", frame(_ROOT, body))
        self._changed, self._removed, self._altered = set(), set(), False

    def _remove(self, start: int, end: int) -> list[int]:
        numbers: list[int] = []
        while start < end:
            place, slot = self._address(start)
            block, number = self._block(place), int(self._root.numbers[place])
            count = min(end - start, len(block.numbers) - slot)
            numbers += block.numbers[slot : slot + count].tolist()
            block.splice(slot, slot + count, _Block.of([], []))
            self._changed.add(number)
            self._restate(place)
            end -= count
        return numbers

    def _insert(self, ordinal: int, new: _Block) -> None:
        """Put entries into the index before the page at ``ordinal``, and cut the block they make too large."""
        if not len(self._root.numbers):
            self._add_blocks(0, 0, new)
            return
        offsets = self._offsets()
        place = max(bisect_left(offsets, ordinal) - 1, 0)
        block, slot = self._block(place), ordinal - offsets[place]
        block.splice(slot, slot, new)
        if len(block.numbers) > BLOCK_PAGES.value:
            self._removed.add(int(self._root.numbers[place]))
            self._add_blocks(place, place + 1, block)
        else:
            self._changed.add(int(self._root.numbers[place]))
            self._restate(place)

    def _restate(self, place: int) -> None:
        """Bring the root up to date with a block that changed: its fence and page count, or that it is empty."""
        block, number = self._block(place), int(self._root.numbers[place])
        self._known_offsets = None
        if len(block.numbers):
            entry = _Block.of([bytes(block.fences[0])], [number], [len(block.numbers)])
            self._root.splice(place, place + 1, entry)
        else:
            self._root.splice(place, place + 1, _Block.of([], []))
            self._removed.add(number)

    def _add_blocks(self, start: int, end: int, entries: _Block) -> None:
        """Put the entries, as blocks three quarters full, in place of the blocks at [start, end) of the root."""
        self._known_offsets = None
        rows = len(entries.numbers)
        cuts = np.linspace(0, rows, max(-(-4 * rows // (3 * BLOCK_PAGES.value)), 1) + 1).astype(int).tolist()
        parts = [entries.part(low, high) for low, high in pairwise(cuts)]
        numbers = list(range(self._next, self._next + len(parts)))
        self._next += len(parts)
        self._blocks.update(zip(numbers, parts, strict=True))
        self._changed.update(numbers)
        self._root.splice(
            start, end, _Block.of([bytes(part.fences[0]) for part in parts], numbers, [len(p.numbers) for p in parts])
        )

    def _write_page(self, number: int, blob: bytes) -> None:
        self._store.put(self._page_key(number), blob)
        self.byte_size += len(blob) - self._sizes.get(number, 0)
        self._sizes[number] = len(blob)
        self._altered = True

    # --- the index ------------------------------------------------------------------------------------------------------

    def _offsets(self) -> list[int]:
        """The ordinal of the first page of each block, and the number of pages last."""
        if self._known_offsets is None:
            self._known_offsets = [0, *np.cumsum(self._root.counts).tolist()]
        return self._known_offsets

    def _number(self, ordinal: int) -> int:
        place, slot = self._address(ordinal)
        return int(self._block(place).numbers[slot])

    def _address(self, ordinal: int) -> tuple[int, int]:
        offsets = self._offsets()
        place = bisect_right(offsets, ordinal) - 1
        return place, ordinal - offsets[place]

    def _block(self, place: int) -> _Block:
        number = int(self._root.numbers[place])
        if number not in self._blocks:
            blob = self._store.get(self._block_key(number))
            if blob is None:
                key = self._block_key(number)
                raise UnreadableStateError(f"block {key!r} of an index is missing: restart from an intact checkpoint")
            self._blocks[number] = _Block.from_bytes(unframe(_BLOCK, blob))
        return self._blocks[number]

    def _block_key(self, number: int) -> str:
        return f"{self._name}.b{number:x}"

    def _page_key(self, number: int) -> str:
        return f"{self._name}.p{number:x}"
