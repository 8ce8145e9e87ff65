"""Rows in one global byte order, cut into pages: a two-level B+tree over a blob store.

Key layout, for pages named ``name``::

    name.i       the index: for each page in order its fence, number, row count and byte size
    name.<hex>   one page: its keys in order, and their values

        index   | fence b"a" page 0 | fence b"k" page 2 | fence b"t" page 1 |
                          |                   |                   |
        pages       a  c  f  h          k  m  n             t  u  x  z

Invariants, after every ``flush``:

- keys strictly ascend within a page and from page to page; a fence is exactly the first key of its page;
- no page is empty; no page exceeds ``page_rows`` rows or ``page_bytes`` bytes, unless it is one larger entry;
- two neighbours of which one is under a quarter full are joined if both together fill at most three quarters
  of a page (checked when a flush rewrites either); the slack keeps pages from being split and joined in turn;
- there is an index if and only if there are entries.

Who may mutate: one ``SortedPages`` object at a time for a name. Its changes stay in memory until ``flush``,
which rewrites the pages they fall into, and their neighbours where they join, and the index last.

Recovery: there is nothing to recover. The blob store is transactional per micro-batch (Spark commits all
state of a batch or none), so pages and index always match and no write-ahead log is needed. After a ``flush``
that raised, or after the store was set back to an older state, ``forget`` makes the object read the store anew.

Pages and index are framed Arrow record batches. For a page of 1,024 rows (30-byte keys, 60-byte values) Arrow
takes 72 µs to encode and 37 µs to decode; lengths and heaps by ``struct`` took 66 µs and 202 µs.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from heapq import merge
from itertools import islice

from windowpane.errors import PageLimitError, UnreadableStateError
from windowpane.sizes import Size
from windowpane.state.blob_store import BlobStore
from windowpane.state.page_rewrite import Page, PageIndex, PageLimits, PageRewrite

PAGE_ROWS = Size("rows of a sorted page", 1024, (1, 3))
PAGE_BYTES = Size("bytes of a sorted page", 1 << 18, (60, 400))
_FIRST_BLOCK = Size("entries of the first block of a scan", 8, (1, 2))
_RUN = Size("changed keys of a run", 512, (1, 2))


def prefix_end(prefix: bytes) -> bytes | None:
    r"""Return the smallest byte string above all that start with ``prefix``; None if there is none.

    >>> prefix_end(b"ab"), prefix_end(b"a\xff"), prefix_end(b"\xff")
    (b'ac', b'b', None)
    """
    head = prefix.rstrip(b"\xff")
    return head[:-1] + bytes((head[-1] + 1,)) if head else None


class SortedPages:
    """A sorted map of ``bytes`` to ``bytes`` whose point and range reads touch only the pages they need.

    Args:
        store: where the blobs live; nothing is read before the first use.
        name: prefix of this map's names in the store.
        page_rows: most rows of a page.
        page_bytes: most bytes of a page, counting keys, values and ``ENTRY_OVERHEAD`` per entry. A larger
            entry gets a page of its own.

    Reads see the buffered changes; ``len`` and ``byte_size`` are those of the last ``flush``. A page that was
    read stays in memory until ``flush`` or ``forget``.

    >>> from windowpane.state.memory import MemoryBlobStore
    >>> store = MemoryBlobStore()
    >>> pages = SortedPages(store, "rows")
    >>> pages.put(b"b", b"2")
    >>> pages.put(b"a", b"1")
    >>> pages.flush()
    >>> list(SortedPages(store, "rows").scan(b""))
    [(b'a', b'1'), (b'b', b'2')]
    """

    def __init__(self, store: BlobStore, name: str, *, page_rows: int | None = None, page_bytes: int | None = None) -> None:
        page_rows = PAGE_ROWS.value if page_rows is None else page_rows
        page_bytes = PAGE_BYTES.value if page_bytes is None else page_bytes
        if page_rows < 1 or page_bytes < 1:
            raise PageLimitError(f"page_rows={page_rows} and page_bytes={page_bytes} of {name!r}: set both to at least 1")
        self._store = store
        self._name = name
        self._limits = PageLimits(page_rows, page_bytes)
        self.forget()

    def forget(self) -> None:
        """Return to the state of a new object: cached pages, index and *unflushed changes* are dropped."""
        self._known_index: PageIndex | None = None
        self._pages: dict[int, Page] = {}
        self._changes = _Changes()

    def __len__(self) -> int:
        return sum(self._index().rows)

    @property
    def page_count(self) -> int:
        return len(self._index().numbers)

    @property
    def byte_size(self) -> int:
        return sum(self._index().sizes)

    # --- reads -----------------------------------------------------------------------------------------

    def get(self, key: bytes) -> bytes | None:
        if key in self._changes.values:
            return self._changes.values[key]
        index = self._index()
        at = index.locate(key)
        return None if at < 0 else self._page(index.numbers[at]).get(key)

    def scan(self, low: bytes, high: bytes | None = None) -> Iterator[tuple[bytes, bytes]]:
        """Yield the entries with ``low <= key < high`` in order; without ``high``, all from ``low`` on.

        The scan is a live cursor. ``put``, ``delete``, ``flush`` and other scans are allowed while it runs,
        and its next entry is always the first one above the last that it yielded, as of the moment of the
        call: changes ahead of it are seen, changes behind it are not. Pages are read only when the scan
        reaches them.
        """
        start: bytes | None = low
        size = _FIRST_BLOCK.value
        while start is not None:
            changes, count = self._changes, self._changes.count
            block, start = self._block(start, high, size)
            size = min(size * 4, max(_FIRST_BLOCK.value, self._limits.rows))
            for entry in block:
                yield entry
                if changes is not self._changes or count != changes.count:
                    start, size = entry[0] + b"\0", _FIRST_BLOCK.value
                    break

    def keys(self, prefix: bytes) -> list[bytes]:
        index, end = self._index(), prefix_end(prefix)
        at = index.locate(prefix)
        is_one_page = at >= 0 and (at + 1 == len(index.fences) or (end is not None and end <= index.fences[at + 1]))
        if is_one_page and not self._changes.values:
            return self._page(index.numbers[at]).between(prefix, end)
        return [key for key, _ in self.scan(prefix, end)]

    def _block(self, start: bytes, high: bytes | None, size: int) -> tuple[list[tuple[bytes, bytes]], bytes | None]:
        """Up to ``size`` entries from ``start`` on, of one page, and where to continue (None: nowhere)."""
        index = self._index()
        at = index.locate(start)
        stop = high
        if at + 1 < len(index.fences) and (high is None or index.fences[at + 1] < high):
            stop = index.fences[at + 1]
        if stop is not None and start >= stop:
            return [], None
        page = self._page(index.numbers[at]) if at >= 0 else Page()
        block = list(islice(self._live(page, start, stop), size))
        if len(block) == size:
            return block, block[-1][0] + b"\0"
        return block, None if stop == high else stop

    def _live(self, page: Page, start: bytes, stop: bytes | None) -> Iterator[tuple[bytes, bytes]]:
        changed, previous = self._changes.values, None
        for key in merge(page.between(start, stop), self._changes.between(start, stop)):
            if key == previous:
                continue
            previous = key
            value = changed[key] if key in changed else page.entries[key]
            if value is not None:
                yield key, value

    # --- changes ---------------------------------------------------------------------------------------

    def put(self, key: bytes, value: bytes) -> None:
        self._changes.set(key, value)

    def delete(self, key: bytes) -> None:
        self._changes.set(key, None)

    def flush(self) -> None:
        """Write the buffered changes: the pages they alter, then the index; nothing if they alter nothing.

        Of a store of n pages, only those that a change falls into are read, and neighbours that one of them
        joins.
        """
        if self._changes.values:
            before = self._index()
            rewrite = PageRewrite(before, self._limits, self._page)
            rewrite.apply(self._changes.values)
            if rewrite.altered:
                rewrite.join_small_neighbours()
                self._write(before, rewrite)
                self._known_index = rewrite.index
        self._changes = _Changes()
        self._pages = {}

    def _write(self, before: PageIndex, rewrite: PageRewrite) -> None:
        after = rewrite.index
        for number in set(before.numbers).difference(after.numbers):
            self._store.remove(self._page_key(number))
        for number in after.numbers:
            if number in rewrite.dirty:
                self._store.put(self._page_key(number), rewrite.dirty[number].to_blob())
        if after.numbers:
            self._store.put(self._index_key, after.to_blob())
        else:
            self._store.remove(self._index_key)

    # --- blobs -----------------------------------------------------------------------------------------

    @property
    def _index_key(self) -> str:
        return f"{self._name}.i"

    def _page_key(self, number: int) -> str:
        return f"{self._name}.{number:x}"

    def _index(self) -> PageIndex:
        if self._known_index is None:
            blob = self._store.get(self._index_key)
            self._known_index = PageIndex() if blob is None else PageIndex.from_blob(blob)
        return self._known_index

    def _page(self, number: int) -> Page:
        page = self._pages.get(number)
        if page is None:
            key = self._page_key(number)
            blob = self._store.get(key)
            if blob is None:
                raise UnreadableStateError(
                    f"the index {self._index_key!r} names a page {key!r} that the state store does not hold: "
                    "the checkpoint is incomplete; restart from an intact copy of it"
                )
            page = self._pages[number] = Page.from_blob(blob)
        return page


# --- buffered changes ----------------------------------------------------------------------------------


class _Changes:
    """Changed keys with their new values (None: deleted), ordered only for a scan.

    The order is kept in runs of at most ``2 * _RUN`` keys, so that a key put between two scans costs one
    insertion into a short list, whatever has been buffered.
    """

    def __init__(self) -> None:
        self.values: dict[bytes, bytes | None] = {}
        self.count = 0
        """How many changes were made: a scan compares it to notice one."""
        self._unordered: list[bytes] = []
        self._runs: list[list[bytes]] = []
        self._lasts: list[bytes] = []

    def set(self, key: bytes, value: bytes | None) -> None:
        if key not in self.values:
            self._unordered.append(key)
        self.values[key] = value
        self.count += 1

    def between(self, start: bytes, stop: bytes | None) -> Iterator[bytes]:
        self._order()
        for run in islice(self._runs, bisect_left(self._lasts, start), None):
            for key in islice(run, bisect_left(run, start), None):
                if stop is not None and key >= stop:
                    return
                yield key

    def _order(self) -> None:
        if 8 * len(self._unordered) > len(self.values):  # sorting anew is cheaper than so many insertions
            ordered = sorted(self.values)
            self._runs = [ordered[at : at + _RUN.value] for at in range(0, len(ordered), _RUN.value)]
            self._lasts = [run[-1] for run in self._runs]
        else:
            for key in self._unordered:
                self._insert(key)
        self._unordered.clear()

    def _insert(self, key: bytes) -> None:
        at = min(bisect_left(self._lasts, key), len(self._runs) - 1)
        run = self._runs[at]
        insort(run, key)
        if len(run) > 2 * _RUN.value:
            self._runs[at : at + 1] = [run[: _RUN.value], run[_RUN.value :]]
            self._lasts.insert(at, run[_RUN.value - 1])
            at += 1
        self._lasts[at] = self._runs[at][-1]
