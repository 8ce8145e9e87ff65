"""The filling engine: the windows behind the seen ones of all keys of a page are counted at once.

State: pages ``p`` by a hash of the key. A row of a page is a seen window: the hash, its start, keys and values. A page is due at
the next end of a window of one of its keys. Who may mutate: this engine, once a batch. Recovery: read them back; the watermark is
in the header.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
import pyarrow as pa

from windowpane.arrays import Integers, Mask
from windowpane.arrays.columns import padded
from windowpane.engines.batch.driver import Left
from windowpane.engines.filling.batch import FillingBatch
from windowpane.engines.filling.program import FillingProgram
from windowpane.engines.nested_keys.writing import hashable_keys
from windowpane.engines.program import WINDOW_END, WINDOW_START
from windowpane.engines.rows import python_keys
from windowpane.engines.spec import BucketEngine
from windowpane.errors import GapTooLongError
from windowpane.hidden_columns import FIRING_WATERMARK, HASH, START, TIME
from windowpane.kernels.keys.key_codes import key_codes, key_hashes
from windowpane.kernels.segments import concatenated
from windowpane.sizes import Size
from windowpane.state.blob_store import BlobStore
from windowpane.state.hash_pages import DENSE_ROWS, PAGE_ROWS, STEP_ROWS, HashPages, PageSummary, stored_hashes
from windowpane.windowing.lateness import horizon
from windowpane.windowing.times import MAX

MOST_FILLED = Size("windows of a key that are filled at once", 10_000_000, (10_000_000,))
"""A gap that needs more is as good as always a mistake, such as a time of 1970."""

_ALL = np.int64(MAX)


class _Batch(FillingBatch):
    def __init__(self, engine: BucketEngine[FillingProgram], store: BlobStore) -> None:
        super().__init__(engine, store)
        self._names = [HASH, START, *self.program.columns.names]
        self._pages = HashPages(store, "p", stored_hashes, self._summary, PAGE_ROWS.value, DENSE_ROWS.value)

    def take(self, results: pa.Table) -> None:
        keys = hashable_keys(results, self.program.keys)
        starts = results[WINDOW_START].cast(pa.int64())
        columns = [pa.array(key_hashes(keys, results.num_rows)), starts, *results.select(self.program.columns.names).columns]
        self._meet(pa.table(columns, names=self._names), lambda held, new: held if new is None else self._kept(held, new))

    def on_watermark(self, before: int) -> None:
        if self.watermark > before:
            self._meet(None, lambda held, _: None if held is None else self._kept(held, before))

    def _meet(self, seen: pa.Table | None, step: Callable[[pa.Table | None, pa.Table | None], pa.Table | None]) -> None:
        self._pages.meet(seen, self.watermark, STEP_ROWS.value, step)

    def _kept(self, held: pa.Table | None, change: pa.Table | int) -> pa.Table:
        """Fill what results change, or what was closed since a watermark; return the seen windows that state keeps."""
        program = self.program
        tables = [] if held is None else [padded(held, program.columns, self._names)]
        count = tables[0].num_rows if tables else 0
        rows = pa.concat_tables(tables if isinstance(change, int) else [*tables, change])
        seen = SeenWindows.of(key_codes(hashable_keys(rows, program.keys), rows.num_rows), rows[START].to_numpy(), count, program)
        until = seen.closed(self.watermark)
        if isinstance(change, int):
            after, fired_under = seen.closed(change), change
        else:
            known = np.where(seen.changed, 0 if program.previous else seen.filled_before(), until)
            after, fired_under = known, self.watermark
        if self.watermark == MAX and program.limit is None:  # the end of time closes windows without end
            until = np.where(seen.room == _ALL, after, until)
        self._fill(rows, seen, after, np.minimum(until, seen.room), fired_under)
        return rows.take(pa.array(np.sort(seen.rows[seen.is_needed(horizon(self.watermark, program.allowed_lateness))])))

    def _fill(self, rows: pa.Table, seen: SeenWindows, after: Integers, until: Integers, fired_under: int) -> None:
        counts = np.maximum(until - after, 0)
        if not counts.any():
            return
        if counts.max() > MOST_FILLED.value:
            row = rows.slice(int(seen.rows[counts.argmax()]), 1)
            raise GapTooLongError(python_keys(row, self.program.keys)[0], int(counts.max()), int(row[START][0].as_py()))
        program = self.program
        of = np.repeat(np.arange(len(counts)), counts)
        starts = seen.starts[of] + concatenated(after + 1, counts) * program.step
        held, constants = rows.take(pa.array(seen.rows[of])), dict(program.constants)
        made = {
            WINDOW_START: pa.array(starts),
            WINDOW_END: pa.array(starts + program.size),
            TIME: pa.array(starts + (program.size - 1)),
            FIRING_WATERMARK: pa.array(np.full(len(starts), fired_under, np.int64)),
        }
        columns = []
        for field in program.main_schema:
            if field.name in made:
                columns.append(made[field.name].cast(field.type))
            elif field.name in program.keys or field.name in program.previous:
                columns.append(held[field.name].cast(field.type))
            else:
                columns.append(pa.repeat(pa.scalar(constants.get(field.name), field.type), len(starts)))
        self.emit(pa.table(columns, schema=program.main_schema))

    def _summary(self, held: pa.Table) -> PageSummary:
        """Return when the next window of one of the keys ends: nothing happens before."""
        ends = held[START].to_numpy() + (self.program.size - 1)
        passed = np.where(ends <= self.watermark, _steps(ends, self.watermark, self.program.step) + 1, 0)
        with np.errstate(over="ignore"):
            following = ends + passed * self.program.step
        return PageSummary(int(np.where(following < ends, MAX, following).min()), held.num_rows)

    def close(self) -> Left:
        return Left(self._pages.live, self._pages.byte_size, is_idle=False)


@dataclass(frozen=True)
class SeenWindows:
    """The seen windows of keys, by key and start."""

    program: FillingProgram
    rows: Integers  # the number of the newest row of each
    starts: Integers
    room: Integers  # how many windows are filled from it: up to the limit, or to the next seen one of the key
    changed: Mask  # whether it has a result that has just come
    before: Integers  # the place of the last one of the key, up to itself, that was seen before; -1 if there is none

    @classmethod
    def of(cls, codes: Integers, starts: Integers, held: int, program: FillingProgram) -> Self:
        """Return those of rows in order of arrival, the first ``held`` of which were seen before."""
        order = np.lexsort((starts, codes))
        codes, starts = codes[order], starts[order]
        another_key = np.append(True, codes[1:] != codes[:-1])
        first = np.flatnonzero(another_key | np.append(True, starts[1:] != starts[:-1]))
        newest = np.append(first[1:], len(order)) - 1
        begins, starts = another_key[first], starts[first]
        gaps = np.append(_steps(starts[:-1], starts[1:], program.step) - 1, 0)
        room = np.where(np.append(begins[1:], True), _ALL, gaps)
        numbers = np.arange(len(first))
        known = np.maximum.accumulate(np.where(order[first] < held, numbers, -1))
        known[known < np.maximum.accumulate(np.where(begins, numbers, 0))] = -1
        limited = room if program.limit is None else np.minimum(room, program.limit)
        return cls(program, order[newest], starts, limited, order[newest] >= held, known)

    def closed(self, watermark: int) -> Integers:
        """Return how many windows behind each have ended under a watermark."""
        ends = self.starts + (self.program.size - 1)
        return np.where(ends <= watermark, _steps(ends, watermark, self.program.step), 0)

    def filled_before(self) -> Integers:
        """Return how many windows behind each were filled, once closed, from one that was seen before."""
        if self.program.limit is None:
            return np.where(self.before < 0, 0, _ALL)
        behind = _steps(self.starts[self.before], self.starts, self.program.step)
        return np.where(self.before < 0, 0, np.maximum(self.program.limit - behind, 0))

    def is_needed(self, over: int) -> Mask:
        """Return which are still to be kept, where windows are over that end at an instant or before."""
        return (self.starts + (self.program.size - 1) > over) | (self.room > self.closed(over))


def _steps(start: Integers, end: Integers | int, step: int) -> Integers:
    """Return how many whole steps lie between instants, which may be further apart than an int64 says; less than ``_ALL``."""
    apart = np.asarray(end, np.int64).view(np.uint64) - start.view(np.uint64)
    steps: Integers = np.minimum(apart // np.uint64(step), np.uint64(MAX - 1)).astype(np.int64)
    return steps


class FillingEngine(BucketEngine[FillingProgram]):
    name = "filling"
    reason = "the windows behind those that have rows are counted for all keys at once"
    state = "hash pages: windows with rows that others are still filled from, by a hash of the key"
    holds: ClassVar = {"p": "windows with rows"}
    batch = _Batch
