"""Windows over windowed results: in one query, by way of ``df``, three in a row, and on static DataFrames."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import windowpane as wp
from tests.spark.helpers import Feed, rows, run, table

pytestmark = pytest.mark.spark

HEARTBEATS = "k string, t timestamp, v long, heartbeat boolean"
TEN = wp.TumblingEventTimeWindows.of("10 seconds")
TWENTY = wp.TumblingEventTimeWindows.of("20 seconds")
FORTY = wp.TumblingEventTimeWindows.of("40 seconds")

EVENTS: list[list[tuple[Any, ...]]] = [
    [("a", 1, 1, False), ("b", 3, 2, False), ("a", 12, 4, False)],
    [("b", 13, 8, False), ("a", 25, 16, False)],
    [("a", 35, 32, False), ("b", 45, 64, False)],
    [(None, 1000, None, True)],
]
PER_KEY = [
    ("a", 0, 10, 1),
    ("a", 10, 20, 4),
    ("a", 20, 30, 16),
    ("a", 30, 40, 32),
    ("b", 0, 10, 2),
    ("b", 10, 20, 8),
    ("b", 40, 50, 64),
]
ALL_20 = [(0, 20, 15, 4), (20, 40, 48, 2), (40, 60, 64, 1)]
ALL_40 = [(0, 40, 63, 2), (40, 80, 64, 1)]


def stream(spark: Any, folder: Path, batches: list[list[tuple[Any, ...]]] = EVENTS) -> wp.Stream:
    df = Feed(folder / "in", HEARTBEATS).add(*batches).stream(spark)
    return wp.stream(df, event_time="t", watermark="0 seconds", heartbeat="heartbeat")


def per_key(source: wp.Stream) -> wp.Result:
    return source.key_by("k").window(TEN).aggregate(v=wp.sum("v"))


def per_twenty(source: Any) -> wp.Result:
    result: wp.Result = source.window_all(TWENTY).aggregate(v=wp.sum("v"), results=wp.count())
    return result


@pytest.mark.slow
def test_second_window_takes_results_that_the_same_watermark_brought(spark: Any, tmp_path: Path) -> None:
    assert run(per_twenty(per_key(stream(spark, tmp_path)))).rows() == ALL_20


@pytest.mark.slow
def test_three_windows_in_a_row(spark: Any, tmp_path: Path) -> None:
    second = per_twenty(per_key(stream(spark, tmp_path)))
    third = second.window_all(FORTY).aggregate(v=wp.sum("v"), results=wp.count())
    collected = run(third)
    assert collected.rows() == ALL_40
    assert {len(progress["stateOperators"]) for progress in collected.progress} == {3}


@pytest.mark.slow
def test_results_that_an_early_trigger_brings_are_not_late_downstream(spark: Any, tmp_path: Path) -> None:
    counted = stream(spark, tmp_path).key_by("k").window(TEN).trigger(wp.PurgingTrigger.of(wp.CountTrigger.of(1)))
    collected = run(per_twenty(counted.aggregate(v=wp.sum("v"))))
    assert collected.rows() == ALL_20
    assert sum(collected.counted("late_elements", "windowpane_next")) == 0


@pytest.mark.slow
def test_a_refinement_too_late_for_the_second_window_is_its_late_data(spark: Any, tmp_path: Path) -> None:
    batches: list[list[tuple[Any, ...]]] = [
        [("a", 1, 1, False)],
        [(None, 15, None, True)],
        [("a", 2, 2, False)],
        [(None, 50, None, True)],
    ]
    batches += [[(None, 50, None, True)], [(None, 51, None, True)], [("a", 3, 4, False)], EVENTS[-1]]
    first = stream(spark, tmp_path, batches).key_by("k").window(TEN).allowed_lateness("60 seconds").aggregate(v=wp.sum("v"))
    second = first.window_all(TWENTY).side_output_late_data(wp.OutputTag("late")).aggregate(v=wp.sum("v"))
    collected = run(second, "main", "late")
    assert collected.rows() == [(0, 20, 1 + 3)]
    assert collected.rows("late") == [("a", 0, 10, 1 + 2 + 4, [(0, 20)], True)]


@pytest.mark.slow
def test_window_end_of_a_result_is_an_event_time(spark: Any, tmp_path: Path) -> None:
    first = per_key(stream(spark, tmp_path)).df
    second = per_twenty(wp.stream(first.select("window_end", "v"), event_time="window_end", name="second"))
    assert run(second).rows() == ALL_20


@pytest.mark.slow_but("windows")
@pytest.mark.parametrize("kind", ["windows", "over"])
def test_a_late_result_is_late_in_a_bucket_without_rows_before(spark: Any, tmp_path: Path, kind: str) -> None:
    """By way of ``df`` results carry no watermark, and only the buckets that were called know that of the batch before."""
    late = [(key, 2, 2, False) for key in "bcdefgh"]
    batches: list[list[tuple[Any, ...]]] = [[("a", 1, 1, False)], [(None, 50, None, True)], [(None, 51, None, True)], late]
    keyed = stream(spark, tmp_path, [*batches, EVENTS[-1]]).key_by("k").window(TEN).allowed_lateness("60 seconds")
    results = keyed.aggregate(v=wp.sum("v")).df
    if kind == "windows":
        second = wp.stream(results, event_time="window_end", name="second").key_by("k").window(TWENTY)
        collected = run(second.side_output_late_data(wp.OutputTag("late")).aggregate(v=wp.sum("v")), "main", "late")
        assert collected.rows() == [("a", 0, 20, 1)]
        assert [row[0] for row in collected.rows("late")] == list("bcdefgh")
    else:
        over = wp.over(results, key=["k", "window_start"], event_time="window_end", name="second").partition_by("k")
        collected = run(over.order_by("window_end").select("k", n=wp.row_number()).emit_on_window_close())
        assert [row[0] for row in collected.rows()] == ["a"]


def test_static_chain_in_one_plan_and_by_way_of_df(spark: Any) -> None:
    events = [event[:3] for batch in EVENTS[:-1] for event in batch]
    first = per_key(wp.stream(table(spark, events), event_time="t"))
    assert rows(first.df) == PER_KEY
    assert rows(per_twenty(first).df) == ALL_20
    assert rows(per_twenty(wp.stream(first.df, event_time="window_end")).df) == ALL_20
    assert rows(per_twenty(first).window_all(FORTY).aggregate(v=wp.sum("v"), results=wp.count()).df) == ALL_40
