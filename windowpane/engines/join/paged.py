"""The held rows of a join in pages, of which a batch reads and writes those that it touches.

Rows lie in hash pages by ORDER: the span of event time that a row is in, then a hash of its key. So rows of one time are
neighbours, and those of one key among them; equal keys of one time stay in order of arrival. Bits of ORDER, from above::

    0 | 40 bits: number of the span, from the middle of all | 23 bits: hash of the key

ORDER decides in which page a row is and no result, so times beyond the first and last span share these. Without spans rows go by
their keys alone.

Who may mutate: one ``SidePages`` at a time, by ``write``, once a batch. Recovery: that of hash pages.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa

from windowpane.arrays import Integers, Mask, Unsigned
from windowpane.arrays.columns import padded, replaced
from windowpane.engines.nested_keys.writing import hashable_key
from windowpane.errors import present
from windowpane.hidden_columns import TIME, hidden
from windowpane.kernels.keys.key_codes import key_hashes
from windowpane.kernels.segments import concatenated
from windowpane.sizes import Size
from windowpane.state.blob_store import BlobStore
from windowpane.state.hash_pages import HashPages, PageSummary

PAGE_ROWS = Size("held rows of a page of a join", 1 << 12, (2, 4))
DENSE_ROWS = Size("held rows of a page of a join among pages that are all replaced", 1 << 17, (4, 8))
LEAST_SPAN = Size("microseconds of the least span of held rows", 10_000, (1, 3))
"""Part of the state format: 2**40 such spans reach from 1796 to 2144."""
_PLACES = Size("pages looked up one by one", 1 << 16, (1, 20))

ORDER = hidden("order")
PLACE = hidden("place")
"""The page that a held row was read from, -1 of a row of the batch; it is not stored."""
BESIDE = pa.schema([pa.field(ORDER, pa.int64()), pa.field(PLACE, pa.int64())])

_HASH_BITS, _MIDDLE = 23, 1 << 39


def integers(column: pa.ChunkedArray) -> Integers:
    found: Integers = column.to_numpy()
    return found


def flags(column: pa.ChunkedArray) -> Mask:
    """Return a column of booleans without NULLs as a mask, which may be written to."""
    return np.array(column.to_numpy(zero_copy_only=False), np.bool_) if column.num_chunks else np.zeros(0, np.bool_)


def hashed(table: pa.Table, keys: Sequence[str]) -> Integers:
    """Return the hash of the key of each row, as ORDER holds it."""
    columns = [hashable_key(name, table[name]) for name in keys]
    hashes = key_hashes(columns, table.num_rows) >> np.uint64(64 - _HASH_BITS)
    return hashes.astype(np.int64)


def hashes_of(orders: Integers) -> Integers:
    return orders & ((1 << _HASH_BITS) - 1)


class SidePages:
    """Held rows of one side, by spans of time; ``marks`` is a column of flags that may change while rows are held."""

    def __init__(
        self,
        store: BlobStore,
        name: str,
        schema: pa.Schema,
        span: int | None,
        summary_of: Callable[[pa.Table], PageSummary],
        marks: str | None = None,
    ) -> None:
        self.pages = HashPages(store, name, _orders, summary_of, PAGE_ROWS.value, DENSE_ROWS.value)
        self._schema = schema
        self._span = None if span is None else max(span, LEAST_SPAN.value)
        self._marks = marks
        self._read: Integers = np.zeros(0, np.int64)
        self._weights: Integers = np.zeros((0, 2), np.int64)

    def orders(self, hashes: Integers, times: Integers) -> Integers:
        return self._spans(times) << _HASH_BITS | hashes

    def _spans(self, times: Integers) -> Integers:
        if self._span is None:
            return np.zeros(len(times), np.int64)
        return np.clip(times // self._span, -_MIDDLE, _MIDDLE - 1) + _MIDDLE

    # Which pages.

    def places(self, orders: Integers) -> Integers:
        return self.pages.locate(orders.view(np.uint64))

    def landing(self, orders: Integers) -> Integers:
        return np.flatnonzero(np.bincount(self.places(orders), minlength=1))

    def reached(self, hashes: Integers, lowers: Integers, uppers: Integers) -> Integers:
        """Return the pages in which rows of such keys and times may be, inclusive bounds; some more if there are many."""
        low, high = self._spans(lowers), self._spans(uppers)
        some = low <= high
        hashes, low, high = hashes[some], low[some], high[some]
        if not len(self.pages) or not len(hashes):
            return np.zeros(0, np.int64)
        counts = high - low + 1
        if len(counts) <= _PLACES.value and counts.max() <= _PLACES.value and counts.sum() <= _PLACES.value:
            return self.landing(concatenated(low, counts) << _HASH_BITS | np.repeat(hashes, counts))
        edges = np.zeros(len(self.pages) + 1, np.int64)
        np.add.at(edges, self.places(low << _HASH_BITS | hashes), 1)
        np.add.at(edges, self.places(high << _HASH_BITS | hashes) + 1, -1)
        return np.flatnonzero(np.cumsum(edges[:-1]) > 0)

    def until(self, time: int) -> Integers:
        if not len(self.pages):
            return np.zeros(0, np.int64)
        last = self._spans(np.array([time])) << _HASH_BITS | ((1 << _HASH_BITS) - 1)
        return np.arange(int(self.places(last)[0]) + 1)

    # Reading and writing.

    def read(self, places: Integers) -> pa.Table:
        self._read = np.unique(places) if len(self.pages) else np.zeros(0, np.int64)
        self.pages.prefetch(self._read.tolist())
        tables = [self._page(place) for place in self._read.tolist()]
        table = pa.concat_tables(tables) if tables else self._schema.empty_table()
        self._weights = self._weigh(table)
        return table

    def rearranged(self) -> pa.Table:
        """Return all rows, each with the ORDER that the present spans give it."""
        table = self.read(np.arange(len(self.pages))).sort_by(ORDER)
        orders = self.orders(hashes_of(integers(table[ORDER])), integers(table[TIME]))
        return replaced(table, ORDER, pa.array(orders))

    def replace_all(self, table: pa.Table) -> None:
        """Put rows in place of all that are held."""
        if len(self.pages):
            self.pages.replace(range(len(self.pages)), table.drop_columns([PLACE]))
            self.pages.commit()

    def _page(self, place: int) -> pa.Table:
        page = present(self.pages.read(place), "there are pages")
        page = page.append_column(PLACE, pa.array(np.full(page.num_rows, place)))
        return padded(page, self._schema).cast(self._schema)

    def _weigh(self, table: pa.Table) -> Integers:
        """Return for each page how many rows a table has of it, and how many of them are marked."""
        places, count = table[PLACE].to_numpy(), max(len(self.pages), 1)
        marked = places if self._marks is None else table.filter(table[self._marks])[PLACE].to_numpy()
        return np.stack([np.bincount(each, minlength=count) for each in (places, marked)], axis=1)

    def drop(self, places: Sequence[int]) -> None:
        for place in places:
            self.pages.write(place, self._schema.empty_table().drop_columns([PLACE]))

    def write(self, table: pa.Table) -> None:
        """Put rows in place of those that were read: the ones that stay, and rows of the batch, whose pages were read, too."""
        place, orders = table[PLACE].to_numpy(), table[ORDER].to_numpy()
        is_new = place < 0
        landing = self.places(orders[is_new])
        brought = np.bincount(landing, minlength=max(len(self.pages), 1))
        stays = self._weigh(table.filter(pa.array(~is_new)))
        changed = (stays != self._weights).any(axis=1) | (brought > 0)
        place = np.where(is_new, 0, place)
        place[is_new] = landing
        keeps = np.flatnonzero(changed[place])
        order = keeps[np.argsort(place[keeps], kind="stable")]
        rows, place = table.drop_columns([PLACE]).take(pa.array(order)), place[order]
        for run in _runs(np.flatnonzero(changed)):
            self._replace(run, rows, place, int(brought[run].sum()))
        self.pages.commit()

    def _replace(self, run: Integers, rows: pa.Table, place: Integers, brought: int) -> None:
        start, end = np.searchsorted(place, [run[0], run[-1] + 1])
        if brought * PAGE_ROWS.value >= end - start:
            self.pages.replace(run.tolist(), rows.slice(start, end - start))
            return
        cuts = np.searchsorted(place, np.append(run, run[-1] + 1))
        for at, (first, last) in zip(run.tolist(), pairwise(cuts.tolist()), strict=True):
            self.pages.write(at, rows.slice(first, last - first))


def due_of(finals: Integers, is_padded: Mask | None) -> int:
    """Return when a page is due: with the first row that is emitted, or when all of them may be dropped."""
    if is_padded is not None and is_padded.any():
        finals = finals[is_padded]
        return int(finals.min())
    return int(finals.max())


def _runs(places: Integers) -> list[Integers]:
    return [run for run in np.split(places, np.flatnonzero(np.diff(places) > 1) + 1) if len(run)]


def _orders(table: pa.Table) -> Unsigned:
    orders: Unsigned = table[ORDER].to_numpy().view(np.uint64)
    return orders
