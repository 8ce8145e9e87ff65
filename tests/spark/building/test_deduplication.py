"""Deduplication on Spark: streams with restarts, tables kept from changelogs, windows behind it, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as F

import windowpane as wp
from tests.spark.helpers import Feed, failure, run, table
from windowpane.errors import InvalidSpecError, UnknownColumnError
from windowpane.sinks import apply_changes
from windowpane.stores import open_store

pytestmark = pytest.mark.spark


def keyed(df: Any) -> Any:
    return wp.stream(df, event_time="t", watermark="10 seconds").key_by("k")


def test_first_rows_over_a_restart_and_late_ones_on_the_side(spark: Any, tmp_path: Path) -> None:
    feed = Feed(tmp_path / "in").add([("a", 100, 1), ("a", 130, 2), (None, 100, 3)], [("a", 159, 4), ("b", 159, 5)])
    result = keyed(feed.stream(spark)).deduplicate(within="1 minute").side_output_late_data("late")
    first = run(result, "main", "late", checkpoint=tmp_path / "c")
    assert first.rows() == sorted([("a", 100, 1), (None, 100, 3), ("b", 159, 5)], key=repr)
    assert sum(first.counted("duplicates")) == 2
    feed.add([("a", 160, 6), ("b", 160, 7), ("c", 148, 8), ("c", 149, 9)])
    again = run(result, "main", "late", checkpoint=tmp_path / "c")
    assert again.rows() == [("a", 160, 6), ("c", 149, 9)]
    assert again.rows("late") == [("c", 148, 8, True)]
    assert sum(again.counted("late_dropped")) == 1


@pytest.mark.slow
def test_a_table_kept_from_last_rows(spark: Any, tmp_path: Path) -> None:
    feed = Feed(tmp_path / "in").add([("a", 100, 1), ("b", 100, 2)], [("a", 110, 3), ("b", 95, 4)], [("a", 170, 5)])
    store = str(tmp_path / "views.duckdb")
    changes = keyed(feed.stream(spark)).deduplicate(within="1 minute", keep="last").df
    query = apply_changes(
        changes, store, ["k", "t"], table="last", checkpoint=str(tmp_path / "c"), trigger={"availableNow": True}
    )
    query.awaitTermination()
    opened = open_store(store)
    assert sorted(opened.read("SELECT k, v FROM last")) == [("a", 3), ("a", 5), ("b", 2)]
    opened.close()


@pytest.mark.slow
def test_windows_behind_it_count_each_row_once(spark: Any, tmp_path: Path) -> None:
    rows = [("a", 1, 1), ("a", 2, 1), ("b", 3, 2), ("b", 61, 2)]
    feed = Feed(tmp_path / "in").add(rows, [("c", 200, 3)], [("c", 200, 3)], [("d", 400, 4)])
    unique = keyed(feed.stream(spark)).deduplicate(within="1 minute")
    counted = wp.stream(unique.df, event_time="t").window_all(wp.TumblingEventTimeWindows.of("1 minute")).aggregate(n=wp.count())
    assert [row[2] for row in sorted(run(counted).rows())][:2] == [2, 1]


def test_static_rows_by_an_order_and_by_a_computed_key(spark: Any) -> None:
    events = table(spark, [("a", 5, 1), ("A", 1, 2), ("b", None, 3)])
    stream = wp.stream(events.where("t is not null"), event_time="t").key_by(F.lower("k"), order_by="t")
    result = stream.deduplicate(within="1 hour")
    assert [row.v for row in result.df.collect()] == [2]
    assert "engine          deduplication: " in result.explain()
    assert "order           t" in result.explain()
    reference = result.engine("deduplication reference")
    assert [tuple(row) for row in reference.df.collect()] == [tuple(row) for row in result.df.collect()]
    clock = wp.stream(events).key_by("k").deduplicate(within="1 hour", keep="last", by="clock")
    assert sorted((row.v, row["_change_type"]) for row in clock.df.collect()) == [(1, "insert"), (2, "insert"), (3, "insert")]


def test_a_row_without_a_time_stops_the_query(spark: Any, tmp_path: Path) -> None:
    feed = Feed(tmp_path / "in").add([("a", None, 1)])
    assert "a row of key 'a' has no event time, and deduplication goes by it" in failure(
        keyed(feed.stream(spark)).deduplicate(within="1 minute")
    )


def test_what_cannot_work_is_refused(spark: Any, tmp_path: Path) -> None:
    feed = Feed(tmp_path / "in").add([("a", 1, 1)]).stream(spark)
    with pytest.raises(InvalidSpecError, match="within=0"):
        keyed(feed).deduplicate(within="0 seconds")
    with pytest.raises(InvalidSpecError, match="keep='any'"):
        keyed(feed).deduplicate(within="1 hour", keep="any")
    with pytest.raises(InvalidSpecError, match="by='time'"):
        keyed(feed).deduplicate(within="1 hour", by="time")
    with pytest.raises(UnknownColumnError, match="nope"):
        wp.stream(feed, "t", "1 minute").key_by("nope")
    with pytest.raises(InvalidSpecError, match="needs event time, and none is named"):
        wp.stream(feed).key_by("k").deduplicate(within="1 hour")
    with pytest.raises(InvalidSpecError, match="needs a watermark"):
        wp.stream(feed, "t").key_by("k").deduplicate(within="1 hour")
    with pytest.raises(InvalidSpecError, match="no row is late by the clock"):
        wp.stream(feed).key_by("k").deduplicate(within="1 hour", by="clock").side_output_late_data("late")
    with pytest.raises(InvalidSpecError, match="the input is a changelog"):
        keyed(feed.withColumn("_change_type", F.lit("insert"))).deduplicate(within="1 hour", by="clock")
    per_key = wp.Watermarks.bounded("1 minute").per_key()
    with pytest.raises(InvalidSpecError, match="one watermark for all keys"):
        wp.stream(feed, "t", per_key).key_by("k").deduplicate(within="1 hour")
    windows = keyed(feed).window(wp.TumblingEventTimeWindows.of("1 hour")).aggregate(n=wp.count())
    assert windows.key_by("k").deduplicate(within="1 hour").df.columns == windows.df.columns
