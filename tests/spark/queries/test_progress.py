"""``wp.progress``: every counter, whether rows come or not, and whoever started the query."""

import json
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import Row

import windowpane as wp
from tests.spark.helpers import Feed
from windowpane import TumblingEventTimeWindows
from windowpane.engines.protocol import COUNTERS

QUIET = {"spark.sql.streaming.noDataProgressEventInterval": "100", "spark.sql.streaming.numRecentProgressUpdates": "3"}


def batch(number: int, **counters: int) -> dict[str, Any]:
    """Return the progress of a batch; without counters that of a trigger that ran none."""
    every = dict.fromkeys(COUNTERS, 0) | counters
    return {"batchId": number, "observedMetrics": {"windowpane": Row(**every)} if counters else {}}


def query(*batches: dict[str, Any], run: str = "run") -> Any:
    """Return a query that has run batches."""
    return SimpleNamespace(recentProgress=list(batches), runId=run)


def test_counters_of_a_run_are_added_up_and_its_sizes_are_those_of_the_last_batch() -> None:
    found = wp.progress(query(batch(0, late_dropped=2, open_windows=5), batch(1, late_dropped=1, open_windows=3), run="added"))
    assert (found["late_dropped"], found["open_windows"], found["duplicates"]) == (3, 3, 0)


def test_a_quiet_stream_keeps_every_counter() -> None:
    found = wp.progress(query(batch(0, late_dropped=2, state_bytes=7), batch(0), batch(0), run="quiet"))
    assert dict(found) == {**dict.fromkeys(COUNTERS, 0), "late_dropped": 2, "state_bytes": 7}


def test_batches_that_spark_has_forgotten_stay_counted() -> None:
    wp.progress(query(batch(0, late_dropped=2), batch(1, late_dropped=1), run="long"))
    assert wp.progress(query(batch(1, late_dropped=1), batch(2, late_dropped=4), run="long"))["late_dropped"] == 7


def test_the_progress_of_one_batch_is_that_batch_alone() -> None:
    assert wp.progress(batch(4, firings=3))["firings"] == 3


def test_the_form_of_spark_connect_is_read() -> None:
    fields = [{"name": name} for name in COUNTERS]
    sent = Row(values=list(range(len(COUNTERS))), schema={"fields": fields})
    found = wp.progress({"batchId": 0, "observedMetrics": {"windowpane": sent}})
    assert dict(found) == {name: number for number, name in enumerate(COUNTERS)}


def test_metrics_of_the_user_are_no_counters() -> None:
    assert dict(wp.progress({"batchId": 0, "observedMetrics": {"mine": Row(n=1)}})) == {}


def test_counters_of_two_operators_are_added_and_are_there_by_name() -> None:
    metrics = {name: Row(**(dict.fromkeys(COUNTERS, 0) | {"late_dropped": n})) for name, n in (("a", 1), ("a_next", 2))}
    found = wp.progress({"batchId": 0, "observedMetrics": metrics})
    assert found["late_dropped"] == 3
    assert found.operators["a_next"]["late_dropped"] == 2


@pytest.mark.spark
def test_a_quiet_query_answers_before_its_first_row_and_long_after_its_last(spark: Any, tmp_path: Path) -> None:
    for name, value in QUIET.items():
        spark.conf.set(name, value)
    feed = Feed(tmp_path / "in").add([("a", 0, 1)], [("a", 100, 1)], [("a", 10, 1)])
    result = (
        wp.stream(feed.stream(spark), "t", "0 seconds", name="mine").key_by("k").window(TumblingEventTimeWindows.of("1 minute"))
    )
    writer = result.aggregate(n=wp.count()).df.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "ck"))
    query = writer.trigger(processingTime="100 milliseconds").start()
    try:
        assert wp.progress(query).operators["mine"].keys() == {*COUNTERS, "malformed"}
        query.processAllAvailable()
        while any(each.observedMetrics for each in query.recentProgress):
            time.sleep(0.2)
        found = wp.progress(query)
    finally:
        query.stop()
        for name in QUIET:
            spark.conf.unset(name)
    assert (found["firings"], found["late_dropped"], found["open_windows"]) == (1, 1, 1)
    assert json.dumps(dict(found))
