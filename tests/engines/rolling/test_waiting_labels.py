"""Labels that are a stream: each is emitted once, when the watermark has passed it, with what static labels are given."""

from __future__ import annotations

import dataclasses
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from tests.examples import seeds
from verify.sizes import given_sizes
from windowpane.aggregates import collect_list, count, last, max, sum
from windowpane.engines.program import LATE, MAIN
from windowpane.engines.protocol import Clock
from windowpane.engines.rolling.program import IS_LABEL, PointInTimeProgram
from windowpane.engines.rolling.waiting_labels import PAGE_ROWS, STEP_ROWS
from windowpane.errors import ChangedPlanError, MissingEventTimeError, TimestampOverflowError
from windowpane.hidden_columns import PARTITION, POSITION, TIME
from windowpane.planning.description.programs import of_rolling
from windowpane.planning.engines import make_engine, with_engine
from windowpane.state.memory import MemoryBlobStore
from windowpane.windowing.rolling import RollingCall, RollingEmit, RollingSpec, RollingWindow
from windowpane.windowing.times import MAX, MIN

KEYS, COLUMNS = pa.schema([("k", pa.string())]), pa.schema([("v", pa.int64()), ("seen", pa.int64())])
LABELS = pa.schema([("name", pa.string())])
Event = tuple[str, int, int | None, int | None, str | None]
"""Key, time, value, when it was known, and the name of a label (``None`` of a row)."""


def described(program: PointInTimeProgram) -> PointInTimeProgram:
    return dataclasses.replace(program, description=of_rolling(program, program.keys.names, "t"))


def program_of(*calls: RollingCall, **parts: Any) -> PointInTimeProgram:
    spec = RollingSpec(calls, 5, RollingEmit.BATCH)
    return PointInTimeProgram(spec, KEYS, COLUMNS, LABELS, ("name",), is_streaming=True, late_names=("name",), **parts)


def call(name: str, aggregate: Any, length: int, exact: bool = True) -> RollingCall:
    return RollingCall(name, aggregate, RollingWindow(length, 5, exact))


def table_of(events: list[Event], position: int = 0) -> pa.Table:
    keys, times, values, known, names = zip(*events, strict=True) if events else ((), (), (), (), ())
    columns = {
        "k": pa.array(keys, pa.string()),
        "v": pa.array(values, pa.int64()),
        "seen": pa.array(known, pa.int64()),
        "name": pa.array(names, pa.string()),
        IS_LABEL: pa.array([name is not None for name in names], pa.bool_()),
        TIME: pa.array(times, pa.int64()),
        PARTITION: pa.array([0] * len(events), pa.int32()),
        POSITION: pa.array(range(position, position + len(events)), pa.int64()),
    }
    return pa.table(columns)


def run(program: PointInTimeProgram, batches: list[tuple[int, list[Event]]]) -> tuple[list[list[Any]], list[str]]:
    """Return what each batch gives, and the late labels; engine and state are made anew before each."""
    store, results = MemoryBlobStore(), []
    late: list[str] = []
    for watermark, events in batches:
        restored = MemoryBlobStore()
        restored.restore(store.snapshot())
        store = restored
        output = make_engine(program).run(store, [table_of(events)], Clock(watermark, 0))
        results.append([tuple(row.values()) for tag, table in output.tables if tag == MAIN for row in table.to_pylist()])
        late += [name for tag, table in output.tables if tag == LATE for name in table["name"].to_pylist()]
    return results, late


def row(key: str, time: int, value: int) -> Event:
    return key, time, value, None, None


def label(key: str, time: int, name: str) -> Event:
    return key, time, None, None, name


def test_a_label_waits_until_no_row_before_it_can_come() -> None:
    program = with_engine(program_of(call("n", count(), 10)))
    assert program.engine == "waiting labels"
    batches = [(MIN, [row("a", 3, 1), label("a", 9, "x")]), (7, []), (7, [row("a", 8, 1)]), (8, []), (99, [])]
    assert run(program, batches) == ([[], [], [], [("x", 2)], []], [])
    inclusive = with_engine(program_of(call("n", count(), 10), is_inclusive=True))
    assert run(inclusive, batches) == ([[], [], [], [], [("x", 2)]], [])


def test_a_label_may_be_late_by_a_tile() -> None:
    program = with_engine(program_of(call("n", count(), 10)))
    batches = [(MIN, [row("a", 20, 1), row("a", 28, 1)]), (34, [label("a", 29, "lost"), label("a", 30, "x")])]
    assert run(program, batches) == ([[], [("x", 2)]], ["lost"])


def test_state_ends_when_no_label_can_see_it() -> None:
    program, store = with_engine(program_of(call("n", count(), 10))), MemoryBlobStore()
    engine = make_engine(program)
    assert not engine.run(store, [table_of([row("a", 3, 1)])], Clock(MIN, 0)).is_idle
    assert not engine.run(store, [], Clock(22, 0)).is_idle
    assert engine.run(store, [], Clock(23, 0)).is_idle
    assert [name for name in store.keys() if name.startswith("p")] == []  # noqa: SIM118 (no dict)


def test_a_new_column_of_labels_is_null_in_those_that_wait() -> None:
    before = described(program_of(call("n", count(), 10)))
    labels = pa.schema([("added", pa.string()), *LABELS])
    names = ("added", "name")
    now = described(dataclasses.replace(before, labels=labels, label_names=names, late_names=names))
    store = MemoryBlobStore()
    make_engine(with_engine(before)).run(store, [table_of([row("a", 3, 1), label("a", 9, "x")])], Clock(MIN, 0))
    arrived = table_of([label("a", 10, "y")]).append_column("added", pa.array(["new"]))
    output = make_engine(with_engine(now)).run(store, [arrived], Clock(12, 0))
    assert [tuple(each.values()) for _, table in output.tables for each in table.to_pylist()] == [(None, "x", 1), ("new", "y", 1)]


@pytest.mark.parametrize("known_at", [None, "seen"])
@pytest.mark.parametrize("seed", seeds(60))
def test_labels_of_a_stream_have_what_static_ones_have(seed: int, known_at: str | None) -> None:
    random = Random(seed)
    exact = random.random() < 0.5
    known = [call("n", count(), 5, exact), call("top", max("v"), 15, exact), call("total", sum("v"), 40, exact)]
    if random.random() < 0.3:
        known += [call("all", collect_list("v"), 20, exact), call("last", last("v"), 20, exact)]
    program = with_engine(program_of(*known, is_inclusive=random.random() < 0.5, known_at=known_at))
    assert program.engine == "waiting labels" or known_at is not None or len(known) > 3
    batches: list[tuple[int, list[Event]]] = []
    watermark, now, number = MIN, 0, 0
    for _ in range(random.randint(1, 8)):
        events: list[Event] = []
        for _ in range(random.choice([0, 2, 9])):
            time, key = random.randint(watermark + 1 if watermark > MIN else -20, now + 9), random.choice("abc")
            is_label, number = random.random() < 0.4, number + 1
            seen = random.choice([None, time, time + 7])
            events.append(
                (key, time, None if is_label else random.choice([None, 1, -3, 8]), seen, f"l{number}" if is_label else None)
            )
        batches.append((watermark, events))
        now += random.choice([0, 4, 25])
        watermark = now - random.choice([1, 6]) if now - 6 > watermark else watermark
    batches.append((now + 500, []))
    with given_sizes({PAGE_ROWS: random.choice([2, 8]), STEP_ROWS: random.choice([3, 50])}):
        results, late = run(program, batches)
    everything = [event for _, events in batches for event in events]
    static = with_engine(dataclasses.replace(program, is_streaming=False))
    output = make_engine(static).run(MemoryBlobStore(), [table_of(everything)], Clock(MIN, 0))
    wanted = [tuple(row.values()) for _, table in output.tables for row in table.to_pylist()]
    assert sorted((each for rows in results for each in rows), key=repr) == sorted(wanted, key=repr)
    assert late == []


def test_rows_without_a_time_or_beyond_the_last_one_are_refused() -> None:
    program = with_engine(program_of(call("n", count(), 10)))
    with pytest.raises(MissingEventTimeError, match="'a'"):
        run(program, [(MIN, [("a", None, 1, None, None)])])  # type: ignore[list-item]
    with pytest.raises(TimestampOverflowError):
        run(program, [(MIN, [row("a", MAX - 3, 1)])])


def test_another_plan_is_refused() -> None:
    program, store = described(with_engine(program_of(call("n", count(), 10)))), MemoryBlobStore()
    make_engine(program).run(store, [table_of([row("a", 3, 1)])], Clock(MIN, 0))
    other = described(with_engine(program_of(call("m", count(), 10))))
    with pytest.raises(ChangedPlanError, match="call m"):
        make_engine(other).run(store, [], Clock(9, 0))
