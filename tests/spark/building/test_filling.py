"""Filled gaps of windows on Spark: streams with restarts, static rows, windows behind them, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import windowpane as wp
from tests.spark.helpers import Feed, run, table
from windowpane.errors import ChangedPlanError, InvalidSpecError, UnknownColumnError

pytestmark = pytest.mark.spark

MINUTES = wp.TumblingEventTimeWindows.of("1 minute")


def minutes(df: Any) -> Any:
    return wp.stream(df, event_time="t", watermark="0 seconds").key_by("k").window(MINUTES)


def shown(rows: Any) -> list[tuple[Any, ...]]:
    """Return key, minute, and the columns behind the bounds."""
    minutes = ((row[1] // 60 if isinstance(row[1], int) else row[1].minute) for row in rows)
    return sorted(((row[0], minute, *row[3:]) for minute, row in zip(minutes, rows, strict=True)), key=repr)


def test_a_stream_over_a_restart_a_late_row_and_the_windows_behind_it(spark: Any, tmp_path: Path) -> None:
    feed = Feed(tmp_path / "in").add([("a", 10, 1), ("b", 20, 2)], [("b", 250, 3)], [("b", 251, 1)])
    windows = minutes(feed.stream(spark)).allowed_lateness("10 minutes").side_output_late_data("late")
    sums = windows.aggregate(n=wp.count(), total=wp.sum("v"))
    result = sums.fill_gaps({"n": 0}, others="previous", until="3 windows")
    first = run(result, "main", "late", checkpoint=tmp_path / "c")
    begun = [("a", 0, 1, 1), ("a", 1, 0, 1), ("a", 2, 0, 1), ("a", 3, 0, 1)]
    assert shown(first.rows()) == [*begun, *(("b", minute, int(not minute), 2) for minute in range(4))]
    feed.add([("a", 70, 5), ("a", -1000, 9)], [("b", 300, 7)], [("b", 301, 7)])
    again = run(result, "main", "late", checkpoint=tmp_path / "c")
    assert again.rows("late") == [("a", -1000, 9, [(-1020, -960)], True)]  # later than lateness allows: of the windows
    # the late row refines minute 1 and those that were filled behind it, and the limit is counted from there
    assert shown(again.rows()) == [("a", 1, 1, 5), ("a", 2, 0, 5), ("a", 3, 0, 5), ("a", 4, 0, 5), ("b", 4, 2, 4)]
    changed = sums.fill_gaps({"n": 0}, others="previous", until="4 windows")
    with pytest.raises(ChangedPlanError, match="until"):
        changed.start(main=lambda rows, _: None, checkpoint=str(tmp_path / "c"))
    assert wp.changes(changed, str(tmp_path / "c")).verdict == "accept"


def test_static_rows_have_the_same_and_windows_behind_them_count_all(spark: Any) -> None:
    rows = table(spark, [("a", 10, 1), ("a", 250, 2), (None, 70, 3)])
    filled = minutes(rows).aggregate(n=wp.count(), total=wp.sum("v")).fill_gaps("zero", until="2 minutes")
    assert shown(filled.df.collect()) == [
        *[("a", 0, 1, 1), ("a", 1, 0, None), ("a", 2, 0, None), ("a", 4, 1, 2), ("a", 5, 0, None), ("a", 6, 0, None)],
        *[(None, 1, 1, 3), (None, 2, 0, None), (None, 3, 0, None)],
    ]
    slow = minutes(rows).aggregate(n=wp.count(), total=wp.sum("v"))
    slow = slow.fill_gaps("zero", until="2 minutes", engine="filling reference")
    assert shown(slow.df.collect()) == shown(filled.df.collect())
    hours = filled.key_by("k").window(wp.TumblingEventTimeWindows.of("1 hour")).aggregate(windows=wp.count(), n=wp.sum("n"))
    assert shown(hours.df.collect()) == [("a", 0, 6, 2), (None, 0, 3, 1)]


def test_what_spark_computes_of_results_it_computes_of_filled_ones_and_steps_come_behind(spark: Any) -> None:
    rows = table(spark, [("a", 10, 1), ("a", 20, 2), ("b", 70, 4)])
    spreads = minutes(rows).aggregate(n=wp.count(), spread=wp.max("v") - wp.min("v"))
    before = spreads.fill_gaps({"n": 0}, others="previous", until="1 window")
    assert shown(before.df.collect()) == [("a", 0, 2, 1), ("a", 1, 0, 1), ("b", 1, 1, 0), ("b", 2, 0, 0)]
    zero = spreads.fill_gaps("zero", until="1 window").where(wp.col("n") == 0).select("k", "window_start", "window_end", "spread")
    assert shown(zero.df.collect()) == [("a", 1, None), ("b", 2, None)]
    with pytest.raises(InvalidSpecError, match=r"constants for \['spread'\], which Spark computes"):
        spreads.fill_gaps({"spread": 0}, until="1 window")
    for steps in (spreads.where(wp.col("n") > 1), spreads.select("*", more=wp.col("n") + 1), spreads.having(wp.sum("v") > 1)):
        with pytest.raises(InvalidSpecError, match=r"comes right behind aggregate.*\.fill_gaps\(\.\.\.\)\.select"):
            steps.fill_gaps("zero", until="1 window")


def test_explain_says_what_is_filled_and_when_state_ends(spark: Any) -> None:
    windows = minutes(table(spark, [("a", 10, 1)])).aggregate(n=wp.count(), last=wp.last("v"))
    text = windows.fill_gaps({"N": 0}, others="previous", until="5 windows").explain()
    assert "filled          last of the result before; n = 0; all others NULL" in text
    assert "until           5 windows behind the last one with rows" in text
    assert "the end: the last of these windows is over" in text


def test_what_cannot_work_is_refused(spark: Any) -> None:
    rows = table(spark, [("a", 10, 1)])
    counts = minutes(rows).aggregate(n=wp.count())
    with pytest.raises(InvalidSpecError, match="values='nothing': it is 'null', 'previous' or 'zero'"):
        counts.fill_gaps("nothing", until="5 windows")
    with pytest.raises(InvalidSpecError, match="until='0 windows': it must be at least one window"):
        counts.fill_gaps("zero", until="0 windows")
    with pytest.raises(InvalidSpecError, match="the next window ends 1 minute later"):
        counts.fill_gaps("zero", until="30 seconds")
    with pytest.raises(InvalidSpecError, match="a static DataFrame has no end of time"):
        counts.fill_gaps("zero", until="forever")
    with pytest.raises(InvalidSpecError, match="n='none': the column is int64"):
        counts.fill_gaps({"n": "none"}, until="5 windows")
    with pytest.raises(InvalidSpecError, match=r"n=0\.5: the column is int64, which holds whole numbers"):
        counts.fill_gaps({"n": 0.5}, until="5 windows")
    with pytest.raises(UnknownColumnError, match="window_start"):
        counts.fill_gaps({"window_start": None}, until="5 windows")
    sessions = wp.stream(rows, event_time="t").key_by("k").window(wp.EventTimeSessionWindows.with_gap("1 minute"))
    with pytest.raises(InvalidSpecError, match="tumbling and sliding windows by event time"):
        sessions.aggregate(n=wp.count()).fill_gaps("zero", until="5 windows")
    with pytest.raises(InvalidSpecError, match="default trigger"):
        minutes(rows).trigger(wp.CountTrigger.of(2)).aggregate(n=wp.count()).fill_gaps("zero", until="5 windows")
    with pytest.raises(InvalidSpecError, match="built-in aggregates"):
        minutes(rows).process(lambda key, context, rows: [], "n long").fill_gaps("zero", until="5 windows")
