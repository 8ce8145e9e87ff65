"""The sessions engine alone, without Spark: rows per second over an in-memory store, and growth with what is open.

Usage: ``python bench/engines_sessions.py [--rows N] [--batches N]``. Events come at 100,000 a second of event time with 2 s of
disorder; the watermark of a batch is made from the batches before it, as Spark does.
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np
import pyarrow as pa

import windowpane as wp
from windowpane.engines.program import Program
from windowpane.engines.protocol import Clock
from windowpane.engines.sessions.engine import SessionsEngine
from windowpane.hidden_columns import PARTITION, POSITION, TIME
from windowpane.planning.window_programs import InputTypes, compile_program
from windowpane.planning.windows import FunctionPlan, WindowPlan
from windowpane.state.memory import MemoryBlobStore
from windowpane.windowing.times import MIN

EVENTS_PER_SECOND = 100_000
DISORDER = 2_000_000
COLUMNS = pa.schema([("key", pa.int64()), ("price", pa.int64())])


def program_of(gap: str) -> Program:
    aggregates = {"n": wp.count(), "total": wp.sum("price"), "high": wp.max("price")}
    function = FunctionPlan("aggregate", aggregates=tuple(aggregates.items()))
    plan = WindowPlan(("key",), wp.EventTimeSessionWindows.with_gap(gap), function, event_time="t")
    slots = {name: tuple(aggregate.arguments) for name, aggregate in aggregates.items()}
    types = InputTypes(COLUMNS, pa.schema([COLUMNS.field("key")]), ("key",), pa.timestamp("us", tz="UTC"), slots)
    return compile_program(plan, types, ())


def bids(rng: np.random.Generator, first: int, rows: int, keys: int) -> pa.Table:
    numbers = np.arange(first, first + rows)
    times = numbers * (1_000_000 // EVENTS_PER_SECOND) - rng.integers(0, DISORDER, rows)
    return table_of(rng.integers(0, keys, rows), rng.integers(0, 10_000, rows), times)


def table_of(keys: np.ndarray, prices: np.ndarray, times: np.ndarray) -> pa.Table:
    position = np.arange(len(keys))
    columns = {"key": keys, "price": prices, TIME: times, PARTITION: np.zeros(len(keys), np.int32), POSITION: position}
    return pa.table(columns)


def steady(keys: int, rows: int, batches: int, folded: bool) -> None:
    """Print the throughput of batches that open and close sessions of 1 s."""
    engine, store = SessionsEngine(program_of("1 second")), MemoryBlobStore()
    rng, watermark, encoding, running = np.random.default_rng(7), MIN, list[float](), list[float]()
    for number in range(batches):
        table = bids(rng, number * rows, rows, keys)
        chunks = [table.slice(start, 100_000) for start in range(0, rows, 100_000)]
        started = time.process_time()
        chunks = [engine.folding.fold_rows(chunk) for chunk in chunks] if folded else chunks
        encoded = time.process_time()
        output = engine.run(store, chunks, Clock(watermark, 0))
        encoding.append(encoded - started)
        running.append(time.process_time() - encoded)
        watermark = (number + 1) * rows * 10 - DISORDER
    seconds = float(np.median(running[1:]))
    print(
        f"{keys:>9,} keys  {'folded' if folded else 'whole ':6}  {rows / seconds / 1e6:6.2f} M rows/s"
        f"  {seconds * 1e3:6.0f} ms a batch  combiner {np.median(encoding) * 1e3:4.0f} ms"
        f"  {output.counters.open_windows:>9,} open"
        f"  {output.counters.state_bytes / 1e6:6.1f} MB",
        flush=True,
    )


def growth(open_sessions: int, rows: int) -> None:
    """Print the time of a batch over random keys while that many sessions are open."""
    engine, store, rng = SessionsEngine(program_of("1 hour")), MemoryBlobStore(), np.random.default_rng(7)
    filling, step = 0.0, 1_000_000
    for first in range(0, open_sessions, step):
        keys = rng.permutation(np.arange(first, min(first + step, open_sessions)))
        started = time.process_time()
        engine.run(store, [table_of(keys, keys % 1000, rng.integers(0, 10**9, len(keys)))], Clock(MIN, 0))
        filling += time.process_time() - started
    seconds = []
    for number in range(3):
        times = 10**9 + number * 10**6 + rng.integers(0, 10**6, rows)
        table = table_of(rng.integers(0, open_sessions, rows), rng.integers(0, 1000, rows), times)
        calls, started = store.reads + store.writes, time.process_time()
        output = engine.run(store, [table], Clock(0, 0))
        seconds.append(time.process_time() - started)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{open_sessions:>11,} open  {rows:>7,} rows  {np.median(seconds) * 1e3:6.0f} ms a batch  filled at "
        f"{open_sessions / filling / 1e6:4.2f} M/s  {output.counters.state_bytes / 1e6:6.1f} MB"
        f"  {store.reads + store.writes - calls} state calls  peak {peak:,.0f} MB with the store",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--batches", type=int, default=4)
    parser.add_argument("--open", type=int, nargs="*", default=[100_000, 1_000_000, 5_000_000])
    given = parser.parse_args()
    for keys in (1_000, 100_000, 1_000_000):
        for folded in (False, True):
            steady(keys, given.rows, given.batches, folded)
    for open_sessions in given.open:
        growth(open_sessions, 1_000)
        growth(open_sessions, 100_000)


if __name__ == "__main__":
    main()
