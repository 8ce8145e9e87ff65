"""The reference engine of closed sessions: one key, one row at a time.

State, by name in the bucket's blob store: ``header``; pages ``s``: of each key the rows that wait for the watermark, in order of
arrival, and its open session. Who may mutate: this engine, once a batch. Recovery: read them back.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import itemgetter
from typing import ClassVar, NamedTuple

import pyarrow as pa

from windowpane.arrays.values import Value
from windowpane.engines.batch.driver import Left, OrderedBatch
from windowpane.engines.collecting import OutputCollector
from windowpane.engines.common.arrival import in_order
from windowpane.engines.common.missed_windows import MissedWindows
from windowpane.engines.program import LATE, Program, Upstream
from windowpane.engines.row.reference import ColumnsOfNow, values_seen
from windowpane.engines.rows import python_keys, python_rows
from windowpane.engines.sessions.closed import punctual_rows, rule_of
from windowpane.engines.spec import BucketEngine
from windowpane.errors import present
from windowpane.hidden_columns import TIME
from windowpane.operators.window.contexts import UserCode
from windowpane.operators.window.timer_service import TimerService
from windowpane.state.blob_store import BlobStore
from windowpane.state.codec import encode_key
from windowpane.state.keyed import KeyedState
from windowpane.state.memory import MemoryBlobStore
from windowpane.state.sorted_pages import SortedPages
from windowpane.state.timers import TimerQueue
from windowpane.windowing.assigners.closed_sessions import CLOSES, WEIGHT, ClosedSessionWindows
from windowpane.windowing.windows import TimeWindow

WAITING, OPEN = "waiting", "open"
Waiting = tuple[int, Value, bool, int]
"""The event time of a row, what the function sees of it, whether it closes its session, and what it adds to its size."""


class Session(NamedTuple):
    """An open session: the times of its first and last row, its rows and their sum, and what the function made of them."""

    start: int
    last: int
    rows: int
    weight: int
    held: Value


class _Batch(OrderedBatch[Program]):
    def __init__(self, engine: BucketEngine[Program], store: BlobStore) -> None:
        super().__init__(engine, store)
        program = self.program
        self._pages = SortedPages(store, "s")
        self._state = KeyedState(self._pages)
        if self.header.added:
            self._state.rewrite(ColumnsOfNow(self.header.columns, program.values, program.main.names))
        self._rule = rule_of(program)
        self._function = present(program.spec.function.accumulate, "the planner checked")
        self._code = UserCode(self._function, self._state)
        no_timers = TimerQueue(SortedPages(MemoryBlobStore(), "t"))
        self._timers = TimerService(no_timers, no_timers)
        self._collector = OutputCollector(program, self._timers, self.late_counts)
        self._missed = MissedWindows(self)

    def work(self, tables: list[pa.Table]) -> None:
        rows = in_order(self.program, tables)
        if rows is None:
            return
        if self.program.upstream is not Upstream.WINDOW_WITH_WATERMARKS:
            self._take(rows)
            return
        for part in self.by_watermark(rows):
            self._take(part)

    def _take(self, rows: pa.Table) -> None:
        for key, row in self._rows(punctual_rows(self, self._missed, rows)):
            self._state.set_current_key(key)
            self._state.append(None, WAITING, row)

    def _rows(self, rows: pa.Table) -> Iterator[tuple[Value, Waiting]]:
        """Yield keys and rows; key columns that aggregates read are spelled as keys are."""
        seen = values_seen(self.program, rows)
        names = self._rule.columns
        closes = rows[CLOSES].to_pylist() if CLOSES in names else [False] * rows.num_rows
        weights = rows[WEIGHT].to_pylist() if WEIGHT in names else [0] * rows.num_rows
        keys, times = python_keys(rows, self.program.key_columns), rows[TIME].to_pylist()
        for key, time, value, closing, weight in zip(keys, times, python_rows(seen), closes, weights, strict=True):
            yield key, (time, value, bool(closing), weight or 0)

    def on_watermark(self, before: int) -> None:
        if self.watermark == before:
            return
        fired: list[tuple[int, Value, TimeWindow, Value]] = []
        for key in {encode_key(key): key for key, _, _ in self._state.slots()}.values():
            self._state.set_current_key(key)
            fired += [(window.end, key, window, result) for window, result in self._ended()]
        self._timers.forwarded_watermark = before
        for _, key, window, result in sorted(fired, key=itemgetter(0)):
            self._collector.emit(key, window, result)
        self.count("firings", len(fired))

    def _ended(self) -> Iterator[tuple[TimeWindow, Value]]:
        """Yield the sessions of the current key that end up to the watermark."""
        waiting: list[Waiting] = self._state.get_list(None, WAITING)
        held = self._state.get(None, OPEN)
        session = None if held is None else Session(*held)
        beyond = self._beyond(session)
        for row in sorted((row for row in waiting if row[0] <= self.watermark), key=itemgetter(0)):
            if session is not None and row[0] >= self._end(session):
                yield self._fired(session, self._end(session))
                session, beyond = None, (0, 0)
            session = self._with(session, row)
            if row[2] or self._is_full(session, beyond):
                yield self._fired(session, session.last + 1)
                session, beyond = None, (0, 0)
        if session is not None and self._end(session) - 1 <= self.watermark:
            yield self._fired(session, self._end(session))
            session = None
        self._state.put_list(None, WAITING, [row for row in waiting if row[0] > self.watermark])
        self._state.put(None, OPEN, None if session is None else tuple(session))

    def _with(self, session: Session | None, row: Waiting) -> Session:
        time, value, _, weight = row
        if session is None:
            session = Session(time, time, 0, 0, self._function.create_accumulator())
        with self._code.of(TimeWindow(session.start, time + self._rule.gap)):
            held = self._function.add(value, session.held)
        return Session(session.start, time, session.rows + 1, session.weight + weight, held)

    def _beyond(self, session: Session | None) -> tuple[int, int]:
        """Return the rows, and the sum, that an open session has beyond the limits, as an earlier rule let it grow so far."""
        count, size = self._rule.count, self._rule.size
        rows, weight = (0, 0) if session is None else (session.rows, session.weight)
        return 0 if count is None else max(rows - count + 1, 0), 0 if size is None else max(weight - size[1] + 1, 0)

    def _is_full(self, session: Session, beyond: tuple[int, int]) -> bool:
        count, size = self._rule.count, self._rule.size
        rows, weight = session.rows - beyond[0], session.weight - beyond[1]
        return (count is not None and rows >= count) or (size is not None and weight >= size[1])

    def _end(self, session: Session) -> int:
        duration, end = self._rule.duration, session.last + self._rule.gap
        return end if duration is None else min(end, session.start + duration)

    def _fired(self, session: Session, end: int) -> tuple[TimeWindow, Value]:
        window = TimeWindow(session.start, end)
        with self._code.of(window):
            return window, self._function.get_result(session.held)

    def close(self) -> Left:
        self._state.flush()
        missed, late = self._missed, self._missed.table()
        self.counts |= {"late_elements": missed.elements, "late_dropped": missed.dropped}
        self.outputs += [*self._collector.tables(), *([] if late is None else [(LATE, late)])]
        open_windows = sum(name == OPEN for _, _, name in self._state.slots())
        self._pages.flush()
        return Left(open_windows, self._pages.byte_size, self.is_source and not len(self._pages))


class ClosedSessionsReferenceEngine(BucketEngine[Program]):
    name = "closed sessions reference"
    reason = "the reference cuts the rows of a key one by one"
    state = "sorted pages: rows that wait and open sessions, by key"
    holds: ClassVar = {"s": "rows that wait and open sessions, by key"}
    batch = _Batch

    @classmethod
    def serves(cls, program: Program) -> bool:
        return isinstance(program.spec.assigner, ClosedSessionWindows)
