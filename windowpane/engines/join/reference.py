"""The reference engine of joins: the reference operators on a bucket, for every program.

State, by name in the bucket's blob store: ``header``; pages ``s`` for the rows of keys, ``t`` for timers. Who may mutate: this
engine, once a batch. Recovery: read them back; the watermark stands in the header.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from windowpane.engines.common.bucket_header import BucketHeader
from windowpane.engines.common.late_rows import DROPPED
from windowpane.engines.common.rows import python_keys, python_rows
from windowpane.engines.join.program import LATE_LEFT, LATE_RIGHT, JoinProgram
from windowpane.engines.program import MAIN, Upstream
from windowpane.engines.protocol import BucketOutput, Clock, Counters
from windowpane.errors import MissingJoinTimeError
from windowpane.hidden_columns import JUDGING_WATERMARK, PARTITION, POSITION, SIDE, TIME
from windowpane.operators.join.as_of import AsOfJoinOperator
from windowpane.operators.join.held import Arrival, Joined, KeyedRows, Row
from windowpane.operators.join.interval import IntervalJoinOperator
from windowpane.state.blob_store import BlobStore
from windowpane.state.codec import encode_key
from windowpane.state.keyed import KeyedState
from windowpane.state.sorted_pages import SortedPages
from windowpane.state.timers import TimerQueue
from windowpane.windowing.changes import CHANGE_TYPE, DELETE, UPDATE_PREIMAGE
from windowpane.windowing.joins import BOTH, LEFT, RIGHT, AsOfJoin, IntervalJoin


class JoinReferenceEngine:
    """Runs any interval or as-of join, one row at a time."""

    name = "join reference"

    def __init__(self, program: JoinProgram) -> None:
        """Run ``program``."""
        self._program = program

    def run(self, store: BlobStore, rows: Sequence[pa.Table], clock: Clock) -> BucketOutput:
        """Run one batch of a bucket."""
        return _Batch(self._program, store).run(rows, clock)


class _Batch:
    """One batch of one bucket: state opened, run, written back."""

    def __init__(self, program: JoinProgram, store: BlobStore) -> None:
        self._program = program
        self._store = store
        self._header = BucketHeader.read(store, program.description)
        self._pages = [SortedPages(store, name) for name in ("s", "t")]
        self._state = KeyedState(self._pages[0])
        self._rows = KeyedRows(self._state, TimerQueue(self._pages[1]))
        self._late: dict[int, list[dict[str, Any]]] = {LEFT: [], RIGHT: []}
        spec = program.spec
        self._operator: IntervalJoinOperator | AsOfJoinOperator
        if isinstance(spec, IntervalJoin):
            self._operator = IntervalJoinOperator(spec, self._rows, self._matches)
        else:
            self._operator = AsOfJoinOperator(spec, self._rows, self._matches)

    def run(self, tables: Sequence[pa.Table], clock: Clock) -> BucketOutput:
        before = self._header.watermark
        watermark = max(before, clock.watermark)
        is_first = self._program.upstream is Upstream.SOURCE
        results = [] if not is_first else list(self._operator.advance(watermark))
        for arrival in self._punctual(tables, watermark if is_first else before):
            results += self._operator.take(arrival)
        results += self._operator.advance(watermark) if not is_first else ()
        results += self._operator.finish(watermark)
        return self._close(results, before, watermark, clock)

    def _punctual(self, tables: Sequence[pa.Table], watermark: int) -> Iterator[Arrival]:
        """Yield the rows that are taken, each under its key."""
        for arrival, judged in self._arrived(tables, watermark):
            if self._is_late(arrival, judged):
                takes = arrival.side == RIGHT and self._takes_late_version(arrival.time, judged)
                self._late[arrival.side].append(
                    {**arrival.row, DROPPED: not takes, TIME: arrival.time, JUDGING_WATERMARK: judged}
                )
                if not takes:
                    continue
            yield arrival

    def _is_late(self, arrival: Arrival, watermark: int) -> bool:
        spec = self._program.spec
        return not (isinstance(spec, AsOfJoin) and spec.by_arrival) and arrival.time <= self._program.horizon(watermark)

    def _takes_late_version(self, time: int, watermark: int) -> bool:
        return isinstance(self._operator, AsOfJoinOperator) and self._operator.takes_late_version(time, watermark)

    def _arrived(self, tables: Sequence[pa.Table], watermark: int) -> Iterator[tuple[Arrival, int]]:
        """Yield the rows of a batch in order of arrival, each with the watermark that judges it, and turn to its key."""
        rows = _in_order(self._program, tables)
        if rows is None:
            return
        names = self._program.keys.names
        for row, key in zip(python_rows(rows), python_keys(rows, names), strict=True):
            if row[TIME] is None:
                raise MissingJoinTimeError("left" if row[SIDE] == LEFT else "right", key)
            word = row.get(CHANGE_TYPE) if row[SIDE] == RIGHT else None
            if word == UPDATE_PREIMAGE:
                continue
            self._rows.turn_to(key, encode_key(key))
            meets = self._program.null_safe or all(row[name] is not None for name in names)
            columns = (self._program.left, self._program.right)[row[SIDE]].names
            own = {name: row[name] for name in (*names, *columns)}
            yield Arrival(row[SIDE], own, row[TIME], meets, word == DELETE), row.get(JUDGING_WATERMARK, watermark)

    def _matches(self, left: Row, right: Row) -> bool:
        condition = self._program.condition
        if condition is None:
            return True
        schema = pa.schema([*self._program.keys, *self._program.left, *self._program.right])
        return bool(condition(pa.Table.from_pylist([{**right, **left}], schema))[0].as_py())

    def _close(self, results: Sequence[Joined], before: int, watermark: int, clock: Clock) -> BucketOutput:
        self._state.flush()
        for pages in self._pages:
            pages.flush()
        size = sum(pages.byte_size for pages in self._pages)
        late = [row for rows in self._late.values() for row in rows]
        held = len(self._pages[1])
        now = max(clock.processing_time, self._header.processing_time)
        BucketHeader(self._program.description, watermark, now, held).write(self._store)
        counters = Counters(len(late), sum(row[DROPPED] for row in late), len(results), 0, held, size)
        is_idle = not held and self._program.upstream is Upstream.SOURCE
        return BucketOutput(list(self._tables(results, self._program.judged(before))), counters, is_idle)

    def _tables(self, results: Sequence[Joined], judged: int) -> Iterator[tuple[int, pa.Table]]:
        program = self._program
        if results:
            rows = [_main_row(each) | {JUDGING_WATERMARK: judged} for each in results]
            yield MAIN, pa.Table.from_pylist(rows, program.main_schema)
        for side, number in ((LEFT, LATE_LEFT), (RIGHT, LATE_RIGHT)):
            if self._late[side] and program.late_outputs[side]:
                yield number, pa.Table.from_pylist(self._late[side], program.late_schema(side))


def _main_row(joined: Joined) -> dict[str, Any]:
    side = BOTH if joined.left is not None and joined.right is not None else LEFT if joined.left is not None else RIGHT
    return {**(joined.right or {}), **(joined.left or {}), SIDE: side, CHANGE_TYPE: joined.word, TIME: joined.time}


def _in_order(program: JoinProgram, tables: Sequence[pa.Table]) -> pa.Table | None:
    filled = [table for table in tables if table.num_rows]
    if not filled:
        return None
    merged = pa.concat_tables(filled, promote_options="permissive")
    first = "descending" if isinstance(program.spec, AsOfJoin) and program.spec.by_arrival else "ascending"
    absent = [field for field in (*program.left, *program.right) if field.name not in merged.column_names]
    for field in absent:
        merged = merged.append_column(field, pa.nulls(merged.num_rows, field.type))
    return merged.sort_by([(SIDE, first), (PARTITION, "ascending"), (POSITION, "ascending")])
