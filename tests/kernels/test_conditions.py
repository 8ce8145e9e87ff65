"""Conditions on columns: Spark's meaning of operators, NULL and types."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import windowpane as wp
from windowpane.errors import ConditionError
from windowpane.kernels.conditions import holds
from windowpane.windowing.expressions import Constant


def column(expression: Any) -> pa.ChunkedArray:
    return ROWS[expression.name]


ROWS = pa.table(
    {
        "a": pa.array([7, -7, None, 0], pa.int64()),
        "b": pa.array([2, 2, 2, 0], pa.int32()),
        "x": [0.5, float("nan"), None, 1.0],
        "m": pa.array([Decimal("0.70"), None, None, Decimal("1.00")], pa.decimal128(38, 18)),
        "yes": [True, False, None, True],
        "s": ["u", "v", None, "u"],
        "t": pa.array([0, 1_000_000, 2_000_000, None], pa.timestamp("us", "UTC")),
    }
)
SECOND = dt.datetime(1970, 1, 1, 0, 0, 1, tzinfo=dt.UTC)


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (wp.col("a") > wp.col("b"), [1, 0, 0, 0]),
        (wp.col("a") / wp.col("b") == 3.5, [1, 0, 0, 0]),
        (wp.col("a") % wp.col("b") == -1, [0, 1, 0, 0]),
        (wp.col("a") % 2.5 == 2.0, [1, 0, 0, 0]),
        ((wp.col("a") % wp.col("b")).is_null(), [0, 0, 1, 1]),
        ((wp.col("a") / wp.col("b")).is_null(), [0, 0, 1, 1]),
        (wp.col("x") == wp.col("x"), [1, 1, 0, 1]),  # NaN is NaN, and the largest number
        (wp.col("x") > wp.col("a"), [0, 1, 0, 1]),
        (wp.col("a") < wp.col("x"), [0, 1, 0, 1]),
        (wp.col("x") <= 1.0, [1, 0, 0, 1]),
        (wp.col("x") > wp.col("m"), [0, 0, 0, 0]),  # NaN beside NULL is NULL
        (wp.col("m") == 0.7, [1, 0, 0, 0]),
        (wp.col("m") * wp.col("m") == Decimal("0.49"), [1, 0, 0, 0]),
        (wp.col("m") + wp.col("m") <= 2, [1, 0, 0, 1]),
        (wp.col("m") % 0.3 > Decimal("0.1"), [0, 0, 0, 1]),  # of doubles 0.09999999999999998 and 0.10000000000000003
        (wp.col("m") % Decimal("0.3") == Decimal("0.1"), [1, 0, 0, 1]),
        (wp.col("m") / wp.col("a") == Decimal("0.1"), [1, 0, 0, 0]),
        (wp.col("x").is_distinct_from(float("nan")), [1, 0, 1, 1]),
        (wp.col("yes") | wp.col("a").is_null(), [1, 0, 1, 1]),
        (~wp.col("yes"), [0, 1, 0, 0]),
        (wp.col("yes") & (wp.col("s") == "u"), [1, 0, 0, 1]),
        (wp.col("s") != "u", [0, 1, 0, 0]),
        (wp.col("s").is_distinct_from("u"), [0, 1, 1, 0]),
        (wp.col("a").is_distinct_from(None), [1, 1, 0, 1]),
        (wp.col("s") == None, [0, 0, 0, 0]),  # noqa: E711 (an expression)
        (wp.col("t") >= SECOND, [0, 1, 1, 0]),
        (wp.col("t") - wp.col("t") < dt.timedelta(1), [1, 1, 1, 0]),
        (-wp.col("a") + 1 == 8, [0, 1, 0, 0]),
        (wp.col("yes"), [1, 0, 0, 1]),
        (wp.col("yes").is_not_null() & True, [1, 1, 0, 1]),
    ],
    ids=str,
)
def test_a_condition_holds_where_it_is_true(condition, expected):
    assert holds(condition, column, 4).to_pylist() == [bool(each) for each in expected]
    assert holds(condition, lambda name: column(name).slice(0, 0), 0).to_pylist() == []


@pytest.mark.parametrize(("constant", "expected"), [(True, [True, True]), (False, [False, False])])
def test_a_constant_condition_holds_everywhere_or_nowhere(constant, expected):
    assert holds(Constant(constant), column, 2).to_pylist() == expected


@pytest.mark.parametrize(
    ("condition", "reason"),
    [
        (wp.col("a") + 1, "its type is int64"),
        (wp.col("s") < wp.col("t"), "the condition .* no kernel"),
        (wp.col("a") * 2**62 > 0, "overflow"),
        (wp.col("a") == 1j, "no constant"),
    ],
    ids=str,
)
def test_what_cannot_be_computed_is_refused(condition, reason):
    with pytest.raises(ConditionError, match=reason):
        holds(condition, column, 4)
