"""The part of a bucket's rows that a batch reads: pages in runs, with the batch's changes merged in.

A run is a row of neighbouring pages. Rows of a partition may be missing before the first row of a run and behind its last one; a
segment is *cut* there. ``MorePages`` says on which side of which segment more must be read, and ``extended`` finds the pages.

Rows are numbered in four ways, and each array of numbers says by its type in which: among the rows of the spans (``InSpans``),
among those of them that stay (``Live``), in the table behind the spans (``InTable``), and by segment (``Segments``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Self, TypeAlias

import numpy as np
import pyarrow as pa

from windowpane.arrays import Bytes, Integers, Mask
from windowpane.engines.over.page_form import PageForm
from windowpane.engines.over.page_writing import Altered
from windowpane.kernels.over.sorting import starts as partition_starts
from windowpane.kernels.segments import interleaved
from windowpane.kernels.sorting.sort_keys import SortKeys
from windowpane.state.row_pages import RowPages

InSpans: TypeAlias = Integers
"""Positions among the rows of the spans in their order, deleted ones among them."""
Live: TypeAlias = Integers
"""Positions among the rows of the spans that are not deleted: arrays of computed values have this order."""
InTable: TypeAlias = Integers
"""Positions in ``Spans.table``: the stored rows of the pages, then the rows that a batch inserts."""
Segments: TypeAlias = Integers
"""Numbers of segments: the rows of one partition in one run of pages."""


@dataclass(frozen=True)
class MorePages:
    """On which sides of which segments more pages must be read; noted as it is found out."""

    left: Mask  # for each segment, whether rows before its first are needed
    right: Mask  # whether rows behind its last are


@dataclass(frozen=True)
class Delta:
    """The changes of a batch, each side sorted by sort key."""

    deleted_keys: Bytes  # the sort keys of the rows that are deleted
    inserted_keys: Bytes  # those of the rows that are inserted
    inserted: pa.Table  # the rows that are inserted

    @classmethod
    def none(cls, schema: pa.Schema) -> Self:
        return cls(np.empty(0, np.bytes_), np.empty(0, np.bytes_), schema.empty_table())

    @cached_property
    def keys(self) -> Bytes:
        return np.sort(np.concatenate([self.deleted_keys, self.inserted_keys])) if len(self.deleted_keys) else self.inserted_keys


@dataclass
class PageCache:
    """Pages read by this batch, less the rows that it dropped from them."""

    pages: RowPages
    form: PageForm
    schema: pa.Schema  # of stored rows, without what is stored of their sort keys
    sort_keys: SortKeys
    dropped: Altered = field(default_factory=Altered.none, init=False)
    _read: dict[int, tuple[pa.Table, Bytes]] = field(default_factory=dict, init=False)
    _joined: tuple[bytes, pa.Table, Bytes] | None = field(default=None, init=False)
    _located: tuple[Bytes, Integers] | None = field(default=None, init=False)

    def pages_of(self, keys: Bytes) -> Integers:
        if self._located is None or self._located[0] is not keys:
            self._located = (keys, self.pages.locate(keys))
        return self._located[1]

    def rows(self, ordinals: Integers) -> tuple[pa.Table, Bytes]:
        what = ordinals.tobytes()
        if self._joined is None or self._joined[0] != what:
            missing = [ordinal for ordinal in ordinals.tolist() if ordinal not in self._read]
            joined = self._load(missing)
            if len(missing) < len(ordinals):
                tables, keys = zip(*(self._read[ordinal] for ordinal in ordinals.tolist()), strict=True)
                joined = pa.concat_tables(tables).combine_chunks(), np.concatenate(keys)
            self._joined = (what, *joined)
        return self._joined[1], self._joined[2]

    def sizes(self, ordinals: Integers) -> Integers:
        return np.array([self._read[ordinal][0].num_rows for ordinal in ordinals.tolist()], np.int64)

    def drop(self, ordinals: Integers, dropped: Mask, starts: Mask) -> None:
        """Drop rows of some pages, given for their rows together: which are dropped, and which begin a segment."""
        table, keys = self.rows(ordinals)
        page = np.repeat(ordinals, self.sizes(ordinals))
        self.dropped = Altered.of(page, dropped, starts)
        kept = ~dropped
        sizes = np.bincount(np.searchsorted(ordinals, page[kept]), minlength=len(ordinals))
        table, keys = table.filter(pa.array(kept)).combine_chunks(), keys[kept]
        self._keep(ordinals.tolist(), sizes, table, keys)
        self._joined = (ordinals.tobytes(), table, keys)

    def _load(self, ordinals: list[int]) -> tuple[pa.Table, Bytes]:
        self.pages.prefetch(ordinals)
        pages = [self.form.from_blob(self.pages.read(ordinal)) for ordinal in ordinals]
        table = self.form.table(pages)
        keys, table = self.sort_keys.of_stored(table), table.select(self.schema.names)
        self._keep(ordinals, np.array([page.num_rows for page in pages], np.int64), table, keys)
        return table, keys

    def _keep(self, ordinals: list[int], sizes: Integers, table: pa.Table, keys: Bytes) -> None:
        for ordinal, end, size in zip(ordinals, np.cumsum(sizes).tolist(), sizes.tolist(), strict=True):
            self._read[ordinal] = (table.slice(end - size, size), keys[end - size : end])


class Spans:
    """The rows of some pages with a delta merged in; arrays are in the order of the rows, those that are deleted among them."""

    table: pa.Table  # the stored rows of the pages, then the rows of the delta
    source: InTable  # the row of ``table`` that each row is
    before: InTable  # the row of ``table`` that was stored before, for an insert the one it overwrites; -1 for none
    deleted: Mask  # whether a row is deleted
    inserted: Mask  # whether it is of the delta
    page: Integers  # the ordinal of its page
    starts: Mask  # whether it is the first of its segment
    firsts: InSpans  # the first row of each segment
    lasts: InSpans  # its last row
    cut_left: Mask  # whether rows of the segment's partition may be before it, in pages that are not read
    cut_right: Mask  # whether they may be after it
    is_known: Mask  # of each delete, whether there is such a row
    is_double: Mask  # the same of each insert

    def __init__(self, cache: PageCache, ordinals: Integers, delta: Delta) -> None:
        self.ordinals = ordinals
        self.count = len(cache.pages)
        self._pages = cache.pages
        self._sort_keys = cache.sort_keys
        held, held_keys = cache.rows(ordinals)
        self.held = held.num_rows
        self.table = held
        if delta.inserted.num_rows:
            joined = pa.concat_tables([held, delta.inserted], promote_options="default").select(cache.schema.names)
            self.table = joined.combine_chunks()
        at, exists = _places(held_keys, delta.inserted_keys)
        out, self.is_known = _places(held_keys, delta.deleted_keys)
        dropped = np.zeros(self.held, np.bool_)
        dropped[out[self.is_known]] = True
        self.is_double = exists & ~np.append(dropped, False)[at]
        dropped[at[exists]] = True
        self._held_keys, self._inserted_keys = held_keys, delta.inserted_keys
        self._arrange(at, exists, dropped)
        self._segment(np.repeat(ordinals, cache.sizes(ordinals)), cache.pages_of(delta.inserted_keys))

    def taken(self, names: Sequence[str], rows: InSpans | None = None) -> pa.Table:
        table = self.table.select(names)
        if rows is None and not self.inserted.any():
            return table
        return table.take(pa.array(self.source if rows is None else self.source[rows])).combine_chunks()

    def key_at(self, row: int) -> bytes:
        source = int(self.source[row])
        return bytes(self._held_keys[source] if source < self.held else self._inserted_keys[source - self.held])

    def keys_at(self, rows: InSpans) -> Bytes:
        source = self.source[rows]
        fresh = source >= self.held
        keys: Bytes = np.empty(len(source), max(self._held_keys.dtype, self._inserted_keys.dtype))
        keys[~fresh] = self._held_keys[source[~fresh]]
        keys[fresh] = self._inserted_keys[source[fresh] - self.held]
        return keys

    def _arrange(self, at: Integers, exists: Mask, dropped: Mask) -> None:
        merged = interleaved(self.held, at)
        if exists.any():
            replaced = np.zeros(self.held + len(at), np.bool_)
            replaced[at[exists]] = True
            merged = merged[~replaced[merged]]
        self.source = merged
        self.inserted = merged >= self.held
        self.deleted = np.append(dropped, np.zeros(len(at), np.bool_))[merged]
        self.before = np.full(len(merged), -1)
        self.before[~self.inserted] = merged[~self.inserted]
        if exists.any():
            doubles = np.where(exists, at, -1)
            self.before[self.inserted] = doubles[merged[self.inserted] - self.held]

    def _segment(self, page_of_held: Integers, inserted_pages: Integers) -> None:
        self.page = np.append(page_of_held, inserted_pages)[self.source]
        gaps = np.diff(self.ordinals) > 1
        self._run_firsts = self.ordinals[np.append(True, gaps)[: len(self.ordinals)]]
        self._run_lasts = self.ordinals[np.append(gaps, True)[: len(self.ordinals)]]
        run = np.searchsorted(self._run_firsts, self.page, side="right")
        columns = self.taken(self._sort_keys.partition_by).columns
        starts = partition_starts([column.combine_chunks() for column in columns], len(self.source))
        starts[1:] |= run[1:] != run[:-1]
        self.starts = starts
        firsts = np.flatnonzero(starts)
        lasts = np.append(firsts[1:], len(starts)) - 1 if len(firsts) else firsts
        begins_run = np.append(True, run[firsts][1:] != run[firsts][:-1])[: len(firsts)]
        self.cut_left = begins_run & (np.append(0, self._run_firsts)[run[firsts]] > 0)
        ends_run = np.append(run[firsts][1:] != run[firsts][:-1], True)[: len(firsts)]
        self.cut_right = ends_run.copy()
        self.cut_right[ends_run] = self._continue(lasts[ends_run])
        self.firsts, self.lasts = firsts, lasts

    def _run(self, row: int) -> int:
        return int(np.searchsorted(self._run_firsts, self.page[row], side="right")) - 1

    def _continue(self, lasts: InSpans) -> Mask:
        """Return of which runs, given by their last rows, the last partition may continue in the page after the run."""
        run = np.searchsorted(self._run_firsts, self.page[lasts], side="right") - 1
        following = self._run_lasts[run] + 1 if len(self._run_lasts) else np.full(len(lasts), self.count)
        continues: Mask = following < self.count
        width = self._sort_keys.partition_width
        if width and continues.any():
            fences = np.array([self._pages.fence(ordinal) for ordinal in following[continues].tolist()], f"S{width}")
            continues[continues] = fences == self.keys_at(lasts[continues]).astype(f"S{width}")
        return continues

    def extended(self, more: MorePages, pages: int) -> Integers:
        """Return the ordinals with up to ``pages`` more on the sides of the segments where more is needed."""
        wanted = [self.ordinals]
        for segment in np.flatnonzero(more.left).tolist():
            first = int(self._run_firsts[self._run(int(self.firsts[segment]))])
            wanted.append(np.arange(max(first - pages, 0), first))
        for segment in np.flatnonzero(more.right).tolist():
            end = int(self._run_lasts[self._run(int(self.lasts[segment]))]) + 1
            wanted.append(np.arange(end, min(end + pages, self.count)))
        return np.unique(np.concatenate(wanted))


def around(cache: PageCache, ordinals: Integers, keys: Bytes, reach: int) -> Integers:
    """Return the pages at ``ordinals``, and the neighbours that a reach of so many rows around ``keys`` takes in."""
    if not len(ordinals) or len(ordinals) == len(cache.pages):
        return ordinals
    held = cache.rows(ordinals)[1]
    ends = np.cumsum(cache.sizes(ordinals))
    page = np.searchsorted(ordinals, cache.pages_of(keys))
    at = np.clip(np.searchsorted(held, keys), np.append(0, ends)[page], ends[page])
    left = ordinals[page[at - reach < np.append(0, ends)[page]]] - 1
    right = ordinals[page[at + reach >= ends[page]]] + 1
    wanted = np.unique(np.concatenate([ordinals, left, right]))
    return wanted[(wanted >= 0) & (wanted < len(cache.pages))]


def _places(among: Bytes, keys: Bytes) -> tuple[Integers, Mask]:
    """Return the place of each key among others, and whether it is one of them; both ascend, and the fewer are looked up."""
    if not len(among) or not len(keys):
        return np.zeros(len(keys), np.int64), np.zeros(len(keys), np.bool_)
    exists = np.zeros(len(keys), np.bool_)
    if len(keys) <= len(among):
        at = np.searchsorted(among, keys)
        exists[:] = (at < len(among)) & (among[np.minimum(at, len(among) - 1)] == keys)
        return at, exists
    below = np.searchsorted(keys, among)
    same = (below < len(keys)) & (keys[np.minimum(below, len(keys) - 1)] == among)
    exists[below[same]] = True
    passed = np.bincount(below + same, minlength=len(keys) + 1)
    return np.cumsum(passed)[: len(keys)], exists
