"""Sessions that a row closes, on Spark: streams with restarts and late rows, static rows, chains, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as F

import windowpane as wp
from tests.spark.helpers import Feed, plain, run, table
from windowpane.errors import ChangedPlanError, InvalidSpecError

pytestmark = pytest.mark.spark

VISITS = wp.EventTimeSessionWindows.with_gap("30 seconds").closed_by("v = 0")
ROWS = [("a", 10, 1), ("a", 20, 0), ("a", 25, 2), ("b", 12, 3), ("a", 15, 4), ("b", 90, 5)]
"""v = 0 closes; the row at 15 arrives behind it, and belongs before it."""
CLOSED = [("a", 10, 20.000001, 3, [1, 4, 0]), ("a", 25, 55, 1, [2]), ("b", 12, 42, 1, [3])]


def visits(df: Any, assigner: Any = VISITS) -> Any:
    windows = wp.stream(df, event_time="t", watermark="10 seconds").key_by("k").window(assigner)
    return windows.side_output_late_data("late").aggregate(n=wp.count(), all=wp.collect_list("v"))


def shown(rows: Any) -> list[tuple[Any, ...]]:
    return sorted((tuple(plain(each) for each in row) for row in rows), key=repr)


def test_a_stream_over_a_restart_with_rows_in_disorder_and_a_late_one(spark: Any, tmp_path: Path) -> None:
    feed = Feed(tmp_path / "in").add(ROWS[:2], ROWS[2:])
    first = run(visits(feed.stream(spark)), "main", "late", checkpoint=tmp_path / "c")
    assert shown(first.rows()) == CLOSED
    # the session of 90 is open; its row 70 is late, since the watermark is 80, and 95 closes it
    feed.add([("b", 70, 6), ("b", 95, 0), ("b", 96, 7)], [("c", 200, 1)], [("c", 225, 1)], [("c", 226, 1)])
    again = run(visits(feed.stream(spark)), "main", "late", checkpoint=tmp_path / "c")
    assert shown(again.rows()) == [("b", 90, 95.000001, 2, [5, 0]), ("b", 96, 126, 1, [7])]
    (late,) = again.rows("late")
    assert late[2:4] == (6, [(70, 100)])
    changed = visits(feed.stream(spark), wp.EventTimeSessionWindows.with_gap("30 seconds").closed_by("v = 1"))
    with pytest.raises(ChangedPlanError, match="assigner"):
        changed.start(main=lambda rows, _: None, checkpoint=str(tmp_path / "c"))
    assert wp.changes(changed, str(tmp_path / "c")).verdict == "accept"
    (window, *_) = wp.inspect(str(tmp_path / "c")).windows.to_pylist()
    assert "session may extend" in window["why_open"]


def test_static_rows_have_the_same_sessions_and_windows_behind_them_count_all(spark: Any) -> None:
    result = visits(table(spark, ROWS))
    assert shown(result.df.collect()) == sorted([*CLOSED, ("b", 90, 120, 1, [5])], key=repr)
    minutes = result.window_all(wp.TumblingEventTimeWindows.of("1 minute")).aggregate(n=wp.count(), rows=wp.sum("n"))
    assert shown(minutes.df.collect()) == [(0, 60, 3, 5), (60, 120, 1, 1)]


def test_counts_sizes_and_durations_close_too(spark: Any) -> None:
    rows, gap = table(spark, [("a", at, 40) for at in (0, 5, 10, 15, 20)]), wp.EventTimeSessionWindows.with_gap("7 seconds")
    bounds = [
        (gap.closed_by(count=2), [(0, 5.000001), (10, 15.000001), (20, 27)]),
        (gap.closed_by(size=("v", 100)), [(0, 10.000001), (15, 27)]),
        (
            gap.closed_by(F.col("v") > 50, size=(F.length(F.col("v").cast("string")), 3)),
            [(0, 5.000001), (10, 15.000001), (20, 27)],
        ),
        (gap.closed_by(duration="12 seconds"), [(0, 12), (15, 27)]),
    ]
    for assigner, expected in bounds:
        assert [row[1:3] for row in shown(visits(rows, assigner).df.collect())] == expected, assigner


def test_explain_says_what_closes(spark: Any) -> None:
    text = visits(table(spark, ROWS)).explain()
    assert "closed sessions: rows that the watermark has passed are cut into sessions" in text
    assert "condition='v = 0'" in text


def test_what_cannot_work_is_refused(spark: Any) -> None:
    rows = table(spark, ROWS)
    with pytest.raises(InvalidSpecError, match="is bigint, and a condition is true or false"):
        visits(rows, wp.EventTimeSessionWindows.with_gap("1 minute").closed_by("v"))
    with pytest.raises(InvalidSpecError, match="the column is string, and sums that close sessions are of whole numbers"):
        visits(rows, wp.EventTimeSessionWindows.with_gap("1 minute").closed_by(size=("k", 3)))
    windows = wp.stream(rows, event_time="t").key_by("k").window(VISITS)
    with pytest.raises(InvalidSpecError, match="do not take allowed lateness"):
        windows.allowed_lateness("1 minute").aggregate(n=wp.count())
    with pytest.raises(InvalidSpecError, match="do not take the trigger CountTrigger"):
        windows.trigger(wp.CountTrigger.of(3)).aggregate(n=wp.count())
    with pytest.raises(InvalidSpecError, match="do not take the function of process"):
        windows.process(lambda key, context, rows: [], "n long")
    with pytest.raises(InvalidSpecError, match="top takes"):
        windows.aggregate(n=wp.count()).top(1, by="n")
    with pytest.raises(InvalidSpecError, match="which closed_by cannot cut"):
        wp.join(wp.stream(rows, "t"), wp.stream(rows, "t")).on("k").window(VISITS)
    ticks = spark.readStream.format("rate").load()
    each = wp.stream(ticks, "timestamp", watermark=wp.Watermarks.bounded("1 minute").per_key())
    with pytest.raises(InvalidSpecError, match="Leave per_key out"):
        each.key_by("value").window(wp.EventTimeSessionWindows.with_gap("1 minute").closed_by(count=3)).aggregate(n=wp.count())
