"""Rows by pane, kept so that a batch reads and writes only what it touches, and when the timers of panes are due.

Key layout: a segment log ``p`` whose rows have the key columns and whatever columns a pane keeps. Time windows have a segment
each, named by their end, so a window that is over is removed as a whole. The global window is cut into shards of about
``SHARD_ROWS`` rows by the places of keys; a segment is then named by its fence, the least place of a key in it, and cut in pieces
when it is written with twice as many rows. One blob ``d`` has, for each segment that holds something, its name and the first
time of either clock: a clock that moves opens no segment of which nothing is due.

Who may mutate: the engine of the bucket, once a batch: read segments, write them back. Recovery reads both indexes.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from windowpane.arrays import Integers
from windowpane.arrays.columns import replaced, split
from windowpane.engines.panes.windows import Elements
from windowpane.hidden_columns import SEGMENT, hidden
from windowpane.kernels.keys.dense_codes import combined, dense_codes, distinct, first_rows, number_codes
from windowpane.kernels.keys.key_codes import key_places
from windowpane.sizes import Size
from windowpane.state.blob_store import BlobStore, note_layout
from windowpane.state.codec import frame, unframe
from windowpane.state.segment_log import SegmentLog
from windowpane.windowing.times import MAX

SHARD_ROWS = Size("rows of a shard of panes", 8192, (3, 10))

STANDING = hidden("standing")
"""The state of a pane's trigger."""


class PaneStore:
    """The rows of all panes of a bucket.

    Example:
        >>> from windowpane.state.memory import MemoryBlobStore
        >>> store = PaneStore(MemoryBlobStore(), ("k",), is_global=False)
        >>> store.write(pa.table({"k": ["JFK"], "n": [1], SEGMENT: [20]}), [20]); store.flush()
        >>> store.read([20]).num_rows
        1
    """

    def __init__(self, store: BlobStore, keys: Sequence[str], is_global: bool, name: str = "p") -> None:
        self._log = SegmentLog(store, name, coded=(STANDING,))
        self.keys = list(keys)
        self.is_global = is_global
        self._fences = np.array(sorted({0, *self._log.segments()}), np.int64) if is_global else np.zeros(0, np.int64)
        note_layout(store, name, self)

    def segments(self) -> list[int]:
        return self._log.segments()

    @property
    def byte_size(self) -> int:
        return self._log.byte_size

    def size_of(self, segment: int) -> int:
        return self._log.size_of(segment)

    def row_count(self, segment: int) -> int:
        return self._log.row_count_of(segment)

    def shards(self, keys: pa.Table) -> Integers:
        """Return the segment of each key in the global window."""
        return self._fences[np.searchsorted(self._fences, self._places(keys), "right") - 1]

    def _places(self, keys: pa.Table) -> Integers:
        return key_places([keys[name] for name in self.keys], keys.num_rows)

    def read(self, segments: Sequence[int]) -> pa.Table | None:
        """Return the rows of segments, with the column ``SEGMENT``; ``None`` if there are none."""
        self._log.prefetch(segments)
        parts = [_named(table, segment) for segment in segments for table in self._log.read(segment)]
        return pa.concat_tables([part.select(parts[0].column_names) for part in parts]) if parts else None

    def write(self, rows: pa.Table, segments: Sequence[int]) -> None:
        """Put ``rows``, with their ``SEGMENT``, in place of what the segments held."""
        for segment in segments:
            self._log.drop(segment)
        for segment, part in split(rows, SEGMENT):
            is_large = self.is_global and part.num_rows > 2 * SHARD_ROWS.value
            for piece, own in self._pieces(segment, part) if is_large else [(segment, part)]:
                self._log.append(piece, own)

    def append(self, rows: pa.Table) -> list[int]:
        """Add rows to their ``SEGMENT``; return the segments that have so many pieces by now that they should be written anew."""
        parts = split(rows, SEGMENT)
        for segment, part in parts:
            self._log.append(segment, part)
        return [segment for segment, _ in parts if self._log.wants_compaction(segment)]

    def rewrite(self, change: Callable[[pa.Table], pa.Table]) -> None:
        """Put what a function makes of the rows that some batch wrote of a segment in their place."""
        self._log.rewrite(change)

    def drop(self, segment: int) -> None:
        self._log.drop(segment)

    def flush(self) -> None:
        self._log.flush()

    def _pieces(self, segment: int, rows: pa.Table) -> list[tuple[int, pa.Table]]:
        """Cut the rows of a shard; those of one place stay together."""
        places = self._places(rows)
        fences = np.unique(np.sort(places)[:: SHARD_ROWS.value])[1:]
        self._fences = np.union1d(self._fences, fences)
        named = np.append(segment, fences)[np.searchsorted(fences, places, "right")]
        return split(rows.append_column(SEGMENT, pa.array(named)), SEGMENT)


@dataclass(frozen=True)
class TouchedPanes:
    """Panes that get elements, by code, from 0."""

    held: pa.Table | None  # the rows that these panes held, ``None`` where their segments held nothing
    others: pa.Table | None  # the rows of other panes of the same segments, likewise
    held_panes: Integers  # the pane of each row held
    element_panes: Integers  # the pane of each element
    keys: pa.Table  # keys and segment of each pane
    segments: list[int]  # the segments that were read, and are to be written back


@dataclass(frozen=True)
class BatchKeys:
    """The distinct keys of the rows of a batch, and which of them each row has."""

    distinct: pa.Table
    codes: Integers

    @classmethod
    def of(cls, rows: pa.Table, names: Sequence[str]) -> BatchKeys:
        keys = rows.select(list(names))
        codes, firsts = dense_codes(keys.columns, rows.num_rows)
        return cls(keys.take(pa.array(firsts)), codes)


def touched_panes(store: PaneStore, elements: Elements) -> TouchedPanes:
    """Read the panes that the elements of a batch are in, and those of the same segments."""
    names, keys = store.keys, BatchKeys.of(elements.rows, store.keys)
    segments = store.shards(keys.distinct)[keys.codes] if store.is_global else elements.ends
    read = distinct(segments)
    held = store.read(read)
    if held is None:
        panes = _paired(keys.codes[elements.numbers], segments)
        at = first_rows(panes)
        named = keys.distinct.take(pa.array(keys.codes[elements.numbers[at]])).append_column(SEGMENT, pa.array(segments[at]))
        return TouchedPanes(None, None, np.zeros(0, np.int64), panes, named, read)
    count, others = len(segments), None
    together = dense_codes(
        pa.concat_tables([keys.distinct, held.select(names)]).columns, len(keys.distinct) + held.num_rows
    ).codes
    element_keys, held_keys = keys.codes[elements.numbers], together[len(keys.distinct) :]
    panes = _paired(np.append(element_keys, held_keys), np.append(segments, held[SEGMENT].to_numpy()))
    at = first_rows(panes[:count])
    named = keys.distinct.take(pa.array(element_keys[at])).append_column(SEGMENT, pa.array(segments[at]))
    is_touched = panes[count:] < len(at)
    held_panes = panes[count:]
    if not is_touched.all():
        others, held = held.filter(pa.array(~is_touched)), held.filter(pa.array(is_touched))
        held_panes = held_panes[is_touched]
    return TouchedPanes(held, others, held_panes, panes[:count], named, read)


def _paired(keys: Integers, segments: Integers) -> Integers:
    """Return one code for each pair, in the order in which pairs appear."""
    return combined(keys, number_codes(segments))


def _named(table: pa.Table, segment: int) -> pa.Table:
    if STANDING in table.column_names:  # small chunks have no codes, others have narrow ones
        coded = table[STANDING].combine_chunks()
        coded = coded if pa.types.is_dictionary(coded.type) else coded.dictionary_encode()
        table = replaced(table, STANDING, pa.DictionaryArray.from_arrays(coded.indices.cast(pa.int32()), coded.dictionary))
    return table.append_column(SEGMENT, pa.array(np.full(table.num_rows, segment)))


_DUE, _DUE_KIND = "d", "due-timers"
ALL_SHARDS = 0
"""The segment of the timers of a global window that is cut into shards: they are cut anew, and its timers stay."""


class DueTimers:
    """By segment that holds something when its first timers are due, of event time and of the clock."""

    def __init__(self, store: BlobStore) -> None:
        self._store = store
        blob = store.get(_DUE)
        numbers = array("q", b"" if blob is None else unframe(_DUE_KIND, blob))
        self._times = {at: (one, other) for at, one, other in zip(numbers[::3], numbers[1::3], numbers[2::3], strict=True)}
        self._changed = False

    def segments(self, clock: int, event_time: bool) -> list[int]:
        return sorted(at for at in self._times if self.is_due(at, clock, event_time))

    def is_due(self, segment: int, clock: int, event_time: bool) -> bool:
        return self.first(segment)[not event_time] <= clock

    def note(self, segment: int, event_time: int, processing_time: int) -> None:
        """Note when the first timers of a segment are due, ``MAX`` for those that are never, or at the end of time."""
        self._changed |= self._times.get(segment) != (event_time, processing_time)
        self._times[segment] = event_time, processing_time

    def bring_forward(self, segment: int, event_time: int, processing_time: int) -> None:
        """Note when first timers of a segment are due, beside those that are known: the earlier counts."""
        known = self.first(segment)
        self.note(segment, min(known[0], event_time), min(known[1], processing_time))

    def first(self, segment: int) -> tuple[int, int]:
        """Return when the first timers of a segment are due, of event time and of the clock."""
        return self._times.get(segment, (MAX, MAX))

    def all(self) -> list[tuple[int, int, int]]:
        """Return what is known: of each segment its name, and when its first timers are due."""
        return [(segment, *times) for segment, times in self._times.items()]

    def __contains__(self, segment: int) -> bool:
        return segment in self._times

    def clear(self) -> None:
        self._changed, self._times = True, {}

    def drop(self, segment: int) -> None:
        self._changed |= self._times.pop(segment, None) is not None

    @property
    def next_processing_time(self) -> int | None:
        """When the clock is first waited for, ``None`` for never."""
        return min((times[1] for times in self._times.values() if times[1] != MAX), default=None)

    def flush(self) -> None:
        """Write them if they changed; nothing leaves nothing."""
        if self._changed and not self._times:
            self._store.remove(_DUE)
        elif self._changed:
            flat = array("q", [number for at, times in sorted(self._times.items()) for number in (at, *times)])
            self._store.put(_DUE, frame(_DUE_KIND, flat.tobytes()))
