"""Functions on Arrow tables and pandas DataFrames on Spark: state and the way before the shuffle carry what they make."""

from __future__ import annotations

import pyarrow as pa
import pytest

import windowpane as wp
from tests.spark.helpers import Feed, rows, run, table

pytestmark = pytest.mark.spark

TEN = wp.TumblingEventTimeWindows.of("10 seconds")
PANE = ["k", "window_start", "window_end"]


class Totals(wp.ArrowAggregateFunction):
    """The sum of v, and the number of rows."""

    def partial(self, rows):
        return self.merge(pa.table({wp.GROUP: rows[wp.GROUP], "v": rows["v"], "n": pa.array([1] * rows.num_rows)}))

    def merge(self, partials):
        return partials.group_by(wp.GROUP).aggregate([("v", "sum"), ("n", "sum")]).rename_columns([wp.GROUP, "v", "n"])

    def finish(self, partials):
        return partials


def placed(frame):
    """Return v with the place of its row in its key and window."""
    return frame[[*PANE, "v"]].assign(place=frame.groupby(PANE).cumcount())


def summed(rows):
    """Return the sum of v of each key and window."""
    return rows.group_by(PANE).aggregate([("v", "sum")]).rename_columns([*PANE, "total"])


@pytest.mark.slow
def test_an_arrow_aggregate_lives_over_batches_and_a_restart(spark, tmp_path):
    feed = Feed(tmp_path / "in").add([("a", 1, 1), ("b", 2, 50)], [("a", 3, 2), ("a", 11, 4)])
    result = wp.stream(feed.stream(spark), "t", watermark=0).key_by("k").window(TEN).aggregate(Totals(), schema="v long, n long")
    assert "combiner        on" in result.explain()
    first = run(result, checkpoint=tmp_path / "checkpoint")
    feed.add([("a", 40, 8)])
    second = run(result, checkpoint=tmp_path / "checkpoint")
    assert sorted([*first.rows(), *second.rows()]) == [("a", 0, 10, 3, 2), ("a", 10, 20, 4, 1), ("b", 0, 10, 50, 1)]


@pytest.mark.parametrize("engine", ["slices", "reference"])
def test_whole_windows_are_applied_in_arrow_and_in_pandas(spark, engine):
    events = table(spark, [("a", 1, 7), ("b", 2, 50), ("a", 3, 2), ("a", 11, 4)])
    windowed = wp.stream(events, "t").key_by("k").window(TEN).engine(engine)
    in_pandas, in_arrow = windowed.apply_in_pandas(placed, "v long, place int"), windowed.apply_in_arrow(summed, "total long")
    assert rows(in_pandas.df) == [("a", 0, 10, 2, 1), ("a", 0, 10, 7, 0), ("a", 10, 20, 4, 0), ("b", 0, 10, 50, 0)]
    assert rows(in_arrow.df) == [("a", 0, 10, 9), ("a", 10, 20, 4), ("b", 0, 10, 50)]
