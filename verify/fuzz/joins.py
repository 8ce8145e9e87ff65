"""Kind ``joins``: joins of two streams, batch by batch, and DuckDB's join of the rows that were taken.

A join runs on the engine that planning chooses and on the reference, which must agree after every batch.
One whose rows are emitted at once, and corrected, must end with the rows that it gives when each is
emitted once. All results together must be those of DuckDB for the rows that were taken: interval joins, and joins of windows that
DuckDB can compute; as-of joins where no version was late. The engine is made anew from bytes before every batch.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from decimal import Decimal
from random import Random
from typing import Any

import duckdb
import pyarrow as pa

from verify.fuzz.outcome import Outcome, differences_of
from verify.fuzz.windowed_programs import random_fixed_assigner
from windowpane.engines.batch.late_rows import DROPPED, WINDOWS_MISSED
from windowpane.engines.common.tagged import tagged
from windowpane.engines.join.program import LATE, JoinProgram, JoinSide, passed_name
from windowpane.engines.program import MAIN, WINDOW_END, WINDOW_START, Upstream
from windowpane.engines.protocol import Clock
from windowpane.hidden_columns import PARTITION, POSITION, TIME
from windowpane.planning.engines import make_engine, with_engine
from windowpane.state.memory import MemoryBlobStore
from windowpane.windowing.assigners import (
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
    WindowAssigner,
    WindowStagger,
)
from windowpane.windowing.expressions import SIDES, Constant, Operation, Side, SideName
from windowpane.windowing.joins import ArrivalMatch, AsOfMatch, IntervalMatch, Match, WindowMatch
from windowpane.windowing.outputs import APPEARING, CHANGE_TYPE, DELETE, INSERT, UPDATE_POSTIMAGE, UPDATE_PREIMAGE
from windowpane.windowing.times import MAX, MIN

_REFERENCE = "join reference"
_COLUMNS = pa.schema(
    [
        *((name, pa.int64()) for name in ("n", "id", "v", "until", "seq")),
        ("k", pa.string()),
        ("reach", pa.duration("us")),
    ]
)
_AS_OF_COLUMNS = _COLUMNS.append(pa.field(CHANGE_TYPE, pa.string()))
_IDS = (passed_name("left", "id"), passed_name("right", "id"), WINDOW_START, WINDOW_END)

Result = tuple[Any, ...]


def run(seed: int) -> Outcome:
    """Return what became of the program of a seed."""
    drawn = Random(seed)
    program = _with_other_windows(Random(f"windows {seed}"), random_program(drawn))
    steps = [*random_steps(drawn, program), _Step(MAX, {"left": [], "right": []})]
    program = _with_other_keys(Random(f"keys {seed}"), program, steps)
    kind = f"{program.how} on update" if program.updates else program.how
    text = f"{program.match} {kind}, lateness {program.allowed_lateness}, condition {program.condition!r}, "
    text += f"keys {program.left.keys}, behind a {program.upstream.name.lower()}, {steps!r}"
    return Outcome(seed, text, program.engine, differences_of(seed, lambda: _differences(program, steps)))


@dataclass
class _Step:
    """A batch: its watermark, and the rows of each side, ``None`` for what a column does not hold."""

    watermark: int
    rows: dict[Side, list[dict[str, Any]]]


def random_program(drawn: Random) -> JoinProgram:
    """Return the program of a seed."""
    match = _random_match(drawn)
    is_as_of = isinstance(match, AsOfMatch | ArrivalMatch)
    how: Any = drawn.choice(("left", "inner") if is_as_of else ("inner", "left", "right", "full", "semi", "anti"))
    keys = drawn.choice([("k",), ("n",), ("k", "n")])
    right_columns = _AS_OF_COLUMNS if is_as_of and drawn.random() < 0.6 else _COLUMNS
    condition = None
    if drawn.random() < 0.3:
        condition = Operation(drawn.choice(["<", ">=", "=="]), (SideName("left", "v"), SideName("right", "v")))
        if drawn.random() < 0.3:
            condition = Operation("|", (condition, Operation(">", (SideName("left", "n"), Constant(1)))))
    program = JoinProgram(
        match,
        how,
        JoinSide(keys, _COLUMNS, ("id",), has_late_output=True),
        JoinSide(keys, right_columns, ("id",), has_late_output=True),
        condition=condition,
        null_safe=drawn.random() < 0.3,
        allowed_lateness=0 if isinstance(match, ArrivalMatch) else drawn.choice([0, 0, 3, 10]),
        time_of=drawn.choice(["max", "left", "right"]),
        window_bound=pa.int64(),
        updates=isinstance(match, AsOfMatch) and drawn.random() < 0.4,
    )
    return with_engine(program)


_KEYS: list[tuple[pa.DataType, list[Any]]] = [
    (pa.string(), ["", "a", "\u00e4", "a" * 300]),
    (pa.int8(), [-128, 0, 127]),
    (pa.bool_(), [True, False]),
    (pa.decimal128(10, 2), [Decimal("1.00"), Decimal("-1.00"), Decimal("10.50")]),
    (pa.decimal128(38, 10), [Decimal("1"), Decimal("-1"), Decimal(10) ** 27]),
    (pa.float64(), [0.0, -0.0, float("nan"), 1.5]),
    (pa.float32(), [0.0, -0.0, float("nan"), 0.5]),
    (pa.date32(), [dt.date(1969, 12, 31), dt.date(2024, 2, 29)]),
    (pa.timestamp("us", "UTC"), [dt.datetime(1969, 1, 1, tzinfo=dt.UTC), dt.datetime(2024, 1, 1, tzinfo=dt.UTC)]),
    (pa.binary(), [b"", b"a", b"a\x00"]),
    (pa.list_(pa.int64()), [[], [1], [None], [1, None]]),
    (
        pa.struct([("a", pa.float64()), ("b", pa.string())]),
        [{"a": 0.0, "b": None}, {"a": -0.0, "b": None}, {"a": None, "b": "x"}],
    ),
]


def _with_other_keys(drawn: Random, program: JoinProgram, steps: list[_Step]) -> JoinProgram:
    """Return a program with a key of another type, which rows get, or one whose rows come from another operator, or both."""
    if drawn.random() < 0.3:
        program = replace(program, upstream=Upstream.WINDOW)
    if drawn.random() < 0.5:
        return program
    (kind, values), keys = drawn.choice(_KEYS), drawn.choice([("x",), ("x", "n"), ("k", "x")])
    none = [None] if drawn.random() < 0.3 else []
    for row in (row for step in steps for rows in step.rows.values() for row in rows):
        row["x"] = drawn.choice([*values, *none])
    left, right = (replace(of, keys=keys, columns=of.columns.append(pa.field("x", kind))) for of in program.sides.values())
    return replace(program, left=left, right=right)


def _with_other_windows(drawn: Random, program: JoinProgram) -> JoinProgram:
    """Return a program with windows of any length, slide, step and offset, or sessions whose gap each row says."""
    if not isinstance(program.match, WindowMatch) or drawn.random() < 0.5:
        return program
    gap = drawn.randint(1, 6)
    assigner: WindowAssigner = EventTimeSessionWindows.with_dynamic_gap(lambda row: gap + (row["n"] or 0))
    while drawn.random() < 0.8 or getattr(assigner, "stagger", WindowStagger.ALIGNED) is not WindowStagger.ALIGNED:
        assigner = random_fixed_assigner(drawn, "event time")
    return with_engine(replace(program, match=WindowMatch(assigner)))


def _random_match(drawn: Random) -> Match:
    kind = drawn.choice(["interval", "as of", "window", "arrival"])
    if kind == "arrival":
        return ArrivalMatch()
    if kind == "interval":
        lower = drawn.randint(-8, 4)
        if drawn.random() < 0.2:
            return IntervalMatch(lower, drawn.choice([0, -1]), "until")
        return IntervalMatch(lower, drawn.randint(lower, lower + 9))
    if kind == "as of":
        direction: Any = drawn.choice(["backward", "backward", "forward", "nearest"])
        tolerance = drawn.randint(0, 8) if direction != "backward" or drawn.random() < 0.4 else None
        skips_nulls = direction == "backward" and tolerance is None and drawn.random() < 0.5
        reach = None if skips_nulls or drawn.random() < 0.7 else "reach"
        sequence = drawn.choice([None, "seq"])
        retain = drawn.choice([None, None, 15])
        return AsOfMatch(direction, tolerance, drawn.random() < 0.7, retain, reach, sequence, skips_nulls)
    size = drawn.choice([2, 6, 12])
    return WindowMatch(
        drawn.choice(
            [
                TumblingEventTimeWindows.of(size),
                SlidingEventTimeWindows.of(size, size // 2),
                EventTimeSessionWindows.with_gap(size),
            ]
        )
    )


def random_steps(drawn: Random, program: JoinProgram) -> Iterator[_Step]:
    """Draw batches of both sides."""
    number, now, watermark = 0, drawn.choice([-40, 0, 1000]), MIN
    has_nulls = drawn.random() < 0.4
    for _ in range(drawn.randint(1, 7)):
        if drawn.random() < 0.6:
            watermark = max(watermark, now - drawn.randint(0, 8))
        rows: dict[Side, list[dict[str, Any]]] = {"left": [], "right": []}
        for side in SIDES:
            for _ in range(drawn.choice([0, 1, 3, 8])):
                time = now + drawn.randint(-12, 6)
                row = {
                    "k": None if has_nulls and drawn.random() < 0.15 else drawn.choice("abc"),
                    "n": None if has_nulls and drawn.random() < 0.15 else drawn.randint(1, 2),
                    "id": number,
                    "v": drawn.choice([None, 1, 2, 3]),
                    "until": drawn.choice([None, time + drawn.randint(-4, 9)]),
                    "seq": drawn.choice([None, 1, 2]),
                    "reach": drawn.choice([None, dt.timedelta(microseconds=drawn.randint(-1, 9))]),
                    TIME: time,
                }
                if side == "right" and isinstance(program.match, AsOfMatch) and program.match.skips_nulls:
                    row["id"] = drawn.choice([None, number])
                if CHANGE_TYPE in program.sides[side].columns.names:
                    row[CHANGE_TYPE] = drawn.choice([INSERT, INSERT, UPDATE_POSTIMAGE, UPDATE_PREIMAGE, DELETE])
                rows[side].append(row)
                number += 1
        yield _Step(watermark, rows)
        now += drawn.randint(0, 9)


# Running.


@dataclass
class _Run:
    """A program on its state, and its results."""

    program: JoinProgram
    store: MemoryBlobStore = field(default_factory=MemoryBlobStore)
    results: Counter[Result] = field(default_factory=Counter)
    late: Counter[Result] = field(default_factory=Counter)
    held: tuple[int, int] = (0, 0)

    def step(self, step: _Step) -> tuple[Counter[Result], Counter[Result]]:
        """Run a batch and return the results, net, and the late rows."""
        tables = [table_of(self.program, side, rows) for side, rows in step.rows.items() if rows]
        restored = MemoryBlobStore()
        restored.restore(self.store.snapshot())
        self.store = restored
        results, late = Counter[Result](), Counter[Result]()
        output: Any = make_engine(self.program).run(restored, tables, Clock(step.watermark, 0))
        self.held = output.counters.held_left, output.counters.held_right
        for number, table in output.tables:
            for row in table.to_pylist():
                if number == MAIN:
                    result = (*(row.get(name) for name in _IDS), row[TIME])
                    results[result] += 1 if row.get(CHANGE_TYPE, INSERT) in APPEARING else -1
                else:
                    missed = tuple((each["start"], each["end"]) for each in row.get(WINDOWS_MISSED) or ())
                    late[number, row["id"], missed, row.get(DROPPED, True)] += 1
        self.results.update(results)
        self.late.update(late)
        return results, late


def table_of(program: JoinProgram, side: Side, rows: list[dict[str, Any]]) -> pa.Table:
    """Return rows of a side as an engine is given them."""
    schema = pa.schema([*program.sides[side].columns, pa.field(TIME, pa.int64())])
    table = pa.Table.from_pylist(rows, schema)
    table = table.append_column(PARTITION, pa.array([0] * len(rows), pa.int32()))
    return tagged(table.append_column(POSITION, pa.array(range(len(rows)), pa.int64())), side=side)


def _differences(program: JoinProgram, steps: list[_Step]) -> Iterator[str]:
    running = _Run(program)
    reference = _Run(with_engine(program, _REFERENCE))
    for number, step in enumerate(steps):
        got = running.step(step)
        wanted = reference.step(step)
        for what, one, other in zip(("results", "late rows"), got, wanted, strict=True):
            if _net(one) != _net(other):
                yield f"step {number}, {what}: {_net(one)}, the reference has {_net(other)}"
        if _counts_alike(program.match) and running.held != reference.held:
            yield f"step {number}: {running.held} rows are held, by the reference {reference.held}"
        if any(count < 0 for count in running.results.values()):
            yield f"step {number}: rows were taken back that had not been emitted"
    if program.updates:
        closing = _Run(with_engine(replace(program, updates=False), _REFERENCE))
        for step in steps:
            closing.step(step)
        if _net(closing.results) != _net(running.results):
            yield f"in all: {_net(running.results)}, each row once gives {_net(closing.results)}"
    answer = _answer(program, steps, running.late)
    if answer is not None and _net(answer) != (found := _net(_cut(running))):
        yield f"in all: {found}, DuckDB has {_net(answer)}"


def _counts_alike(match: Match) -> bool:
    """Whether a row is held once on every engine, and no longer than it is needed."""
    return isinstance(match, WindowMatch) and isinstance(match.assigner, TumblingEventTimeWindows | EventTimeSessionWindows)


def _cut(running: _Run) -> Counter[Result]:
    cut = Counter[Result]()
    for row, count in running.results.items():
        cut[row[:4]] += count
    return cut


def _net(rows: Counter[Result]) -> dict[Result, int]:
    return {row: count for row, count in sorted(rows.items(), key=str) if count}


# DuckDB's answer.


def _answer(program: JoinProgram, steps: list[_Step], late: Counter[Result]) -> Counter[Result] | None:
    """Return the join of the rows that were taken, ``None`` where DuckDB has no answer."""
    match = program.match
    if isinstance(match, WindowMatch) and isinstance(match.assigner, EventTimeSessionWindows):
        return None
    is_amended = any(number == LATE["right"] for number, *_ in late)
    if isinstance(match, AsOfMatch) and (is_amended or match.retain is not None):
        return None
    dropped = {(number, row) for number, row, _, is_dropped in late if is_dropped}
    missed = {(number, row, bounds) for number, row, windows, _ in late for bounds in windows}
    with duckdb.connect() as connection:
        for side in SIDES:
            batches = [{"batch": number, **row} for number, step in enumerate(steps) for row in step.rows[side]]
            rows = [row for row in batches if (LATE[side], row["id"]) not in dropped]
            rows = [{CHANGE_TYPE: INSERT, WINDOW_START: None, WINDOW_END: None, **row} for row in rows]
            if isinstance(match, WindowMatch):
                rows = [
                    {**row, WINDOW_START: window.start, WINDOW_END: window.end}  # type: ignore[attr-defined]
                    for row in rows
                    for window in match.assigner.assign_windows(row, row[TIME], None)  # type: ignore[arg-type]
                    if (LATE[side], row["id"], (window.start, window.end)) not in missed  # type: ignore[attr-defined]
                ]
            own = [each for each in program.sides[side].columns if each.name not in _AS_OF_COLUMNS.names]
            schema = pa.schema(
                [
                    *_AS_OF_COLUMNS,
                    *own,
                    *(pa.field(name, pa.int64()) for name in (TIME, WINDOW_START, WINDOW_END)),
                    pa.field("number", pa.int64()),
                    pa.field("batch", pa.int64()),
                ]
            )
            numbered = [{**row, "number": number} for number, row in enumerate(rows)]
            connection.register(side, pa.Table.from_pylist(numbered, schema))
        return Counter(connection.execute(_sql(program)).fetchall())


def _sql(program: JoinProgram) -> str:
    equal = "IS NOT DISTINCT FROM" if program.null_safe else "="
    keys = [f"l.{name} {equal} r.{name}" for name in program.left.keys]
    condition = ["true"] if program.condition is None else [_text(program.condition)]
    match = program.match
    if isinstance(match, AsOfMatch):
        return _as_of_sql(match, program.how, keys, condition)
    if isinstance(match, ArrivalMatch):
        return _arrival_sql(program.how, keys, condition)
    if isinstance(match, IntervalMatch):
        upper = f"l.{match.upper_column or TIME} + {match.upper}"
        on = [f"r.{TIME} >= l.{TIME} + {match.lower}", f"r.{TIME} <= {upper}"]
        bounds = "NULL, NULL"
    else:
        on = [f"l.{name} = r.{name}" for name in (WINDOW_START, WINDOW_END)]
        bounds = ", ".join(f"coalesce(l.{name}, r.{name})" for name in (WINDOW_START, WINDOW_END))
    all_of = " AND ".join([*keys, *on, *condition])
    if program.how in ("semi", "anti"):
        negated = "NOT " if program.how == "anti" else ""
        own = "NULL, NULL" if isinstance(match, IntervalMatch) else f"l.{WINDOW_START}, l.{WINDOW_END}"
        return f'SELECT l.id, NULL, {own} FROM "left" l WHERE {negated}EXISTS (FROM "right" r WHERE {all_of})'
    return f'SELECT l.id, r.id, {bounds} FROM "left" l {program.how} JOIN "right" r ON {all_of}'


def _as_of_sql(match: AsOfMatch, how: str, keys: list[str], condition: list[str]) -> str:
    distance = f"abs(r.{TIME} - l.{TIME})"
    times = {
        "backward": [f"r.{TIME} <= l.{TIME}"],
        "forward": [f"r.{TIME} >= l.{TIME}"],
        "nearest": [],
    }[match.direction]
    times += [] if match.allow_exact else [f"r.{TIME} <> l.{TIME}"]
    tolerance = "true" if match.tolerance is None else f"{distance} <= {match.tolerance}"
    tolerance += f" AND coalesce({distance} <= epoch_us(l.reach), true)" if match.tolerance_of else ""
    # The version of a time is the largest, and then the last to come; of two that are as near, the earlier one.
    by = ", ".join(each.split()[0].removeprefix("l.") for each in keys)
    sequence = "seq DESC NULLS LAST, " if match.sequence else ""
    versions = f"""(SELECT * FROM {_filled_versions(by, sequence) if match.skips_nulls else '"right"'}
        WHERE {CHANGE_TYPE} <> '{UPDATE_PREIMAGE}'
        QUALIFY row_number() OVER (PARTITION BY {by}, {TIME} ORDER BY {sequence} number DESC) = 1)"""
    joined = f"""SELECT l.id AS lid, r.id AS rid, r.{CHANGE_TYPE} AS word, {tolerance} AS near, {" AND ".join(condition)} AS holds
        FROM "left" l LEFT JOIN {versions} r ON {" AND ".join([*keys, *times])}
        QUALIFY row_number() OVER (PARTITION BY l.id ORDER BY {distance}, r.{TIME}) = 1"""
    matches = f"coalesce(near AND holds AND word <> '{DELETE}', false)"
    outer = "" if how == "left" else f"WHERE {matches}"
    return f"SELECT lid, CASE WHEN {matches} THEN rid END, NULL, NULL FROM ({joined}) {outer}"


def _filled_versions(by: str, sequence: str) -> str:
    """Return the query of versions with their last values that are no NULLs, since the last deletion."""
    order = f"ORDER BY {TIME}, {sequence.replace('DESC NULLS LAST', 'ASC NULLS FIRST')} number"
    begins = f"""SELECT *, count(*) FILTER ({CHANGE_TYPE} = '{DELETE}')
            OVER (PARTITION BY {by} {order} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS deletions
        FROM "right" WHERE {CHANGE_TYPE} <> '{UPDATE_PREIMAGE}'"""
    filled = ", ".join(f"last_value({name} IGNORE NULLS) OVER filling AS {name}" for name in ("id", "v"))
    return f"""(SELECT * REPLACE ({filled}) FROM ({begins})
        WINDOW filling AS (PARTITION BY {by}, deletions {order} ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW))"""


def _arrival_sql(how: str, keys: list[str], condition: list[str]) -> str:
    """Return the query of the last right row until the batch of each left row."""
    joined = f"""SELECT l.id AS lid, r.id AS rid, r.{CHANGE_TYPE} AS word, {" AND ".join(condition)} AS holds
        FROM "left" l LEFT JOIN "right" r
        ON {" AND ".join(keys)} AND r.batch <= l.batch AND r.{CHANGE_TYPE} <> '{UPDATE_PREIMAGE}'
        QUALIFY row_number() OVER (PARTITION BY l.id ORDER BY r.number DESC NULLS LAST) = 1"""
    matched = f"CASE WHEN holds AND word <> '{DELETE}' THEN rid END"
    outer = "" if how == "left" else f"WHERE {matched} IS NOT NULL"
    return f"SELECT lid, {matched}, NULL, NULL FROM ({joined}) {outer}"


def _text(condition: Any) -> str:
    if isinstance(condition, SideName):
        return f"{condition.side[0]}.{condition.name}"
    if isinstance(condition, Constant):
        return str(condition.value)
    left, right = (_text(part) for part in condition.parts)
    return f"({left} {({'==': '=', '|': 'OR'}).get(condition.operator, condition.operator)} {right})"
