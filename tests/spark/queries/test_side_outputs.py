"""Side outputs with ``start``: one query, state once, every sink once a batch, also when a sink fails in between."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException

import windowpane as wp
from tests.spark.helpers import EVENTS, WHY, Feed, plain, rows, run, table
from windowpane.errors import (
    InvalidSpecError,
    NotAFolderError,
    RunningCheckpointError,
    UndeclaredSideOutputError,
    UnknownColumnError,
)
from windowpane.planning.sinks import folder_columns
from windowpane.sinks import ChangeWriter, apply_changes

pytestmark = pytest.mark.spark

LATE = wp.OutputTag("late")
LARGE = wp.OutputTag("large", "v long")
BATCHES = [
    [("a", 1, 1), ("b", 2, 20)],
    [("a", 11, 3), ("a", 21, 40)],
    [("a", 4, 5), ("b", 22, 6)],
    [("a", 41, 7), ("b", 3, 8)],
    [("a", 61, 9)],
]
MAIN = [("a", 0, 10, 1), ("a", 10, 20, 3), ("a", 20, 30, 40), ("a", 40, 50, 7), ("b", 0, 10, 20), ("b", 20, 30, 6)]
DROPPED = [("a", 4, 5, [(0, 10)], True), ("b", 3, 8, [(0, 10)], True)]


class Split(wp.ProcessWindowFunction):
    """Sums a window and sends its large elements to a side output."""

    def process(self, key: Any, context: wp.ProcessContext, elements: Sequence[Any]) -> Iterable[Any]:
        for row in elements:
            if row["v"] >= 20:
                context.output(LARGE, {"v": row["v"]})
        return [{"v": sum(row["v"] for row in elements)}]


class Sum(wp.ProcessWindowFunction):
    """Sums a window."""

    def process(self, key: Any, context: wp.ProcessContext, elements: Sequence[Any]) -> Iterable[Any]:
        return [{"v": sum(row["v"] for row in elements)}]


def result(spark: Any, folder: Path, function: type[wp.ProcessWindowFunction] = Split) -> wp.Result:
    feed = Feed(folder / "in")
    if not feed.folder.exists():
        feed.add(*BATCHES)
    windows = wp.stream(feed.stream(spark), event_time="t", watermark="0 seconds").key_by("k")
    windows_of_ten = windows.window(wp.TumblingEventTimeWindows.of("10 seconds"))
    return windows_of_ten.side_output_late_data(LATE).side_output(LARGE).process(function(), "v long")


@pytest.mark.slow
def test_one_query_keeps_the_state_once_and_writes_every_output(spark: Any, tmp_path: Path) -> None:
    collected = run(result(spark, tmp_path), "main", "late", "large")
    assert collected.rows() == MAIN
    assert collected.rows("late") == DROPPED
    assert collected.rows("large") == [(20,), (40,)]
    assert {len(progress["stateOperators"]) for progress in collected.progress} == {1}
    assert sum(collected.counted("late_dropped")) == 2


@pytest.mark.slow
def test_a_batch_repeated_after_a_failing_sink_leaves_the_same_rows(spark: Any, tmp_path: Path) -> None:
    taken: dict[int, list[Any]] = {}
    calls: list[int] = []

    def fails_once(df: Any, batch_id: int) -> None:
        calls.append(batch_id)
        if batch_id == 2 and calls.count(2) == 1:
            raise RuntimeError("the disk is full")
        taken[batch_id] = [plain(row) for row in df.toArrow().to_pylist()]

    def start() -> Any:
        sinks: dict[str, Any] = {"main": f"{tmp_path}/main", "late": fails_once, "large": wp.Files(f"{tmp_path}/large", "json")}
        return result(spark, tmp_path).start(checkpoint=f"{tmp_path}/checkpoint", trigger={"availableNow": True}, **sinks)

    with pytest.raises(StreamingQueryException, match="the disk is full"):
        start().awaitTermination()
    assert max(taken) == 1
    query = start()
    query.awaitTermination()

    main = spark.read.parquet(f"{tmp_path}/main")
    assert rows(main.drop("query", "batch")) == MAIN
    assert sorted(row[: -len(WHY)] for batch in taken.values() for row in batch) == DROPPED
    assert rows(spark.read.schema("v long").json(f"{tmp_path}/large").select("v")) == [(20,), (40,)]
    assert calls.count(2) == 2
    assert all(calls.count(batch) == 1 for batch in taken if batch != 2)
    assert [folder.name for folder in (tmp_path / "main").iterdir()] == [f"query={query.id}"]


@pytest.mark.slow
def test_files_of_a_failed_batch_are_written_over_where_the_mended_program_emits_no_row(spark: Any, tmp_path: Path) -> None:
    def fails(df: Any, batch_id: int) -> None:
        if batch_id == 2:
            raise RuntimeError("the disk is full")

    options: dict[str, Any] = {"checkpoint": f"{tmp_path}/checkpoint", "trigger": {"availableNow": True}}
    with pytest.raises(StreamingQueryException, match="the disk is full"):
        result(spark, tmp_path).start(large=f"{tmp_path}/large", main=fails, **options).awaitTermination()
    assert rows(spark.read.parquet(f"{tmp_path}/large").select("v")) == [(20,)]
    result(spark, tmp_path, Sum).start(large=f"{tmp_path}/large", main=f"{tmp_path}/main", **options).awaitTermination()
    assert rows(spark.read.parquet(f"{tmp_path}/large").select("v")) == []
    assert rows(spark.read.parquet(f"{tmp_path}/main").drop("query", "batch")) == MAIN


@pytest.mark.slow
def test_files_have_a_folder_for_each_query_and_batch_with_rows_and_for_the_first(spark: Any, tmp_path: Path) -> None:
    started, checkpoint = result(spark, tmp_path), f"{tmp_path}/c"
    sinks: dict[str, Any] = {"main": f"{tmp_path}/main", "late": f"{tmp_path}/late"}
    query = started.start(**sinks, checkpoint=checkpoint, trigger={"availableNow": True})
    with pytest.raises(RunningCheckpointError, match=rf"belongs to query '{query.id}', .*spark.streams.get\('{query.id}'\).stop"):
        started.start(**sinks, checkpoint=checkpoint)
    query.awaitTermination()
    first = spark.read.parquet(f"{tmp_path}/late/query={query.id}/batch=0")
    assert (first.columns, first.count()) == (["k", "t", "v", "windows_missed", "dropped", *WHY], 0)
    folders = sorted(str(folder.relative_to(tmp_path)) for folder in (tmp_path / "main").glob("*/*") if folder.is_dir())
    assert folders == [f"main/query={query.id}/batch={batch}" for batch in (0, 2, 4, 5)]


@pytest.mark.slow
def test_a_side_output_alone_as_a_dataframe(spark: Any, tmp_path: Path) -> None:
    df = result(spark, tmp_path).get_side_output(LATE)
    writer = df.writeStream.format("parquet").option("checkpointLocation", f"{tmp_path}/c").trigger(availableNow=True)
    writer.start(f"{tmp_path}/late").awaitTermination()
    assert rows(spark.read.parquet(f"{tmp_path}/late").drop(*WHY)) == DROPPED


def test_undeclared_outputs_are_refused_by_name(spark: Any, tmp_path: Path) -> None:
    made = result(spark, tmp_path)
    with pytest.raises(UndeclaredSideOutputError, match="nobody"):
        made.start(nobody=f"{tmp_path}/nobody")
    with pytest.raises(UndeclaredSideOutputError, match="nobody"):
        made.get_side_output("nobody")


def test_start_refuses_static_input_and_what_is_no_sink(spark: Any, tmp_path: Path) -> None:
    static = wp.stream(table(spark, BATCHES[0], EVENTS), event_time="t").key_by("k").count_window(1).aggregate(n=wp.count())
    with pytest.raises(InvalidSpecError, match="static"):
        static.start(main=f"{tmp_path}/main")
    with pytest.raises(InvalidSpecError, match="at least one"):
        result(spark, tmp_path).start()
    with pytest.raises(InvalidSpecError, match="a sink is"):
        result(spark, tmp_path).start(main=7)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("columns", "folders"),
    [
        (["k", "v"], ("query", "batch")),
        (["Batch", "v"], ("query_2", "batch_2")),
        (["query", "batch_2", "v"], ("query_3", "batch_3")),
    ],
)
def test_folders_of_files_hide_no_column(columns: list[str], folders: tuple[str, str]) -> None:
    assert folder_columns(columns) == folders


def test_what_every_batch_would_fail_of_is_refused_before_the_first(spark: Any, tmp_path: Path) -> None:
    keyed = wp.stream(Feed(tmp_path / "in").add(*BATCHES).stream(spark), event_time="t", watermark="0 seconds").key_by("k")
    result = keyed.window(wp.TumblingEventTimeWindows.of("10 seconds")).aggregate(n=wp.sum("v"))
    file, checkpoint, store = tmp_path / "file", tmp_path / "checkpoint", str(tmp_path / "out.duckdb")
    file.write_text("")
    folder = str(tmp_path / "delta")
    for sink, role in (
        (ChangeWriter(store, ("word",), "t"), "key of ChangeWriter"),
        (ChangeWriter(store, ("k",), "t").select("n", word="k"), "key of ChangeWriter"),
        (wp.sinks.RedisHashes("redis://localhost", key="k"), "version of RedisHashes: there is no column 'as_of'"),
        (wp.sinks.RedisHashes("redis://localhost", key="word", version="n"), "key of RedisHashes"),
        (wp.sinks.kafka("topic", servers="localhost:1", key="word"), "key of sinks.kafka"),
        (wp.sinks.delta(folder, key="word"), "key of "),
        (wp.Files(folder).select("word"), "select of a sink"),
    ):
        with pytest.raises(UnknownColumnError, match=rf"{role}.*'k', .*'n'|{role}.*'n', 'word'"):
            result.start(main=sink, checkpoint=str(checkpoint))
    for below in (file, file / "below"):
        said = "'.*' is to be a folder, and '.*/file' is a file"
        for main in (str(below), wp.sinks.DeltaTable(str(below))):
            with pytest.raises(NotAFolderError, match=f"sink {said}"):
                result.start(main=main, checkpoint=str(checkpoint))
        with pytest.raises(NotAFolderError, match=f"checkpoint {said}"):
            result.start(main=folder, checkpoint=str(below))
    with pytest.raises(NotAFolderError, match="checkpoint"):
        apply_changes(Feed(tmp_path / "in").stream(spark), store, "k", table="t", checkpoint=str(file))
    written = ChangeWriter(store, ("K", "WINDOW_START"), "t")  # as Spark finds names
    result.start(main=written, checkpoint=str(checkpoint), trigger={"availableNow": True}).awaitTermination()
    assert not checkpoint.with_name("delta").exists()
