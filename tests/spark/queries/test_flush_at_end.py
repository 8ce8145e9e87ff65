"""The end of a stream: its last windows, each once, and a checkpoint that takes no more rows without saying so."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException

import windowpane as wp
from tests.spark.helpers import Collected, Feed, rows
from windowpane.errors import EndedStreamError, InvalidSpecError
from windowpane.spark.queries.ending import _mark

pytestmark = pytest.mark.spark

TEN = wp.TumblingEventTimeWindows.of("10 seconds")
NOW = {"availableNow": True}
BATCHES: list[list[tuple[Any, ...]]] = [[("a", 1, 1), ("b", 2, 2)], [("a", 12, 4)], [("c", 25, 8), ("a", 21, 16)]]
TOTALS = [("a", 0, 10, 1), ("a", 10, 20, 4), ("a", 20, 30, 16), ("b", 0, 10, 2), ("c", 20, 30, 8)]


def totals(feed: Feed, spark: Any, **settings: Any) -> wp.Result:
    keyed = wp.stream(feed.stream(spark), event_time="t", watermark="0 seconds", **settings).key_by("k")
    return keyed.window(TEN).aggregate(v=wp.sum("v"))


def flushed(result: Any, folder: Path, **sinks: Any) -> Any:
    sinks = sinks or {"main": f"{folder}/main"}
    return result.start(**sinks, checkpoint=f"{folder}/checkpoint", trigger=NOW, flush_at_end=True)


@pytest.fixture
def feed(tmp_path: Path) -> Feed:
    return Feed(tmp_path / "in").add(*BATCHES)


def test_the_last_windows_come_out_once_and_a_restart_is_refused(spark: Any, feed: Feed, tmp_path: Path) -> None:
    query = flushed(totals(feed, spark), tmp_path)
    assert not query.isActive
    written = spark.read.parquet(f"{tmp_path}/main").select("k", "window_start", "window_end", "v")
    assert rows(written) == TOTALS
    feed.add([("a", 26, 32)])
    for again in (True, False):
        with pytest.raises(EndedStreamError, match="new checkpoint and new outputs"):
            totals(feed, spark).start(
                main=f"{tmp_path}/main", checkpoint=f"{tmp_path}/checkpoint", trigger=NOW, flush_at_end=again
            )
    assert rows(written) == TOTALS


@pytest.fixture
def read_log(spark: Any, request: pytest.FixtureRequest) -> Iterator[Callable[[], str]]:
    """Return what reads what the session logs from WARN on; its JVM writes to the streams that pytest captures."""
    capture = request.config.pluginmanager.getplugin("capturemanager")
    if capture is None or not capture.is_globally_capturing():
        pytest.skip("nothing is captured")
    spark.sparkContext.setLogLevel("WARN")
    capture.read_global_capture()
    yield lambda: "".join(capture.read_global_capture())
    spark.sparkContext.setLogLevel("ERROR")


def test_a_new_checkpoint_is_asked_for_its_marks_without_a_word_in_the_log(
    spark: Any, tmp_path: Path, read_log: Callable[[], str]
) -> None:
    assert _mark(spark, str(tmp_path / "checkpoint"), "ending") is None
    with pytest.raises(AnalysisException):
        spark.read.text(str(tmp_path / "nothing"))
    assert read_log().count("Assume no metadata directory") == 1  # that of the single path


@pytest.mark.slow
def test_a_normal_run_logs_no_warning_of_its_state(spark: Any, feed: Feed, tmp_path: Path, read_log: Callable[[], str]) -> None:
    flushed(totals(feed, spark), tmp_path)
    logged = read_log()
    assert "MicroBatchExecution" in logged  # Spark's own warning, that adaptive execution is off in streams
    assert "StateServer" not in logged
    assert "TimerStateImpl" not in logged


@pytest.mark.slow
def test_what_was_interrupted_is_written_under_the_same_number(spark: Any, feed: Feed, tmp_path: Path) -> None:
    collected, numbers = Collected(), list[int]()
    take = collected.sink("main")

    def fails_at_the_end(df: Any, batch_id: int) -> None:
        numbers.append(batch_id)
        if batch_id == len(BATCHES) + 1:  # one more batch than files: the watermark moves once more
            raise OSError("the disk is full")
        take(df, batch_id)

    with pytest.raises(OSError, match="disk is full"):
        flushed(totals(feed, spark), tmp_path, main=fails_at_the_end)
    feed.add([("a", 26, 32)])
    with pytest.raises(EndedStreamError):
        flushed(totals(feed, spark), tmp_path, main=take)
    assert collected.rows() == TOTALS
    assert max(number for number, _ in collected.batches["main"]) == numbers[-1]
    with pytest.raises(EndedStreamError):
        flushed(totals(feed, spark), tmp_path, main=take)
    assert collected.rows() == TOTALS


@pytest.mark.slow
def test_windows_of_the_clock_sessions_and_user_functions_end_too(spark: Any, feed: Feed, tmp_path: Path) -> None:
    def listed(key: str, context: wp.ProcessContext, elements: Any) -> Any:
        yield {"values": sorted(row["v"] for row in elements)}

    stream = wp.stream(feed.stream(spark), event_time="t", watermark="0 seconds")
    sessions = stream.key_by("k").window(wp.EventTimeSessionWindows.with_gap("20 seconds"))
    collected = Collected()
    flushed(sessions.process(listed, "values array<long>"), tmp_path / "one", main=collected.sink("main"))
    assert collected.rows() == [("a", 1, 41, [1, 4, 16]), ("b", 2, 22, [2]), ("c", 25, 45, [8])]
    clock = stream.key_by("k").window(wp.TumblingProcessingTimeWindows.of("1 day")).aggregate(v=wp.sum("v"))
    flushed(clock, tmp_path / "two", main=collected.sink("main"))
    assert sorted((row[0], row[-1]) for row in collected.rows()) == [("a", 21), ("b", 2), ("c", 8)]


@pytest.mark.slow
def test_rows_that_wait_for_a_match_are_padded(spark: Any, feed: Feed, tmp_path: Path) -> None:
    other = Feed(tmp_path / "other").add([("a", 1, 100)])
    left = wp.stream(feed.stream(spark), event_time="t", watermark="1 minute", name="left")
    right = wp.stream(other.stream(spark), event_time="t", watermark="1 minute", name="right")
    pairs = wp.join(left, right).on("k").within("-2 seconds", "2 seconds").how("left")
    collected = Collected()
    flushed(pairs.select(v=wp.left("v"), other=wp.right("v")), tmp_path, main=collected.sink("main"))
    assert sorted(row[-2:] for row in collected.rows()) == [(1, 100), (2, None), (4, None), (8, None), (16, None)]


@pytest.mark.slow
def test_a_stream_without_rows_has_nothing_to_flush(spark: Any, tmp_path: Path) -> None:
    feed = Feed(tmp_path / "in")
    feed.folder.mkdir()
    query = flushed(totals(feed, spark), tmp_path)
    assert not query.isActive
    feed.add(*BATCHES)
    flushed(totals(feed, spark), tmp_path)
    assert rows(spark.read.parquet(f"{tmp_path}/main").select("k", "v"))[-1] == ("c", 8)


def test_what_is_refused(spark: Any, feed: Feed, tmp_path: Path) -> None:
    result = totals(feed, spark)
    where: dict[str, Any] = {"main": str(tmp_path / "main"), "checkpoint": str(tmp_path / "checkpoint")}
    with pytest.raises(InvalidSpecError, match=r"needs a run that ends.*heartbeat='column'"):
        result.start(**where, flush_at_end=True)
    with pytest.raises(InvalidSpecError, match="needs a checkpoint"):
        result.start(main=where["main"], trigger=NOW, flush_at_end=True)
    with pytest.raises(InvalidSpecError, match="a path without"):
        result.start(main=where["main"], checkpoint="runs [1]", trigger=NOW, flush_at_end=True)
    chain = result.window_all(TEN).aggregate(v=wp.sum("v"))
    with pytest.raises(InvalidSpecError, match=r"are the input of another.*heartbeat='column'"):
        chain.start(**where, trigger=NOW, flush_at_end=True)
    own = wp.stream(feed.stream(spark), event_time="t", watermark=wp.Watermarks.bounded("1 second").per_key())
    with pytest.raises(InvalidSpecError, match="each key ends by itself"):
        own.key_by("k").window(TEN).aggregate(v=wp.sum("v")).start(**where, trigger=NOW, flush_at_end=True)
