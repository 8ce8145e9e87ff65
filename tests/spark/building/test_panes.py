"""Composable triggers on Spark: panes with their numbers, changelogs that keep a table right, and rows of finished windows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import windowpane as wp
from tests.spark.helpers import Feed, plain, rows, table
from windowpane.errors import InvalidSpecError
from windowpane.sinks import apply_changes
from windowpane.stores import open_store

pytestmark = pytest.mark.spark

TEN = wp.TumblingEventTimeWindows.of("10 seconds")
EARLY_AND_LATE = wp.AfterWatermark(early=wp.AfterCount(2), late=wp.AfterCount(1))
PANE = ["pane_index", "pane_nonspeculative_index", "pane_timing", "pane_is_first", "pane_is_last"]


def windowed(df: Any, watermark: str | None = "0 seconds") -> wp.WindowedStream:
    return wp.stream(df, event_time="t", watermark=watermark).key_by("k").window(TEN)


def ran(result: wp.Result, folder: Path) -> None:
    query = result.start(main=f"{folder}/main", checkpoint=f"{folder}/checkpoint", trigger={"availableNow": True})
    assert query.awaitTermination(120)
    assert query.exception() is None


def test_early_on_time_and_late_panes_go_on_after_a_restart(spark: Any, tmp_path: Path) -> None:
    feed = Feed(tmp_path / "in").add([("a", 1, 1), ("a", 2, 2), ("a", 3, 4)])

    def run() -> None:
        stream = windowed(feed.stream(spark)).trigger(EARLY_AND_LATE).accumulation("accumulating")
        ran(stream.allowed_lateness("1 minute").pane_info().aggregate(v=wp.sum("v")), tmp_path)

    run()
    feed.add([("b", 20, 1)])
    run()
    feed.add([("a", 9, 8)], [("b", 21, 1)])
    run()
    got = rows(spark.read.parquet(f"{tmp_path}/main").filter("k = 'a'").select("v", *PANE))
    assert got == [
        (15, 2, 1, "LATE", False, False),
        (3, 0, -1, "EARLY", True, False),
        (7, 1, 0, "ON_TIME", False, False),
    ]


@pytest.mark.slow
def test_each_batch_takes_back_what_it_said_before_also_after_a_restart(spark: Any, tmp_path: Path) -> None:
    feed = Feed(tmp_path / "in").add([("a", 1, 1), ("a", 2, 2), ("b", 4, 8)])

    def run() -> None:
        stream = windowed(feed.stream(spark)).trigger(wp.EachBatch()).accumulation("retracting").allowed_lateness("1 minute")
        result = stream.pane_info().aggregate(v=wp.sum("v"))
        assert "engine          panes" in result.explain()
        ran(result, tmp_path)

    run()
    feed.add([("a", 9, 4), ("b", 21, 1)])
    run()
    feed.add([("a", 3, 8)])
    run()
    got = rows(spark.read.parquet(f"{tmp_path}/main").select("k", "v", "pane_index", "pane_timing", "_change_type"))
    assert got == [
        ("a", 15, 2, "LATE", "update_postimage"),
        ("a", 3, 0, "EARLY", "insert"),
        ("a", 3, 0, "EARLY", "update_preimage"),
        ("a", 7, 1, "EARLY", "update_postimage"),
        ("a", 7, 1, "EARLY", "update_preimage"),
        ("b", 1, 0, "EARLY", "insert"),
        ("b", 8, 0, "EARLY", "insert"),
    ]


@pytest.mark.slow
def test_a_retracting_window_keeps_a_table_that_holds_the_final_answer(spark: Any, tmp_path: Path) -> None:
    store = str(tmp_path / "views.duckdb")
    feed = Feed(tmp_path / "in").add([("a", 1, 1), ("a", 2, 2), ("b", 4, 8)], [("a", 12, 16)])

    def run() -> None:
        sessions = wp.stream(feed.stream(spark), event_time="t", watermark="0 seconds").key_by("k")
        stream = sessions.window(wp.EventTimeSessionWindows.with_gap("5 seconds")).trigger(wp.Repeatedly(wp.AfterCount(1)))
        changes = stream.accumulation("retracting").allowed_lateness("1 minute").aggregate(v=wp.sum("v")).df
        query = apply_changes(
            changes,
            store,
            ["k", "window_start"],
            table="sessions",
            checkpoint=f"{tmp_path}/checkpoint",
            trigger={"availableNow": True},
        )
        assert query.awaitTermination(120)

    run()
    feed.add([("a", 7, 32)])  # joins both sessions of a, which are to be taken back
    run()
    opened = open_store(store)
    got = sorted(plain(row) for row in opened.read("SELECT k, v FROM sessions"))
    opened.close()
    assert got == [["a", 51], ["b", 8]]


def test_rows_of_a_finished_window_are_counted_and_are_late_data(spark: Any) -> None:
    events = table(spark, [("a", 1, 1), ("a", 2, 2), ("a", 3, 4), ("b", 1, 8)])
    result = (
        windowed(events, watermark=None)
        .trigger(wp.AfterCount(2), allow_unsafe_triggers=True)
        .accumulation("discarding")
        .side_output_late_data(wp.OutputTag("late"))
        .aggregate(v=wp.sum("v"))
    )
    assert rows(result.df.select("k", "v")) == [("a", 3), ("b", 8)]
    assert rows(result.get_side_output("late").select("k", "v", "dropped", "reason")) == [("a", 4, True, "finished")]


def test_what_would_lose_rows_is_refused_where_it_is_built(spark: Any) -> None:
    events = table(spark, [("a", 1, 1)])
    with pytest.raises(InvalidSpecError, match=r"Repeatedly\(AfterCount\(count=2\)\).*allow_unsafe_triggers=True"):
        windowed(events, None).trigger(wp.AfterCount(2)).accumulation("discarding").aggregate(n=wp.count())
    with pytest.raises(InvalidSpecError, match="accumulation"):
        windowed(events, None).trigger(wp.Repeatedly(wp.AfterCount(2))).aggregate(n=wp.count())
    retracting = windowed(events, None).accumulation("retracting").aggregate(n=wp.count())
    with pytest.raises(InvalidSpecError, match="changelog"):
        retracting.key_by("k").count_window(2).aggregate(n=wp.count())
    with pytest.raises(InvalidSpecError, match="pane_index"):
        windowed(events, None).pane_info().aggregate(pane_index=wp.count())


def test_explain_names_the_panes(spark: Any) -> None:
    events = table(spark, [("a", 1, 1)])
    plan = windowed(events, None).trigger(EARLY_AND_LATE).accumulation("retracting").pane_info().aggregate(n=wp.count())
    assert "panes           retracting, with pane_info" in plan.explain()
    assert "panes: " in plan.explain()
