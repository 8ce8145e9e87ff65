"""Rows of a batch are in the order that DuckDB gives them, then in that of their arrival."""

from __future__ import annotations

import duckdb
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from windowpane.engines.common.arrival import arrival_order
from windowpane.hidden_columns import PARTITION, POSITION
from windowpane.windowing.over.spec import OrderColumn

order_columns = st.builds(OrderColumn, st.sampled_from(["x", "n"]), st.booleans(), nulls_first=st.booleans())
orders = st.lists(order_columns, max_size=2, unique_by=lambda order: order.name)
rows = st.tuples(st.sampled_from([1.5, -2.0, float("nan"), None]), st.one_of(st.none(), st.integers(0, 2)), st.integers(0, 1))


@given(st.lists(rows, max_size=12), orders)
def test_rows_stand_as_asked_then_as_they_arrived(rows, order_by):
    columns = {"x": pa.float64(), "n": pa.int64(), PARTITION: pa.int64()}
    arrays = {name: pa.array([row[number] for row in rows], kind) for number, (name, kind) in enumerate(columns.items())}
    table = pa.table({**arrays, POSITION: pa.array(range(len(rows)), pa.int64())})
    asked = [str(column) for column in order_by]
    text = f'SELECT {POSITION} FROM "table" ORDER BY {", ".join([*asked, PARTITION, POSITION])}'
    with duckdb.connect() as oracle:
        expected = oracle.execute(text).fetchall()
    assert arrival_order(table, order_by).to_pylist() == [number for (number,) in expected]
