"""Kind ``rolling``: features of random windows, batch by batch.

They run on the engine that planning chooses and on the reference, which must agree after every batch: results by key in order,
late rows, and how many there were. What ``tick`` and ``each`` gave of rows of which none was behind the watermark must be what
labels of the same instants are given, and what DuckDB aggregates of all rows. Of every other program, the rows before a cut are
also the history that it begins with (``rolling_history.py``). The engine is made anew from bytes before every batch, with small
sizes in place of the usual ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any

import duckdb
import pyarrow as pa

from verify.fuzz.aggregates import every_aggregate
from verify.fuzz.comparison import difference, same
from verify.fuzz.outcome import Outcome, differences_of
from verify.fuzz.rolling_history import history_differences
from verify.fuzz.rolling_runs import COLUMNS, REFERENCE, Run, Step, in_order, table_of
from windowpane import aggregates as agg
from windowpane.arrays.values import Row
from windowpane.engines.program import Upstream
from windowpane.engines.protocol import Clock
from windowpane.engines.rolling.program import AS_OF, IS_LABEL, PointInTimeProgram, RollingProgram
from windowpane.hidden_columns import TIME
from windowpane.planning.engines import make_engine, with_engine
from windowpane.state.memory import MemoryBlobStore
from windowpane.windowing.aggregates import Aggregate
from windowpane.windowing.rolling import RollingCall, RollingEmit, RollingSpec, RollingWindow
from windowpane.windowing.times import MAX, MIN

_KEYS = {
    "text": pa.schema([("k", pa.string())]),
    "numbers": pa.schema([("k", pa.int64())]),
    "doubles": pa.schema([("k", pa.float64())]),
    "two": pa.schema([("k", pa.string()), ("m", pa.int64())]),
}
_CALLS: tuple[Aggregate, ...] = (
    agg.count(),
    agg.count("n"),
    agg.sum("n"),
    agg.sum("d"),
    agg.sum("x"),
    agg.avg("n"),
    agg.avg("d"),
    agg.avg("x"),
    *(kind(name) for kind in (agg.min, agg.max) for name in "ndxs"),
    agg.bool_and("b"),
    agg.bool_or("b"),
    agg.count_distinct("s"),
    agg.median("n"),
    agg.mode("s"),
    agg.approx_count_distinct("n"),
)
_ORDERED = (agg.collect_list("n"), agg.first("n"), agg.last("s"), agg.arg_max("s", "n"))
_EVERY = every_aggregate(COLUMNS, ("n",))
_SQL = {"count()": "count(r.id)", "count('n')": "count(r.n)", "sum('n')": "sum(r.n)", "avg('n')": "avg(r.n)"}
_SQL |= {f"{kind}('{name}')": f"{kind}(r.{name})" for kind in ("min", "max") for name in "ns"}
_SQL |= {"sum('d')": "sum(r.d)", "count_distinct('s')": "count(DISTINCT r.s)"}


def run(seed: int) -> Outcome:
    """Return what became of the program of a seed."""
    drawn = Random(seed)
    program = random_program(drawn)
    steps = list(random_steps(drawn, program))
    program = _with_other_calls(Random(f"calls {seed}"), program)
    text = f"{program.spec!r}, keys {program.keys.names}, {program.upstream}, until {program.until}, {steps!r}"

    def compare() -> Iterator[str]:
        yield from _differences(program, steps)
        if seed % 2:
            yield from history_differences(seed, program, steps)

    return Outcome(seed, text, program.engine, differences_of(seed, compare))


def random_program(drawn: Random) -> RollingProgram:
    """Return the program of a seed."""
    emit = drawn.choice(list(RollingEmit))
    base, step = drawn.choice([1, 2, 5]), drawn.choice([1, 1, 1, 2, 4])
    windows = []
    for _ in range(drawn.randint(1, 3)):
        hop = base * drawn.choice([1, 1, 2, 3])
        is_exact = emit is RollingEmit.EACH or drawn.random() < 0.5
        windows.append(RollingWindow(hop * drawn.choice([1, 2, 4, 12]), hop, is_exact))
    if drawn.random() < 0.5:
        windows = [RollingWindow(each.length, each.hop, windows[0].is_exact) for each in windows]
    known = (*_CALLS, *_ORDERED) if drawn.random() < 0.1 else _CALLS
    calls = [
        RollingCall(f"f{number}", drawn.choice(known), drawn.choice(windows), drawn.choice([None, None, "c"]))
        for number in range(drawn.randint(1, 5))
    ]
    smallest = sorted(call.window.hop for call in calls)[0]
    deletes = emit is RollingEmit.CHANGED and drawn.random() < 0.4
    keys = _KEYS[drawn.choice(sorted(_KEYS))]
    program = RollingProgram(
        RollingSpec(tuple(calls), smallest * step, emit, deletes_empty=deletes),
        keys,
        tuple(keys.names),
        COLUMNS,
        pa.int64(),
        late_columns=pa.schema([("id", pa.int64())]),
        upstream=drawn.choice([Upstream.SOURCE, Upstream.SOURCE, Upstream.WINDOW]),
    )
    return with_engine(program)


def _with_other_calls(drawn: Random, program: RollingProgram) -> RollingProgram:
    """Return a program of which some calls are of any aggregate."""
    if drawn.random() < 0.6:
        return program
    calls = (replace(call, aggregate=drawn.choice(_EVERY)) if drawn.random() < 0.6 else call for call in program.spec.calls)
    return with_engine(replace(program, spec=replace(program.spec, calls=tuple(calls))))


def random_steps(drawn: Random, program: RollingProgram) -> Iterator[Step]:
    """Draw batches."""
    now, watermark, number = drawn.choice([-30, 0, 1000]), MIN, 0
    reach, has_nulls = program.spec.reach, drawn.random() < 0.4
    is_behind = drawn.random() < 0.5
    for _ in range(drawn.randint(1, 8)):
        if drawn.random() < 0.7:
            watermark = max(watermark, now - drawn.randint(0, 8))
        rows = []
        for _ in range(drawn.choice([0, 1, 3, 10])):
            time = now + drawn.randint(-12, 6)
            if is_behind and drawn.random() < 0.2:
                time -= drawn.randint(0, 2 * reach)
            rows.append(_random_row(drawn, program, number, time if is_behind else max(time, watermark + 1), has_nulls))
            number += 1
        yield Step(watermark, rows)
        now += drawn.choice([0, 1, 4, 9, 30, 3 * reach])
    yield Step(now + 2 * (reach + program.spec.step), [])
    yield Step(MAX, [])


def _random_row(drawn: Random, program: RollingProgram, number: int, time: int, has_nulls: bool) -> Row:
    key = {
        field.name: drawn.choice("abc")
        if pa.types.is_string(field.type)
        else drawn.choice([0.0, -0.0, float("nan"), 1.5])
        if pa.types.is_floating(field.type)
        else drawn.randint(1, 2)
        for field in program.keys
    }
    values = {
        "n": drawn.choice([0, 1, -5, 2**40]),
        "d": drawn.choice([None, *map(_decimal, (0, 125, -99))]),
        "x": drawn.choice([0.0, -0.0, 0.25, -3.5, float("nan") if drawn.random() < 0.1 else 7.0]),
        "s": drawn.choice(["", "u", "v", None]),
        "b": drawn.random() < 0.5,
        "c": drawn.choice([True, True, False, None]),
    }
    row = {**key, **values}
    if has_nulls:
        row = {name: None if drawn.random() < 0.15 else value for name, value in row.items()}
    return {**row, "id": number, TIME: time}


def _decimal(hundredths: int) -> Any:
    return pa.scalar(hundredths, pa.int64()).cast(pa.decimal128(19, 0)).as_py().scaleb(-2)


# Running.


def _differences(program: RollingProgram, steps: list[Step]) -> Iterator[str]:
    running, reference = Run(program), Run(with_engine(program, REFERENCE))
    results: list[Row] = []
    is_behind, before = False, MIN
    for number, step in enumerate(steps):
        late_under = step.watermark if program.upstream is Upstream.SOURCE else before
        is_behind |= any(row[TIME] <= late_under for row in step.rows)
        before = step.watermark
        got, late, counters = running.step(step)
        wanted, wanted_late, wanted_counters = reference.step(step)
        results += got
        if (found := in_order(program, wanted, got)) is not None:
            yield f"step {number}: {found}"
        if (late, counters) != (wanted_late, wanted_counters):
            yield f"step {number}: late rows and counters {late, counters}, the reference has {wanted_late, wanted_counters}"
    if program.spec.emit in (RollingEmit.TICK, RollingEmit.EACH) and not is_behind and results:
        rows = [row for step in steps for row in step.rows]
        if (found := difference(_at(program, rows, results), results)) is not None:
            yield f"labels: {found}"
        yield from _against_duckdb(program, rows, results)


# Answers from all rows.


def _at(program: RollingProgram, rows: list[Row], results: list[Row]) -> list[Row]:
    """Return the features of labels with the keys and instants of results."""
    labels = pa.schema([*((f"label_{name}", program.keys.field(name).type) for name in program.keys.names), (AS_OF, pa.int64())])
    at_results = PointInTimeProgram(program.spec, program.keys, COLUMNS, labels, (*program.keys.names, AS_OF), is_inclusive=True)
    given = table_of(program, rows, 0)
    questions: list[Row] = [{**{name: row[name] for name in program.keys.names}, TIME: row[AS_OF]} for row in results]
    both = pa.concat_tables([given, table_of(program, questions, len(rows))])
    both = both.append_column(IS_LABEL, pa.array([False] * len(rows) + [True] * len(results)))
    for name in program.keys.names:
        both = both.append_column(f"label_{name}", both[name])
    both = both.append_column(AS_OF, both[TIME])
    output = make_engine(with_engine(at_results)).run(MemoryBlobStore(), [both], Clock(MIN, 0))
    return [row for _, table in output.tables for row in table.to_pylist()]


def _against_duckdb(program: RollingProgram, rows: list[Row], results: list[Row]) -> Iterator[str]:
    if not all(name in ("k", "m") for name in program.keys.names) or program.keys.field("k").type == pa.float64():
        return
    on = " AND ".join(f"q.{name} IS NOT DISTINCT FROM r.{name}" for name in program.keys.names)
    schema = pa.schema([*program.keys, (AS_OF, pa.int64()), ("start", pa.int64()), ("number", pa.int64())])
    with duckdb.connect() as connection:
        given = table_of(program, rows, 0)
        connection.register("r", given.rename_columns(["at" if name == TIME else name for name in given.column_names]))
        for call in program.spec.calls:
            if (sql := _SQL.get(str(call.aggregate))) is None:
                continue
            questions = [{**row, "start": call.window.start(row[AS_OF]), "number": number} for number, row in enumerate(results)]
            connection.register("q", pa.Table.from_pylist(questions, schema))
            condition = f"AND r.{call.condition}" if call.condition else ""
            query = f"SELECT {sql} FROM q LEFT JOIN r ON {on} AND r.at BETWEEN q.start AND q.as_of {condition}"
            answer = [value for (value,) in connection.execute(f"{query} GROUP BY q.number ORDER BY q.number").fetchall()]
            found = [row[call.name] for row in results]
            if not all(map(same, answer, found)):
                yield f"{call}: {found}, DuckDB has {answer}"
