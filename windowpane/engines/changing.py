"""A program of windows after a cut: earlier programs finish the windows that start before it, the new one has the others.

One instant C is chosen for all buckets, a start of a new window above every event time so far. Seen along time, an hour that
becomes a quarter of an hour, with the latest row at *::

    old   |-----------------*-------|              starts before C
    new                       C|------|------|---  starts at C or later

A row goes to every window of both kinds that holds its time. So every result is a whole window of one of the programs, none is
partial and none is lost; around C windows of both may overlap. Each program has an engine and a state of its own, and would also
make windows on the other side of the cut; their results are left out.

State, by name in the bucket's blob store: ``header``, of the program that runs now, with its generation; ``0/header`` and the
blobs of generation 0 under their own names; those of a later generation under ``1/``, ``2/``... Who may mutate: each engine its
own, this one the first header, last. Recovery: a bucket that an earlier program left is taken over when it is next opened.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windowpane.arrays import Mask
from windowpane.engines.batch.driver import rows_behind
from windowpane.engines.batch.header import HEADER, BucketHeader
from windowpane.engines.changes import matched_calls
from windowpane.engines.common.slicing import SharedSlices, Slices, slices_of
from windowpane.engines.program import MAIN, WINDOW_START, Program
from windowpane.engines.protocol import BucketOutput, Clock, Counters, Engine
from windowpane.errors import present
from windowpane.hidden_columns import TIME
from windowpane.state.blob_store import Below, BlobStore
from windowpane.windowing.assigners import WindowAssigner
from windowpane.windowing.times import MAX, MIN
from windowpane.windowing.windows import TimeWindow, window_start

Makes = Callable[[Program], Engine]


def first_start_above(assigner: WindowAssigner, time: int) -> int:
    """Return the least start of a window above an instant."""
    slices = _slices(assigner)
    if isinstance(slices, SharedSlices):
        return window_start(time, slices.offset, slices.slide) + slices.slide
    return max(window.end for window in _holding(slices, time))


class WindowsAfterCut:
    """Runs the earlier programs and the present one, each on its side of its cuts."""

    def __init__(self, make: Makes, makes: Sequence[Makes], program: Program) -> None:
        """Run ``program``, whose engine ``make`` makes; ``makes`` are those of its earlier programs."""
        self.name = program.engine
        self._program = program
        ends = [each.begins for each in (*program.earlier[1:], program)]
        earlier = zip(makes, program.earlier, ends, strict=False)
        self._earlier = [_Earlier(each(of), of, program, end, is_first=not n) for n, (each, of, end) in enumerate(earlier)]
        self._engine = make(program)

    def run(self, store: BlobStore, rows: Sequence[pa.Table], clock: Clock) -> BucketOutput:
        """Run one batch of a bucket."""
        header = self._taken_over(store)
        watermark, now = max(header.watermark, clock.watermark), max(header.processing_time, clock.processing_time)
        clock = replace(clock, watermark=watermark, processing_time=now)
        at = None if self._program.spec.assigner.is_event_time else now
        rows, passed_over = rows_behind(header.cut, rows)
        found = [each.run(store, rows, clock, watermark, at) for each in self._earlier]
        found.append(self._current(store, rows, clock, at))
        tables = sorted((table for output in found for table in output.tables), key=lambda table: table[0])
        counters = _together([output.counters for output in found])
        counters = replace(counters, before_cut=counters.before_cut + (passed_over or 0))
        times = [output.next_processing_time for output in found if output.next_processing_time is not None]
        replace(
            header,
            description=self._program.description,
            watermark=watermark,
            processing_time=now,
            open_windows=counters.open_windows,
            begins=self._program.begins,
        ).write(store)
        return BucketOutput(tables, counters, all(output.is_idle for output in found), min(times, default=None))

    def _taken_over(self, store: BlobStore) -> BucketHeader:
        """Return the header, that of an earlier program put aside.

        Raises:
            ChangedPlanError: a later program, or one that this one does not know, wrote the state.
        """
        program, blob = self._program, store.get(HEADER)
        before = None if blob is None else BucketHeader.of(blob)
        if before is None or before.generation >= program.generation:
            return BucketHeader.read(store, program.description, generation=program.generation)
        if not before.generation:
            store.put(f"0/{HEADER}", present(blob, "it was read"))
        return replace(before, generation=program.generation)

    def _current(self, store: BlobStore, rows: Sequence[pa.Table], clock: Clock, at: int | None) -> BucketOutput:
        program = self._program
        if self._earlier:
            rows = [_where(table, lambda times: times >= program.begins, at, has_null=True) for table in rows]
        output = self._engine.run(OfGeneration(store, program.generation), rows, clock)
        return _between(output, program.begins, MAX, lambda table: table)


class _Earlier:
    """An earlier program, its engine, and what of its results is left in."""

    def __init__(self, engine: Engine, program: Program, now: Program, end: int, is_first: bool) -> None:
        self._engine, self._program, self._now = engine, program, now
        self._takes_from, self._end = MIN if is_first else program.begins, end
        self._slices = _slices(program.spec.assigner)
        self._reach = max([end, *(window.end for window in _holding(self._slices, end - 1))]) if end > MIN else MIN
        self._own = _OwnColumns(program, now)

    def run(self, store: BlobStore, rows: Sequence[pa.Table], clock: Clock, watermark: int, at: int | None) -> BucketOutput:
        """Run its batch; rows of windows behind its end that are over for it are the next program's alone.

        Windows are by event time, or by the clock, which is ``at`` an instant for all rows of the batch.
        """
        own = [self._own.of(each) for each in (self._rows(table, watermark, at) for table in rows) if each.num_rows]
        state = OfGeneration(store, self._program.generation)
        if not own:
            blob = state.get(HEADER)
            header = None if blob is None else BucketHeader.of(blob)
            if header is None or self._is_over(header.watermark if at is None else header.processing_time - 1):
                return BucketOutput()
        output = self._engine.run(state, own, clock)
        return _between(output, self._program.begins, self._end, self._own.results)

    def _is_over(self, clock: int) -> bool:
        """Whether all windows are over; rows of the very instant in which one ends by the clock wait for the next."""
        return self._program.spec.lateness.is_over(self._reach - 1, clock)

    def _rows(self, table: pa.Table, watermark: int, at: int | None) -> pa.Table:
        def wanted(times: pa.ChunkedArray) -> Mask:
            found: Mask = (times >= self._takes_from) & (times < self._reach)
            behind = np.flatnonzero(found & (times >= self._end))
            if len(behind):
                starts = self._slices.starts(times[behind])
                is_open = {start: self._is_open(start, watermark) for start in np.unique(starts).tolist()}
                held = self._slices.covers(times[behind], starts)
                found[behind] = held & np.array([is_open[start] for start in starts.tolist()], np.bool_)
            return found

        return _where(table, wanted, at, has_null=False)

    def _is_open(self, start: int, watermark: int) -> bool:
        lateness = self._program.spec.lateness
        own = [window for window in self._slices.windows_of(start) if window.start < self._end]
        return any(not lateness.is_late(window.max_timestamp, watermark) for window in own)


class _OwnColumns:
    """The columns of rows as an earlier program knows them, and those of its results as the present one does."""

    def __init__(self, program: Program, now: Program) -> None:
        was, calls = program.description["calls"], now.description["calls"]
        matched = [
            (call, was[number]) for call, number in zip(calls, matched_calls(was, calls), strict=True) if number is not None
        ]
        self._read = {old: new for call, before in matched for old, new in zip(before["reads"], call["reads"], strict=True)}
        self._read |= dict(zip(program.key_columns, now.key_columns, strict=True))
        self._types = program.value_types
        self._names = {each["name"]: None for each in calls} | {call["name"]: before["name"] for call, before in matched}
        self._schema = now.main_schema

    def of(self, rows: pa.Table) -> pa.Table:
        """Return rows with the columns that the program reads; one that nothing reads any more is NULL."""
        for name, field in [*((old, None) for old in self._read), *((field.name, field) for field in self._types)]:
            source = self._read.get(name, name)
            if name != source and source in rows.column_names:
                column = rows[source]
                place = rows.column_names.index(name) if name in rows.column_names else None
                rows = rows.append_column(name, column) if place is None else rows.set_column(place, name, column)
            elif name not in rows.column_names and field is not None:
                rows = rows.append_column(field, pa.nulls(rows.num_rows, field.type))
        return rows

    def results(self, table: pa.Table) -> pa.Table:
        """Return results as the present program has them, NULL where they lack a call."""
        columns = []
        for field in self._schema:
            name = self._names.get(field.name, field.name)
            known = name is not None and name in table.column_names
            columns.append(table[name].cast(field.type) if known else pa.nulls(table.num_rows, field.type))
        return pa.table(columns, schema=self._schema)


class OfGeneration(Below):
    """The blobs of one generation in a bucket's store; the first one has all but its header under their own names."""

    def __init__(self, store: BlobStore, generation: int) -> None:
        super().__init__(store, f"{generation}/")
        self._is_first = generation == 0

    def _name(self, key: str) -> str:
        return key if self._is_first and key != HEADER else super()._name(key)


def _slices(assigner: WindowAssigner) -> Slices:
    return present(slices_of(assigner), "windows that can be cut have slices")


def _holding(slices: Slices, time: int) -> list[TimeWindow]:
    times = np.array([time])
    starts = slices.starts(times)
    return list(slices.windows_of(int(starts[0]))) if slices.covers(times, starts)[0] else []


def last_end(assigner: WindowAssigner, time: int) -> int:
    """Return the end of the last window that holds an instant, or the instant after it."""
    return max((window.end for window in _holding(_slices(assigner), time)), default=time + 1)


def has_one_window(assigner: WindowAssigner, time: int) -> bool:
    """Whether an instant is in one window, or in none."""
    return len(_holding(_slices(assigner), time)) <= 1


def _where(table: pa.Table, wanted: Callable[[Mask], Mask], at: int | None, has_null: bool) -> pa.Table:
    """Return the rows of wanted times, which are all ``at`` an instant if it is given; those without one if asked for."""
    if at is not None:
        return table.filter(pa.array(wanted(np.full(table.num_rows, at))))
    times = table[TIME]
    nothing = times.is_null().to_numpy()
    found = wanted(pc.fill_null(times, 0).to_numpy())
    found = np.where(nothing, has_null, found)
    return table if found.all() else table.filter(pa.array(found))


def _between(output: BucketOutput, start: int, end: int, made: Callable[[pa.Table], pa.Table]) -> BucketOutput:
    """Return an output with the results of windows that start from one instant on and before another."""
    tables, left_out = [], 0
    for number, table in output.tables:
        if number == MAIN:
            starts = table[WINDOW_START].cast(pa.int64()).to_numpy()
            own = (starts >= start) & (starts < end)
            left_out += int((~own).sum())
            table = made(table.filter(pa.array(own)))
        if table.num_rows:
            tables.append((number, table))
    counters = replace(output.counters, firings=output.counters.firings - left_out)
    return replace(output, tables=tables, counters=counters)


def _together(counters: Sequence[Counters]) -> Counters:
    return Counters(**{each.name: sum(getattr(one, each.name) for one in counters) for each in fields(Counters)})
