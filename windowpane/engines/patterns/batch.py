"""A batch of row patterns: rows wait for the watermark, join the waiting rows of their keys, and the search goes on there.

State, by name in the bucket's blob store: ``header``; the sort buffer ``b`` for rows above the watermark; for known rows, pages
``p`` by a hash of the key. A page holds the rows of its keys in order: those that a later attempt looks back at, and all from the
first waiting attempt on, each with::

    WAITS     whether it is at or behind the first row of the waiting attempt
    COVERED   whether a match has it, where rows of no match are shown
    MATCHES   how many matches its key has had
    OPENS     whether it is the first row that its key ever had

A page is due when the bound of an attempt passes in it, so a batch reads the pages of its keys and those. Who may mutate: this
engine, once a batch. Recovery: read back; the watermark is in the header.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import pyarrow as pa

from windowpane.arrays import Integers, Mask
from windowpane.arrays.columns import flat, padded, with_columns
from windowpane.arrays.values import Value
from windowpane.engines.batch.driver import Left, OrderedBatch
from windowpane.engines.common.arrival import ordered
from windowpane.engines.nested_keys.writing import hashable_keys
from windowpane.engines.over.sort_buffer import SortBuffer
from windowpane.engines.patterns.measures import with_measures
from windowpane.engines.patterns.program import TIMEOUTS, PatternCounters, PatternProgram
from windowpane.engines.rows import refuse_missing_times
from windowpane.engines.spec import BucketEngine
from windowpane.hidden_columns import HASH, TIME, hidden
from windowpane.kernels.keys.key_codes import key_codes, key_hashes
from windowpane.kernels.packed_order import stable_order
from windowpane.kernels.segments import starts_of_runs
from windowpane.kernels.sorting.column_order import ASCENDING, SortKey, sort_keys, sorted_by
from windowpane.operators.patterns.search import Cursor
from windowpane.state.blob_store import BlobStore
from windowpane.state.hash_pages import DENSE_ROWS, PAGE_ROWS, STEP_ROWS, HashPages, PageSummary, stored_hashes
from windowpane.windowing.times import MAX, MIN

_PREFIX_BITS = 20
_REST = np.uint64(64 - _PREFIX_BITS)

_OF_SEARCH = WAITS, COVERED, MATCHES, OPENS = tuple(map(hidden, ("waits", "covered", "matches", "opens")))


@dataclass
class Decided:
    """What a batch decides, in the order of its results."""

    rows: list[int] = field(default_factory=list)  # a row of the key of each result, or the row that it is shown with
    measures: list[tuple[Value, ...]] = field(default_factory=list)

    def add(self, row: int, measures: tuple[Value, ...]) -> None:
        self.rows.append(row)
        self.measures.append(measures)


@dataclass
class Partitions:
    """The keys among the rows of a step, an item each: its rows from ``firsts`` up to ``ends``, and where the search stands.

    ``starts`` and ``covered`` are counted from the first row of the key, as in ``Cursor``; ``searched`` are the numbers of the
    keys that something may be decided in.
    """

    firsts: Integers
    ends: Integers
    starts: Integers
    matches: Integers
    covered: Integers
    is_first: Mask
    searched: Integers
    forgotten: Mask
    skipped: int = 0
    overflow: int = 0

    @classmethod
    def of(cls, rows: pa.Table, firsts: Integers, is_new: Mask, known: int, program: PatternProgram) -> Partitions:
        """Return the keys of rows, which begin at ``firsts``."""
        ends = np.append(firsts[1:], rows.num_rows)
        lengths = ends - firsts
        waits, covered, opens = (flat(rows[name]).to_numpy(zero_copy_only=False) for name in (WAITS, COVERED, OPENS))
        starts = lengths - np.add.reduceat(waits.astype(np.int64), firsts)
        is_waiting, had_rows = starts < lengths, ~is_new[firsts]
        within, retain = program.spec.within, program.retain
        times = rows[TIME].to_numpy()[np.minimum(firsts + starts, ends - 1)]
        is_due = is_waiting & (known == MAX or (within is not None and times <= max(known - (within - 1), MIN)))
        is_old = times <= max(known - retain, MIN) if retain is not None else np.zeros(len(firsts), np.bool_)
        has_new = is_new[ends - 1]
        return cls(
            firsts,
            ends,
            starts,
            np.where(had_rows, rows[MATCHES].to_numpy()[firsts], 0),
            np.add.reduceat(covered.astype(np.int64), firsts),
            opens[firsts] | ~had_rows,
            np.flatnonzero(has_new | is_due),
            is_old & ~is_waiting & ~has_new,
        )

    @contextmanager
    def moving(self, number: int) -> Iterator[Cursor]:
        """Give a cursor of a key; where it was moved to is where the search stands then."""
        cursor = Cursor(
            int(self.starts[number]), int(self.matches[number]), int(self.covered[number]), bool(self.is_first[number])
        )
        yield cursor
        self.starts[number], self.matches[number], self.covered[number] = cursor.start, cursor.matches, cursor.covered
        self.skipped += cursor.skipped
        self.overflow += cursor.overflow


class PatternEngine(BucketEngine[PatternProgram]):
    state = "a sort buffer, and hash pages: by key the rows from the waiting attempt on"
    holds: ClassVar = {"b": "rows that wait", "p": "rows of attempts"}


class PatternBatch(OrderedBatch[PatternProgram]):
    counters = PatternCounters

    def __init__(self, engine: BucketEngine[PatternProgram], store: BlobStore) -> None:
        super().__init__(engine, store)
        program = self.program
        self._buffer = SortBuffer(store, "b", program.event_time, (), pa.schema([*program.columns, pa.field(TIME, pa.int64())]))
        self._pages = HashPages(store, "p", stored_hashes, self._summary, PAGE_ROWS.value, DENSE_ROWS.value)
        if self.header.description != program.description:
            self._pages.rewrite(lambda held: held)  # when a page is due follows from the program
        self._lookback = max(program.spec.lookback, 1 if program.remembers_keys else 0)

    @abstractmethod
    def search(self, rows: pa.Table, partitions: Partitions, known: int) -> None:
        """Search the rows of partitions, move their cursors, and call ``decide``."""

    def work(self, tables: list[pa.Table]) -> None:
        program, rows = self.program, ordered(tables)
        if rows is None:
            return
        refuse_missing_times(rows, program.keys, "a pattern goes")
        limit = program.known(self.late_under)
        late = program.late_schema if program.has_late_output else None
        rows = self.needed(rows) if late is None else rows
        punctual = self.punctual(rows, rows[TIME].to_numpy() <= limit, late)
        if punctual is not None:
            needed = punctual if late is None else self.needed(punctual)
            self._buffer.add(needed.select([*program.columns.names, TIME]))

    def needed(self, rows: pa.Table) -> pa.Table:
        """Return the rows that may change a result."""
        return rows

    def on_watermark(self, before: int) -> None:
        if self.watermark == before:
            return
        known = self.program.known(self.watermark)
        rows = self._released(known)

        def step(held: pa.Table | None, new: pa.Table | None) -> pa.Table | None:
            if held is None:
                return None if new is None else self._searched(None, new, known)
            held = padded(held, self.program.columns, self._names)
            is_touched = self._touched(held, new, known)
            if is_touched.all():
                return self._searched(held, new, known)
            found = self._searched(held.filter(pa.array(is_touched)), new, known)
            return pa.concat_tables([held.filter(pa.array(~is_touched)), found])

        self._pages.meet(rows, known, STEP_ROWS.value, step)

    def close(self) -> Left:
        self._buffer.flush()
        return Left(self._buffer.rows + self._pages.live, self._buffer.byte_size + self._pages.byte_size)

    @property
    def _names(self) -> list[str]:
        return [HASH, *self.program.columns.names, TIME, *_OF_SEARCH]

    def _released(self, known: int) -> pa.Table | None:
        """Return the rows that the watermark makes known, in order, with the hashes of their keys."""
        parts = self._buffer.release(known)
        if not parts:
            return None
        rows = pa.concat_tables(parts, promote_options="permissive")
        keys: list[SortKey] = [(rows[TIME], ASCENDING)]
        for column in self.program.order_by:
            keys += sort_keys(rows[column.name], column)
        rows = rows.take(sorted_by(keys)).combine_chunks()
        hashes = key_hashes(hashable_keys(rows, self.program.keys), rows.num_rows)
        return rows.add_column(0, HASH, pa.array(hashes))

    def _touched(self, held: pa.Table, new: pa.Table | None, known: int) -> Mask:
        """Return the held rows of keys that have new rows or in which something is due, and of keys whose hashes begin alike."""
        within, retain = self.program.spec.within, self.program.retain
        times, waits = held[TIME].to_numpy(), flat(held[WAITS]).to_numpy(zero_copy_only=False)
        is_due = waits & (known == MAX or (within is not None and times <= max(known - (within - 1), MIN)))
        if retain is not None:
            is_due |= ~waits & (times <= max(known - retain, MIN))
        prefixes, marked = stored_hashes(held) >> _REST, np.zeros(1 << _PREFIX_BITS, np.bool_)
        marked[prefixes[is_due]] = True
        if new is not None:
            marked[stored_hashes(new) >> _REST] = True
        found: Mask = marked[prefixes]
        return found

    def _searched(self, held: pa.Table | None, new: pa.Table | None, known: int) -> pa.Table:
        if new is not None:
            new = self._waiting(new)
        rows = pa.concat_tables([each.select(self._names) for each in (held, new) if each is not None]).combine_chunks()
        if not rows.num_rows:
            return rows
        codes = key_codes(hashable_keys(rows, self.program.keys), rows.num_rows)
        order = stable_order(codes)
        rows, codes = rows.take(pa.array(order)), codes[order]
        is_new = order >= (0 if held is None else held.num_rows)
        partitions = Partitions.of(rows, np.flatnonzero(starts_of_runs(codes)), is_new, known, self.program)
        if len(partitions.searched):
            self.search(rows, partitions, known)
        return self._left(rows, partitions)

    def _waiting(self, new: pa.Table) -> pa.Table:
        """Return rows that no attempt has begun at yet."""
        count = new.num_rows
        no, none = np.zeros(count, np.bool_), np.zeros(count, np.int64)
        return with_columns(new, {name: pa.array(each) for name, each in zip(_OF_SEARCH, (~no, no, none, no), strict=True)})

    def _left(self, rows: pa.Table, partitions: Partitions) -> pa.Table:
        """Return the rows that later attempts may look at, with where the search stands in each key."""
        lengths, kept = partitions.ends - partitions.firsts, np.zeros(len(partitions.firsts), np.int64)
        kept[partitions.searched] = np.maximum(partitions.starts[partitions.searched] - self._lookback, 0)
        kept[partitions.forgotten] = lengths[partitions.forgotten]
        places = np.arange(rows.num_rows) - np.repeat(partitions.firsts, lengths)
        opens = np.zeros(rows.num_rows, np.bool_)
        opens[partitions.firsts] = partitions.is_first
        columns = {
            WAITS: places >= np.repeat(partitions.starts, lengths),
            COVERED: places < np.repeat(partitions.covered, lengths),
            MATCHES: np.repeat(partitions.matches, lengths),
            OPENS: opens,
        }
        rows = with_columns(rows, {name: pa.array(values) for name, values in columns.items()})
        self.count("bad_skips", partitions.skipped)
        self.count("overflow", partitions.overflow)
        return rows.filter(pa.array(places >= np.repeat(kept, lengths)))

    def decide(self, rows: pa.Table, decided: Decided, timeouts: Decided) -> None:
        """Emit results, in the order that they were decided in."""
        program = self.program
        if decided.rows:
            shown = rows.select(program.passed if program.shows_rows else program.keys).take(pa.array(decided.rows, pa.int64()))
            self.emit(self._with_measures(shown, decided, program.main_schema))
        if timeouts.rows:
            shown = rows.select(program.keys).take(pa.array(timeouts.rows, pa.int64()))
            self.emit_timeouts(self._with_measures(shown, timeouts, program.timeout_schema))

    def emit_timeouts(self, results: pa.Table) -> None:
        """Emit rows of the output of timeouts, and count them."""
        if results.num_rows:
            self.outputs.append((TIMEOUTS, results))
            self.count("timeouts", results.num_rows)

    def _with_measures(self, shown: pa.Table, decided: Decided, schema: pa.Schema) -> pa.Table:
        fields = self.program.measures
        measures = [pa.array([values[number] for values in decided.measures], kind.type) for number, kind in enumerate(fields)]
        return with_measures(shown, measures, schema)

    def _summary(self, page: pa.Table) -> PageSummary:
        times, waits = page[TIME].to_numpy(), flat(page[WAITS]).to_numpy(zero_copy_only=False)
        bound = self.program.spec.bound(int(times[waits].min())) if waits.any() else None
        due = MAX if bound is None else bound
        if self.program.retain is not None and not waits.all():
            due = min(due, int(times[~waits].max()) + self.program.retain)
        return PageSummary(due, page.num_rows)
