"""The state of a program in all buckets of an operator, spread over another number of buckets.

State is laid out in a few ways, each with an index that says which it is: sorted pages, hash pages, row pages, segment logs and
what is made of these. Here each is read, its rows or entries are parted by the bucket of their key (``engines.buckets``, the one
hash of keys), and they are written as the engine of the program writes them. Clocks are those of the bucket that came furthest:
one that is behind holds nothing that a clock could change.

State: none of its own; old buckets are only read. Blobs that every bucket has (a watermark of the operator's own) are copied to
each; what a run knows for itself (``next-watermark``, ``layout``) is left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windowpane import pickles
from windowpane.arrays import Integers, Unsigned
from windowpane.arrays.columns import replaced
from windowpane.arrays.values import Value
from windowpane.engines.batch.header import HEADER, BucketHeader
from windowpane.engines.batch.late_counts import LateCounts
from windowpane.engines.batch.own_watermark import OWN_WATERMARK, read_state
from windowpane.engines.buckets import bucket_numbers
from windowpane.engines.changes import Description
from windowpane.engines.deduplication.kept_keys import KeptKeys
from windowpane.engines.join.held_counts import HeldCounts
from windowpane.engines.join.program import JoinProgram
from windowpane.engines.join.windows import SIDE
from windowpane.engines.over.sort_buffer import SortBuffer
from windowpane.engines.over.update import OverUpdateEngine
from windowpane.engines.panes.store import ALL_SHARDS, DueTimers, PaneStore
from windowpane.engines.program import Program
from windowpane.engines.protocol import Clock, Engine
from windowpane.engines.rolling.pieces import of_held_table, single_pieces
from windowpane.engines.rolling.program import RollingProgram
from windowpane.engines.row.contents import values_of
from windowpane.errors import UnmovableStateError, present
from windowpane.hidden_columns import FILLED, SEGMENT
from windowpane.kernels.keys.dense_codes import dense_codes
from windowpane.operators.window.contents import CONTENTS
from windowpane.operators.window.operator import OPERATOR_STATE
from windowpane.operators.window.timer_service import CLOCK
from windowpane.planning.engines import make_engine
from windowpane.planning.rescaling.keys import Key, KeysOf, parts_of_keys
from windowpane.state.codec import decode_key_at, encode_key, kind_of
from windowpane.state.entries import decode_namespace
from windowpane.state.hash_pages import HashPages
from windowpane.state.keyed import address_of
from windowpane.state.listing import hash_pages
from windowpane.state.memory import MemoryBlobStore
from windowpane.state.segment_log import SegmentLog
from windowpane.state.sorted_pages import SortedPages
from windowpane.windowing.times import MAX, MIN

Buckets = Sequence[MemoryBlobStore]
Sees = Callable[[pa.Table, Integers], object]
"""Is told keys, of rows or entries, and the number of the bucket of each."""

_OF_EACH = (OWN_WATERMARK,)
"""Blobs that are the same in every bucket."""
_OF_A_RUN = ("next-watermark", "layout", "stagger")
"""Blobs of a bucket that say nothing of keys. Windows with a stagger are looked at, and never moved (``_check``)."""
_TIME_BYTES = 8


@dataclass(frozen=True)
class OfNode:
    """A program that a node of SQL runs: its state does not say which one it is.

    Args:
        description: the program.
        places_of: returns where rows with some keys belong; what remains of it by the number of buckets is the bucket.
    """

    description: Description
    places_of: Callable[[pa.Table], Unsigned]

    def bucket_numbers(self, keys: pa.Table, count: int) -> Integers:
        """Return the number of the bucket of each row."""
        numbers: Integers = (self.places_of(keys) % np.uint64(count)).astype(np.int64)
        return numbers


def latest(headers: Sequence[BucketHeader]) -> BucketHeader:
    """Return the header of the newest program, with the clocks of the bucket that came furthest, and what all have counted."""
    totals: Counter[str] = Counter()
    for each in headers:
        totals.update(each.totals)
    header = max(headers, key=lambda each: (each.generation, each.watermark, each.processing_time))
    return replace(
        header,
        watermark=max(each.watermark for each in headers),
        processing_time=max(each.processing_time for each in headers),
        arrivals=max(each.arrivals for each in headers),
        totals=dict(totals),
        late=LateCounts.together(each.late for each in headers).cells(),
    )


def counted(header: BucketHeader, number: int, forgets: Key | None) -> BucketHeader:
    """Return the header of a new bucket: the first one has what all have counted, and no example of a key that does not stay."""
    if number:
        return replace(header, totals={}, late=())
    late = header.late if forgets is None else [(*cell[:4], None) for cell in header.late]
    return replace(header, late=late)


class _Layouts(MemoryBlobStore):
    """An empty bucket that knows what its engine lays out over it."""

    def __init__(self) -> None:
        super().__init__()
        self.layouts: dict[str, Any] = {}


class Moving:
    """The state of one program on its way to other buckets."""

    def __init__(
        self,
        old: Buckets,
        count: int,
        forgets: Key | None,
        sees: Sees | None = None,
        node: OfNode | None = None,
    ) -> None:
        self._sees, self._node = sees, node
        self._headers = list(map(self._header_in, old))
        self._header = latest(self._headers)
        self._old, self._count, self._forgets = old, count, forgets
        self._new = [_Layouts() for _ in range(count)]
        self._open = [0] * count
        self._raw = [0] * count
        self._sides: list[dict[int, dict[int, int]]] = [{} for _ in range(count)]
        self._parts: Description = self._header.description
        self.keys = KeysOf(self._parts)
        self._check()

    def _header_in(self, store: MemoryBlobStore) -> BucketHeader:
        if self._node is None:
            return BucketHeader.of(blob_of(store, HEADER))
        blob = store.get(HEADER)
        return replace(BucketHeader({}) if blob is None else BucketHeader.of(blob), description=self._node.description)

    def _check(self) -> None:
        stagger = (self._parts.get("assigner") or {}).get("stagger", {"value": "ALIGNED"})
        if stagger["value"] != "ALIGNED" and self._sees is None:  # to look at keys they need not move
            raise UnmovableStateError(
                "each bucket has shifted its windows by an offset of its own (stagger), so a key that moves would have two kinds"
            )
        filled = [
            header.description
            for header, store in zip(self._headers, self._old, strict=True)
            if any(not is_of_bucket(name) for name in store)
        ]
        if any(each != filled[0] for each in filled):
            raise UnmovableStateError(
                "buckets that had no rows since the last change of the program hold state of the one before"
            )

    def stores(self) -> list[_Layouts]:
        kinds = {name: kind_of(blob_of(store, name)) for store in self._old for name in store}
        for name, kind in sorted(kinds.items()):
            if kind in _MOVES:
                _MOVES[str(kind)](self, name.removesuffix(".i").removesuffix(".r"))
            elif kind not in _MOVED_WITH and not is_of_bucket(name):
                raise UnmovableStateError(f"its blob {name!r} is of a kind that belongs to no key ({kind})")
        for number, store in enumerate(self._new):
            for each in _OF_EACH:
                blobs = [blob for old in self._old if (blob := old.get(each)) is not None]
                if blobs:
                    store.put(each, max(blobs, key=_watermark_in))
            counts = HeldCounts(store)
            for place, sides in self._sides[number].items():
                counts.add(place, sides)
            counts.written()
            header = counted(self._header, number, self._forgets)
            replace(header, open_windows=self._open[number], raw_rows=self._raw[number]).write(store)
        return self._new

    # The program.

    @property
    def _merges(self) -> bool:
        return isinstance(self.keys.program, Program) and self.keys.program.spec.merges

    @cached_property
    def _engine(self) -> Engine:
        return make_engine(self.keys.program)

    @cached_property
    def _layouts(self) -> list[dict[str, Any]]:
        """What the engine lays out over each of the new buckets."""
        for store in self._new:
            self._engine.run(store, [], Clock(MIN, MIN))
        return [store.layouts for store in self._new]

    # Rows.

    def _numbers(self, rows: pa.Table, names: Sequence[str]) -> Integers:
        """Return the bucket of each row, -1 where its key does not stay."""
        if self._node is not None and names:
            numbers = self._node.bucket_numbers(self.keys.of(rows, names), self._count)
        else:
            numbers = bucket_numbers(rows, names, self._count)
        if self._forgets is not None:
            if not names:
                raise UnmovableStateError("it is of rows of all keys together, and says nothing of one")
            gone = self.keys.encoded(self._forgets)
            is_gone = [encode_key(key) == gone for key in parts_of_keys(rows, names)]
            numbers = np.where(is_gone, -1, numbers)
        if self._sees is not None and names:
            self._sees(self.keys.of(rows, names), numbers)
        return numbers

    def _spread(self, rows: pa.Table, name: str) -> Iterator[tuple[int, pa.Table]]:
        """Yield the buckets that rows go to, and their rows."""
        numbers = self._numbers(rows, self.keys.columns(name))
        for number in np.unique(numbers[numbers >= 0]).tolist():
            yield number, rows.filter(pa.array(numbers == number))

    def _hash_pages(self, name: str) -> None:
        for number, rows in self._spread_together(name, [pages_of(store, name) for store in self._old]):
            pages: HashPages = self._layouts[number][name]
            pages.write(0, rows)
            pages.commit()
            self._open[number] += pages.live
            if isinstance(self.keys.program, JoinProgram):
                self._count_sides(number, 0, rows)
            if isinstance(self.keys.program, RollingProgram):
                self._raw[number] += single_pieces(self.keys.program.spec, *of_held_table(rows))

    def _spread_together(self, name: str, tables: Sequence[Sequence[pa.Table]]) -> Iterator[tuple[int, pa.Table]]:
        every = [table for each in tables for table in each if table.num_rows]
        if every:
            yield from self._spread(pa.concat_tables(every, promote_options="default").combine_chunks(), name)

    def _row_pages(self, name: str) -> None:
        engine = self._engine
        if not isinstance(engine, OverUpdateEngine):
            raise UnmovableStateError(f"its blob {name!r} is of another engine")
        for number, rows in self._spread_together(name, [[engine.held(store)] for store in self._old]):
            engine.put(self._new[number], rows)

    def _segments(self, name: str) -> None:
        layout = self._layouts[0].get("r" if name in ("h", "k") else name)
        if isinstance(layout, KeptKeys):
            self._kept_keys(name)
        elif isinstance(layout, SortBuffer):
            self._sort_buffer(name, layout)
        elif isinstance(layout, PaneStore):
            self._panes(name, layout)
        else:
            self._log(name)

    def _log(self, name: str) -> None:
        new = [SegmentLog(store, name) for store in self._new]
        for store in self._old:
            log = SegmentLog(store, name)
            for segment in log.segments():
                for chunk in log.read(segment):
                    for number, rows in self._spread(chunk, name):
                        new[number].append(segment, rows)
                        self._count_sides(number, segment, rows)
        for number, log in enumerate(new):
            log.flush()
            self._open[number] += len(log.segments())

    def _sort_buffer(self, name: str, layout: SortBuffer) -> None:
        for number, rows in self._spread_together(name, [layout.over(store).release(MAX) for store in self._old]):
            buffer: SortBuffer = self._layouts[number][name]
            buffer.add(rows)
            buffer.flush()

    def _kept_keys(self, name: str) -> None:
        if name == "k":
            return  # it goes with the hashes
        for store in self._old:
            for hashes, times, keys in KeptKeys(store).runs():
                numbers = self._numbers(keys, self.keys.columns(name))
                for number in np.unique(numbers[numbers >= 0]).tolist():
                    own = np.flatnonzero(numbers == number)
                    self._layouts[number]["r"].add(hashes[own], times[own], keys.take(pa.array(own)))
        for layouts in self._layouts:
            layouts["r"].commit(MIN)

    def _panes(self, name: str, layout: PaneStore) -> None:
        tables, due = [], []
        for store in self._old:
            panes = PaneStore(store, layout.keys, layout.is_global, name)
            rows = panes.read(panes.segments())
            tables.append([] if rows is None else [rows])
            due += DueTimers(store).all()
        for number, rows in self._spread_together(name, tables):
            into: PaneStore = self._layouts[number][name]
            if into.is_global:
                shards = pa.array(into.shards(rows))
                rows = replaced(rows, SEGMENT, shards)
            into.write(rows, [])
            into.flush()
            if name == "p":
                self._open[number] = self._panes_held(rows, layout.keys)
                is_one = into.is_global and not self._merges
                _note_due(DueTimers(self._new[number]), [ALL_SHARDS] if is_one and due else into.segments(), due, into.is_global)

    def _panes_held(self, rows: pa.Table, keys: Sequence[str]) -> int:
        if FILLED in rows.column_names:
            rows = rows.filter(rows[FILLED])
        if self._merges:
            return int(rows.num_rows)
        return len(dense_codes([rows[name] for name in [*keys, SEGMENT]], rows.num_rows).firsts)

    def _count_sides(self, number: int, place: int, rows: pa.Table) -> None:
        """Count the rows of each side that windows of a join hold."""
        if SIDE in rows.column_names:
            column = rows[SIDE]
            while pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
                column = pc.list_flatten(column)
            for side in pc.value_counts(column.combine_chunks()).to_pylist():
                self._sides[number].setdefault(place, {})[side["values"]] = side["counts"]

    # Entries.

    def _sorted_pages(self, name: str) -> None:
        new = [SortedPages(store, name) for store in self._new]
        is_join = (self._parts.get("match") or {}).get("is") == "WindowMatch"
        for store in self._old:
            entries = [each for each in SortedPages(store, name).scan(b"") if name != "s" or not _is_of_the_bucket(each[0])]
            keys = [self._key_of(name, *entry) for entry in entries]
            numbers = self._numbers_of(keys)
            for number, (entry, value) in zip(numbers, entries, strict=True):
                if number >= 0:
                    new[number].put(entry, value)
                    if is_join and name == "s" and _is_contents(entry):
                        self._count_elements(number, value)
        for number, pages in enumerate(new):
            pages.flush()
            if name == "s" and self._parts["kind"] == "windows":
                self._open[number] = sum(map(_is_contents, {address_of(entry) for entry, _ in pages.scan(b"")}))

    def _count_elements(self, number: int, value: bytes) -> None:
        for element in pickles.loads(value):
            for row in values_of(element):
                sides = self._sides[number].setdefault(0, {})
                sides[row[SIDE]] = sides.get(row[SIDE], 0) + 1

    def _key_of(self, name: str, entry: bytes, value: bytes) -> tuple[Value, ...]:
        """Return the parts of the key that an entry belongs to."""
        if self._parts["kind"] == "over" and name == "b":
            row = pickles.loads(value)
            return tuple(row[each] for each in self.keys.columns(name))
        is_by_key = name == "s" or (name == "e" and self._parts.get("watermark of each key") is not None)
        key, _ = decode_key_at(entry, 0 if is_by_key else _TIME_BYTES)
        return key if isinstance(key, tuple) else (key,) * len(self.keys.schema)

    def _numbers_of(self, keys: Sequence[tuple[Value, ...]]) -> list[int]:
        if not len(self.keys.schema) or not keys:
            return [0] * len(keys)
        names = [str(number) for number in range(len(self.keys.schema))]
        columns = [pa.array(column, kind) for column, kind in zip(zip(*keys, strict=True), self.keys.schema.types, strict=True)]
        found: list[int] = self._numbers(pa.table(columns, names=names), names).tolist()
        return found


_MOVES: Mapping[str, Callable[[Moving, str], None]] = {
    "sorted-pages-index": Moving._sorted_pages,
    "hash-pages-index": Moving._hash_pages,
    "row-pages-root": Moving._row_pages,
    "segment-log-index": Moving._segments,
}
"""How state goes to other buckets, by the kind of its index."""

_MOVED_WITH = frozenset(
    {
        "sorted-pages-page",
        "hash-pages-page",
        "row-pages-block",
        "row-pages-page",
        "segment-log-chunk",
        "due-timers",
        "kept-keys-runs",
        "over-sort-buffer-width",
        "held-rows",
    }
)
"""Kinds of blobs that go with an index."""


def is_of_bucket(name: str) -> bool:
    """Whether a blob says nothing of keys."""
    return name in (HEADER, *_OF_EACH, *_OF_A_RUN)


def _watermark_in(blob: bytes) -> int:
    """Return the watermark of a blob that an operator keeps of its own."""
    return read_state(blob)[0].watermark


def pages_of(store: MemoryBlobStore, name: str) -> list[pa.Table]:
    """Return hash pages, which are only read."""
    pages = hash_pages(store, name)
    return [present(pages.read(position), "there are pages") for position in range(len(pages))]


def _note_due(timers: DueTimers, segments: Sequence[int], due: Sequence[tuple[int, int, int]], is_global: bool) -> None:
    """Note when timers of a bucket are due: too early a time costs a look, and the true one is noted then."""
    for segment in segments:
        times = [each[1:] for each in due if is_global or each[0] == segment]
        timers.note(segment, min((one for one, _ in times), default=MAX), min((other for _, other in times), default=MAX))
    timers.flush()


def _is_of_the_bucket(entry: bytes) -> bool:
    """Whether an entry is what assigners remember for all keys, a stagger, under a key that is none."""
    key, at = decode_key_at(entry, 0)
    window, at = decode_namespace(entry, at)
    name = str(decode_key_at(entry, at)[0])
    return key is None and window is None and name.startswith(OPERATOR_STATE) and name != CLOCK


def _is_contents(address: bytes) -> bool:
    _, at = decode_key_at(address, 0)
    _, at = decode_namespace(address, at)
    return bool(decode_key_at(address, at)[0] == CONTENTS)


def blob_of(store: MemoryBlobStore, name: str) -> bytes:
    """Return a blob that is there."""
    return present(store.get(name), "its name is there")
