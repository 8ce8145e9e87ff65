"""What ``each`` row has, against DuckDB's RANGE frames over all rows; no row is late."""

from __future__ import annotations

from random import Random
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from tests.examples import seeds
from tests.operators.test_rolling import COLUMNS, KEY, Rows, stream, table_of
from windowpane.aggregates import count, max, min, sum
from windowpane.engines.protocol import Clock
from windowpane.engines.rolling.program import RollingProgram
from windowpane.engines.rolling.reference import RollingReferenceEngine
from windowpane.hidden_columns import TIME
from windowpane.state.memory import MemoryBlobStore
from windowpane.windowing.rolling import RollingCall, RollingEmit, RollingSpec, RollingWindow

LENGTHS = (5, 15, 40)
CALLS = {"count(*)": (count(), None), "sum(v)": (sum("v"), None), "max(v)": (max("v"), None), "min(v)": (min("v"), "big")}


def program() -> RollingProgram:
    calls = [
        RollingCall(f"{name}_{length}", aggregate, RollingWindow(length, 5, True), condition)
        for length in LENGTHS
        for name, (aggregate, condition) in CALLS.items()
    ]
    return RollingProgram(RollingSpec(tuple(calls), 5, RollingEmit.EACH), KEY, ("key",), COLUMNS, pa.int64())


def by_duckdb(rows: Rows) -> list[tuple[Any, ...]]:
    frames = ", ".join(
        f"{name} {'FILTER (WHERE big) ' if condition else ''}OVER (PARTITION BY key ORDER BY t "
        f"RANGE BETWEEN {length - 1} PRECEDING AND CURRENT ROW)"
        for length in LENGTHS
        for name, (_, condition) in CALLS.items()
    )
    table = table_of(rows)
    table = table.rename_columns(["t" if name == TIME else name for name in table.column_names])
    with duckdb.connect() as connection:
        connection.register("given", table)
        return connection.execute(f"SELECT key, t, {frames} FROM given").fetchall()


@pytest.mark.parametrize("seed", seeds(100))
def test_each_row_has_what_duckdb_gives_it(seed: int) -> None:
    batches = stream(seed)
    rows = [row for _, rows in batches for row in rows]
    Random(seed).shuffle(rows)
    engine, store, position = RollingReferenceEngine(program()), MemoryBlobStore(), 0
    found: list[tuple[Any, ...]] = []
    for watermark, taken in batches:
        output = engine.run(store, [table_of(taken, position)], Clock(watermark, 0))
        position += len(taken)
        found += [tuple(row.values()) for _, table in output.tables for row in table.to_pylist()]
    assert len(found) == len(rows)
    assert sorted(found, key=repr) == sorted(by_duckdb(rows), key=repr)
