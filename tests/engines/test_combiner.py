"""The slices engine's combiner: how rows are best folded depends on how many groups they make."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import windowpane as wp
from windowpane.engines.combiner import Folding
from windowpane.engines.program import Program
from windowpane.engines.protocol import Clock
from windowpane.hidden_columns import SLICE, TIME
from windowpane.planning.engines import combiner_of, make_engine
from windowpane.planning.window_programs import InputTypes, compile_program
from windowpane.planning.windows import FunctionPlan, WindowPlan
from windowpane.state.memory import MemoryBlobStore
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
