"""A checkpoint and its sink, one of them removed or restored from an older copy: an error with both numbers, before any row."""

from __future__ import annotations

import datetime as dt
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import StreamingQueryException

import windowpane as wp
from windowpane.errors import MisplacedStateError
from windowpane.sinks import ChangeWriter
from windowpane.spark.session import checkpoints
from windowpane.spark.sinks import paired
from windowpane.spark.sinks.paired import DeltaWriter, PairedSink, QueryId

pytestmark = pytest.mark.spark


class Program:
    """Counts in a folder, one file a batch; a run has two, and one without rows."""

    def __init__(self, spark: Any, folder: Path, sink: str) -> None:
        self.spark, self.folder, self.sink, self.files = spark, folder, sink, 0
        (folder / "in").mkdir()

    def add(self) -> None:
        at = dt.datetime(2024, 1, 1, 0, self.files, tzinfo=dt.UTC)
        path = self.folder / "in" / f"{self.files}.parquet"
        pq.write_table(pa.table({"k": ["a"], "at": pa.array([at], pa.timestamp("us", "UTC"))}), path)
        os.utime(path, (1_700_000_000 + self.files,) * 2)
        self.files += 1

    def start(self, **trigger: Any) -> Any:
        stream = self.spark.readStream.schema("k string, at timestamp").option("maxFilesPerTrigger", 1)
        stream = wp.stream(stream.parquet(str(self.folder / "in")), "at", "1 second").key_by("k")
        result = stream.window(wp.TumblingEventTimeWindows.of("1 minute")).trigger(wp.EachBatch()).aggregate(n=wp.count())
        out = self.folder / "out"
        main = ChangeWriter(str(out / "s.duckdb"), ("k", "window_start"), "t") if self.sink == "duckdb" else str(out / "files")
        out.mkdir(exist_ok=True)
        return result.start(main=main, checkpoint=str(self.folder / "ck"), trigger=trigger or {"availableNow": True})

    def run(self, copy: str | None = None) -> None:
        for _ in range(2):
            self.add()
        self.start().awaitTermination()
        if copy is not None:
            shutil.copytree(self.folder / "out", self.folder / f"out {copy}")
            shutil.copytree(self.folder / "ck", self.folder / f"ck {copy}")

    def restore(self, part: str, copy: str | None) -> None:
        shutil.rmtree(self.folder / part)
        if copy is not None:
            shutil.copytree(self.folder / f"{part} {copy}", self.folder / part)

    def starts(self) -> int:
        if self.sink == "duckdb":
            from windowpane.stores import open_store

            store = open_store(str(self.folder / "out" / "s.duckdb"))
            ((count,),) = store.read("SELECT count(*) FROM t")
            store.close()
            return int(count)
        return int(self.spark.read.parquet(str(self.folder / "out" / "files")).select("window_start").distinct().count())


@pytest.mark.slow_but("duckdb")
@pytest.mark.parametrize("sink", ["duckdb", "files"])
@pytest.mark.slow
def test_a_sink_and_a_checkpoint_that_are_apart_are_refused(spark: Any, tmp_path: Path, sink: str) -> None:
    program = Program(spark, tmp_path, sink)
    program.run("first")
    program.run("second")
    program.add()
    for part, copy, words in (
        ("out", "first", "knows batch 5 to be taken"),
        ("out", None, "has no batch of checkpoint .*knows batch 5 to be taken"),
        ("ck", "first", "has batch 5 as the last one of checkpoint .*, which knows batch 2 to be taken"),
    ):
        program.restore(part, copy)
        with pytest.raises(MisplacedStateError, match=words):
            program.start()
        program.restore(part, "second")
    program.start().awaitTermination()
    assert program.starts() == 5


@pytest.mark.slow_but("files")
@pytest.mark.parametrize("sink", ["duckdb", "files"])
def test_a_sink_that_is_removed_during_a_run_ends_it(spark: Any, tmp_path: Path, sink: str) -> None:
    program = Program(spark, tmp_path, sink)
    program.add()
    query = program.start(processingTime="0 seconds")
    try:
        query.processAllAvailable()
        shutil.rmtree(tmp_path / "out")
        (tmp_path / "out").mkdir()
        program.add()
        with pytest.raises(StreamingQueryException, match=r"MisplacedStateError: .* has no batch of checkpoint"):
            query.processAllAvailable()
    finally:
        query.stop()


@pytest.mark.slow
def test_a_batch_that_the_sink_has_and_spark_has_not_committed_is_given_again(spark: Any, tmp_path: Path) -> None:
    for sink in ("duckdb", "files"):
        (tmp_path / sink).mkdir()
        program = Program(spark, tmp_path / sink, sink)
        program.run()
        for name in ("2", ".2.crc"):
            (tmp_path / sink / "ck" / "commits" / name).unlink(missing_ok=True)
        program.run()
        assert program.starts() == 4


@pytest.mark.slow
def test_another_sink_on_an_old_checkpoint_begins_there(spark: Any, tmp_path: Path) -> None:
    """What may change freely: the batches before are in the first one."""
    program = Program(spark, tmp_path, "files")
    program.run()
    shutil.move(tmp_path / "out", tmp_path / "before")
    program.sink = "duckdb"
    program.run()
    program.run()
    assert program.starts() == 4


def test_a_batch_given_by_hand_says_which_one_is_missing(spark: Any, tmp_path: Path) -> None:
    program = Program(spark, tmp_path, "duckdb")
    program.add()
    stream = spark.readStream.schema("k string, at timestamp").option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "in"))
    writer = ChangeWriter(str(tmp_path / "s.duckdb"), ("k", "at"), "t")

    def run(write: Callable[[Any, int], None]) -> None:
        writing = stream.writeStream.foreachBatch(write).option("checkpointLocation", str(tmp_path / "ck"))
        writing.trigger(availableNow=True).start().awaitTermination()

    run(writer)
    (tmp_path / "s.duckdb").unlink()
    program.add()
    with pytest.raises(
        StreamingQueryException, match=r"has no batch of query .*, which knows batch 0 to be taken and gives batch 1"
    ):
        run(writer)


def test_a_delta_table_and_a_checkpoint_that_are_apart_are_refused(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without Delta's jar: who writes the rows does not matter to the numbers."""
    place, checkpoint = tmp_path / "table", tmp_path / "ck"
    monkeypatch.setattr(DeltaWriter, "write", lambda self, rows, number: rows.write.mode("append").parquet(str(place)))
    for name in ("commits", "offsets"):
        (checkpoint / name).mkdir(parents=True)
    (checkpoint / "metadata").write_text('{"id": "q"}')

    def sink() -> PairedSink:
        return PairedSink(DeltaWriter(wp.DeltaTable(str(place)), QueryId(str(checkpoint))), str(checkpoint))

    rows = spark.range(1)
    for number in range(3):
        (checkpoint / "offsets" / str(number)).write_text("v1")
        sink().compare(rows)
        sink()(rows, number)
        (checkpoint / "commits" / str(number)).write_text("v1")
    assert spark.read.parquet(str(place)).count() == 3
    shutil.copytree(place / "_windowpane", tmp_path / "kept")
    for is_classic in (True, False):
        monkeypatch.setattr(paired, "is_classic", lambda spark, found=is_classic: found)
        monkeypatch.setattr(checkpoints, "is_classic", lambda spark, found=is_classic: found)
        sink().compare(rows)
        shutil.rmtree(place / "_windowpane")
        with pytest.raises(MisplacedStateError, match=r"has no batch of checkpoint .*knows batch 2 to be taken"):
            sink().compare(rows)
        with pytest.raises(MisplacedStateError, match=r"has no batch of checkpoint .*gives batch 3"):
            sink()(rows, 3)
        shutil.copytree(tmp_path / "kept", place / "_windowpane")
