"""Calls that DuckDB cannot be asked for: aggregates that approximate, and the mode."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from windowpane import aggregates as agg
from windowpane.operators.over.functions import evaluator
from windowpane.operators.over.row_order import RowOrder
from windowpane.operators.over.sorted_partition import SortedPartition
from windowpane.windowing.aggregates import Aggregate
from windowpane.windowing.frames import Frame, following, preceding
from windowpane.windowing.over.spec import OrderColumn, OverCall, OverSpec

COLUMNS = pa.schema([("id", pa.int64()), ("x", pa.int64())])
ROWS = [{"id": number, "x": x} for number, x in enumerate([4, 4, 9, None, 9, 9, 1])]


@pytest.mark.parametrize(
    ("aggregate", "expected"),
    [
        (agg.mode("x"), [4, 4, 4, 9, 9, 9, 1]),
        (agg.approx_count_distinct("x"), [1, 2, 2, 1, 1, 2, 2]),
        (agg.approx_quantile("x", 0.0), [4, 4, 4, 9, 9, 1, 1]),
    ],
)
def test_over_three_rows(aggregate: Aggregate, expected: list[Any]) -> None:
    frame = Frame.rows(preceding(1), following(1))
    spec = OverSpec((), (OrderColumn("id", nulls_first=False),), ("id",), (OverCall.of(aggregate, frame),))
    partition = SortedPartition(ROWS, RowOrder(spec, COLUMNS))
    evaluate = evaluator(spec.calls[0], COLUMNS)

    assert [evaluate(partition, index) for index in range(len(ROWS))] == expected
