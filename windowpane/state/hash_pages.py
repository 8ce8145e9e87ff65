"""Tables cut into pages by a hash of their keys: a batch reads and writes the pages of its keys, and those that are due.

Key layout, for pages named ``name``::

    name.i       the index: for each page in order of fence its number, rows, live rows, bytes and when it is due
    name.<hex>   one page: a compact table, the rows whose hash is at least the page's fence and below the next one

Invariants, after every ``commit``:

- every row is in the page that ``locate`` names for its hash; the first fence is 0;
- no page is empty; no page has more than ``page_rows`` rows, or ``dense_rows`` where a run of pages was replaced at once, unless
  they share one hash;
- of two neighbours written by one commit, both under a quarter full, one is left;
- ``due`` of a page is the earliest instant at which something happens to one of its rows, so a clock below it need not read it.

A page costs about as much as a thousand rows, so small pages suit batches of a few keys, and large ones those that change a row
of any small page anyway: such a batch replaces runs of pages by fewer ones.

Who may mutate: one ``HashPages`` object at a time for a name. Pages are written by ``write``, ``replace`` or at ``commit``, the
index at ``commit``. Recovery: there is nothing to recover, the blob store commits all of a batch or none.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from windowpane.arrays import Integers, Unsigned
from windowpane.errors import MistakeError, present
from windowpane.hidden_columns import HASH
from windowpane.sizes import Size
from windowpane.state.blob_store import BlobStore, note_layout
from windowpane.state.codec import frame, unframe
from windowpane.state.compact import from_stream, to_stream

PAGE_ROWS = Size("held rows of a page", 1 << 12, (2, 4))
DENSE_ROWS = Size("held rows of a page among pages that are all replaced", 1 << 18, (4, 8))
STEP_ROWS = Size("held and new rows of a step", 1 << 22, (5, 12))
"""About so many are worked on at once: bounds the memory of a batch, whatever is held."""

_PAGE_KIND, _INDEX_KIND = "hash-pages-page", "hash-pages-index"


class PageSummary(NamedTuple):
    """What the index keeps of a page: when it is due, in the unit of its owner's clock, and how many of its rows are live."""

    due: int
    live: int


@dataclass
class _Page:
    fence: int
    number: int
    rows: int = 0
    live: int = 0
    size: int = 0
    due: int = 0
    unwritten: pa.Table | None = None


class HashPages:
    """Rows in pages by hash.

    ``write`` or ``replace`` may be called once for each page between two commits; positions are those of the last commit.
    """

    def __init__(
        self,
        store: BlobStore,
        name: str,  # what the names of pages and index begin with
        hash_of: Callable[[pa.Table], Unsigned],  # the hash of each row of a table, the same in every process
        summary_of: Callable[[pa.Table], PageSummary],  # what the index keeps of a page
        page_rows: int = PAGE_ROWS.usual,  # most rows of a page
        dense_rows: int = DENSE_ROWS.usual,  # most rows of a page where a run of pages is replaced
    ) -> None:
        self._store = store
        self._name = name
        self._hash_of = hash_of
        self._summary_of = summary_of
        self._page_rows = page_rows
        self._dense_rows = max(dense_rows, page_rows)
        self._pages = self._read_index()
        self._written: dict[int, list[_Page]] = {}
        self._next_number = max((page.number for page in self._pages), default=-1) + 1
        note_layout(store, name, self)

    def __len__(self) -> int:
        return len(self._pages)

    @property
    def live(self) -> int:
        return sum(page.live for page in self._pages)

    @property
    def byte_size(self) -> int:
        return sum(page.size for page in self._pages)

    @property
    def next_due(self) -> int | None:
        return min((page.due for page in self._pages), default=None)

    @property
    def rows(self) -> int:
        return sum(page.rows for page in self._pages)

    def in_order_of_due(self) -> list[int]:
        """Return the pages, those that are due first in front."""
        return sorted(range(len(self._pages)), key=lambda position: self._pages[position].due)

    def size_of(self, position: int) -> int:
        return self._pages[position].size

    def each(
        self,
        arriving: int,
        hashes: Callable[[], Unsigned],
        now: int,
        most: int,
        step: Callable[[pa.Table | None, Integers], pa.Table | None],
    ) -> None:
        """Put what ``step`` makes of pages in their place, and commit: of those of arriving rows, and those due by ``now``.

        ``step`` takes the rows of some pages, ``None`` for none, and the numbers of the arriving rows that belong there; it
        returns the rows that are there then, ``None`` where they stay as they are. About ``most`` live and arriving rows are in a
        step. ``hashes`` gives those of the ``arriving`` rows, and is not asked where all pages are worked on at once.
        """
        for positions, numbers, is_run in self._steps(arriving, hashes, now, most):
            self.prefetch(positions)
            pages = [page for position in positions if (page := self.read(position)) is not None]
            held = pa.concat_tables(pages, promote_options="default").combine_chunks() if pages else None
            table = step(held, numbers)
            if table is not None:
                self.put(positions, table, is_run)
        self.commit()

    def _steps(
        self, arriving: int, hashes: Callable[[], Unsigned], now: int, most: int
    ) -> Iterator[tuple[Sequence[int], Integers, bool]]:
        """Yield pages that are worked on together, the numbers of the rows that belong there, and whether they are a run.

        Where there are many rows, so that few pages would stay as they are, these are all pages.
        """
        count, due = max(len(self), 1), self.due(now)
        is_dense = arriving > 0 and arriving * self._page_rows >= self.rows
        if count == 1 or (is_dense and self.rows + arriving <= most):
            if arriving or due:
                yield range(count), np.arange(arriving), is_dense
            return
        located = self.locate(hashes())
        touched = range(count) if is_dense else sorted({*np.unique(located).tolist(), *due})
        counts = np.bincount(located, minlength=count)
        sizes = np.cumsum([self._pages[position].live + int(counts[position]) for position in touched]) // most
        for size in np.unique(sizes):
            positions = [position for position, which in zip(touched, sizes, strict=True) if which == size]
            numbers = np.flatnonzero(np.isin(located, positions)) if len(positions) < count else np.arange(arriving)
            yield positions, numbers, is_dense

    def meet(
        self,
        rows: pa.Table | None,
        now: int,
        most: int,
        step: Callable[[pa.Table | None, pa.Table | None], pa.Table | None],
    ) -> None:
        """The same where ``step`` takes arriving rows themselves, those that belong to the pages, ``None`` for none."""

        def taken(held: pa.Table | None, numbers: Integers) -> pa.Table | None:
            if rows is None or not len(numbers):
                return step(held, None)
            return step(held, rows if len(numbers) == rows.num_rows else rows.take(pa.array(numbers)))

        arriving = 0 if rows is None else rows.num_rows
        self.each(arriving, lambda: np.zeros(0, np.uint64) if rows is None else self._hash_of(rows), now, most, taken)

    def put(self, positions: Sequence[int], table: pa.Table, is_run: bool) -> None:
        """Put ``table`` in the place of pages of a step; all of its rows belong there."""
        if is_run:
            self.replace(positions, table)
            return
        places = self.locate(self._hash_of(table))
        for position in positions:
            self.write(position, table.filter(pa.array(places == position)))

    def due(self, now: int) -> list[int]:
        return [position for position, page in enumerate(self._pages) if page.due <= now]

    def locate(self, hashes: Unsigned) -> Integers:
        fences = np.array([page.fence for page in self._pages] or [0], np.uint64)
        return np.searchsorted(fences, hashes, side="right") - 1

    def prefetch(self, positions: Sequence[int]) -> None:
        self._store.prefetch([self._key(self._pages[position].number) for position in positions if self._pages])

    def read(self, position: int) -> pa.Table | None:
        if not self._pages:
            return None
        blob = present(self._store.get(self._key(self._pages[position].number)), "the index names only pages that were written")
        return from_stream(unframe(_PAGE_KIND, blob))

    def write(self, position: int, table: pa.Table) -> None:
        """Put ``table`` in the place of a page; all of its rows belong there."""
        self._replace(position, table, self._page_rows)

    def rewrite(self, change: Callable[[pa.Table], pa.Table]) -> None:
        """Put what a function makes of each page in its place, and commit: rows of the same hashes."""
        for position in range(len(self._pages)):
            self.write(position, change(present(self.read(position), "there are pages")))
        self.commit()

    def replace(self, positions: Sequence[int], table: pa.Table) -> None:
        """Put ``table`` in the place of a run of pages, neighbours in order; all of its rows belong there."""
        first, *others = positions
        self._replace(first, table, self._dense_rows)
        self._written |= {position: [] for position in others}

    def _replace(self, position: int, table: pa.Table, page_rows: int) -> None:
        before = self._pages[position] if self._pages else _Page(0, self._take_number())
        pages: list[_Page] = []
        for fence, part in self._parts(before.fence, table, page_rows):
            page = _Page(fence, self._take_number() if pages else before.number, part.num_rows, unwritten=part)
            if 4 * part.num_rows > self._page_rows:
                self._put(page)
            pages.append(page)
        self._written[position] = pages

    def commit(self) -> None:
        if not self._written:
            return
        pages: list[_Page] = []
        for position in range(max(len(self._pages), 1)):
            for page in self._written[position] if position in self._written else [self._pages[position]]:
                _append(pages, page, self._page_rows // 2)
        for page in pages:
            if page.unwritten is not None:
                self._put(page)
        for number in {page.number for page in self._pages} - {page.number for page in pages}:
            self._store.remove(self._key(number))
        if pages:
            pages[0].fence = 0
        self._pages, self._written = pages, {}
        self._write_index()

    def _parts(self, fence: int, table: pa.Table, page_rows: int) -> Iterator[tuple[int, pa.Table]]:
        """Yield (fence, rows) of the pages that a table is cut into."""
        rows = table.num_rows
        if rows <= page_rows:
            if rows:
                yield fence, table
            return
        hashes = self._hash_of(table)
        order = np.argsort(hashes, kind="stable")
        table, hashes = table.take(pa.array(order)), hashes[order]
        for start, end in pairwise([0, *_cuts(hashes, page_rows), rows]):
            yield (int(hashes[start]) if start else fence), table.slice(start, end - start)

    def _put(self, page: _Page) -> None:
        if page.unwritten is None:
            raise MistakeError("the page has changed")
        blob = frame(_PAGE_KIND, to_stream(page.unwritten, compression="lz4", lists=True, structs=True))
        self._store.put(self._key(page.number), blob)
        page.size = len(blob)
        page.due, page.live = self._summary_of(page.unwritten)
        page.unwritten = None

    def _take_number(self) -> int:
        number, self._next_number = self._next_number, self._next_number + 1
        return number

    def _key(self, number: int) -> str:
        return f"{self._name}.{number:x}"

    def _write_index(self) -> None:
        if not self._pages:
            self._store.remove(f"{self._name}.i")
            return
        numbers = [(page.number, page.rows, page.live, page.size, page.due) for page in self._pages]
        fences = array("Q", [page.fence for page in self._pages]).tobytes()
        rest = array("q", [number for row in numbers for number in row]).tobytes()
        self._store.put(f"{self._name}.i", frame(_INDEX_KIND, fences + rest))

    def _read_index(self) -> list[_Page]:
        blob = self._store.get(f"{self._name}.i")
        if blob is None:
            return []
        numbers = np.frombuffer(unframe(_INDEX_KIND, blob), np.int64).copy()
        count = len(numbers) // 6
        fences = numbers[:count].view(np.uint64).tolist()
        return [_Page(fence, *row) for fence, row in zip(fences, numbers[count:].reshape(count, 5).tolist(), strict=True)]


def stored_hashes(table: pa.Table) -> Unsigned:
    hashes: Unsigned = table[HASH].to_numpy()
    return hashes


def _cuts(hashes: Unsigned, page_rows: int) -> list[int]:
    """Return where to cut rows sorted by hash into pages half full: never within a hash, and around one that fills a page."""
    rows = len(hashes)
    pieces = -(-2 * rows // page_rows)
    middles = hashes[np.arange(1, pieces) * rows // pieces]
    before, after = np.searchsorted(hashes, middles), np.searchsorted(hashes, middles, side="right")
    cuts = np.unique(np.concatenate([before, after[4 * (after - before) > page_rows]]))
    return [cut for cut in cuts.tolist() if 0 < cut < rows]


def _append(pages: list[_Page], page: _Page, joined_rows: int) -> None:
    """Append a page, or join it to the one before if both are small and together have at most ``joined_rows``."""
    last = pages[-1] if pages else None
    if last is None or last.unwritten is None or page.unwritten is None or last.rows + page.rows > joined_rows:
        pages.append(page)
        return
    last.unwritten = pa.concat_tables([last.unwritten, page.unwritten])
    last.rows += page.rows
