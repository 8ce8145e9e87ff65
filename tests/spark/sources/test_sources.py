"""Sources, sinks and triggers of Structured Streaming around a windowed program."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from pyspark.sql import functions as F

import windowpane as wp
from tests.spark.helpers import ORIGIN, Feed, rows, run
from windowpane import CountTrigger, Files, ProcessingTimeSessionWindows, PurgingTrigger, TumblingEventTimeWindows

pytestmark = pytest.mark.spark

TEN = TumblingEventTimeWindows.of("10 seconds")
PATIENCE_SECONDS = 240.0
ARRIVED = ([("a", 1, 1), ("b", 2, 5)], [("a", 3, 7), ("z", 60, 0)])
WINDOWS = [("a", 0, 10, 2, 8), ("b", 0, 10, 1, 5)]


def total(windowed: Any) -> Any:
    return windowed.aggregate(n=wp.count(), s=wp.sum("v"))


def eventually(value: Any) -> Any:
    """Wait until ``value()`` is true and return it."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not (found := value()):
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.2)
    return found


@contextmanager
def stopped(query: Any) -> Iterator[Any]:
    """Stop a query at the end."""
    try:
        yield query
    finally:
        query.stop()


def test_the_rate_source_into_a_memory_table(spark):
    ticks = spark.readStream.format("rate-micro-batch").options(
        rowsPerBatch=40, numPartitions=2, startTimestamp=int(ORIGIN.timestamp() * 1000), advanceMillisPerBatch=10_000
    )
    # All rows of a batch carry the batch's time: 0, 10, 20 ... seconds.
    keyed = wp.stream(ticks.load(), "timestamp", watermark=0).key_by((F.col("value") % 2).alias("odd"))
    written = keyed.window(TEN).aggregate(n=wp.count(), s=wp.sum("value")).df.writeStream.format("memory").queryName("ticks")
    with stopped(written.start()) as query:
        # The batch of 20 seconds fires the first window.
        eventually(lambda: query.exception() or (query.lastProgress and query.lastProgress["batchId"] >= 3))
        assert query.exception() is None
    first = rows(spark.table("ticks").orderBy("window_start", "odd").limit(2))
    assert first == [(0, 0, 10, 20, sum(range(0, 40, 2))), (1, 0, 10, 20, sum(range(1, 40, 2)))]


@pytest.mark.slow
def test_a_socket_with_the_default_trigger_and_windows_without_event_time(spark):
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=_serve, args=(server, b"ab\nb\nab\nab\n"), daemon=True).start()
        lines = spark.readStream.format("socket").option("host", "127.0.0.1").option("port", server.getsockname()[1]).load()
        result = wp.stream(lines).key_by("value").count_window(2).aggregate(n=wp.count())
        seen: list[tuple] = []
        with stopped(result.start(main=lambda df, batch: seen.extend(rows(df)))):
            eventually(lambda: seen)
    assert seen == [("ab", None, None, 2)]


def _serve(server: socket.socket, text: bytes) -> None:
    connection, _ = server.accept()
    with connection:
        connection.sendall(text)
        time.sleep(PATIENCE_SECONDS)


@pytest.mark.slow
def test_parquet_and_console_sinks_by_spark_itself(spark, tmp_path):
    result = total(wp.stream(Feed(tmp_path / "in").add(*ARRIVED).stream(spark), "t", watermark=0).key_by("k").window(TEN))
    written = result.df.writeStream.format("parquet").outputMode("append").trigger(availableNow=True)
    written.option("checkpointLocation", str(tmp_path / "c")).start(str(tmp_path / "out")).awaitTermination()
    assert rows(spark.read.parquet(str(tmp_path / "out"))) == WINDOWS
    console = result.df.writeStream.format("console").trigger(availableNow=True).start()
    assert console.awaitTermination(PATIENCE_SECONDS)
    assert console.exception() is None


@pytest.mark.slow
def test_file_sinks_of_start_with_a_processing_time_trigger(spark, tmp_path):
    result = total(wp.stream(Feed(tmp_path / "in").add(*ARRIVED).stream(spark), "t", watermark=0).key_by("k").window(TEN))
    out = tmp_path / "out"
    sink = Files(str(out), format="json")

    def written():
        return rows(
            spark.read.schema("k string, window_start timestamp, window_end timestamp, n long, s long").json(f"{out}/*/*")
        )

    with stopped(
        result.start(main=sink, checkpoint=str(tmp_path / "c"), trigger={"processingTime": "100 milliseconds"}, query_name="q")
    ) as q:
        assert q.name == "q"
        eventually(lambda: q.exception() or (list(out.glob("query=*/batch=*/*.json")) and written() == WINDOWS))
        assert q.exception() is None
    assert written() == WINDOWS


@pytest.mark.slow
def test_a_program_that_waits_for_the_clock_ends_by_itself(spark, tmp_path):
    feed = Feed(tmp_path / "in").add(*ARRIVED)
    keyed = wp.stream(feed.stream(spark), "t").key_by("k")
    # The counts fire, the timers of an hour from now do not: Flink, too, ends a bounded job without waiting for the clock.
    windowed = keyed.window(ProcessingTimeSessionWindows.with_gap("1 hour")).trigger(PurgingTrigger(CountTrigger(2)))
    collected = run(windowed.aggregate(s=wp.sum("v")))
    assert [(row[0], row[3]) for row in collected.rows()] == [("a", 8)]
    start, end = collected.rows()[0][1:3]
    assert end - start >= 3600
