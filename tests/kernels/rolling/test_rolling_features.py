"""Features of many labels at once: the reference, and DuckDB's join, on random rows and labels of every type and edge."""

from __future__ import annotations

from decimal import Decimal
from random import Random
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from tests.examples import seeds
from windowpane.aggregates import any_value, avg, bool_and, count, first, last, max, median, min, sum
from windowpane.engines.protocol import Clock
from windowpane.engines.rolling.point_in_time import PointInTimeEngine, PointInTimeReferenceEngine
from windowpane.engines.rolling.program import IS_LABEL, PointInTimeProgram
from windowpane.errors import AggregateOverflowError, MissingEventTimeError
from windowpane.hidden_columns import PARTITION, POSITION, TIME
from windowpane.kernels.rolling import window_spans
from windowpane.state.memory import MemoryBlobStore
from windowpane.windowing.aggregates import Aggregate
from windowpane.windowing.rolling import RollingCall, RollingEmit, RollingSpec, RollingWindow
from windowpane.windowing.times import MIN

KEYS = pa.schema([("key", pa.string())])
COLUMNS = pa.schema(
    [
        ("whole", pa.int64()),
        ("small", pa.int32()),
        ("price", pa.decimal128(12, 2)),
        ("number", pa.float64()),
        ("text", pa.string()),
        ("flag", pa.bool_()),
    ]
)
AGGREGATES: list[Aggregate] = [
    count(),
    count("whole"),
    *[make(name) for make in (sum, avg) for name in ("whole", "small", "price", "number")],
    *[make(name) for make in (min, max) for name in ("whole", "price", "number", "text", "flag")],
    *[make(name) for make in (first, last, any_value) for name in ("text", "number")],
    first("text", ignore_nulls=True),
    bool_and("flag"),
]
LABELS = pa.schema([("id", pa.int64()), (TIME, pa.int64())])


def random_value(random: Random, kind: pa.DataType) -> Any:
    if random.random() < 0.2:
        return None
    if pa.types.is_integer(kind):
        return random.choice([-(2**31), -1, 0, 3, 2**31 - 1])
    if pa.types.is_decimal(kind):
        return Decimal(random.choice(["-99999.99", "0.01", "3.50"]))
    if pa.types.is_floating(kind):
        return random.choice([0.1, -0.0, 1e16, -1e16, float("nan"), float("inf"), 3.0])
    return random.choice(["", "ä", "b"]) if pa.types.is_string(kind) else random.random() < 0.5


def random_table(random: Random) -> pa.Table:
    """Return rows and labels, mixed."""
    size = random.choice([1, 2, 12, 60])
    are_labels = [random.random() < 0.4 for _ in range(size)]
    keys = [random.choice(["a", "b", None]) for _ in range(size)]
    columns = {field.name: [random_value(random, field.type) for _ in range(size)] for field in COLUMNS}
    table = pa.table([pa.array(columns[field.name], field.type) for field in COLUMNS], schema=COLUMNS)
    system = {
        "key": pa.array(keys, pa.string()),
        "id": pa.array(range(size), pa.int64()),
        TIME: pa.array([random.randrange(-40, 40) for _ in range(size)], pa.int64()),
        PARTITION: pa.array([0] * size, pa.int32()),
        POSITION: pa.array(range(size), pa.int64()),
        IS_LABEL: pa.array(are_labels, pa.bool_()),
    }
    for name, values in system.items():
        table = table.append_column(name, values)
    return table


def program_of(aggregates: list[Aggregate], is_exact: bool, inclusive: bool, filtered: bool = False) -> PointInTimeProgram:
    windows = [RollingWindow(length, 4, is_exact) for length in (4, 24)]
    calls = [
        RollingCall(f"{number}_{window.length}", aggregate, window, "flag" if filtered else None)
        for number, aggregate in enumerate(aggregates)
        for window in windows
    ]
    spec = RollingSpec(tuple(calls), 4, RollingEmit.BATCH)
    return PointInTimeProgram(spec, KEYS, COLUMNS, LABELS, ("id", "at"), inclusive)


def given(engine: Any, table: pa.Table) -> list[tuple[Any, ...]]:
    """Return the rows of labels; all that is not a number is equal."""
    output = engine.run(MemoryBlobStore(), [table], Clock(MIN, 0))
    rows = [tuple(row.values()) for _, found in output.tables for row in found.to_pylist()]
    return [tuple("NaN" if value != value else value for value in row) for row in rows]


@pytest.mark.parametrize("seed", seeds(40))
@pytest.mark.parametrize("is_exact", [True, False])
def test_all_at_once_is_one_by_one(seed: int, is_exact: bool) -> None:
    random = Random(seed)
    table = random_table(random)
    program = program_of(AGGREGATES, is_exact, inclusive=random.random() < 0.5, filtered=random.random() < 0.3)
    assert PointInTimeEngine.refusal(program) is None
    expected = given(PointInTimeReferenceEngine(program), table)
    assert len(expected) == sum_of(table[IS_LABEL])
    assert given(PointInTimeEngine(program), table) == expected


def sum_of(column: pa.ChunkedArray) -> int:
    return int(column.to_pylist().count(True))


@pytest.mark.parametrize("seed", seeds(20))
@pytest.mark.parametrize("inclusive", [True, False])
def test_labels_are_given_what_duckdb_joins_to_them(seed: int, inclusive: bool) -> None:
    table = random_table(Random(1000 + seed)).rename_columns(["t" if name == TIME else name for name in (*COLUMNS.names, *_REST)])
    program = program_of([count(), sum("whole"), min("price"), max("text")], True, inclusive)
    end = "<=" if inclusive else "<"
    start = ">" if inclusive else ">="
    joined = ", ".join(
        f"(SELECT {call} FROM held h WHERE h.key IS NOT DISTINCT FROM l.key AND h.t {end} l.t AND h.t {start} l.t - {length})"
        for call in ("count(*)", "sum(whole)", "min(price)", "max(text)")
        for length in (4, 24)
    )
    with duckdb.connect() as connection:
        connection.register("given", table)
        connection.execute(f'CREATE TABLE held AS SELECT * FROM given WHERE NOT "{IS_LABEL}"')
        labels = f'SELECT * FROM given WHERE "{IS_LABEL}"'
        expected = connection.execute(f"SELECT l.id, l.t, {joined} FROM ({labels}) l ORDER BY l.id").fetchall()
    renamed = table.rename_columns([TIME if name == "t" else name for name in table.column_names])
    assert len(expected) == sum_of(table[IS_LABEL])
    assert given(PointInTimeEngine(program), renamed) == expected


_REST = ("key", "id", TIME, PARTITION, POSITION, IS_LABEL)


def test_spans_stay_within_their_key() -> None:
    keys, times = np.array([0, 0, 0, 2, 2]), np.array([1, 5, 5, -3, 9])
    asked, instants = np.array([0, 0, 1, 2, 2]), np.array([5, 9, 99, 9, 20])
    calls = tuple(RollingCall(f"n{length}", count(), RollingWindow(length, 1, True)) for length in (5, 200))
    spans = window_spans(RollingSpec(calls, 1, RollingEmit.BATCH), keys, times, asked, instants)
    assert [low.tolist() for low, _ in spans] == [[0, 1, 3, 4, 5], [0, 0, 3, 3, 3]]
    assert [high.tolist() for _, high in spans] == [[3, 3, 3, 5, 5]] * 2


@pytest.mark.parametrize("is_exact", [True, False])
def test_windows_start_where_the_spec_says(is_exact: bool) -> None:
    window = RollingWindow(24, 4, is_exact)
    instants = np.arange(-30, 30)
    assert window.start(instants).tolist() == [window.start(instant) for instant in instants.tolist()]


@pytest.mark.parametrize(
    ("aggregate", "known_at", "words"),
    [(median("whole"), None, "no kernel computes median"), (count(), "whole", "differs from label to label")],
)
def test_what_kernels_do_not_compute_is_left_to_the_reference(aggregate: Aggregate, known_at: str | None, words: str) -> None:
    program = program_of([aggregate], True, False)
    given_known = PointInTimeProgram(program.spec, KEYS, COLUMNS, LABELS, ("id", "at"), known_at=known_at)
    assert words in str(PointInTimeEngine.refusal(given_known))


def test_a_sum_that_does_not_fit_is_refused() -> None:
    table = random_table(Random(3)).slice(0, 1)
    rows = pa.concat_tables([table, table, table])
    changed = {"whole": [2**62, 2**62, None], TIME: [1, 1, 2], IS_LABEL: [False, False, True], "key": ["a", "a", "a"]}
    for name, values in changed.items():
        rows = rows.set_column(rows.column_names.index(name), name, pa.array(values, rows[name].type))
    with pytest.raises(AggregateOverflowError):
        PointInTimeEngine(program_of([sum("whole")], True, False)).run(MemoryBlobStore(), [rows], Clock(MIN, 0))


@pytest.mark.parametrize("engine", [PointInTimeEngine, PointInTimeReferenceEngine])
def test_a_row_without_a_time_is_refused(engine: Any) -> None:
    table = random_table(Random(3)).slice(0, 1)
    table = table.set_column(table.column_names.index(TIME), TIME, pa.array([None], pa.int64()))
    with pytest.raises(MissingEventTimeError):
        engine(program_of([count()], True, False)).run(MemoryBlobStore(), [table], Clock(MIN, 0))
