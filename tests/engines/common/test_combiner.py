"""The slices engine's combiner: how rows are best folded depends on how many groups they make."""

from __future__ import annotations

import dataclasses

import numpy as np
import pyarrow as pa
import pytest

import windowpane as wp
from windowpane.engines.combiner import Folding
from windowpane.engines.program import Program
from windowpane.engines.protocol import Clock
from windowpane.hidden_columns import PARTITION, POSITION, SLICE, TIME
from windowpane.planning.engines import combiner_of, combiner_refusal, make_engine
from windowpane.planning.window_programs import InputTypes, compile_program
from windowpane.planning.windows import FunctionPlan, WindowPlan
from windowpane.state.memory import MemoryBlobStore
from windowpane.windowing.over.spec import OrderColumn
from windowpane.windowing.times import MAX, MIN

ROWS = 200_000
SECOND = 1_000_000
COLUMNS = pa.schema([("k", pa.int64()), ("price", pa.int64())])


def sums() -> Program:
    aggregates = {"n": wp.count(), "total": wp.sum("price")}
    function = FunctionPlan("aggregate", aggregates=tuple(aggregates.items()))
    plan = WindowPlan(("k",), wp.TumblingEventTimeWindows.of("10 seconds"), function, event_time="t")
    slots = {name: tuple(aggregate.arguments) for name, aggregate in aggregates.items()}
    types = InputTypes(COLUMNS, pa.schema([COLUMNS.field("k")]), ("k",), pa.timestamp("us", tz="UTC"), slots)
    return compile_program(plan, types, ())


def rows_of(keys: int, seed: int = 1) -> pa.Table:
    draw = np.random.default_rng(seed)
    return pa.table(
        {
            "k": draw.integers(0, keys, ROWS),
            "price": draw.integers(0, 100, ROWS),
            TIME: draw.integers(0, 10 * SECOND, ROWS),
        }
    )


@pytest.mark.parametrize(("keys", "expected"), [(100, Folding.PIECEWISE), (50_000, Folding.TOGETHER), (10_000_000, Folding.NOT)])
def test_the_first_rows_tell_how_to_fold(keys, expected):
    combiner = combiner_of(sums())
    assert combiner is not None
    assert combiner.folding(rows_of(keys)) is expected


def test_few_rows_are_folded_at_once():
    combiner = combiner_of(sums())
    assert combiner is not None
    assert combiner.folding(rows_of(10_000_000).slice(0, 1_000)) is Folding.TOGETHER


def test_partials_and_rows_of_one_batch_add_up():
    combiner = combiner_of(sums())
    assert combiner is not None
    one, other = rows_of(50, seed=1), rows_of(50, seed=2)
    folded = combiner(one)
    assert SLICE in folded.column_names
    engine, store = make_engine(sums()), MemoryBlobStore()
    engine.run(store, [folded, other], Clock(MIN, 0))
    ((_, results),) = engine.run(store, [], Clock(MAX, 0)).tables
    prices = np.concatenate([one["price"].to_numpy(), other["price"].to_numpy()])
    keys = np.concatenate([one["k"].to_numpy(), other["k"].to_numpy()])
    expected = {key: (int((keys == key).sum()), int(prices[keys == key].sum())) for key in range(50)}
    assert {row["k"]: (row["n"], row["total"]) for row in results.to_pylist()} == expected


def in_order() -> Program:
    aggregates = {"first": wp.first("price"), "last": wp.last("price"), "all": wp.collect_list("price")}
    aggregates["at"] = wp.arg_max("price", "price")
    function = FunctionPlan("aggregate", aggregates=tuple(aggregates.items()))
    plan = WindowPlan(("k",), wp.TumblingEventTimeWindows.of("10 seconds"), function, event_time="t")
    slots = {name: tuple(aggregate.arguments) for name, aggregate in aggregates.items()}
    types = InputTypes(COLUMNS, pa.schema([COLUMNS.field("k")]), ("k",), pa.timestamp("us", tz="UTC"), slots)
    return compile_program(plan, types, ())


def of_task(partition: int, positions: list[int], prices: list[int]) -> pa.Table:
    count = len(prices)
    return pa.table(
        {
            "k": [7] * count,
            "price": prices,
            TIME: [0] * count,
            PARTITION: pa.array([partition] * count, pa.int32()),
            POSITION: pa.array(positions, pa.int64()),
        }
    )


def test_rows_that_fold_keep_the_order_of_their_tasks_among_rows_that_come_whole_and_after_a_restart():
    program = in_order()
    combiner = combiner_of(program)
    assert combiner is not None
    assert combiner.is_ordered
    engine, store = make_engine(program), MemoryBlobStore()
    third, first_half, second_half = of_task(2, [3, 9], [50, 60]), of_task(0, [0, 4], [10, 20]), of_task(0, [5], [30])
    engine.run(store, [combiner(third), combiner(second_half), of_task(1, [7], [40]), combiner(first_half)], Clock(MIN, 0))
    restarted = MemoryBlobStore()
    restarted.restore(store.snapshot())
    engine = make_engine(program)
    engine.run(restarted, [of_task(4, [1], [80]), combiner(of_task(3, [2], [70]))], Clock(MIN, 0))
    engine.run(restarted, [of_task(0, [0], [90])], Clock(MIN, 0))
    ((_, results),) = engine.run(restarted, [], Clock(MAX, 0)).tables
    (row,) = results.to_pylist()
    assert (row["first"], row["last"], row["all"], row["at"]) == (10, 90, [10, 20, 30, 40, 50, 60, 70, 80, 90], 90)


def test_an_order_by_of_rows_keeps_those_whole_whose_order_matters():
    program = dataclasses.replace(in_order(), order_by=(OrderColumn("price", nulls_first=True),))
    assert combiner_refusal(program) == "order_by tells which row of a key comes first"
    assert combiner_refusal(dataclasses.replace(sums(), order_by=(OrderColumn("price", nulls_first=True),))) is None
