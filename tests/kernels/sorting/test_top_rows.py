"""Top rows beside a loop over all rows; NULL, NaN and ties by hand."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowpane.kernels.sorting.column_order import TopRows, sort_keys, sorted_by
from windowpane.windowing.over.spec import OrderColumn

NAN = math.nan
LARGEST = OrderColumn("v", descending=True, nulls_first=False)
SMALLEST = OrderColumn("v", nulls_first=True)


INTEGERS = pa.int64()


def table(rows: list[tuple[Any, Any, Any]], kind: pa.DataType = INTEGERS) -> pa.Table:
    schema = pa.schema([pa.field("g", pa.int64()), pa.field("k", pa.string()), pa.field("v", kind)])
    return pa.table([pa.array([row[i] for row in rows], schema.types[i]) for i in range(3)], schema=schema)


def top(count: int, order: OrderColumn, rows: pa.Table, newest: bool = False) -> list[tuple[Any, ...]]:
    found, ranks = TopRows(count, order, ("g",), ("k",), newest).of(rows)
    return [(row["g"], rank, row["k"], row["v"]) for row, rank in zip(found.to_pylist(), ranks.tolist(), strict=True)]


def test_ties_are_broken_by_the_identity() -> None:
    rows = table([(1, "c", 5), (1, "a", 5), (1, "b", 7), (2, "z", 1)])
    assert top(2, LARGEST, rows) == [(1, 1, "b", 7), (1, 2, "a", 5), (2, 1, "z", 1)]


@pytest.mark.parametrize(
    ("order", "expected"),
    [(LARGEST, ["nan", "2.0", "1.0", "None"]), (SMALLEST, ["None", "1.0", "2.0", "nan"])],
    ids=["largest", "smallest"],
)
def test_null_and_nan_stand_where_spark_puts_them(order: OrderColumn, expected: list[str]) -> None:
    rows = table([(1, "a", 1.0), (1, "b", None), (1, "c", NAN), (1, "d", 2.0)], pa.float64())
    assert [str(row[3]) for row in top(4, order, rows)] == expected


def test_only_the_newest_version_of_a_row_counts() -> None:
    rows = table([(1, "a", 9), (1, "b", 5), (1, "a", 1), (2, "a", 3)])
    assert top(1, LARGEST, rows, newest=True) == [(1, 1, "b", 5), (2, 1, "a", 3)]


def test_no_rows() -> None:
    assert top(3, LARGEST, table([]), newest=True) == []


def test_a_null_is_an_ordinary_group() -> None:
    assert top(1, SMALLEST, table([(None, "a", 2), (None, "b", 1), (0, "c", 9)])) == [(None, 1, "b", 1), (0, 1, "c", 9)]


rows_of_three = st.lists(st.tuples(st.integers(0, 3), st.sampled_from("abcd"), st.none() | st.integers(-2, 2)), max_size=20)


@given(rows_of_three, st.integers(1, 4), st.booleans(), st.booleans())
def test_beside_a_loop(rows: list[tuple[int, str, int | None]], count: int, descending: bool, newest: bool) -> None:
    order = LARGEST if descending else SMALLEST
    expected: list[tuple[Any, ...]] = []
    for group in range(4):
        members = [row for row in rows if row[0] == group]
        members = list({row[1]: row for row in members}.values()) if newest else members
        sign = -1 if descending else 1

        def place(row: tuple[int, str, int | None], sign: int = sign) -> tuple[Any, ...]:
            # NULL is below every number, which is first ascending and last descending.
            return ((row[2] is not None) * sign, sign * (row[2] or 0), row[1])

        ranked = enumerate(sorted(members, key=place)[:count], start=1)
        expected += [(group, rank, row[1], row[2]) for rank, row in ranked]
    assert sorted(top(count, order, table(rows), newest)) == sorted(expected) if rows else not top(count, order, table(rows))


def test_rows_that_tie_stay_in_their_order() -> None:
    values = pa.chunked_array([[2, 1], [2, 1]])
    assert sorted_by(sort_keys(values, SMALLEST)).to_pylist() == [1, 3, 0, 2]
