"""How far the watermark of the next batch may have come: no Spark is started for it.

Spark's watermark is the latest event time of its stream less the delay; with several streams the least of them, and it never goes
back (Structured Streaming programming guide, "Policy for handling multiple watermarks").
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark import TaskContext

from windowpane.hidden_columns import TIME
from windowpane.spark.stages import next_watermark
from windowpane.spark.stages.blobs import unpack
from windowpane.spark.stages.messages import Mark
from windowpane.spark.stages.next_watermark import NextWatermark
from windowpane.state.memory import MemoryBlobStore
from windowpane.windowing.times import MIN

SPARKS, OWN = NextWatermark("sparks", delay=5), NextWatermark("own", delay=None)


class Tasks:
    """The tasks of one executor, batch by batch."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        self._patch, self._folder = monkeypatch, folder

    def of(self, run: str, batch: int) -> None:
        made = next_watermark._Batch(run, batch, self._folder)
        self._patch.setattr(next_watermark._Batch, "of_task", lambda: made)


@pytest.fixture
def tasks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Tasks:
    return Tasks(monkeypatch, tmp_path)


def mark(latest: int) -> pa.Table:
    made = Mark(None)
    made.see(pa.table({TIME: [latest]}))
    blob = made.blob()
    assert blob is not None
    return unpack(blob)


def test_tasks_know_what_a_bucket_published_one_batch_before_in_the_same_run(tasks: Tasks) -> None:
    store = MemoryBlobStore()
    tasks.of("one", 3)
    assert OWN.known() is None
    OWN.publish(store, 70, [])
    assert OWN.known() is None
    tasks.of("one", 4)
    assert OWN.known() == 70
    assert SPARKS.known() is None
    tasks.of("one", 5)
    assert OWN.known() is None
    tasks.of("two", 4)
    assert OWN.known() is None
    assert list(store.snapshot()) == list(MemoryBlobStore().snapshot())


def test_sparks_watermark_stays_behind_the_latest_event_time_and_never_goes_back(tasks: Tasks) -> None:
    store = MemoryBlobStore()
    tasks.of("one", 0)
    SPARKS.publish(store, MIN, [mark(20), mark(30)])
    tasks.of("one", 1)
    assert SPARKS.known() == 25
    SPARKS.publish(store, 24, [mark(8)])
    tasks.of("one", 2)
    assert SPARKS.known() == 25


def test_another_stream_may_hold_the_watermark_back_and_let_it_go_batches_later(tasks: Tasks) -> None:
    store = MemoryBlobStore()
    tasks.of("one", 0)
    SPARKS.publish(store, MIN, [mark(100)])
    for batch in (1, 2, 3):
        tasks.of("one", batch)
        assert SPARKS.known() == 95
        SPARKS.publish(store, 10, [])


def test_a_run_knows_nothing_of_the_rows_of_the_run_before_but_their_watermark(tasks: Tasks) -> None:
    store = MemoryBlobStore()
    tasks.of("one", 0)
    SPARKS.publish(store, MIN, [mark(100)])
    tasks.of("two", 1)
    SPARKS.publish(store, 10, [mark(50)])
    tasks.of("two", 2)
    assert SPARKS.known() == 45


class Context:
    """The context of a task, with the properties that Spark hands from the thread of a query to its tasks."""

    def __init__(self, policy: str | None) -> None:
        self._said = {"spark.jobGroup.id": "one", "spark.sql.streaming.multipleWatermarkPolicy": policy}
        self.batch = 0

    def getLocalProperty(self, name: str) -> str | None:  # noqa: N802 (Spark's name)
        return str(self.batch) if name == "streaming.sql.batchId" else self._said[name]


@pytest.mark.parametrize(("policy", "known"), [(None, 95), ("min", 95), ("max", None), ("MAX", None)])
def test_nothing_bounds_a_watermark_that_a_faster_stream_raises_but_an_operators_own_is_its_own(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, policy: str | None, known: int | None
) -> None:
    context = Context(policy)
    monkeypatch.setattr(TaskContext, "get", lambda: context)
    monkeypatch.setenv("SPARK_LOCAL_DIRS", f"{tmp_path},/elsewhere")
    SPARKS.publish(MemoryBlobStore(), MIN, [mark(100)])
    OWN.publish(MemoryBlobStore(), 70, [])
    context.batch = 1
    assert (SPARKS.known(), OWN.known()) == (known, 70)


def test_an_executor_whose_folder_is_gone_knows_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    tasks = Tasks(monkeypatch, tmp_path / "gone")
    tasks.of("one", 0)
    OWN.publish(MemoryBlobStore(), 70, [])
    tasks.of("one", 1)
    assert OWN.known() is None


def test_a_file_that_is_no_longer_whole_says_nothing(tasks: Tasks, tmp_path: Path) -> None:
    tasks.of("one", 0)
    OWN.publish(MemoryBlobStore(), 70, [])
    for path in (tmp_path / "windowpane").iterdir():
        path.write_text("{")
    tasks.of("one", 1)
    assert OWN.known() is None
