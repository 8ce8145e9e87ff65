"""Sessions that rows, sums and lengths end, on a bucket: by hand, and random programs beside the definition."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import windowpane as wp
from tests.examples import seeds
from verify.fuzz import closed_sessions
from verify.fuzz.closed_sessions import Batch, Row, program_of, replay, table_of
from windowpane.engines.program import LATE, MAIN, Program
from windowpane.engines.protocol import Clock, Engine
from windowpane.engines.sessions.closed import ClosedSessionsEngine
from windowpane.engines.sessions.closed_reference import ClosedSessionsReferenceEngine
from windowpane.errors import InvalidSpecError, NegativeSizeError, TimestampOverflowError, present
from windowpane.kernels.sessions.cuts import Limit, cuts
from windowpane.planning.changing import Held, continued
from windowpane.planning.engines import make_engine
from windowpane.planning.window_programs import InputTypes, compile_program
from windowpane.planning.windows import FunctionPlan, WindowPlan
from windowpane.state.memory import MemoryBlobStore
from windowpane.testing import WindowTestHarness
from windowpane.windowing.assigners import ClosedSessionWindows
from windowpane.windowing.functions import WindowFunctionSpec
from windowpane.windowing.times import MAX, MIN

ENGINES = [ClosedSessionsEngine, ClosedSessionsReferenceEngine]
Make = Callable[[Program], Engine]


def row(at: int, v: int = 1, closes: bool = False, weight: int | None = None, k: str = "a") -> Row:
    return Row(k, v, at, closes, weight)


def emitted(make: Make, assigner: ClosedSessionWindows, *batches: Batch) -> list[list[tuple[Any, ...]]]:
    """Return start, end and count of the sessions of each batch."""
    return [[each[2:5] for each in batch if each[0] == MAIN] for batch in replay(make, program_of(assigner), batches)]


@pytest.mark.parametrize("make", ENGINES)
@pytest.mark.parametrize(
    ("was", "now", "rows", "expected"),
    [
        # the rows that wait are asked by the rule under which they came: the one at 20 closes, and 7 reaches a size of 9
        (ClosedSessionWindows(100, "c"), ClosedSessionWindows(100, count=9), [row(20, closes=True)], [(10, 21, 2)]),
        (ClosedSessionWindows(100, size=("w", 99)), ClosedSessionWindows(100, duration=500), [row(20, weight=7)], []),
        # what it had before closes no open session, and the next row that adds something does
        (
            ClosedSessionWindows(100, size=("w", 99)),
            ClosedSessionWindows(100, size=("w", 2)),
            [row(20), row(30, weight=1)],
            [(10, 31, 3)],
        ),
        (ClosedSessionWindows(100, count=9), ClosedSessionWindows(100, count=1), [row(20), row(30)], [(10, 21, 2), (30, 31, 1)]),
        # one that ends sooner by the new rule is over at the next watermark
        (ClosedSessionWindows(100, count=9), ClosedSessionWindows(20, count=9), [], [(10, 30, 1)]),
    ],
)
def test_open_sessions_go_on_by_another_rule(
    make: type[ClosedSessionsEngine], was: Any, now: Any, rows: list[Row], expected: list[Any]
) -> None:
    store, programs = MemoryBlobStore(), [replace(program_of(each), engine=make.name) for each in (was, now)]
    programs = [replace(each, description={**each.description, "engine": each.engine}) for each in programs]
    make(programs[0]).run(store, [table_of(Batch(MIN, 15, [row(10, weight=5)]))], Clock(MIN, 0))
    make(programs[0]).run(store, [table_of(Batch(MIN, 15, rows))] if rows else [], Clock(15, 0))
    header = present(store.get("header"), "a batch has run")
    going_on, _ = continued(programs[1], present(Held.of([("header", header)], 15), "there is one"))
    assert isinstance(going_on, Program)
    found = make(going_on).run(store, [], Clock(60, 0)).tables
    results = [each for number, table in found if number == MAIN for each in table.to_pylist()]
    assert [(micros(each["window_start"]), micros(each["window_end"]), each["n"]) for each in results] == expected


def micros(at: dt.datetime) -> int:
    return round(at.timestamp() * 1_000_000)


@pytest.mark.parametrize("make", ENGINES)
class TestByHand:
    def test_a_closing_row_that_arrives_behind_others_splits_them(self, make: Make) -> None:
        rows = [Batch(MIN, MIN, [row(10), row(30)]), Batch(MIN, 15, [row(20, closes=True)]), Batch(15, 200, [])]
        assert emitted(make, ClosedSessionWindows(100, "c"), *rows) == [[], [], [(10, 21, 2), (30, 130, 1)]]

    def test_a_result_comes_when_the_watermark_reaches_the_closing_row(self, make: Make) -> None:
        rows = [Batch(MIN, MIN, [row(10), row(20, closes=True)]), Batch(MIN, 19, []), Batch(19, 20, [])]
        assert emitted(make, ClosedSessionWindows(100, "c"), *rows) == [[], [], [(10, 21, 2)]]

    def test_a_row_behind_the_watermark_is_late_though_its_session_is_open(self, make: Make) -> None:
        rows = [Batch(MIN, MIN, [row(10)]), Batch(MIN, 50, [row(50), row(51)]), Batch(50, MAX, [])]
        program = program_of(ClosedSessionWindows(100, "c"))
        found = replay(make, program, rows)
        assert [each[:3] for each in found[1]] == [(LATE, "a", 1)]
        assert [each[2:5] for each in found[2]] == [(10, 151, 2)]

    def test_rows_of_the_instant_of_a_closing_row_are_in_order_of_arrival(self, make: Make) -> None:
        rows = [Batch(MIN, MIN, [row(10), row(10, closes=True), row(10)]), Batch(MIN, 300, [])]
        assert emitted(make, ClosedSessionWindows(100, "c"), *rows) == [[], [(10, 11, 2), (10, 110, 1)]]

    def test_a_row_a_gap_later_opens_another_session(self, make: Make) -> None:
        rows = [Batch(MIN, MIN, [row(0), row(99), row(199)]), Batch(MIN, 300, [])]
        assert emitted(make, ClosedSessionWindows(100, "c"), *rows) == [[], [(0, 199, 2), (199, 299, 1)]]

    def test_what_is_first_of_several_closes(self, make: Make) -> None:
        assigner = ClosedSessionWindows(100, "c", count=3, size=("w", 10), duration=150)
        by_count = [row(0, weight=4), row(1, weight=4), row(2, weight=1)]
        by_size = [row(3, weight=4), row(4, weight=6)]
        by_duration = [row(10), row(90), row(160, closes=True)]
        rows = [Batch(MIN, MIN, [*by_count, *by_size, *by_duration]), Batch(MIN, 300, [])]
        assert emitted(make, assigner, *rows) == [[], [(0, 3, 3), (3, 5, 2), (10, 160, 2), (160, 161, 1)]]

    def test_an_open_session_goes_on_over_batches_with_its_count_and_sum(self, make: Make) -> None:
        assigner = ClosedSessionWindows(100, count=3, size=("w", 10))
        rows = [Batch(MIN, MIN, [row(0), row(1)]), Batch(MIN, 1, [row(2), row(3, weight=9)]), Batch(1, 3, [row(4, weight=1)])]
        assert emitted(make, assigner, *rows, Batch(3, 4, [])) == [[], [], [(0, 3, 3)], [(3, 5, 2)]]

    def test_a_weight_below_zero_is_refused_by_its_key(self, make: Make) -> None:
        program = program_of(ClosedSessionWindows(100, size=("w", 10)))
        with pytest.raises(NegativeSizeError, match=r"met -1.*\[key 'a'\]"):
            replay(make, program, [Batch(MIN, MIN, [row(0, weight=-1)])])

    def test_a_session_beyond_int64_is_refused(self, make: Make) -> None:
        with pytest.raises(TimestampOverflowError):
            replay(make, program_of(ClosedSessionWindows(100, "c")), [Batch(MIN, MIN, [row(MAX - 50)])])


@pytest.mark.parametrize(
    ("kind", "keys", "expected"),
    [
        (pa.float64(), [0.0, -0.0, float("nan"), float("nan")], [2, 2]),
        (pa.list_(pa.int64()), [[1], [1], [1, 2], None], [1, 1, 2]),
        (pa.struct([("a", pa.string())]), [{"a": "x"}, {"a": None}, {"a": "x"}, None], [1, 1, 2]),
    ],
)
@pytest.mark.parametrize("engine", ["closed sessions", "closed sessions reference"])
def test_keys_group_as_equal_values_do(engine: str, kind: pa.DataType, keys: list[Any], expected: list[int]) -> None:
    columns = pa.schema([pa.field("k", kind), *list(closed_sessions.COLUMNS)[1:]])
    program = program_of(ClosedSessionWindows(20, "c"), columns=columns, engine=engine)
    table = closed_sessions.table_of(Batch(MIN, MIN, [row(10 + at) for at in range(4)]))
    store = MemoryBlobStore()
    make_engine(program).run(store, [table.set_column(0, "k", pa.array(keys, kind))], Clock(MIN, 0))
    ended = make_engine(program).run(store, [], Clock(MAX, 0))
    assert sorted(each["n"] for _, found in ended.tables for each in found.to_pylist()) == expected


@pytest.mark.parametrize("seed", seeds(40))
def test_random_programs_have_the_sessions_of_the_definition(seed: int) -> None:
    outcome = closed_sessions.run(seed)
    assert not outcome.differences, (outcome.program, outcome.differences)


@pytest.mark.parametrize("most", [7, 1 << 61])
def test_sums_beyond_int64_close_where_they_are_reached(most: int) -> None:
    draw = Random(5)
    weights = np.array([draw.choice([0, most // 2, most]) for _ in range(300)])
    times = np.arange(300)
    found = cuts(times < 1, times, times + 1000, times < 0, [Limit(weights, most)])
    total, firsts = 0, [0]
    for place, weight in enumerate(weights.tolist()):
        total += weight
        if total >= most:
            total = 0
            firsts.append(place + 1)
    assert found.firsts.tolist() == [first for first in firsts if first < 300]


def test_what_is_no_limit_is_refused() -> None:
    gap = wp.EventTimeSessionWindows.with_gap("1 minute")
    with pytest.raises(InvalidSpecError, match="needs what closes a session"):
        gap.closed_by()
    with pytest.raises(InvalidSpecError, match=r"closed_by\(count=...\): the limit must be a whole number greater than zero"):
        gap.closed_by(count=0)
    with pytest.raises(InvalidSpecError, match=r"it takes a column and the sum of it, size=\('bytes', 1_000_000\)"):
        gap.closed_by(size=1000)  # type: ignore[arg-type]
    with pytest.raises(InvalidSpecError, match="computes one by row"):
        wp.EventTimeSessionWindows.with_dynamic_gap(lambda row: 5).closed_by(count=3)
    with pytest.raises(InvalidSpecError, match="cannot assign a row by itself"):
        gap.closed_by(count=3).assign_windows(1, 5, WindowTestHarness(gap).operator)


def reducing(*columns: str) -> Program:
    """Return a program that sums rows of these columns by a function of the user's own."""

    def added(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
        return {name: one[name] if name == "k" else (one[name] or 0) + (other[name] or 0) for name in one}

    function = FunctionPlan("reduce", WindowFunctionSpec.reduce(added))
    plan = WindowPlan(("k",), ClosedSessionWindows(20, "c"), function, event_time="t")
    types = pa.schema([*closed_sessions.COLUMNS, ("w", pa.int64())])
    keys = pa.schema([("k", pa.string())])
    return compile_program(plan, InputTypes(types, keys, ("k",), closed_sessions.TIMESTAMP, {}), columns)


def test_a_function_sees_null_where_rows_that_wait_lack_a_column_of_now() -> None:
    before, now, store = reducing("k", "v"), reducing("k", "v", "w"), MemoryBlobStore()
    make_engine(before).run(store, [closed_sessions.table_of(Batch(MIN, MIN, [row(10), row(30)]))], Clock(MIN, 0))
    make_engine(before).run(store, [], Clock(11, 0))  # one row is in the open session, the other waits
    later = closed_sessions.table_of(Batch(MIN, MIN, [row(25)])).append_column("w", pa.array([4]))
    make_engine(now).run(store, [later], Clock(11, 0))
    ((_, ended),) = make_engine(now).run(store, [], Clock(MAX, 0)).tables
    assert ended.select(["k", "v", "w"]).to_pylist() == [{"k": "a", "v": 3, "w": 4}]
