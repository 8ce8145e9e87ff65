"""Python workers: one daemon for all stages of a query, started ahead by who asks for it."""

from __future__ import annotations

import os
import sys
from typing import Any, cast

import psutil
import pyarrow as pa
import pytest

import windowpane as wp
from tests.spark.helpers import EVENTS, Feed, run
from windowpane.spark.internals.forked_workers import _templates
from windowpane.spark.internals.session import setting
from windowpane.spark.internals.worker import GROUP, NEEDED, shared_workers

pytestmark = pytest.mark.spark

SIMPLIFIED = "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled"
HIDDEN = "spark.sql.execution.pyspark.udf.hideTraceback.enabled"


def with_daemon(batches):
    """Put the process that forked this worker into every row."""
    for batch in batches:
        yield pa.Table.from_batches([batch]).set_column(2, "v", pa.array([os.getppid()] * batch.num_rows, pa.int64()))


def with_template(batches):
    """Yield the process that forked the daemon of this worker, and what was imported before the worker looked."""
    for _ in batches:
        pass
    yield pa.RecordBatch.from_pydict({"pid": [psutil.Process(os.getppid()).ppid()], "had": [NEEDED[0] in sys.modules]})


class Daemons(wp.ProcessWindowFunction):
    """Emits the daemon of the first stage and that of this one."""

    def process(self, key, context, elements):
        for element in elements:
            yield {"first": element["v"], "second": os.getppid()}


def test_all_stages_of_a_query_run_in_workers_of_one_daemon(spark, tmp_path):
    feed = Feed(tmp_path / "in").add([("a", 1, 0), ("b", 2, 0)], [("a", 25, 0)])
    stream = wp.stream(wp.map_in_arrow(feed.stream(spark), with_daemon, EVENTS), event_time="t", watermark="2 seconds")
    windowed = stream.key_by("k").window(wp.TumblingEventTimeWindows.of("10 seconds"))
    result = windowed.process(Daemons(), schema="first long, second long")
    found = run(result, "main").rows()
    assert len(found) == 2
    assert {first == second for *_, first, second in found} == {True}


def test_the_daemon_of_a_local_session_is_a_fork_of_what_has_imported_already(spark):
    found = spark.range(2).mapInArrow(with_template, "pid long, had boolean").distinct().collect()
    assert [tuple(row) for row in found] == [(template.pid, True) for template in _templates]


@pytest.mark.parametrize(
    ("told", "given"),
    [
        ({SIMPLIFIED: "true", HIDDEN: "false"}, {"SPARK_SIMPLIFIED_TRACEBACK": "1"}),
        ({SIMPLIFIED: "false", HIDDEN: "true"}, {"SPARK_HIDE_TRACEBACK": "1"}),
        ({SIMPLIFIED: "false", HIDDEN: "false"}, {}),
    ],
    ids=["simplified", "hidden", "neither"],
)
def test_the_environment_of_other_stages_is_lent_and_taken_back(spark, told, given):
    environment, before = spark.sparkContext.environment, dict(spark.sparkContext.environment)
    settings = {name: setting(spark, name) for name in told}
    reads = iter(environment)  # as a batch of another query does, in another thread
    try:
        for name, value in told.items():
            spark.conf.set(name, value)
        with shared_workers(spark):
            assert spark.sparkContext.environment == {**before, **given}
            assert [*reads] == [*before] != []
        assert spark.sparkContext.environment is environment
        assert environment == before
    finally:
        for name, value in settings.items():
            spark.conf.set(name, value)


def test_warming_up_is_one_job_of_its_own_group(spark):
    thread = wp.warm_up(spark)
    thread.join(60)
    assert not thread.is_alive()
    (job,) = spark.sparkContext.statusTracker().getJobIdsForGroup(GROUP)
    assert spark.sparkContext.statusTracker().getJobInfo(job).status == "SUCCEEDED"


def test_a_session_that_is_gone_cannot_be_warmed_up_and_only_the_log_says_so(caplog):
    class Gone:
        def range(self, rows):
            raise OSError("closed")

    with caplog.at_level("INFO"):
        wp.warm_up(cast("Any", Gone())).join(10)
    assert "were not warmed up: closed" in caplog.text
