"""What functions, triggers and evictors of the user's own cost a row on the row engine, on one bucket.

State is in memory, and there is no Spark around it.

Run: ``python bench/engines_rows.py [ROWS] [KEYS] [--only TEXT]``. Prints processor microseconds a row of each case, the median of
the batches after the first, and the bytes of its state. What Spark adds (the hop of rows into Python, RocksDB) is not in it.
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import Any

import pyarrow as pa

import windowpane as wp
from bench.arriving import batches
from windowpane.engines.program import Program
from windowpane.planning.engines import make_engine
from windowpane.planning.window_programs import InputTypes, compile_program
from windowpane.planning.windows import FunctionPlan, WindowPlan
from windowpane.state.memory import MemoryBlobStore
from windowpane.windowing.functions import WindowFunctionSpec

ROWS, KEYS, BATCHES = 500_000, 10_000, 4
COLUMNS = pa.schema([("k", pa.string()), ("v", pa.int64()), ("price", pa.float64())])
RESULT = pa.schema([("n", pa.int64()), ("total", pa.int64())])
TUMBLING = wp.TumblingEventTimeWindows.of("10 s")
SLIDING = wp.SlidingEventTimeWindows.of("30 s", "10 s")
SESSIONS = wp.EventTimeSessionWindows.with_gap("1 s")


class Total(wp.AggregateFunction):
    """How many rows, and the sum of their ``v``."""

    def create_accumulator(self) -> tuple[int, int]:
        return 0, 0

    def add(self, value: Any, accumulator: tuple[int, int]) -> tuple[int, int]:
        return accumulator[0] + 1, accumulator[1] + value["v"]

    def get_result(self, accumulator: tuple[int, int]) -> dict[str, int]:
        return {"n": accumulator[0], "total": accumulator[1]}

    def merge(self, left: tuple[int, int], right: tuple[int, int]) -> tuple[int, int]:
        return left[0] + right[0], left[1] + right[1]


class TotalOfAll(wp.ProcessWindowFunction):
    """The same, of all rows of a window."""

    def process(self, key: Any, context: Any, elements: Any) -> Any:
        yield {"n": len(elements), "total": sum(row["v"] for row in elements)}


def total_of(key: Any, window: Any, elements: Any) -> Any:
    """Return the same, as a plain function."""
    return [{"n": len(elements), "total": sum(row["v"] for row in elements)}]


def added(left: dict[str, Any], right: dict[str, Any]) -> dict[str, Any]:
    """Return a row with the sum of two ``v``."""
    return {**left, "v": left["v"] + right["v"]}


class EveryTenth(wp.Trigger):
    """Fires at every tenth row of a window, counted in a state of its own, and when the window is over."""

    def on_element(self, element: Any, timestamp: int, window: Any, context: Any) -> wp.TriggerResult:
        state = context.value_state("seen")
        seen = (state.get() or 0) + 1
        if seen < 10:
            state.update(seen)
            return wp.TriggerResult.CONTINUE
        state.clear()
        return wp.TriggerResult.FIRE

    def on_event_time(self, time: int, window: Any, context: Any) -> wp.TriggerResult:
        return wp.TriggerResult.FIRE

    def clear(self, window: Any, context: Any) -> None:
        context.value_state("seen").clear()


class OnlyEven(wp.Evictor):
    """Takes rows with an odd ``v`` away before the function sees them."""

    def evict_before(self, elements: Any, size: int, window: Any, context: Any) -> Any:
        return [element for element in elements if element.value["v"] % 2 == 0]


OWN_AGGREGATE = FunctionPlan("aggregate", WindowFunctionSpec.aggregate(Total()))
PROCESS = FunctionPlan("process", WindowFunctionSpec.full(TotalOfAll()))
APPLY = FunctionPlan("apply", WindowFunctionSpec.apply(total_of))
REDUCE = FunctionPlan("reduce", WindowFunctionSpec.reduce(added))
BUILT_IN = FunctionPlan("aggregate", aggregates=(("n", wp.count()), ("total", wp.sum("v"))))

CASES: dict[str, tuple[Any, ...]] = {
    "AggregateFunction, tumbling": (TUMBLING, OWN_AGGREGATE),
    "AggregateFunction, sliding": (SLIDING, OWN_AGGREGATE),
    "AggregateFunction, sessions": (SESSIONS, OWN_AGGREGATE),
    "process, tumbling": (TUMBLING, PROCESS),
    "process, sliding": (SLIDING, PROCESS),
    "process, sessions": (SESSIONS, PROCESS),
    "apply, tumbling": (TUMBLING, APPLY),
    "reduce, tumbling": (TUMBLING, REDUCE),
    "AggregateFunction, own trigger": (TUMBLING, OWN_AGGREGATE, EveryTenth()),
    "process, own trigger, purging": (TUMBLING, PROCESS, wp.PurgingTrigger.of(EveryTenth())),
    "process, own evictor": (TUMBLING, PROCESS, None, OnlyEven()),
    "built-in aggregates, own trigger": (TUMBLING, BUILT_IN, EveryTenth()),
}


def program(assigner: Any, function: FunctionPlan, trigger: Any = None, evictor: Any = None) -> Program:
    """Return a program by key on the row engine."""
    plan = WindowPlan(("k",), assigner, function, trigger, evictor, event_time="t")
    slots = {name: tuple(aggregate.arguments) for name, aggregate in function.aggregates}
    bound = pa.timestamp("us", "UTC")
    declared = None if function.kind == "reduce" or function.aggregates else RESULT
    types = InputTypes(COLUMNS, pa.schema([COLUMNS.field("k")]), ("k",), bound, slots, declared)
    return compile_program(plan, types, COLUMNS.names)


def measure(built: Program, rows: int, keys: int) -> tuple[float, int, int, int]:
    """Return seconds a row, results, their checksum, and bytes of state at the end."""
    engine, store, seconds, results, total, size = make_engine(built), MemoryBlobStore(), [], 0, 0, 0
    for table, clock in batches(rows, keys, BATCHES):
        start = time.process_time()
        output = engine.run(store, [table], clock)
        seconds.append(time.process_time() - start)
        for _, part in output.tables:
            results += part.num_rows
            total += sum(part["total" if "total" in part.column_names else "v"].to_pylist())
        size = output.counters.state_bytes
    return statistics.median(seconds[1:]) / rows, results, total, size


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", type=int, nargs="?", default=ROWS)
    parser.add_argument("keys", type=int, nargs="?", default=KEYS)
    parser.add_argument("--only", default="", help="cases whose name has this text")
    given = parser.parse_args()
    print(f"{given.rows:,} rows a batch, {given.keys:,} keys, {BATCHES} batches")
    for name, parts in CASES.items():
        if given.only in name:
            built = program(*parts)
            seconds, results, total, size = measure(built, given.rows, given.keys)
            cost = f"{seconds * 1e6:7.2f} µs a row"
            print(f"{name:34} {built.engine:6}{cost} {results:9,} results, total {total:,} {size / 2**20:8.1f} MB", flush=True)


if __name__ == "__main__":
    main()
