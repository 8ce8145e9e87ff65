"""The top rows of each window: over all keys, per column, refined by late rows, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as F

import windowpane as wp
from tests.spark.helpers import Feed, rows, run, table
from windowpane.errors import InvalidSpecError, UnknownColumnError

pytestmark = pytest.mark.spark

SALES = "region string, k string, t timestamp, v long"
TEN = wp.TumblingEventTimeWindows.of("10 seconds")
SLIDING = wp.SlidingEventTimeWindows.of("20 seconds", "10 seconds")
EVENTS: list[tuple[Any, ...]] = [
    ("n", "a", 1, 5),
    ("n", "b", 2, 7),
    ("s", "c", 3, 7),
    ("s", "d", 4, None),
    ("n", "a", 12, 1),
    ("s", "d", 13, 9),
]


def totals(source: Any, assigner: wp.WindowAssigner = TEN) -> wp.Result:
    return wp.stream(source, event_time="t").key_by("region", "k").window(assigner).aggregate(total=wp.sum("v"))


def test_top_of_each_window_over_all_keys(spark: Any) -> None:
    top = totals(table(spark, EVENTS, SALES)).top(2, by="total")
    assert top.df.columns == ["window_start", "window_end", "region", "k", "total", "rank"]
    assert rows(top.df) == [
        (0, 10, "n", "b", 7, 1),
        (0, 10, "s", "c", 7, 2),
        (10, 20, "n", "a", 1, 2),
        (10, 20, "s", "d", 9, 1),
    ]


@pytest.mark.slow
def test_top_per_column_smallest_first(spark: Any) -> None:
    top = totals(table(spark, EVENTS, SALES)).top(1, by="total", per="region", ascending=True)
    assert top.df.columns == ["region", "window_start", "window_end", "k", "total", "rank"]
    assert rows(top.df) == [
        ("n", 0, 10, "a", 5, 1),
        ("n", 10, 20, "a", 1, 1),
        ("s", 0, 10, "d", None, 1),
        ("s", 10, 20, "d", 9, 1),
    ]


@pytest.mark.slow
def test_overlapping_windows_have_tops_of_their_own(spark: Any) -> None:
    top = totals(table(spark, EVENTS, SALES), SLIDING).top(1, by="total")
    assert rows(top.df) == [(-10, 10, "n", "b", 7, 1), (0, 20, "s", "d", 9, 1), (10, 30, "s", "d", 9, 1)]


@pytest.mark.slow
def test_a_late_row_refines_the_whole_top(spark: Any, tmp_path: Path) -> None:
    beat: list[tuple[Any, ...]] = [("n", "z", 25, 0)]
    batches = [EVENTS[:3], beat, beat, [("n", "a", 5, 4)], [("n", "z", 99, 0)], [("n", "z", 200, 0)]]
    df = Feed(tmp_path / "in", SALES).add(*batches).stream(spark)
    hourly = wp.stream(df, event_time="t", watermark="0 seconds").key_by("region", "k").window(TEN)
    top = hourly.allowed_lateness("1 minute").aggregate(total=wp.sum("v")).top(2, by="total")
    assert "top 2 results of each window by total DESC NULLS LAST" in top.explain()
    collected = run(top).batches["main"]
    by_batch: dict[int, list[Any]] = {}
    for number, row in collected:
        by_batch.setdefault(number, []).append(row)
    first = [found for found in by_batch.values() if found[0][:2] == (0, 10)]
    assert [sorted(found, key=lambda row: row[-1]) for found in first] == [
        [(0, 10, "n", "b", 7, 1), (0, 10, "s", "c", 7, 2)],
        [(0, 10, "n", "a", 9, 1), (0, 10, "n", "b", 7, 2)],
    ]


def test_what_is_refused(spark: Any) -> None:
    sales = table(spark, EVENTS, SALES)
    keyed = wp.stream(sales, event_time="t").key_by("region", "k")
    counted = {"total": wp.sum("v")}
    with pytest.raises(UnknownColumnError, match="totl"):
        totals(sales).top(2, by="totl")
    with pytest.raises(InvalidSpecError, match="at least 1"):
        totals(sales).top(0, by="total")
    with pytest.raises(InvalidSpecError, match="name of a column"):
        totals(sales).top(2, by=wp.col("total"))  # type: ignore[arg-type]
    with pytest.raises(InvalidSpecError, match="sessions of its own"):
        keyed.window(wp.EventTimeSessionWindows.with_gap("5 seconds")).aggregate(**counted).top(1, by="total")
    with pytest.raises(InvalidSpecError, match="by event time"):
        keyed.count_window(2).aggregate(**counted).top(1, by="total")
    with pytest.raises(InvalidSpecError, match="another name"):
        keyed.window(TEN).aggregate(rank=wp.sum("v")).top(1, by="rank")
    purged = keyed.window(TEN).allowed_lateness("1 hour").accumulation("discarding")
    with pytest.raises(InvalidSpecError, match="accumulating"):
        purged.aggregate(**counted).top(1, by="total")
    processed = keyed.window(TEN).allowed_lateness("1 hour").apply(lambda key, window, rows: [{"n": 1}], "n int")
    with pytest.raises(InvalidSpecError, match="which result a later one replaces"):
        processed.top(1, by="n")
    timed = wp.ProcessingTimeoutTrigger.of(wp.PurgingTrigger.of(wp.CountTrigger.of(2)), "1 second")
    with pytest.raises(InvalidSpecError, match="accumulating"):
        keyed.window(TEN).trigger(timed).aggregate(**counted).top(1, by="total")
    refined = keyed.window(TEN).allowed_lateness("1 hour").aggregate(**counted)
    with pytest.raises(InvalidSpecError, match=r"put others under the names \['k'\]"):
        refined.select("region", "window_start", "window_end", "total", k=F.lit("all")).top(1, by="total")
    with pytest.raises(InvalidSpecError, match=r"put others under the names \['window_start'\]"):
        totals(sales).select("region", "k", "window_end", "total", window_start=wp.col("window_end")).top(1, by="total")
    kinds = keyed.window(TEN).allowed_lateness("1 hour").aggregate(kind=wp.last("v"), **counted)
    with pytest.raises(InvalidSpecError, match=r"per=\['kind'\]: these windows fire again"):
        kinds.top(1, by="total", per=("region", "kind"))
