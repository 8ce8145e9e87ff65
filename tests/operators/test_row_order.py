"""The order of rows in a partition: ORDER BY with its directions and NULLs, then the key."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

import windowpane as wp
from windowpane.operators.over.row_order import RowOrder
from windowpane.windowing.over.spec import OrderColumn, OverCall, OverSpec
from windowpane.windowing.over.types import BEYOND

NAN = float("nan")


def order_of(kind: pa.DataType, descending: bool = False, nulls_first: bool = False, key: tuple[str, ...] = ("id",)) -> RowOrder:
    columns = pa.schema([("v", kind), ("id", pa.int64()), ("name", pa.string())])
    spec = OverSpec((), (OrderColumn("v", descending, nulls_first=nulls_first),), key, (OverCall("row_number"),))
    return RowOrder(spec, columns)


def in_order(order: RowOrder, rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    named = [dict(zip(("v", "id", "name"), (*row, None, None), strict=False)) for row in rows]
    return [tuple(row.values()) for row in sorted(named, key=order.position)]


@pytest.mark.parametrize(
    ("descending", "nulls_first", "expected"),
    [
        (False, False, [-1.0, 0.5, float("inf"), "NaN", None]),
        (False, True, [None, -1.0, 0.5, float("inf"), "NaN"]),
        (True, True, [None, "NaN", float("inf"), 0.5, -1.0]),
        (True, False, ["NaN", float("inf"), 0.5, -1.0, None]),
    ],
)
def test_nan_is_the_largest_and_null_stands_where_it_is_put(descending: bool, nulls_first: bool, expected: list[Any]) -> None:
    rows = [(NAN, 1), (None, 2), (0.5, 3), (-1.0, 4), (float("inf"), 5)]
    values = [row[0] for row in in_order(order_of(pa.float64(), descending, nulls_first), rows)]

    assert ["NaN" if value is not None and value != value else value for value in values] == expected


def test_the_key_breaks_ties_ascending_whatever_the_direction() -> None:
    rows = [(1, 3), (1, 1), (2, 2)]

    assert [row[1] for row in in_order(order_of(pa.int64()), rows)] == [1, 3, 2]
    assert [row[1] for row in in_order(order_of(pa.int64(), descending=True), rows)] == [2, 1, 3]


def test_a_key_of_several_columns_with_null_as_the_largest() -> None:
    rows = [(1, 1, None), (1, 1, "b"), (1, 0, "z"), (1, 1, "a")]

    assert in_order(order_of(pa.int64(), key=("id", "name")), rows) == [(1, 0, "z"), (1, 1, "a"), (1, 1, "b"), (1, 1, None)]


@pytest.mark.parametrize("descending", [False, True])
def test_peers(descending: bool) -> None:
    order = order_of(pa.float64(), descending)

    assert order.order_key({"v": 0.0}) == order.order_key({"v": -0.0})
    assert order.order_key({"v": NAN}) == order.order_key({"v": NAN})
    assert order.order_key({"v": None}) != order.order_key({"v": 0.0})


@pytest.mark.parametrize("descending", [False, True])
def test_beyond_stands_between_the_values_and_null(descending: bool) -> None:
    order = order_of(pa.float64(), descending)
    values = [order.order_key({"v": value}) for value in (float("inf"), float("-inf"))]
    null = order.order_key({"v": None})

    assert all(order.key_of(BEYOND, forward=False) < value < order.key_of(BEYOND, forward=True) for value in values)
    assert order.key_of(BEYOND) < null


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("value", [None, 1.5, float("inf")])
def test_an_order_key_gives_its_value_back(descending: bool, value: float | None) -> None:
    order = order_of(pa.float64(), descending)

    assert order.value_of(order.key_of(value)) == value


def test_positions_are_the_same_after_pickling() -> None:
    order = order_of(pa.float64(), descending=True)
    positions = [order.position({"v": value, "id": 1}) for value in (NAN, None, 2.0)]

    assert pickle.loads(pickle.dumps(positions)) == positions


def test_instants_of_a_zone_are_in_order_of_time_also_in_the_hour_that_autumn_repeats() -> None:
    kind = pa.timestamp("us", "America/New_York")
    first = datetime(2024, 11, 3, 5, 30, tzinfo=UTC)  # 01:30-04:00, then 01:10-05:00
    values = pa.array([first + timedelta(minutes=40), first, first + timedelta(hours=2)], kind).to_pylist()
    order = order_of(kind)
    found = in_order(order, [(value, at) for at, value in enumerate(values)])
    assert [row[1] for row in found] == [1, 0, 2]
    assert order.value_of(order.order_key({"v": values[0]})) is not None
    assert pa.array([order.value_of(order.order_key({"v": value})) for value in values], kind).to_pylist() == values
    least = wp.min("v").bind([kind])
    accumulator = least.create_accumulator()
    for value in values:
        accumulator = least.add(accumulator, value)
    assert pa.scalar(least.get_result(accumulator), kind) == pa.scalar(first, kind)
