"""Programs that wait for the clock: they fire without new rows, and ``availableNow`` runs of them end by themselves."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import windowpane as wp
from tests.spark.helpers import Feed, rows

pytestmark = pytest.mark.spark

PATIENCE = 90
BATCHES = [[("a", 1, 1), ("b", 2, 2)], [("a", 3, 4)]]
FAR = wp.TumblingProcessingTimeWindows.of("1000 days")


def windowed(spark: Any, folder: Path, assigner: wp.WindowAssigner) -> wp.WindowedStream:
    feed = Feed(folder / "in").add(*BATCHES)
    return wp.stream(feed.stream(spark), event_time="t", watermark="0 seconds").key_by("k").window(assigner)


def wait_for(happened: Any) -> None:
    deadline = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.1)


@pytest.fixture
def queries() -> Iterator[list[Any]]:
    """Queries to stop at the end of the test."""
    started: list[Any] = []
    yield started
    for query in started:
        query.stop()


@pytest.mark.slow
@pytest.mark.parametrize("trigger", [{}, {"processingTime": "200 milliseconds"}])
def test_windows_fire_without_new_rows(spark: Any, tmp_path: Path, queries: list[Any], trigger: dict[str, Any]) -> None:
    second = wp.TumblingProcessingTimeWindows.of("1 second")
    result = windowed(spark, tmp_path, second).aggregate(v=wp.sum("v"))
    taken: list[tuple[Any, ...]] = []

    def take(df: Any, batch_id: int) -> None:
        taken.extend((row["k"], row["v"]) for row in df.collect())

    queries.append(result.start(main=take, checkpoint=f"{tmp_path}/c", trigger=trigger))
    wait_for(lambda: sum(value for _, value in taken) == 7)
    assert {key for key, _ in taken} == {"a", "b"}


@pytest.mark.slow
def test_a_timeout_fires_what_a_count_waits_for(spark: Any, tmp_path: Path, queries: list[Any]) -> None:
    trigger = wp.ProcessingTimeoutTrigger.of(wp.CountTrigger.of(2), "500 milliseconds")
    result = windowed(spark, tmp_path, wp.GlobalWindows.create()).trigger(wp.PurgingTrigger.of(trigger)).aggregate(v=wp.sum("v"))
    taken: set[tuple[Any, ...]] = set()

    def take(df: Any, batch_id: int) -> None:
        taken.update((row["k"], row["v"]) for row in df.collect())

    queries.append(result.start(main=take, checkpoint=f"{tmp_path}/c"))
    wait_for(lambda: ("b", 2) in taken)
    wait_for(lambda: sum(value for key, value in taken if key == "a") == 5)


@pytest.mark.slow
def test_available_now_ends_by_itself_with_start(spark: Any, tmp_path: Path) -> None:
    result = windowed(spark, tmp_path, FAR).aggregate(v=wp.sum("v"))
    query = result.start(main=f"{tmp_path}/main", checkpoint=f"{tmp_path}/c", trigger={"availableNow": True})
    assert query.awaitTermination(PATIENCE)
    assert query.exception() is None
    assert sum(progress["numInputRows"] for progress in query.recentProgress) == 3


def test_available_now_ends_by_itself_with_df(spark: Any, tmp_path: Path) -> None:
    early = windowed(spark, tmp_path, FAR).trigger(wp.CountTrigger.of(1)).aggregate(v=wp.sum("v"))
    writer = early.df.writeStream.format("parquet").option("checkpointLocation", f"{tmp_path}/c").trigger(availableNow=True)
    query = writer.start(f"{tmp_path}/main")
    assert query.awaitTermination(PATIENCE)
    assert query.exception() is None
    assert rows(spark.read.parquet(f"{tmp_path}/main").select("k", "v")) == [("a", 1), ("a", 5), ("b", 2)]


@pytest.mark.slow
def test_a_chain_ends_when_an_earlier_window_waits_for_the_clock(spark: Any, tmp_path: Path) -> None:
    early = windowed(spark, tmp_path, FAR).trigger(wp.CountTrigger.of(1)).aggregate(v=wp.sum("v"))
    counted = early.key_by("k").count_window(1).aggregate(total=wp.sum("v"))
    query = counted.start(main=f"{tmp_path}/main", checkpoint=f"{tmp_path}/c", trigger={"availableNow": True})
    assert query.awaitTermination(PATIENCE)
    assert rows(spark.read.parquet(f"{tmp_path}/main").select("k", "total")) == [("a", 1), ("a", 5), ("b", 2)]


@pytest.mark.slow
def test_other_runs_are_left_alone(spark: Any, tmp_path: Path, queries: list[Any]) -> None:
    result = windowed(spark, tmp_path, FAR).aggregate(v=wp.sum("v"))
    writer = result.df.writeStream.format("parquet").option("checkpointLocation", f"{tmp_path}/c")
    queries.append(writer.start(f"{tmp_path}/main"))
    wait_for(lambda: len([p for p in queries[0].recentProgress if p["numInputRows"] == 0]) >= 2)
    assert queries[0].isActive
