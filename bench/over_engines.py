"""The OVER engines alone, without Spark: rows per second over an in-memory store, DuckDB beside the kernels, growth with state.

Usage: ``python bench/over_engines.py [--rows N] [--state N] [--only kernel|close|lag|growth]``. Times are CPU time of one thread.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import duckdb
import numpy as np
import pyarrow as pa

from windowpane.engines.over.program import Emit, OverProgram
from windowpane.engines.protocol import Clock
from windowpane.hidden_columns import TIME
from windowpane.kernels.over.sorting import key_sorting_codes, partition_numbers, sorting_codes
from windowpane.kernels.over.window import OverWindow
from windowpane.kernels.packed_order import lexical_order, stable_order
from windowpane.planning.engines import make_engine, with_engine
from windowpane.state.memory import MemoryBlobStore
from windowpane.windowing.frames import Frame, preceding
from windowpane.windowing.over.spec import OrderColumn, OverCall, OverSpec
from windowpane.windowing.over.types import output_schema
from windowpane.windowing.times import MAX, MIN

COLUMNS = pa.schema([("key", pa.int64()), ("t", pa.timestamp("us")), ("id", pa.int64()), ("price", pa.int64())])
ROWS_10 = Frame.rows(preceding(10))
LAG = OverCall("lag", ("price",))
SUM, HIGH, MEAN = (OverCall(function, ("price",), ROWS_10) for function in ("sum", "max", "avg"))
FIVE = (SUM, HIGH, LAG, OverCall("row_number"), MEAN)
DISORDER = 2_000_000


def spec_of(*calls: OverCall) -> OverSpec:
    return OverSpec(("key",), (OrderColumn("t", nulls_first=False),), ("id",), calls)


def program_of(mode: Emit, *calls: OverCall, event_time: bool = True) -> OverProgram:
    spec = spec_of(*calls)
    outputs = output_schema(spec, COLUMNS, [f"c{number}" for number in range(len(calls))])
    return with_engine(OverProgram(spec, COLUMNS, outputs, mode, "t" if event_time else None, append_only=event_time))


def bids(rng: np.random.Generator, first: int, rows: int, keys: int) -> pa.Table:
    """Return bids at 100,000 a second with 2 s of disorder."""
    numbers = np.arange(first, first + rows)
    return table_of(rng.integers(0, keys, rows), numbers * 10 - rng.integers(0, DISORDER, rows), numbers, rng)


def table_of(keys: np.ndarray, times: np.ndarray, numbers: np.ndarray, rng: np.random.Generator) -> pa.Table:
    prices = rng.integers(0, 10_000, len(keys))
    table = pa.table(
        [pa.array(keys), pa.array(times).cast(pa.timestamp("us")), pa.array(numbers), pa.array(prices)], schema=COLUMNS
    )
    return table.append_column(TIME, pa.array(times))


def timed(action: Callable[[], object]) -> float:
    started = time.process_time()
    action()
    return time.process_time() - started


def kernel(rows: int) -> None:
    """Print the kernels and DuckDB on the same table: sort and five calls."""
    table = bids(np.random.default_rng(7), 0, rows, 1000)
    spec = spec_of(*FIVE)
    window = OverWindow(spec, COLUMNS)

    def kernels() -> None:
        one = {name: table[name].combine_chunks() for name in COLUMNS.names}
        order = lexical_order([*sorting_codes(one["t"], spec.order_by[0]), *key_sorting_codes(one["id"])])
        numbers = partition_numbers([one["key"]], rows)[order]
        order, numbers = order[stable_order(numbers)], np.sort(numbers, kind="stable")
        starts = np.append(True, numbers[1:] != numbers[:-1])
        window.values(window.rows(table.take(pa.array(order)).combine_chunks(), starts, np.zeros(int(starts.sum()), np.bool_)))

    connection = duckdb.connect(config={"threads": 1})
    connection.register("bids", table.select(COLUMNS.names))
    over = "over (partition by key order by t, id"
    calls = [f"{f}(price) {over} rows 10 preceding)" for f in ("sum", "max", "avg")]
    sql = f"select *, {', '.join(calls)}, lag(price) {over}), row_number() {over}) from bids"
    ours = min(timed(kernels) for _ in range(3))
    duck = min(timed(lambda: connection.sql(sql).to_arrow_table()) for _ in range(3))
    print(
        f"kernel  {rows:,} rows, 5 calls: {ours * 1e3:.0f} ms, DuckDB {duck * 1e3:.0f} ms: {ours / duck:.2f} of its time",
        flush=True,
    )


def stream(name: str, program: OverProgram, rows: int, keys: int, batches: int) -> None:
    """Print the throughput of batches whose watermark earlier batches made."""
    engine, store, rng, watermark = make_engine(program), MemoryBlobStore(), np.random.default_rng(7), MIN
    seconds, calls = [], []
    for number in range(batches):
        table, before, clock = bids(rng, number * rows, rows, keys), store.reads + store.writes, Clock(watermark, 0)
        seconds.append(timed(lambda table=table, clock=clock: engine.run(store, [table], clock)))
        calls.append(store.reads + store.writes - before)
        watermark = (number + 1) * rows * 10 - DISORDER
    last = engine.run(store, [], Clock(MAX, 0)).counters.state_bytes
    middle = float(np.median(seconds[1:]))
    print(
        f"{name:<7} {keys:,} keys: {rows / middle / 1e3:,.0f} k rows/s, {middle * 1e3:.0f} ms and {calls[-1]:,} state calls"
        f" a batch of {rows:,}, {last / 1e6:.1f} MB at the end",
        flush=True,
    )


def growth(largest: int) -> None:
    """Print the time of batches of 1,000 random inserts into one partition, while it grows to ``largest`` rows."""
    engine, store = make_engine(program_of(Emit.UPDATE, SUM, HIGH, event_time=False)), MemoryBlobStore()
    rng, size, first = np.random.default_rng(7), 0, None

    def insert(rows: int) -> float:
        nonlocal size
        table = table_of(np.zeros(rows, np.int64), rng.integers(0, 10**15, rows), np.arange(size, size + rows), rng)
        size += rows
        return timed(lambda: engine.run(store, [table], Clock(MIN, 0)))

    for state in (100_000, 1_000_000, 10_000_000):
        if state > largest:
            break
        while size < state:
            insert(min(500_000, state - size))
        for _ in range(5):
            insert(1000)
        before = store.reads + store.writes
        middle = float(np.median([insert(1000) for _ in range(9)]))
        first = first or middle
        calls = (store.reads + store.writes - before) // 9
        print(
            f"growth  {state:,} rows: {middle * 1e3:.0f} ms and {calls:,} state calls a batch, {middle / first:.2f} times",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--state", type=int, default=10_000_000, help="how far the partition of random inserts grows")
    parser.add_argument("--only", choices=("kernel", "close", "lag", "growth"))
    given = parser.parse_args()
    if given.only in (None, "kernel"):
        kernel(given.rows)
    if given.only in (None, "close"):
        stream("close", program_of(Emit.CLOSE, SUM, HIGH), given.rows, 1000, 5)
        stream("lag", program_of(Emit.CLOSE, LAG), given.rows, 1000, 5)
    if given.only in (None, "lag"):
        stream("general", program_of(Emit.UPDATE, LAG), given.rows, 100_000, 5)
    if given.only in (None, "growth"):
        growth(given.state)


if __name__ == "__main__":
    main()
