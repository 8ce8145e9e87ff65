"""Arrow functions of the user's as columnar aggregates: rows are given by group, and parts merge to what all rows give."""

from __future__ import annotations

from itertools import pairwise

import pyarrow as pa
import pytest

import windowpane as wp
from windowpane.aggregates.user_code import KeptRows, UserAggregate
from windowpane.hidden_columns import ARRIVAL
from windowpane.kernels.grouping.grouped_fold import GroupedFold

ROWS = pa.table(
    {
        "k": ["a", "b", "a", "c", "b", "a"],
        "v": pa.array([1, 2, None, 8, 16, 32], pa.int64()),
        "w": ["x", "y", "x", "z", None, "y"],
        ARRIVAL: pa.array([3, 0, 1, 2, 5, 4], pa.int64()),
    }
)
CUTS = [(0, 6), (0, 1, 6), (0, 2, 4, 6), tuple(range(7))]
RESULT = pa.schema([("total", pa.int64()), ("largest", pa.int64())])


class Extent(wp.ArrowAggregateFunction):
    """The sum and the largest of ``v``."""

    def partial(self, rows: pa.Table) -> pa.Table:
        return _aggregated(rows.select([wp.GROUP]).append_column("total", rows["v"]).append_column("largest", rows["v"]))

    def merge(self, partials: pa.Table) -> pa.Table:
        return _aggregated(partials)

    def finish(self, partials: pa.Table) -> pa.Table:
        return partials


def _aggregated(rows: pa.Table) -> pa.Table:
    return rows.group_by(wp.GROUP).aggregate([("total", "sum"), ("largest", "max")]).rename_columns([wp.GROUP, *RESULT.names])


@pytest.mark.parametrize("cuts", CUTS)
def test_parts_merge_to_what_all_rows_give(cuts: tuple[int, ...]) -> None:
    form = UserAggregate("p_", ("v",), Extent(), RESULT)
    fold = GroupedFold((form,))
    parts = [fold.fold(ROWS.slice(start, end - start), ["k"]) for start, end in pairwise(cuts)]
    merged = fold.merge(parts, ["k"])
    columns = [merged["k"], *form.results(merged)]
    found = sorted(zip(*(column.to_pylist() for column in columns), strict=True))
    assert found == [("a", 33, 32), ("b", 18, 16), ("c", 8, 8)]


@pytest.mark.parametrize("cuts", CUTS)
def test_rows_are_kept_in_order_of_arrival(cuts: tuple[int, ...]) -> None:
    fold = GroupedFold((KeptRows("p_", ("v", "w")),))
    parts = [fold.fold(ROWS.slice(start, end - start), ["k"]) for start, end in pairwise(cuts)]
    merged = fold.merge(parts[::-1], ["k"])
    kept = dict(zip(merged["k"].to_pylist(), fold.finish(merged)[0].to_pylist(), strict=True))
    assert kept == {
        "a": [{"v": None, "w": "x"}, {"v": 1, "w": "x"}, {"v": 32, "w": "y"}],
        "b": [{"v": 2, "w": "y"}, {"v": 16, "w": None}],
        "c": [{"v": 8, "w": "z"}],
    }
