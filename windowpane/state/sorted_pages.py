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
that raised, or after the store went back to an older state, ``forget`` makes the object read the store anew.

Pages and index are framed Arrow record batches. For a page of 1,024 rows (30-byte keys, 60-byte values) Arrow
takes 72 µs to encode and 37 µs to decode; lengths and heaps by ``struct`` took 66 µs and 202 µs.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from heapq import merge
from itertools import accumulate, islice

import pyarrow as pa

from windowpane.errors import PageLimitError, UnreadableStateError
from windowpane.sizes import Size
from windowpane.state.blob_store import BlobStore
from windowpane.state.codec import frame, unframe

_PAGE_KIND, _PAGE_VERSION = "sorted-pages-page", 1
_INDEX_KIND, _INDEX_VERSION = "sorted-pages-index", 1
_PAGE_SCHEMA = pa.schema([("key", pa.binary()), ("value", pa.binary())])
_INDEX_SCHEMA = pa.schema([("fence", pa.binary()), ("page", pa.int64()), ("rows", pa.int64()), ("bytes", pa.int64())])

ENTRY_OVERHEAD = 8
"""Bytes an entry takes besides its key and value: two offsets of 32 bits."""

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

    Raises:
        PageLimitError: a limit is below 1.

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
        self._limits = _Limits(page_rows, page_bytes)
        self.forget()

    def forget(self) -> None:
        """Return to the state of a new object: cached pages, index and *unflushed changes* are dropped."""
        self._known_index: _Index | None = None
        self._pages: dict[int, _Page] = {}
        self._changes = _Changes()

    def __len__(self) -> int:
        """The number of entries as of the last ``flush``."""
        return sum(self._index().rows)

    @property
    def byte_size(self) -> int:
        """The bytes of all entries as of the last ``flush``: keys, values and ``ENTRY_OVERHEAD`` for each."""
        return sum(self._index().sizes)

    # --- reads -----------------------------------------------------------------------------------------

    def get(self, key: bytes) -> bytes | None:
        """Return the value of ``key``, or None. Reads at most one page."""
        if key in self._changes.values:
            return self._changes.values[key]
        index = self._index()
        at = index.locate(key)
        return None if at < 0 else self._page(index.numbers[at]).get(key)

    def scan(self, low: bytes, high: bytes | None = None) -> Iterator[tuple[bytes, bytes]]:
        """Yield the entries with ``low <= key < high`` in order; without ``high``, all from ``low`` on.

        The scan is a live cursor. ``put``, ``delete``, ``flush`` and other scans are allowed while it runs,
        and its next entry is always the first one above the last that it yielded, as of the moment it is
        asked for: changes ahead of it are seen, changes behind it are not. Pages are read only when the scan
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
        """Return the keys that begin with ``prefix``, in order."""
        index, end = self._index(), prefix_end(prefix)
        at = index.locate(prefix)
        is_one_page = at >= 0 and (at + 1 == len(index.fences) or (end is not None and end <= index.fences[at + 1]))
        if is_one_page and not self._changes.values:
            return self._page(index.numbers[at]).between(prefix, end)
        return [key for key, _ in self.scan(prefix, end)]

    def _block(self, start: bytes, high: bytes | None, size: int) -> tuple[list[tuple[bytes, bytes]], bytes | None]:
        """Up to ``size`` entries from ``start`` on, of one page, and where to go on (None: nowhere)."""
        index = self._index()
        at = index.locate(start)
        stop = _lower(index.fences[at + 1], high) if at + 1 < len(index.fences) else high
        if stop is not None and start >= stop:
            return [], None
        page = self._page(index.numbers[at]) if at >= 0 else _Page()
        block = list(islice(self._live(page, start, stop), size))
        if len(block) == size:
            return block, block[-1][0] + b"\0"
        return block, None if stop == high else stop

    def _live(self, page: "_Page", start: bytes, stop: bytes | None) -> Iterator[tuple[bytes, bytes]]:
        """The entries of ``page`` in [start, stop) with the buffered changes applied."""
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
        """Set the value of ``key``. Reads nothing; written by ``flush``."""
        self._changes.set(key, value)

    def delete(self, key: bytes) -> None:
        """Remove ``key``; an absent one is no error. Reads nothing; written by ``flush``."""
        self._changes.set(key, None)

    def flush(self) -> None:
        """Write the buffered changes: the pages they alter, then the index; nothing if they alter nothing.

        Of a store of n pages, only those that a change falls into are read, and neighbours that one of them
        joins.
        """
        if self._changes.values:
            before = self._index()
            rewrite = _Rewrite(before, self._limits, self._page)
            rewrite.apply(self._changes.values)
            if rewrite.altered:
                rewrite.join_small_neighbours()
                self._write(before, rewrite)
                self._known_index = rewrite.index
        self._changes = _Changes()
        self._pages = {}

    def _write(self, before: "_Index", rewrite: "_Rewrite") -> None:
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

    def _index(self) -> "_Index":
        if self._known_index is None:
            blob = self._store.get(self._index_key)
            self._known_index = _Index() if blob is None else _Index.from_blob(blob)
        return self._known_index

    def _page(self, number: int) -> "_Page":
        page = self._pages.get(number)
        if page is None:
            key = self._page_key(number)
            blob = self._store.get(key)
            if blob is None:
                raise UnreadableStateError(
                    f"the index {self._index_key!r} names a page {key!r} that the state store does not hold: "
                    "the checkpoint is incomplete; restart from an intact copy of it"
                )
            page = self._pages[number] = _Page.from_blob(blob)
        return page


def _lower(fence: bytes, high: bytes | None) -> bytes:
    return fence if high is None or fence < high else high


# --- what is buffered ----------------------------------------------------------------------------------


class _Changes:
    """Changed keys with their new values (None: deleted), ordered only when a scan asks.

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
        """The changed keys in [start, stop), in order."""
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


# --- pages and index in memory -------------------------------------------------------------------------


@dataclass(slots=True)
class _Page:
    """The entries of one page; ``keys`` are those of ``entries``, ascending."""

    keys: list[bytes] = field(default_factory=list)
    entries: dict[bytes, bytes] = field(default_factory=dict)

    @classmethod
    def of(cls, entries: Iterable[tuple[bytes, bytes]]) -> "_Page":
        by_key = dict(entries)
        return cls(sorted(by_key), by_key)

    def get(self, key: bytes) -> bytes | None:
        return self.entries.get(key)

    def between(self, start: bytes, stop: bytes | None) -> list[bytes]:
        end = None if stop is None else bisect_left(self.keys, stop)
        return self.keys[bisect_left(self.keys, start) : end]

    def part(self, start: int, end: int) -> "_Page":
        keys = self.keys[start:end]
        return _Page(keys, {key: self.entries[key] for key in keys})

    def sizes(self) -> list[int]:
        return [len(key) + len(self.entries[key]) + ENTRY_OVERHEAD for key in self.keys]

    def to_blob(self) -> bytes:
        values = [self.entries[key] for key in self.keys]
        return _to_blob(_PAGE_KIND, _PAGE_VERSION, _PAGE_SCHEMA, [self.keys, values])

    @classmethod
    def from_blob(cls, blob: bytes) -> "_Page":
        keys, values = _from_blob(_PAGE_KIND, _PAGE_VERSION, _PAGE_SCHEMA, blob)
        return cls(keys, dict(zip(keys, values, strict=True)))


@dataclass(slots=True)
class _Index:
    """Per page, in key order: first key, number, rows and bytes."""

    fences: list[bytes] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)

    def locate(self, key: bytes) -> int:
        """The position of the page whose range holds ``key``; -1 if it lies before the first fence."""
        return bisect_right(self.fences, key) - 1

    def copy(self) -> "_Index":
        return _Index(self.fences[:], self.numbers[:], self.rows[:], self.sizes[:])

    def replace(self, start: int, end: int, pages: dict[int, _Page]) -> None:
        """Put ``pages``, by number, in the place of those at [start, end)."""
        self.fences[start:end] = [page.keys[0] for page in pages.values()]
        self.numbers[start:end] = pages
        self.rows[start:end] = [len(page.keys) for page in pages.values()]
        self.sizes[start:end] = [sum(page.sizes()) for page in pages.values()]

    def to_blob(self) -> bytes:
        columns: list[list[bytes] | list[int]] = [self.fences, self.numbers, self.rows, self.sizes]
        return _to_blob(_INDEX_KIND, _INDEX_VERSION, _INDEX_SCHEMA, columns)

    @classmethod
    def from_blob(cls, blob: bytes) -> "_Index":
        return cls(*_from_blob(_INDEX_KIND, _INDEX_VERSION, _INDEX_SCHEMA, blob))


def _to_blob(kind: str, version: int, schema: pa.Schema, columns: Iterable[list[bytes] | list[int]]) -> bytes:
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    body: bytes = pa.RecordBatch.from_arrays(arrays, schema=schema).serialize().to_pybytes()
    return frame(kind, version, body)


def _from_blob(kind: str, version: int, schema: pa.Schema, blob: bytes) -> list[list]:  # type: ignore[type-arg]
    body = unframe(kind, version, blob)
    try:
        batch = pa.ipc.read_record_batch(pa.py_buffer(body), schema)
    except (pa.ArrowException, OSError) as cause:
        raise UnreadableStateError(
            f"a state blob of kind {kind!r} ({len(body)} bytes) is damaged: {cause}; restart from an intact checkpoint"
        ) from cause
    return [column.to_pylist() for column in batch.columns]


# --- the rewrite of a flush ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Limits:
    """How large pages get, and when two of them join."""

    rows: int
    bytes: int

    def fits(self, rows: int, size: int) -> bool:
        return rows == 1 or (rows <= self.rows and size <= self.bytes)

    def joins(self, rows: tuple[int, int], sizes: tuple[int, int]) -> bool:
        """Whether two neighbours become one: one is under a quarter full, both together under three."""
        if 4 * sum(rows) > 3 * self.rows or 4 * sum(sizes) > 3 * self.bytes:
            return False
        return any(4 * r < self.rows and 4 * s < self.bytes for r, s in zip(rows, sizes, strict=True))


class _Rewrite:
    """One flush before it writes: the index to be and, by number, the pages with new content (``dirty``)."""

    def __init__(self, before: _Index, limits: _Limits, read: Callable[[int], _Page]) -> None:
        self.index = before.copy()
        self.dirty: dict[int, _Page] = {}
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

    def _changed(self, at: int, changes: dict[bytes, bytes | None]) -> _Page | None:
        """The page at ``at`` with ``changes`` applied; None if they alter nothing."""
        old = self._read(self.index.numbers[at]).entries if self.index.numbers else {}
        if all(old.get(key) == value for key, value in changes.items()):
            return None
        merged = {**old, **changes}
        return _Page.of((key, value) for key, value in merged.items() if value is not None)

    def _cut(self, page: _Page, fill: bool) -> list[_Page]:
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
        if self._limits.fits(rows, size):
            return [end]
        middle = start + rows // 2
        if size > self._limits.bytes:
            middle = bisect_left(totals, totals[start] + size // 2, start + 1, end - 1)
        return self._halved(totals, start, middle) + self._halved(totals, middle, end)

    def _replace(self, at: int, pages: list[_Page]) -> None:
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
            if touched and self._joins(at):
                joined = self._current(left).entries | self._current(right).entries
                self.dirty.pop(right, None)
                self.dirty[left] = _Page.of(joined.items())
                index.replace(at, at + 2, {left: self.dirty[left]})

    def _joins(self, at: int) -> bool:
        rows, sizes = self.index.rows[at : at + 2], self.index.sizes[at : at + 2]
        return self._limits.joins((rows[0], rows[1]), (sizes[0], sizes[1]))

    def _current(self, number: int) -> _Page:
        return self.dirty.get(number) or self._read(number)
