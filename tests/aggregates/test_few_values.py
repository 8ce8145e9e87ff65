"""first_n, last_n and top_n, by rows and by columns: values by hand."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest

from windowpane import aggregates as agg
from windowpane.errors import AggregateTypeError, InvalidSpecError
from windowpane.windowing.aggregates import Aggregate


def of_rows(aggregate: Aggregate, types: list[pa.DataType], left: list[Any], right: list[Any]) -> Any:
    """Return the result of two parts of the rows, merged."""
    bound = aggregate.bind(types)
    parts = []
    for rows in (left, right):
        accumulator = bound.create_accumulator()
        for row in rows:
            accumulator = bound.add(accumulator, *row)
        parts.append(accumulator)
    return bound.get_result(bound.merge(*parts))


@pytest.mark.parametrize(
    ("aggregate", "expected"),
    [
        (agg.first_n("v", 2), [3, 1]),
        (agg.first_n("v", 9), [3, 1, 3, 2]),
        (agg.last_n("v", 2), [3, 2]),
        (agg.last_n("v", 9), [3, 1, 3, 2]),
    ],
)
def test_by_arrival_without_nulls(aggregate: Aggregate, expected: list[int]) -> None:
    assert of_rows(aggregate, [pa.int64()], [(3,), (None,), (1,)], [(3,), (2,), (None,)]) == expected
    assert of_rows(aggregate, [pa.int64()], [], [(3,), (1,), (3,), (2,)]) == expected
    assert of_rows(aggregate, [pa.int64()], [(None,)], []) == []


def test_the_largest_first_and_of_ties_the_one_that_arrived_first() -> None:
    types = [pa.string(), pa.float64()]
    left = [("a", 1.0), ("b", 2.0), ("c", None), (None, 9.0)]
    right = [("d", 2.0), ("e", math.nan), ("f", 1.0)]
    assert of_rows(agg.top_n("v", 4, by="b"), types, left, right) == ["e", "b", "d", "a"]
    assert of_rows(agg.top_n("v", 3, by="b", ascending=True), types, left, right) == ["a", "f", "b"]


@pytest.mark.parametrize("n", [0, -1, True, 1.5, "2"])
def test_n_is_a_number_of_values(n: Any) -> None:
    with pytest.raises(InvalidSpecError, match="at least 1"):
        agg.top_n("v", n)


def test_maps_have_no_top() -> None:
    with pytest.raises(AggregateTypeError, match="maps have none"):
        agg.top_n("v", 2).bind([pa.map_(pa.string(), pa.int64())] * 2)
