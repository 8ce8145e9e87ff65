"""A plan with more features uses the state of a smaller one where that holds all they need, and is refused where not."""

from __future__ import annotations

import dataclasses
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from tests.examples import seeds
from verify.fuzz.rolling_runs import COLUMNS, table_of
from verify.sizes import given_sizes
from windowpane.aggregates import approx_count_distinct, avg, count, max, min, sum
from windowpane.engines.changes import ACCEPTED
from windowpane.engines.program import MAIN
from windowpane.engines.protocol import Clock
from windowpane.engines.rolling.engine import DENSE_KEYS, PAGE_KEYS, RollingEngine
from windowpane.engines.rolling.program import RollingProgram
from windowpane.engines.rolling.reference import RollingReferenceEngine
from windowpane.errors import ChangedPlanError
from windowpane.planning.description.programs import of_rolling
from windowpane.state.memory import MemoryBlobStore
from windowpane.windowing.aggregates import Aggregate
from windowpane.windowing.rolling import RollingCall, RollingEmit, RollingSpec, RollingWindow
from windowpane.windowing.times import MIN

KEYS = pa.schema([("k", pa.string())])
Rows = list[dict[str, Any]]
Engine = type[RollingEngine | RollingReferenceEngine]
ENGINES = pytest.mark.parametrize("engine", [RollingEngine, RollingReferenceEngine], ids=["pieces", "rows"])


def call(
    name: str, aggregate: Aggregate, length: int, hop: int = 5, *, exact: bool = False, where: str | None = None
) -> RollingCall:
    return RollingCall(name, aggregate, RollingWindow(length, hop, exact), where)


def program_of(*calls: RollingCall, emit: RollingEmit = RollingEmit.CHANGED) -> RollingProgram:
    """Return a program with the description that planning gives it."""
    read = [name for each in calls for name in (*each.aggregate.arguments, each.condition) if name is not None]
    columns = pa.schema([COLUMNS.field(name) for name in dict.fromkeys(read)])
    program = RollingProgram(RollingSpec(calls, 5, emit), KEYS, ("k",), columns, pa.int64())
    return dataclasses.replace(program, description=of_rolling(program, ["k"], "t"))


def run(program: RollingProgram, store: MemoryBlobStore, watermark: int, rows: Rows, engine: Engine = RollingEngine) -> Rows:
    table = table_of(program, [{"id": 0, "s": None, "d": None, "b": None, **row} for row in rows], 0)
    output = engine(program).run(store, [table], Clock(watermark, 0))
    return [row for tag, found in output.tables if tag == MAIN for row in found.to_pylist()]


def row(key: str, time: int, value: int | None, kept: bool = True) -> dict[str, Any]:
    return {"k": key, "__windowpane_time": time, "n": value, "x": None if value is None else float(value), "c": kept}


HOUR, DAYS = call("n", count(), 20, exact=True), call("total", sum("n"), 100, 50)
FITTING = {
    "a shorter exact window": call("n_10", count(), 10, exact=True),
    "the longest by its tiles": call("n_100", count(), 100, 50),
    "a window of its tiles": call("sum_50", sum("n"), 50, 50),
    "a window of short tiles within the exact one": call("sum_15", sum("n"), 15, 5),
}
OTHER = {
    "a longer window": call("n_150", count(), 150, 50),
    "an exact window that would cut a tile": call("n_50", count(), 50, exact=True),
    "a window of tiles within tiles": call("n_30", count(), 30, 10),
    "another aggregate": call("top", max("n"), 20, exact=True),
    "the aggregate of other rows": call("some", count(), 20, exact=True, where="c"),
    "another column": call("x", sum("x"), 20, exact=True),
}


@ENGINES
@pytest.mark.parametrize("added", FITTING.values(), ids=FITTING)
def test_a_window_of_what_is_held_is_added(added: RollingCall, engine: Engine) -> None:
    store, whole = MemoryBlobStore(), MemoryBlobStore()
    small, large = program_of(HOUR, DAYS), program_of(HOUR, DAYS, added)
    batches = [(MIN, [row("a", 3, 1), row("b", 58, 2)]), (60, [row("a", 64, 3), row("a", 71, 4)])]
    for watermark, rows in batches:
        run(small, store, watermark, rows, engine)
        run(large, whole, watermark, rows, engine)
    run(large, whole, 74, [], engine)
    found = {each["k"]: each for each in run(large, store, 74, [], engine)}
    rows = [row("a", 76, 5), row("b", 77, 6)]
    assert found["a"][added.name] == {"n_10": 1, "n_100": 3, "sum_50": 8, "sum_15": 7}[added.name]
    assert run(large, store, 75, rows, engine) == run(large, whole, 75, rows, engine)
    for watermark in (79, 89, 99, 149, 199, 249):
        assert run(large, store, watermark, [], engine) == run(large, whole, watermark, [], engine)


@ENGINES
def test_the_first_tick_gives_what_was_added_before_there_was_a_watermark(engine: Engine) -> None:
    store, grown = MemoryBlobStore(), program_of(HOUR, call("n_10", count(), 10, exact=True))
    run(program_of(HOUR), store, MIN, [row("a", 3, 1), row("b", 8, 2)], engine)
    run(grown, store, MIN, [], engine)
    found = run(grown, store, 4, [], engine)
    assert {each["k"]: (each["n"], each["n_10"]) for each in found} == {"a": (1, 1), "b": (1, 1)}


@pytest.mark.parametrize("added", OTHER.values(), ids=OTHER)
def test_what_is_not_held_is_refused_with_the_difference(added: RollingCall) -> None:
    store = MemoryBlobStore()
    run(program_of(HOUR, DAYS), store, MIN, [row("a", 3, 1)])
    with pytest.raises(ChangedPlanError, match=added.name):
        run(program_of(HOUR, DAYS, added), store, 60, [])
    with pytest.raises(ChangedPlanError, match="total"):
        run(program_of(HOUR), store, 60, [])


@pytest.mark.parametrize("name", OTHER)
def test_rows_serve_every_feature_of_their_columns_that_sees_no_farther(name: str) -> None:
    store = MemoryBlobStore()
    run(program_of(HOUR, DAYS), store, MIN, [row("a", 3, 1), row("a", 30, 6)], RollingReferenceEngine)
    large = program_of(HOUR, DAYS, OTHER[name])
    wanted = {"an exact window that would cut a tile": 1, "a window of tiles within tiles": 1, "another aggregate": None}
    if name not in wanted:
        with pytest.raises(ChangedPlanError, match=OTHER[name].name):
            run(large, store, 60, [], RollingReferenceEngine)
        return
    found = run(large, store, 60, [], RollingReferenceEngine)
    assert [each[OTHER[name].name] for each in found] == [wanted[name]]


CALLS = (count(), sum("n"), avg("n"), min("n"), max("x"), approx_count_distinct("n"))


@pytest.mark.parametrize("grows", [True, False], ids=["larger", "smaller"])
@pytest.mark.parametrize("emit", RollingEmit)
@ENGINES
@pytest.mark.parametrize("seed", seeds(25))
def test_another_plan_gives_what_it_gives_from_the_start(emit: RollingEmit, seed: int, grows: bool, engine: Engine) -> None:
    """After the first tick of the other plan its rows, and the latest ones of each key, are those of a run of it alone."""
    random = Random(seed)
    exact, aggregates = emit is RollingEmit.EACH or random.random() < 0.5, random.sample(CALLS, random.randint(1, 3))
    lengths = random.sample([5, 10, 15, 30], 3)
    wheres = [random.choice([None, "c"]) for _ in aggregates]
    longest = [call(f"f{i}", each, 30, exact=exact, where=wheres[i]) for i, each in enumerate(aggregates)]
    added = [
        call(f"g{i}_{length}", each, length, exact=exact, where=wheres[i])
        for i, each in enumerate(aggregates)
        for length in random.sample(lengths, random.randint(1, 2))
        if length < 30
    ]
    small, large = program_of(*longest, emit=emit), program_of(*longest, *added, emit=emit)
    if not grows:  # the windows that stay may be the shorter ones
        kept = random.choice([longest, added]) or longest
        small, large = large, program_of(*kept, emit=emit)
        large = dataclasses.replace(large, description={**large.description, ACCEPTED: ["call"]})
    store, whole, now = MemoryBlobStore(), MemoryBlobStore(), 0
    latest: list[dict[str, Any]] = [{}, {}]
    grown, grew_at = False, None
    silent, changed = random.choice([1, 1, 4]), random.randint(1, 4)  # so many batches have no watermark, are of the other plan
    for number in range(9):
        watermark = now - 1 if number >= silent else MIN
        rows = [
            row(random.choice("abcdef"), now + random.randint(0, 9), random.choice([None, 1, -4, 70]), random.random() < 0.7)
            for _ in range(random.choice([0, 2, 8]))
        ]
        with given_sizes({PAGE_KEYS: 2, DENSE_KEYS: 4}):
            grown = number >= changed
            grew_at = watermark if number == changed else grew_at
            got = run(large if grown else small, store, watermark, rows, engine)
            wanted = run(large, whole, watermark, rows, engine)
        for held, found in zip(latest, (got, wanted), strict=True):
            held.update({each["k"]: [each[one.name] for one in large.spec.calls if one.name in each] for each in found})
        if emit is RollingEmit.EACH and grown:
            assert sorted(map(repr, got)) == sorted(map(repr, wanted))
        if emit is not RollingEmit.BATCH and grew_at is not None and watermark >= large.spec.tick_from(grew_at + 1):
            empty = [0 if one.aggregate.name in ("count", "approx_count_distinct") else None for one in large.spec.calls]
            if emit is not RollingEmit.EACH:
                keys = {*latest[0], *latest[1]}
                whole_of = [{key: [*held.get(key, []), *empty[len(held.get(key, [])) :]] for key in keys} for held in latest]
                assert whole_of[0] == whole_of[1]
        now += random.choice([0, 5, 10, 20])
