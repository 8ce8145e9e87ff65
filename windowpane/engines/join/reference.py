"""The reference engine of joins: the reference operators on a bucket, for every join.

State, by name in the bucket's blob store: ``header``; pages ``s`` for the rows of keys, ``t`` for timers. Who may mutate: this
engine, once a batch. Recovery: read them back; the watermark is in the header. The order of a batch is that of ``batch``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import ClassVar

import pyarrow as pa

from windowpane.arrays.values import Row, Value
from windowpane.engines.batch.driver import Left, OrderedBatch
from windowpane.engines.batch.late_rows import DROPPED, late_table
from windowpane.engines.common.arrival import ordered
from windowpane.engines.common.tagged import tag
from windowpane.engines.join.program import LATE, JoinCounters, JoinProgram, passed_name
from windowpane.engines.join.versions import versions_among
from windowpane.engines.join.windows import JoinWindowEngine
from windowpane.engines.program import MAIN
from windowpane.engines.protocol import BucketOutput, Clock
from windowpane.engines.rows import python_keys, python_rows
from windowpane.engines.spec import BucketEngine
from windowpane.errors import MissingSideTimestampError, MistakeError
from windowpane.hidden_columns import FIRING_WATERMARK, TIME
from windowpane.kernels.conditions import pairs_hold
from windowpane.operators.join.as_of import ArrivalJoinOperator, AsOfJoinOperator
from windowpane.operators.join.held import Arrival, Joined, KeyedRows
from windowpane.operators.join.interval import IntervalJoinOperator
from windowpane.operators.over.row_forms import RowForms
from windowpane.state.blob_store import BlobStore
from windowpane.state.codec import encode_key
from windowpane.state.keyed import KeyedState
from windowpane.state.sorted_pages import SortedPages
from windowpane.state.timers import TimerQueue
from windowpane.windowing.aggregates.canonical import form_of
from windowpane.windowing.expressions import SIDES, Side
from windowpane.windowing.joins import ArrivalMatch, AsOfMatch, IntervalMatch, WindowMatch
from windowpane.windowing.lateness import horizon
from windowpane.windowing.outputs import APPEARING, CHANGE_TYPE, DELETE
from windowpane.windowing.times import MIN, add_clamped


class _Batch(OrderedBatch[JoinProgram]):
    counters = JoinCounters

    def __init__(self, engine: BucketEngine[JoinProgram], store: BlobStore) -> None:
        super().__init__(engine, store)
        self._pages = [SortedPages(store, name) for name in ("s", "t")]
        self._state = KeyedState(self._pages[0])
        self._rows = KeyedRows(self._state, TimerQueue(self._pages[1]))
        self._late: dict[Side, list[dict[str, Value]]] = {side: [] for side in SIDES}
        self._results: list[Joined] = []
        self._operator = self._made()
        was, now = self.header.description, self.program.description
        if isinstance(self._operator, IntervalJoinOperator) and was.get("match") != now.get("match"):
            self._operator.take_over(was["match"]["upper"])

    def _made(self) -> IntervalJoinOperator | AsOfJoinOperator | ArrivalJoinOperator:
        program, match = self.program, self.program.match
        if isinstance(match, IntervalMatch):
            settings = program.how, program.allowed_lateness, program.time_of
            return IntervalJoinOperator(match, *settings, self._rows, self._matches)
        if isinstance(match, ArrivalMatch):
            return ArrivalJoinOperator(program.pads_left, self._rows, self._matches)
        if not isinstance(match, AsOfMatch):
            raise MistakeError("windows have an engine of their own")
        forms = RowForms(program.right.columns, program.right.passed)
        lateness = program.allowed_lateness
        operator = AsOfJoinOperator(match, program.pads_left, lateness, self._rows, self._matches, forms.same, program.updates)
        return operator if match.sequence is None else replace(operator, sequence=self._sequence(match.sequence))

    def _sequence(self, column: str) -> Callable[[Row], Value]:
        form = form_of(self.program.right.columns.field(column).type)
        return lambda row: (False, 0) if row[column] is None else (True, form.freeze(row[column]))

    def on_watermark(self, before: int) -> None:
        self._results += self._operator.advance(self.watermark)

    def work(self, tables: list[pa.Table]) -> None:
        for arrival in self._punctual(tables, horizon(self.late_under, self.program.allowed_lateness)):
            self._results += self._operator.take(arrival)

    # Rows in.

    def _punctual(self, tables: Sequence[pa.Table], late: int) -> Iterator[Arrival]:
        is_by_arrival = isinstance(self.program.match, ArrivalMatch)
        for side in reversed(SIDES) if is_by_arrival else SIDES:
            for arrival in self._arrived(side, [table for table in tables if tag(table, "side") == side]):
                if late != MIN and not is_by_arrival and arrival.time <= late:
                    operator = self._operator if arrival.meets and not arrival.is_left else None
                    watermark = late + self.program.allowed_lateness
                    takes = isinstance(operator, AsOfJoinOperator) and operator.takes_late_version(
                        arrival.time, arrival.row, watermark
                    )
                    self._late[side].append({**arrival.row, TIME: arrival.time, DROPPED: not takes})
                    self.late_counts.note_dropped(pa.array([arrival.time]), self.late_under, self._rows.key[0])
                    if not takes:
                        continue
                yield arrival

    def _arrived(self, side: Side, tables: Sequence[pa.Table]) -> Iterator[Arrival]:
        of, rows = self.program.sides[side], ordered(tables)
        if rows is None:
            return
        if rows[TIME].null_count and not isinstance(self.program.match, ArrivalMatch):
            raise MissingSideTimestampError(side, rows[TIME].null_count)
        rows = versions_among(rows)
        uppers = self._uppers(side, rows)
        keys = python_keys(rows, of.keys)
        values = python_rows(rows.select(of.columns.names))
        for row, key, time, upper in zip(values, keys, rows[TIME].to_pylist(), uppers, strict=True):
            self._rows.turn_to(key, encode_key(key))
            meets = self.program.null_safe or all(row[name] is not None for name in of.keys)
            yield Arrival(side == "left", row, time, meets, row.get(CHANGE_TYPE) == DELETE, upper)

    def _uppers(self, side: Side, rows: pa.Table) -> list[int | None]:
        match = self.program.match
        column = match.upper_column if isinstance(match, IntervalMatch) and side == "left" else None
        return [None] * rows.num_rows if column is None else rows[column].cast(pa.int64()).to_pylist()

    def _matches(self, left: Row, right: Row) -> bool:
        rows: dict[Side, Row] = {"left": left, "right": right}

        def column(side: Side, name: str) -> pa.Array:
            return pa.array([rows[side][name]], self.program.sides[side].columns.field(name).type)

        return bool(pairs_hold(self.program.condition, column, 1)[0])

    # Rows out.

    def close(self) -> Left:
        self._results += self._operator.advance(self.watermark)
        self._results += self._operator.finish(self.watermark)
        self._state.flush()
        for pages in self._pages:
            pages.flush()
        late = {f"{side}_late": len(rows) for side, rows in self._late.items()}
        dropped = sum(row[DROPPED] for rows in self._late.values() for row in rows)
        appearing = [each for each in self._results if each.change in APPEARING]
        pairs = sum(each.left is not None and each.right is not None for each in appearing)
        self.counts |= {**late, "late_elements": sum(late.values()), "late_dropped": dropped}
        self.counts |= {"pairs": pairs, "padded": len(appearing) - pairs}
        self.outputs += self._tables()
        return Left(len(self._pages[1]), sum(pages.byte_size for pages in self._pages))

    def _tables(self) -> Iterator[tuple[int, pa.Table]]:
        program, delay = self.program, self.program.held_back
        fired_under = MIN if delay is None or self.before == MIN else add_clamped(self.before, -delay)
        if self._results:
            rows = [{**_named(each), FIRING_WATERMARK: fired_under} for each in self._results]
            yield MAIN, pa.Table.from_pylist(rows, program.main_schema)
        for side, rows in self._late.items():
            if rows and program.sides[side].has_late_output:
                own = [*program.sides[side].columns, pa.field(TIME, pa.int64())]
                late, outcome = pa.Table.from_pylist(rows, pa.schema(own)), {DROPPED: pa.array([row[DROPPED] for row in rows])}
                yield LATE[side], late_table(program.late_schema(side), late, self.late_under, self.clocks, outcome)


class JoinReferenceEngine(BucketEngine[JoinProgram]):
    """Runs any join, one row at a time; that of windows on the reference operator of windows."""

    name = "join reference"
    reason = "the reference operators run every join"
    state = "sorted pages: the held rows of both sides by key, and when they are final"
    holds: ClassVar = {"s": "rows by key", "t": "timers"}
    batch = _Batch

    def __init__(self, program: JoinProgram) -> None:
        super().__init__(program)
        self._windows = JoinWindowEngine(program, row_by_row=True) if isinstance(program.match, WindowMatch) else None

    def run(self, store: BlobStore, rows: Sequence[pa.Table], clock: Clock) -> BucketOutput:
        return super().run(store, rows, clock) if self._windows is None else self._windows.run(store, rows, clock)


def _named(joined: Joined) -> dict[str, Value]:
    left = {passed_name("left", name): value for name, value in (joined.left or {}).items()}
    right = {passed_name("right", name): value for name, value in (joined.right or {}).items()}
    return {**left, **right, TIME: joined.time, CHANGE_TYPE: joined.change}
