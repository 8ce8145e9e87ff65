"""Kind ``closed``: sessions that rows, sums and lengths end, batch by batch, on an engine and the reference; and by definition.

The definition has all rows that are not late at once: each key by itself, in order of event time, one row after the other. After
every batch the engines must have emitted the same, late rows included, and the definition what has ended by the watermark. Each
engine is made anew from bytes before every batch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from operator import itemgetter
from random import Random
from typing import Any, NamedTuple

import pyarrow as pa

import windowpane as wp
from verify.fuzz.outcome import Outcome, differences_of
from windowpane.engines.program import MAIN, WINDOW_END, WINDOW_START, Program, Upstream
from windowpane.engines.protocol import Clock, Engine
from windowpane.engines.sessions.closed_reference import ClosedSessionsReferenceEngine
from windowpane.hidden_columns import FIRING_WATERMARK, PARTITION, POSITION, TIME
from windowpane.planning.engines import make_engine
from windowpane.planning.settings import Settings
from windowpane.planning.window_programs import InputTypes, compile_program
from windowpane.planning.windows import FunctionPlan, WindowPlan
from windowpane.state.memory import MemoryBlobStore
from windowpane.windowing.assigners.closed_sessions import CLOSES, WEIGHT, ClosedSessionWindows
from windowpane.windowing.times import MAX, MIN

TIMESTAMP = pa.timestamp("us", tz="UTC")
COLUMNS = pa.schema([("k", pa.string()), ("v", pa.int64()), (CLOSES, pa.bool_()), (WEIGHT, pa.int64())])
AGGREGATES = {"n": wp.count(), "total": wp.sum("v"), "values": wp.collect_list("v"), "first": wp.first("v"), "most": wp.max("v")}


class Row(NamedTuple):
    """A row: its key and value, its event time, whether it closes, and what it adds to a size."""

    k: str | None
    v: int | None
    at: int
    closes: bool | None
    weight: int | None


class Batch(NamedTuple):
    """The watermark before the batch's rows, under which a window before emitted them, and that of the batch."""

    before: int
    watermark: int
    rows: Sequence[Row]


def run(seed: int) -> Outcome:
    """Return what became of the program of a seed."""
    draw = Random(seed)
    program = random_program(draw)
    batches = random_batches(draw)
    text = f"{program.spec.assigner}, {program.upstream}, {batches!r}"
    return Outcome(seed, text, program.engine, differences_of(seed, lambda: _differences(program, batches)))


def random_program(draw: Random) -> Program:
    """Draw what closes sessions, with keys or without, behind a source or a window."""
    condition, count = draw.choice(["c", "c", None]), draw.choice([None, None, 1, 2, 5, 1000])
    size, duration = draw.choice([None, None, 1, 4, 10, 1 << 61]), draw.choice([None, None, 3, 20, 50, MAX])
    if condition is None and count is None and size is None:
        duration = duration or 15
    assigner = ClosedSessionWindows(draw.choice([1, 5, 20, 100]), condition, count, ("w", size) if size else None, duration)
    keys, upstream = draw.choice([("k",), ("k",), ()]), draw.choice([Upstream.SOURCE, Upstream.SOURCE, Upstream.WINDOW])
    upstream = draw.choice([upstream, upstream, Upstream.WINDOW_WITH_WATERMARKS])
    return program_of(assigner, keys, upstream)


def program_of(
    assigner: ClosedSessionWindows,
    keys: Sequence[str] = ("k",),
    upstream: Upstream = Upstream.SOURCE,
    columns: pa.Schema = COLUMNS,
    engine: str | None = None,
) -> Program:
    """Return a program over rows (k, v), whose late rows are an output."""
    function = FunctionPlan("aggregate", aggregates=tuple(AGGREGATES.items()))
    settings = Settings(late_tag=wp.OutputTag("late"), engine=engine)
    plan = WindowPlan(tuple(keys), assigner, function, event_time="t", settings=settings, upstream=upstream)
    slots = {name: tuple(aggregate.arguments) for name, aggregate in AGGREGATES.items()}
    types = InputTypes(columns, pa.schema([columns.field("k")][: len(keys)]), tuple(keys), TIMESTAMP, slots)
    return compile_program(plan, types, ("k", "v"))


def random_batches(draw: Random) -> list[Batch]:
    """Draw batches of rows in disorder, some of them late, many at one instant."""
    batches: list[Batch] = []
    before, watermark, at = MIN, draw.choice([MIN, -30]), 0
    size, spread = draw.choice([3, 10, 60]), draw.choice([10, 40, 200])
    for _ in range(draw.randint(1, 8)):
        rows = [
            Row(
                draw.choice(["a", "b", None]),
                draw.choice([None, draw.randint(-9, 9)]),
                at + draw.randint(-spread, spread),
                draw.choice([True, False, False, False, None]),
                draw.choice([None, 0, 1, 3, 1 << 61]),
            )
            for _ in range(draw.randint(0, size))
        ]
        batches.append(Batch(before, watermark, rows))
        at += draw.choice([0, 5, spread])
        before, watermark = watermark, max(watermark, draw.choice([watermark, at - spread, at, at + 5]))
    ends = [max(watermark, at) + 2_000, MAX]
    return [*batches, Batch(watermark, ends[0], ()), *([Batch(ends[0], MAX, ())] if draw.random() < 0.5 else [])]


def _differences(program: Program, batches: Sequence[Batch]) -> Iterator[str]:
    expected, found = (replay(engine, program, batches) for engine in (ClosedSessionsReferenceEngine, make_engine))
    kept: list[Row] = []
    emitted: Counter[Any] = Counter()
    for number, (one, other, batch) in enumerate(zip(expected, found, batches, strict=True)):
        if Counter(one) != Counter(other):
            yield f"batch {number}: the reference {sorted(one, key=repr)}, {program.engine} {sorted(other, key=repr)}"
        if program.upstream is Upstream.SOURCE:
            under, until = batch.watermark, batch.watermark
            before = list(kept)
            kept += [row for row in batch.rows if row.at > under]
            made = by_definition(program, before, until)
        else:
            kept += [row for row in batch.rows if row.at > batch.before]
            made = by_definition(program, kept, batch.watermark)
        emitted += Counter(row for row in other if row[0] == MAIN)
        if emitted != Counter(made):
            yield f"batch {number}: by definition {sorted(made, key=repr)}, emitted {sorted(emitted.elements(), key=repr)}"


def replay(engine: Callable[[Program], Engine], program: Program, batches: Sequence[Batch]) -> list[list[Any]]:
    """Return what came out of each batch; an engine is made anew from bytes before each."""
    store, found = MemoryBlobStore(), []
    for batch in batches:
        output = engine(program).run(store, [table_of(batch)] if batch.rows else [], Clock(batch.watermark, 0))
        found.append([(number, *_plain(row)) for number, table in output.tables for row in table.to_pylist()])
        again = MemoryBlobStore()
        again.restore(store.snapshot())
        store = again
    return found


def _plain(row: dict[str, Any]) -> Iterator[Any]:
    for name, value in row.items():
        if name in (WINDOW_START, WINDOW_END):
            yield _micros(value)
        elif name != FIRING_WATERMARK:
            yield repr(value) if isinstance(value, list) else value


def _micros(value: Any) -> int:
    micros: int = int(value.timestamp() // 1) * 1_000_000 + value.microsecond
    return micros


def table_of(batch: Batch) -> pa.Table:
    """Return the rows of a batch as an engine is given them."""
    rows = batch.rows
    return pa.table(
        {
            "k": pa.array([row.k for row in rows], pa.string()),
            "v": pa.array([row.v for row in rows], pa.int64()),
            CLOSES: pa.array([row.closes for row in rows], pa.bool_()),
            WEIGHT: pa.array([row.weight for row in rows], pa.int64()),
            TIME: pa.array([row.at for row in rows], pa.int64()),
            PARTITION: pa.array([0] * len(rows), pa.int32()),
            POSITION: pa.array(range(len(rows)), pa.int64()),
            FIRING_WATERMARK: pa.array([batch.before] * len(rows), pa.int64()),
        }
    )


def by_definition(program: Program, rows: Sequence[Row], watermark: int) -> list[Any]:
    """Return the sessions of rows that have ended by a watermark."""
    rule, found = program.spec.assigner, []
    for key in {row.k for row in rows} if program.keys else [None]:
        of_key = [row for row in rows if row.k == key or not program.keys]
        for start, end, members in _sessions(rule, sorted(of_key, key=itemgetter(2))):
            if end - 1 <= watermark:
                values = [row.v for row in members if row.v is not None]
                held = (len(members), sum(values) if values else None, repr(values), members[0].v, max(values, default=None))
                found.append((MAIN, *([key] if program.keys else []), start, end, *held, end - 1))
    return found


def _sessions(rule: Any, rows: Sequence[Row]) -> Iterator[tuple[int, int, list[Row]]]:
    session: list[Row] = []
    for row in rows:
        if session and row.at >= _end(rule, session):
            yield session[0].at, _end(rule, session), session
            session = []
        session.append(row)
        weight = sum(each.weight or 0 for each in session)
        is_full = (rule.count and len(session) >= rule.count) or (rule.size and weight >= rule.size[1])
        if is_full or (rule.condition and row.closes):
            yield session[0].at, row.at + 1, session
            session = []
    if session:
        yield session[0].at, _end(rule, session), session


def _end(rule: Any, session: Sequence[Row]) -> int:
    end = session[-1].at + int(rule.gap)
    return end if rule.duration is None else min(end, session[0].at + int(rule.duration))
