"""How fast count windows, evictors, early results and results of each batch are on one bucket.

State is in memory, and there is no Spark around it.

Run: ``python bench/engines_counts.py [ROWS] [KEYS]``. Prints rows a second (of processor time, so that neighbours do not count)
of each case, the median of the batches after the first, and the bytes of its state. What Spark adds (the hop of rows into
Python, RocksDB) is not in it.
"""

from __future__ import annotations

import statistics
import sys
import time

import pyarrow as pa

import windowpane as wp
from bench.arriving import batches
from windowpane.engines.program import Program
from windowpane.planning.engines import make_engine
from windowpane.planning.window_programs import InputTypes, compile_program
from windowpane.planning.windows import FunctionPlan, WindowPlan
from windowpane.state.memory import MemoryBlobStore
from windowpane.windowing.spec import DEFAULT_PANES, PaneSettings, count_window

ROWS, KEYS, BATCHES = 1_000_000, 100_000, 5
COLUMNS = pa.schema([("k", pa.string()), ("v", pa.int64())])
AGGREGATES = {"total": wp.sum("v")}
SLIDING = wp.SlidingEventTimeWindows.of("60 s", "10 s")
TUMBLING = wp.TumblingEventTimeWindows.of("1 hour")
SESSIONS = wp.EventTimeSessionWindows.with_gap("3 s")
RETRACTING, WITH_PANES = PaneSettings("retracting"), PaneSettings("retracting", shows_info=True)

CASES = {
    "count_window(100)": count_window(100),
    "count_window(100, 10)": count_window(100, 10),
    "every 10 of a global window": (wp.GlobalWindows.create(), wp.CountTrigger.of(10), None),
    "every 10, purging, of 60 s by 10 s": (SLIDING, wp.PurgingTrigger.of(wp.CountTrigger.of(10)), None),
    "early each second, 1 hour": (TUMBLING, wp.ContinuousEventTimeTrigger.of("1 s"), None),
    "early each second, purging, 60 s by 10 s": (SLIDING, wp.PurgingTrigger.of(wp.ContinuousEventTimeTrigger.of("1 s")), None),
    "each batch, retracting, 1 hour": (TUMBLING, wp.EachBatch(), None, RETRACTING),
    "each batch, retracting, panes, 1 hour": (TUMBLING, wp.EachBatch(), None, WITH_PANES),
    "each batch, retracting, 60 s by 10 s": (SLIDING, wp.EachBatch(), None, RETRACTING),
    "each batch, retracting, sessions of 3 s": (SESSIONS, wp.EachBatch(), None, RETRACTING),
    "the last 3 of 60 s by 10 s": (SLIDING, None, wp.CountEvictor.of(3)),
    "every 10, the last 5 s, global": (wp.GlobalWindows.create(), wp.CountTrigger.of(10), wp.TimeEvictor.of("5 s")),
}


def program(assigner: object, trigger: object, evictor: object, panes: PaneSettings = DEFAULT_PANES) -> Program:
    """Return a sum by key."""
    function = FunctionPlan("aggregate", aggregates=tuple(AGGREGATES.items()))
    plan = WindowPlan(("k",), assigner, function, trigger, evictor, event_time="t", panes=panes)  # type: ignore[arg-type]
    types = InputTypes(COLUMNS, pa.schema([("k", pa.string())]), ("k",), pa.timestamp("us", "UTC"), {"total": ("v",)})
    return compile_program(plan, types, ("k", "v"))


def measure(built: Program, rows: int, keys: int) -> tuple[float, int, int]:
    """Return rows a second, results, and bytes of state at the end."""
    engine, store, seconds, results, size = make_engine(built), MemoryBlobStore(), [], 0, 0
    for table, clock in batches(rows, keys, BATCHES):
        start = time.process_time()
        output = engine.run(store, [table], clock)
        seconds.append(time.process_time() - start)
        results += sum(part.num_rows for _, part in output.tables)
        size = output.counters.state_bytes
    return rows / statistics.median(seconds[1:]), results, size


def main() -> None:
    """Print the table."""
    rows, keys = (int(argument) for argument in (*sys.argv[1:], *map(str, (ROWS, KEYS)[len(sys.argv) - 1 :])))
    print(f"{rows:,} rows a batch, {keys:,} keys, {BATCHES} batches")
    for name, parts in CASES.items():
        built = program(*parts)
        speed, results, size = measure(built, rows, keys)
        print(f"{name:42} {built.engine:8} {speed / 1e6:7.2f} M rows/s {results:10,} results {size / 2**20:8.1f} MB state")


if __name__ == "__main__":
    main()
