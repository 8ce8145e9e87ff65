"""A checkpoint that Spark has repartitioned is refused by name in the first batch, and goes on once it is repartitioned back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark import TaskContext

import windowpane as wp
from tests.spark.helpers import SPARK, Feed, failure, run
from windowpane.errors import RepartitionedCheckpointError
from windowpane.spark.stages import layout
from windowpane.spark.stages.buckets import bucket_ids
from windowpane.spark.stages.layout import PROBED_BUCKET, Layout, probes
from windowpane.state.memory import MemoryBlobStore

pytestmark = pytest.mark.spark


def pairs(feed: Feed, spark: Any) -> wp.Result:
    """Return counts of every two rows of a key."""
    return wp.stream(feed.stream(spark), event_time="t").key_by("k").count_window(2).aggregate(n=wp.count(), v=wp.sum("v"))


@pytest.mark.slow
@pytest.mark.skipif(SPARK < (4, 2), reason="no offline repartition")
def test_a_repartitioned_checkpoint_is_refused_before_anything_is_written(spark: Any, tmp_path: Path) -> None:
    feed = Feed(tmp_path / "in").add([(f"k{n}", 1, n) for n in range(8)])
    checkpoint = tmp_path / "checkpoint"
    assert run(pairs(feed, spark), checkpoint=checkpoint).rows() == []
    manager = spark._streamingCheckpointManager

    manager.repartition(str(checkpoint), 3)
    manager.repartition(str(checkpoint), 2)
    feed.add([(f"k{n}", 2, 10) for n in range(4)])
    pairs_of_both = [(f"k{n}", None, None, 2, n + 10) for n in range(4)]
    assert run(pairs(feed, spark), checkpoint=checkpoint).rows() == pairs_of_both, "moved there and back"

    manager.repartition(str(checkpoint), 3)
    feed.add([("new", 3, 1)])
    for _ in range(2):
        said = failure(pairs(feed, spark), checkpoint=checkpoint)
        assert "RepartitionedCheckpointError" in said
        assert "written over 2 state partitions, and the checkpoint has been repartitioned to 3" in said


def test_the_probed_bucket_is_one_of_every_layout() -> None:
    assert all(PROBED_BUCKET in bucket_ids(partitions) for partitions in range(1, 300))


@pytest.mark.parametrize(("partition", "sent"), [(0, 1), (1, 0)])
def test_a_task_that_runs_again_sends_what_it_sent_before(monkeypatch: pytest.MonkeyPatch, partition: int, sent: int) -> None:
    """Whatever its process was given before: batch 7 of the run, or nothing."""

    class Task:
        def __init__(self, batch: str) -> None:
            self.batch = batch

        def partitionId(self) -> int:  # noqa: N802 - Spark's name
            return partition

        def getLocalProperty(self, name: str) -> str:  # noqa: N802 - Spark's name
            return self.batch if name == "streaming.sql.batchId" else "the same"

    monkeypatch.setattr(layout, "pinned_partitions", lambda: 4)
    for task in map(Task, "788"):
        monkeypatch.setattr(TaskContext, "get", lambda task=task: task)
        assert [bucket for bucket, _ in probes()] == [PROBED_BUCKET] * sent


def test_a_bucket_remembers_its_layout() -> None:
    store = MemoryBlobStore()
    for query in ("one", "two", "three"):
        Layout(query, 4).compare((0,), store)
    assert store.keys() == ["layout"]
    with pytest.raises(RepartitionedCheckpointError, match=r"over 4 state partitions, .* repartitioned to 8"):
        Layout("one", 8).compare((0,), store)
    reads = store.reads
    Layout("two", 4).compare((0,), store)
    assert store.reads == reads, "compared before, in this process"
