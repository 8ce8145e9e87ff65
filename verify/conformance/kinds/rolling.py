"""Kind ``rolling``: one input in steps through rolling features; a step is a batch, and labels are given their features."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from verify.conformance.reading.fields import require_known
from verify.conformance.reading.vectors import Case
from verify.conformance.replay.verdicts import Difference, Options
from windowpane.aggregates import count, max, sum
from windowpane.engines.program import LATE, MAIN
from windowpane.engines.protocol import Clock, Engine
from windowpane.engines.rolling.point_in_time import PointInTimeEngine, PointInTimeReferenceEngine
from windowpane.engines.rolling.program import IS_LABEL, PointInTimeProgram, RollingProgram
from windowpane.engines.rolling.reference import RollingReferenceEngine
from windowpane.hidden_columns import PARTITION, POSITION, TIME
from windowpane.state.memory import MemoryBlobStore
from windowpane.windowing.rolling import RollingCall, RollingEmit, RollingSpec, RollingWindow
from windowpane.windowing.times import MAX, MIN

MakeEngine = Callable[[RollingProgram], Engine]
"""Makes the engine of a program."""

_COMMON = {"id", "kind", "emit", "edge", "input", "windows", "hop", "features"}
_KEY = pa.schema([("key", pa.string())])
_COLUMNS = pa.schema([("v", pa.int64())])
_LATE = pa.schema([("id", pa.string())])
_AGGREGATES = {"count()": count(), "sum(v)": sum("v"), "max(v)": max("v")}


def replay(case: Case, options: Options, engine: MakeEngine = RollingReferenceEngine) -> list[Difference]:
    """Run the steps through the engine; with ``restart`` it is built anew on what its state was written to, after each."""
    if case.get("emit") == "at":
        return _replay_labels(case)
    require_known(case.body, _COMMON | {"steps", "late", "each"}, "rolling")
    program, store = _program(case), MemoryBlobStore()
    running, position = engine(program), 0
    differences: list[Difference] = []
    late: list[str] = []
    each: list[tuple[Any, ...]] = []
    for number, step in enumerate(case.get("input")):
        table = _table(step["rows"], position)
        position += table.num_rows
        output = running.run(store, [table], Clock(_watermark(case, number), 0))
        if options.restart:
            restored = MemoryBlobStore()
            restored.restore(store.snapshot())
            store, running = restored, engine(program)
        got = [tuple(row.values()) for tag, table in output.tables if tag == MAIN for row in table.to_pylist()]
        late += [name for tag, table in output.tables if tag == LATE for name in table["id"].to_pylist()]
        each += got
        if "steps" in case.body and not _agree(case, got, [tuple(row) for row in case.get("steps")[number]]):
            differences.append(Difference(f"step {number}", case.get("steps")[number], got))
    if "each" in case.body:
        differences += _compare_rows(case, each)
    if "late" in case.body and sorted(late) != sorted(case.get("late")):
        differences.append(Difference("late", case.get("late"), late))
    return differences


def _agree(case: Case, got: list[tuple[Any, ...]], expected: list[tuple[Any, ...]]) -> bool:
    in_order = case.get("emit") != "tick" or [row[1] for row in got] == sorted(row[1] for row in got)
    return in_order and Counter(got) == Counter(expected)


def _compare_rows(case: Case, got: list[tuple[Any, ...]]) -> list[Difference]:
    """Compare the row of each row of the input, which has its key and time."""
    rows = {name: (key, time) for step in case.get("input") for name, key, time, _ in step["rows"]}
    expected = Counter((*rows[name], *values) for name, *values in case.get("each"))
    return [] if Counter(got) == expected else [Difference("each", sorted(expected, key=str), sorted(got, key=str))]


def _replay_labels(case: Case) -> list[Difference]:
    rows = [row for step in case.get("input") for row in step["rows"]]
    names = [f"f{number}" for number in range(len(case.get("labels")))]
    table = pa.concat_tables([_table(rows, 0), _table([(*label, None) for label in case.get("labels")], len(rows))])
    sides = pa.array([False] * len(rows) + [True] * len(names))
    program = PointInTimeProgram(_spec(case), _KEY, _COLUMNS, _LATE, ("id",))
    expected, differences = [tuple(row) for row in case.get("point_in_time")], []
    for engine in (PointInTimeReferenceEngine(program), PointInTimeEngine(program)):
        output = engine.run(MemoryBlobStore(), [table.append_column(IS_LABEL, sides)], Clock(MIN, 0))
        got = [tuple(row.values()) for _, found in output.tables for row in found.to_pylist()]
        if Counter(got) != Counter(expected):
            differences.append(Difference(f"labels of engine {engine.name}", expected, got))
    return differences


def _program(case: Case) -> RollingProgram:
    return RollingProgram(_spec(case), _KEY, ("key",), _COLUMNS, pa.int64(), _LATE)


def _spec(case: Case) -> RollingSpec:
    hop, is_exact = case.get("hop"), case.get("edge") == "exact"
    calls = [
        RollingCall(f"f{length}_{name}", _AGGREGATES[name], RollingWindow(length, hop, is_exact))
        for length in case.get("windows")
        for name in case.get("features")
    ]
    emit = RollingEmit.BATCH if case.get("emit") == "at" else RollingEmit(case.get("emit"))
    return RollingSpec(tuple(calls), hop, emit)


def _watermark(case: Case, number: int) -> int:
    """Return the watermark of a step; MAX is where all windows of all rows are empty.

    What ``each`` row has was made from all rows, so there no row may be late.
    """
    steps = case.get("input")
    given: int | None = steps[number]["watermark"]
    if given is None:
        return MIN
    times: list[int] = [time for step in steps for _, _, time, _ in step["rows"]]
    newest = sorted(times)[-1]
    given = given if given != MAX else newest + _spec(case).reach + case.get("hop")
    coming = [time for step in steps[number:] for _, _, time, _ in step["rows"]]
    return sorted([given, *(time - 1 for time in coming)])[0] if case.get("emit") == "each" else given


def _table(rows: list[Any], position: int) -> pa.Table:
    ids, keys, times, values = zip(*rows, strict=True) if rows else ((), (), (), ())
    return pa.table(
        {
            "key": pa.array(keys, pa.string()),
            "id": pa.array(ids, pa.string()),
            "v": pa.array(values, pa.int64()),
            TIME: pa.array(times, pa.int64()),
            PARTITION: pa.array([0] * len(rows), pa.int32()),
            POSITION: pa.array(range(position, position + len(rows)), pa.int64()),
        }
    )
