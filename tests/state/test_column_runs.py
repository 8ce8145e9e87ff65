"""Runs of rows by column give the rows that Arrow does."""

from __future__ import annotations

import datetime as dt
import pickle
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowpane.state.column_runs import BatchColumns
from windowpane.windowing.times import MAX, MIN

_BERLIN = pa.timestamp("us", "Europe/Berlin")
_VALUES: dict[pa.DataType, list[Any]] = {
    pa.int64(): [0, 1, 300, -5, MIN, MAX],
    pa.int8(): [0, 127, -128],
    pa.float64(): [0.0, -0.0, 1.5, float("inf"), float("nan")],
    pa.float32(): [0.0, 0.1],
    pa.bool_(): [True, False],
    pa.string(): ["", "a", "b" * 300, "ü"],
    pa.large_string(): ["", "a"],
    pa.binary(): [b"", b"\x00\xff"],
    pa.date32(): [dt.date(1970, 1, 1), dt.date.min, dt.date.max],
    pa.timestamp("us"): [dt.datetime(1970, 1, 1), dt.datetime.min, dt.datetime.max],
    pa.timestamp("us", "UTC"): [dt.datetime(2023, 10, 29, hour, 30, tzinfo=dt.UTC) for hour in range(3)],
    _BERLIN: [dt.datetime(2023, 10, 29, hour, 30, tzinfo=dt.UTC) for hour in range(3)],
    pa.timestamp("us", "+02:00"): [dt.datetime(2023, 10, 29, tzinfo=dt.UTC)],
    pa.decimal128(38, 9): [Decimal("0.000000001"), Decimal("-12.5"), Decimal(0)],
    pa.list_(pa.int64()): [[], [1, 2], [3]],
    pa.struct([("x", pa.int64()), ("t", _BERLIN)]): [{"x": 1, "t": dt.datetime(2024, 1, 1, tzinfo=dt.UTC)}],
    pa.map_(pa.string(), pa.int64()): [[("a", 1)], []],
    pa.null(): [None],
}


@st.composite
def _tables(draw: st.DrawFn) -> tuple[pa.Table, list[int], list[int]]:
    """Draw rows, their order in runs, and where runs begin."""
    count = draw(st.integers(1, 8))
    kinds = draw(st.lists(st.sampled_from(list(_VALUES)), min_size=1, max_size=4))
    columns = []
    for kind in kinds:
        value = st.sampled_from(_VALUES[kind])
        values = draw(
            st.lists(value, min_size=count, max_size=count) | st.lists(value | st.none(), min_size=count, max_size=count)
        )
        columns.append(pa.chunked_array([pa.array(values[:2], kind), pa.array(values[2:], kind)]))
    order = draw(st.lists(st.integers(0, count - 1), min_size=1, max_size=12))
    starts = sorted({0, *draw(st.lists(st.integers(0, len(order) - 1), max_size=3))})
    return pa.table(columns, names=[f"c{number}" for number in range(len(kinds))]), order, starts


def _as_text(rows: list[dict[str, Any]]) -> str:
    return repr([[(name, value, getattr(value, "fold", None)) for name, value in row.items()] for row in rows])


@given(_tables())
def test_rows_are_those_of_arrow(drawn: tuple[pa.Table, list[int], list[int]]) -> None:
    rows, order, starts = drawn
    times = np.arange(rows.num_rows) * 10**12
    columns = BatchColumns(rows, np.array(order), np.array(starts), times)
    for start, end in zip(starts, [*starts[1:], len(order)], strict=True):
        run = pickle.loads(pickle.dumps(columns.run(start, end), protocol=5))
        assert _as_text(run.values) == _as_text(rows.take(pa.array(order[start:end])).to_pylist())
        assert run.timestamps == times[order[start:end]].tolist()


def test_rows_are_made_anew_whenever_they_are_read() -> None:
    rows = pa.table({"tags": pa.array([["a"]]), "n": pa.array([1])})
    run = pickle.loads(pickle.dumps(BatchColumns(rows, np.array([0]), np.array([0]), None).run(0, 1)))
    run.values[0]["n"] = 2
    assert run.values == [{"tags": ["a"], "n": 1}]


def test_rows_without_columns_are_counted() -> None:
    columns = BatchColumns(pa.table({"n": [1, 2]}).select([]), np.array([0, 1]), np.array([0]), None)
    assert columns.run(0, 2).values == [{}, {}]


def test_a_value_that_python_has_no_type_for_is_an_error() -> None:
    rows = pa.table({"t": pa.array([MAX]).cast(pa.timestamp("us"))})
    with pytest.raises((OverflowError, ValueError)):
        BatchColumns(rows, np.array([0]), np.array([0]), None)
