"""Reading what Files wrote: the latest result of each window, whatever the batch and file it stands in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import windowpane as wp
from tests.spark.helpers import Feed, rows, table
from windowpane.errors import InvalidSpecError, UnknownColumnError
from windowpane.sinks import read_latest

pytestmark = pytest.mark.spark

TEN = wp.TumblingEventTimeWindows.of("10 seconds")


def written(result: wp.Result, folder: Path) -> str:
    query = result.start(main=f"{folder}/main", checkpoint=f"{folder}/checkpoint", trigger={"availableNow": True})
    assert query.awaitTermination(120)
    return f"{folder}/main"


def test_the_latest_of_several_results_in_one_batch_and_in_later_ones(spark: Any, tmp_path: Path) -> None:
    batches = [[("a", 1, 1), ("a", 2, 2), ("a", 3, 4), ("b", 4, 8)], [("z", 15, 0)], [("z", 16, 0)], [("a", 5, 16)]]
    df = Feed(tmp_path / "in").add(*batches).stream(spark)
    windowed = wp.stream(df, event_time="t", watermark="0 seconds").key_by("k").window(TEN).allowed_lateness("1 minute")
    path = written(windowed.trigger(wp.EarlyAndFinal(count=1)).aggregate(v=wp.sum("v")), tmp_path)
    assert spark.read.parquet(path).filter("k = 'a'").count() == 5
    latest = read_latest(spark, wp.Files(path), key="k").select("k", "window_start", "v", "pane_timing")
    assert rows(latest) == [("a", 0, 23, "LATE"), ("b", 0, 8, "ON_TIME"), ("z", 10, 0, "EARLY")]
    query = spark.read.parquet(path).first().query
    assert read_latest(spark, f"{path}/query={query}", key=["k"]).count() == 3
    with pytest.raises(UnknownColumnError, match="origin"):
        read_latest(spark, path, key="origin")


@pytest.mark.slow
def test_windows_that_a_changelog_deleted_are_left_out(spark: Any, tmp_path: Path) -> None:
    df = Feed(tmp_path / "in").add([("a", 1, 1), ("b", 1, 1)], [("a", 9, 2)], [("a", 5, 4)]).stream(spark)
    sessions = wp.EventTimeSessionWindows.with_gap("5 seconds")
    windowed = wp.stream(df, event_time="t", watermark="1 minute").key_by("k").window(sessions).trigger(wp.EachBatch())
    path = written(windowed.accumulation("retracting").aggregate(v=wp.sum("v")), tmp_path)
    assert rows(read_latest(spark, path, key="k")) == [("a", 1, 14, 7), ("b", 1, 6, 1)]


def test_batches_are_numbers_where_spark_reads_folders_as_text(spark: Any, tmp_path: Path) -> None:
    for number in (9, 10):
        table(spark, [("a", number)], "k string, v long").write.parquet(f"{tmp_path}/out/query=q/batch={number}")
    inference = "spark.sql.sources.partitionColumnTypeInference.enabled"
    spark.conf.set(inference, "false")
    try:
        assert rows(read_latest(spark, f"{tmp_path}/out", key="k")) == [("a", 10)]
    finally:
        spark.conf.unset(inference)


def test_what_is_refused(spark: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "plain")
    table(spark, [("a", 1, 1)]).write.parquet(path)
    with pytest.raises(InvalidSpecError, match="no folders of batches"):
        read_latest(spark, path)
    with pytest.raises(InvalidSpecError, match="reads Parquet"):
        read_latest(spark, wp.Files(path, format="json"))
    both = tmp_path / "both"
    for query in ("one", "two"):
        table(spark, [("a", 1, 1)]).write.parquet(f"{both}/query={query}/batch=0")
    with pytest.raises(InvalidSpecError, match="one and two"):
        read_latest(spark, str(both), key="k")
    with pytest.raises(InvalidSpecError, match="has no windows"):
        read_latest(spark, f"{both}/query=one")
