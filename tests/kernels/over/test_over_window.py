"""The kernels of OVER windows against DuckDB, on random tables, frames and calls; and cut anywhere, against themselves whole."""

import random
import warnings
from operator import itemgetter

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from windowpane.kernels.over.sorting import key_sorting_codes, partition_numbers, sorting_codes
from windowpane.kernels.over.window import OverWindow
from windowpane.kernels.packed_order import lexical_order, stable_order
from windowpane.windowing.frames import (
    CURRENT_ROW,
    UNBOUNDED_FOLLOWING,
    UNBOUNDED_PRECEDING,
    Exclude,
    Frame,
    Units,
    following,
    preceding,
)
from windowpane.windowing.over.spec import OrderColumn, OverCall, OverSpec

SEEDS = range(12)
NUMBERS = ["count", "sum", "min", "max", "avg"]


def a_table(rng: random.Random) -> pa.Table:
    rows = rng.randint(0, 60)
    nullable = rng.random() < 0.5
    value = lambda top: None if nullable and rng.random() < 0.2 else rng.randint(-top, top)  # noqa: E731
    return pa.table(
        {
            "p": pa.array([rng.choice(["a", "b", None]) for _ in range(rows)], pa.string()),
            "o": pa.array([value(6) for _ in range(rows)], pa.int64()),
            "k": pa.array(rng.sample(range(1000), rows), pa.int64()),
            "v": pa.array([value(9) for _ in range(rows)], pa.int64()),
            "f": pa.array([None if rng.random() < 0.2 else rng.randint(-40, 40) / 4 for _ in range(rows)], pa.float64()),
            "b": pa.array([rng.choice([True, False, None]) for _ in range(rows)], pa.bool_()),
        }
    )


def a_frame(rng: random.Random) -> Frame:
    units = rng.choice([Units.ROWS, Units.RANGE, Units.GROUPS])
    some = lambda: rng.randint(0, 4)  # noqa: E731
    start = rng.choice([UNBOUNDED_PRECEDING, preceding(some()), CURRENT_ROW, following(some())])
    end = rng.choice([preceding(some()), CURRENT_ROW, following(some()), UNBOUNDED_FOLLOWING])
    if start.side.value > end.side.value:
        start = UNBOUNDED_PRECEDING
    # DuckDB can order ROWS frames by the key only if the key is in ORDER BY, and then no row has a tie.
    exclusions = [Exclude.NO_OTHERS, Exclude.CURRENT_ROW] if units is Units.ROWS else list(Exclude)
    return Frame(units, start, end, rng.choice(exclusions))


def a_call(rng: random.Random) -> OverCall:
    kind = rng.random()
    if kind < 0.2:
        return OverCall(rng.choice(["row_number", "rank", "dense_rank", "percent_rank", "cume_dist"]))
    if kind < 0.25:
        return OverCall("ntile", offset=rng.randint(1, 5))
    if kind < 0.4:
        return OverCall(rng.choice(["lag", "lead"]), ("v",), offset=rng.randint(0, 3), ignore_nulls=rng.random() < 0.3)
    frame = a_frame(rng)
    if kind < 0.6 and frame.units is Units.ROWS:
        function = rng.choice(["first_value", "last_value", "nth_value"])
        offset = rng.randint(1, 3) if function == "nth_value" else 1
        return OverCall(function, ("v",), frame, offset=offset, ignore_nulls=rng.random() < 0.4)
    filter = "b" if rng.random() < 0.3 else None
    function, argument = rng.choice([*NUMBERS, "bool_or"]), rng.choice(["v", "f"])
    return OverCall(function, ("b",) if function == "bool_or" else (argument,), frame, filter=filter)


def a_spec(rng: random.Random) -> OverSpec:
    order = OrderColumn("o", rng.random() < 0.5, nulls_first=rng.random() < 0.5)
    return OverSpec(("p",), (order,), ("k",), tuple(a_call(rng) for _ in range(3)))


def as_sql(call: OverCall, spec: OverSpec) -> str:
    arguments = list(call.arguments) or ([str(call.offset)] if call.function == "ntile" else [])
    if call.function in ("lag", "lead", "nth_value"):
        arguments.append(str(call.offset))
    function = f"{call.function}({', '.join(arguments)}{' ignore nulls' if call.ignore_nulls else ''})"
    function += f" filter (where {call.filter})" if call.filter else ""
    by_rows = call.frame.units is Units.ROWS if call.frame else call.function in ("row_number", "lag", "lead", "ntile")
    order = f"{spec.order_by[0]}{', k' if by_rows else ''}"
    text = f"{function} over (partition by p order by {order} {call.frame or ''})"
    return f"({text})::bigint" if call.function == "sum" and call.arguments == ("v",) else text


def in_order(table: pa.Table, spec: OverSpec) -> tuple[pa.Table, np.ndarray]:
    numbers = partition_numbers([table["p"].combine_chunks()], table.num_rows)
    column = spec.order_by[0]
    ordered = sorting_codes(table[column.name].combine_chunks(), column)
    order = lexical_order([*ordered, *key_sorting_codes(table["k"].combine_chunks())])
    order = order[stable_order(numbers[order])]
    return table.take(pa.array(order)).combine_chunks(), numbers[order]


def by_key(table: pa.Table, outputs: list[pa.Array]) -> list[tuple]:
    return sorted(zip(table["k"].to_pylist(), *[column.to_pylist() for column in outputs], strict=True), key=itemgetter(0))


@pytest.mark.parametrize("seed", SEEDS)
def test_every_call_is_what_duckdb_says(seed: int) -> None:
    rng, connection = random.Random(seed), duckdb.connect(config={"threads": 1})
    for _ in range(20):
        table, spec = a_table(rng), a_spec(rng)
        rows, numbers = in_order(table, spec)
        starts = np.append(True, numbers[1:] != numbers[:-1])[: len(numbers)]
        window = OverWindow(spec, table.schema)
        values = window.values(window.rows(rows, starts, np.zeros(int(starts.sum()), np.bool_)))
        connection.register("t", table)
        for call, output in zip(spec.calls, values.outputs, strict=True):  # several in one query disturb each other's EXCLUDE
            wanted = connection.execute(f"select k, {as_sql(call, spec)} from t order by k").fetchall()
            assert by_key(rows, [output]) == wanted, f"seed {seed}: {call} in {spec}"


@pytest.mark.parametrize("seed", SEEDS)
def test_running_calls_go_on_from_the_carry_columns_of_any_row(seed: int) -> None:
    rng = random.Random(1000 + seed)
    for _ in range(20):
        table, spec = a_table(rng), a_spec(rng)
        rows, numbers = in_order(table, spec)
        starts = np.append(True, numbers[1:] != numbers[:-1])[: len(numbers)]
        window = OverWindow(spec, table.schema)
        running = [number for number, call in enumerate(window.calls) if call.is_running]
        whole = window.values(window.rows(rows, starts, np.zeros(int(starts.sum()), np.bool_)))
        cut = rng.randint(0, len(numbers))
        tail = rows
        for field, column in zip(window.carries, whole.carries, strict=True):
            tail = tail.append_column(field, column)
        tail = tail.slice(cut).combine_chunks()
        tail_starts = starts[cut:].copy()
        seeded = ~tail_starts[:1]
        tail_starts[:1] = True
        seeded = np.append(seeded, np.zeros(max(int(tail_starts.sum()) - 1, 0), np.bool_))
        prepared = window.rows(tail, tail_starts, seeded)
        again = window.values(prepared)
        for number in running:
            known = ~window.calls[number].reaches_first(prepared) | np.repeat(~seeded, _lengths(tail_starts))
            got = pa.array(again.outputs[number]).filter(pa.array(known))
            assert got.equals(whole.outputs[number].slice(cut).filter(pa.array(known))), f"seed {seed}: {spec}"


def _lengths(starts: np.ndarray) -> np.ndarray:
    firsts = np.flatnonzero(starts)
    return np.diff(np.append(firsts, len(starts)))


def test_opposite_infinities_make_nan_without_a_word() -> None:
    infinite, frame = float("inf"), Frame.rows(preceding(1), CURRENT_ROW)
    calls = tuple(OverCall(function, ("f",), frame) for function in ("sum", "avg", "stddev_pop"))
    columns = pa.schema([("k", pa.int64()), ("f", pa.float64())])
    window = OverWindow(OverSpec((), (OrderColumn("k", nulls_first=False),), ("k",), calls), columns)
    table = pa.table([pa.array([1, 2, 3]), pa.array([infinite, -infinite, 1.0])], schema=columns)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        values = window.values(window.rows(table, np.array([True, False, False]), np.zeros(1, np.bool_)))
    shown = [[repr(value) for value in column.to_pylist()] for column in values.outputs]
    assert shown == [["inf", "nan", "-inf"], ["inf", "nan", "-inf"], ["nan", "nan", "nan"]]


@pytest.mark.parametrize(
    ("frame", "expected"),
    [
        (Frame.range_(UNBOUNDED_PRECEDING, preceding(1)), [0, 0, 2, 3, 4]),
        (Frame.range_(following(1), UNBOUNDED_FOLLOWING), [3, 3, 2, 1, 0]),
        (Frame.range_(preceding(1), following(1)), [3, 3, 3, 2, 2]),
        (Frame.session(2), [3, 3, 3, 2, 2]),
    ],
    ids=str,
)
def test_nothing_is_beyond_the_ends_of_an_integer_type(frame: Frame, expected: list[int]) -> None:
    columns = pa.schema([("k", pa.int64()), ("o", pa.int64())])
    window = OverWindow(
        OverSpec((), (OrderColumn("o", nulls_first=False),), ("k",), (OverCall("count", ("k",), frame),)), columns
    )
    values = [-(2**63), -(2**63), -(2**63) + 1, 2**63 - 2, 2**63 - 1]
    table = pa.table([pa.array(range(5)), pa.array(values)], schema=columns)
    [counts] = window.values(window.rows(table, np.arange(5) == 0, np.zeros(1, np.bool_))).outputs
    assert counts.to_pylist() == expected
