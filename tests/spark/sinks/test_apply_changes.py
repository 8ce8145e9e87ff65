"""Changelogs of Spark DataFrames applied to a store."""

from __future__ import annotations

import datetime as dt
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import functions as F

import windowpane as wp
from windowpane.errors import InvalidSpecError, UnknownColumnError
from windowpane.sinks import ChangeWriter, apply_changes
from windowpane.stores import Store, open_store

pytestmark = pytest.mark.spark


def rows(store: str) -> list[tuple[Any, ...]]:
    opened = open_store(store)
    found = sorted(opened.read("SELECT k, v FROM t"))
    opened.close()
    return found


def write(folder: Path, number: int, *changes: tuple[int, str, str]) -> None:
    keys, values, words = zip(*changes, strict=True)
    folder.mkdir(exist_ok=True)
    path = folder / f"{number}.parquet"
    pq.write_table(pa.table({"k": pa.array(keys, pa.int64()), "v": values, "_change_type": words}), path)
    os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))  # Spark reads files in this order


def test_a_streaming_changelog_goes_on_from_its_checkpoint(spark: Any, tmp_path: Path) -> None:
    folder, store = tmp_path / "in", str(tmp_path / "views.duckdb")

    def run(value: str = "v") -> None:
        changes = spark.readStream.schema("k bigint, v string, _change_type string").parquet(str(folder))
        changes = changes.withColumn("v", F.expr(value))
        checkpoint = str(tmp_path / "checkpoint")
        query = apply_changes(changes, store, "k", table="t", checkpoint=checkpoint, trigger={"availableNow": True})
        query.awaitTermination()

    write(folder, 0, (1, "a", "insert"), (2, "b", "insert"))
    run()
    assert rows(store) == [(1, "a"), (2, "b")]
    write(folder, 1, (1, "a", "update_preimage"), (1, "c", "update_postimage"), (2, "b", "delete"))
    run()
    assert rows(store) == [(1, "c")]
    write(folder, 2, (3, "d", "insert"))
    with pytest.raises(StreamingQueryException, match=r"windowpane.errors.FailedBatchError: batch 2 failed") as caught:
        run(r"raise_error('\nwindowpane.errors.UserFunctionError: a bad row')")
    assert "windowpane.errors.UserFunctionError: a bad row" in str(caught.value).splitlines()[0]
    assert len(str(caught.value).splitlines()) < 30


@pytest.mark.slow_but_one_in(4)
@pytest.mark.parametrize("way", ["checkpoint", "none", "foreachBatch", "start"])
def test_a_query_with_a_new_checkpoint_is_applied_to_a_table_that_exists(spark: Any, tmp_path: Path, way: str) -> None:
    """Its batches are numbered from 0 again: none of them is one that the table has."""
    store, writer = str(tmp_path / "views.duckdb"), ChangeWriter(str(tmp_path / "views.duckdb"), ("k",), "t")
    for number in range(2):
        write(tmp_path / f"in{number}", 0, (number, "a", "insert"), (9, f"{number}", "insert"))
        changes, checkpoint = stream(spark, tmp_path / f"in{number}"), str(tmp_path / f"checkpoint{number}")
        for _ in range(2):
            if way == "foreachBatch":
                started = changes.writeStream.foreachBatch(writer).option("checkpointLocation", checkpoint)
                query = started.trigger(availableNow=True).start()
            elif way == "start":
                first = wp.stream(changes.drop("_change_type")).key_by("k").count_window(1).aggregate(v=wp.first("v"))
                query = first.start(main=writer, checkpoint=checkpoint, trigger={"availableNow": True})
            else:
                given = checkpoint if way == "checkpoint" else None
                query = apply_changes(changes, store, "k", table="t", checkpoint=given, trigger={"availableNow": True})
            query.awaitTermination()
    assert rows(store) == [(0, "a"), (1, "a"), (9, "1")]


def test_a_static_dataframe_is_applied_at_once(spark: Any, tmp_path: Path) -> None:
    store = str(tmp_path / "views.duckdb")
    apply_changes(spark.createDataFrame([(1, "a"), (2, "b")], "k bigint, v string"), store, ["k"], table="t")
    apply_changes(spark.createDataFrame([(2, "c")], "k bigint, v string"), store, ["k"], table="t")
    assert rows(store) == [(1, "a"), (2, "c")]
    with pytest.raises(InvalidSpecError, match=r"checkpoint='c' belongs to a query, and this DataFrame is static"):
        apply_changes(spark.createDataFrame([(1, "a")], "k bigint, v string"), store, "k", table="t", checkpoint="c")
    with pytest.raises(UnknownColumnError, match=r"key of apply_changes: there is no column 'kk'"):
        apply_changes(spark.createDataFrame([(1, "a")], "k bigint, v string"), store, "kk", table="t")


def stream(spark: Any, folder: Path) -> Any:
    reader = spark.readStream.schema("k bigint, v string, _change_type string").option("maxFilesPerTrigger", 1)
    return reader.parquet(str(folder))


def start(changes: Any, folder: Path, **trigger: Any) -> Any:
    store, checkpoint = str(folder / "views.duckdb"), str(folder / "checkpoint")
    return apply_changes(changes, store, "k", table="t", checkpoint=checkpoint, trigger=trigger or None)


def is_soon_true(condition: Any) -> bool:
    deadline = time.monotonic() + 60
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)
    return bool(condition())


def test_sessions_that_fire_and_merge_in_one_batch_leave_the_merged_one(spark: Any, tmp_path: Path) -> None:
    times = [("k", dt.datetime(2024, 1, 1, second=second)) for second in (0, 15, 8)]
    sessions = (
        wp.stream(spark.createDataFrame(times, "k string, t timestamp").coalesce(1), event_time="t")
        .key_by("k")
        .window(wp.EventTimeSessionWindows.with_gap("10 seconds"))
        .trigger(wp.Repeatedly(wp.AfterCount(1)))
        .accumulation("retracting")
        .aggregate(v=wp.count())
    )
    assert sessions.df.count() == 5
    store = str(tmp_path / "views.duckdb")
    assert apply_changes(sessions.df, store, ["k", "window_start", "window_end"], table="t") is None
    assert rows(store) == [("k", 3)]


def test_stop_while_spark_computes_a_batch_ends_cleanly_and_the_batch_is_applied_later(spark: Any, tmp_path: Path) -> None:
    write(tmp_path / "in", 0, (1, "a", "insert"))
    write(tmp_path / "in", 1, (1, "a", "delete"), (2, "b", "insert"))
    begun = tmp_path / "begun"

    def slowly(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if batch.num_rows == 2:
                begun.touch()
                time.sleep(120)
            yield batch

    changes = stream(spark, tmp_path / "in")
    query = start(changes.mapInArrow(slowly, changes.schema), tmp_path)
    assert is_soon_true(begun.exists)
    query.stop()
    assert not query.isActive
    assert query.exception() is None
    assert rows(str(tmp_path / "views.duckdb")) == [(1, "a")]
    start(changes, tmp_path, availableNow=True).awaitTermination()
    assert rows(str(tmp_path / "views.duckdb")) == [(2, "b")]


def test_stop_while_the_store_writes_a_batch_applies_it_once(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "in", 0, (1, "a", "insert"))
    begun, applied = threading.Event(), list[int]()

    def open_slow_store(address: str) -> Store:
        store = open_store(address)
        apply = store.apply

        def apply_slowly(batch: Any) -> None:
            begun.set()
            time.sleep(0.5)
            apply(batch)
            applied.append(batch.number)

        monkeypatch.setattr(store, "apply", apply_slowly)
        return store

    changes = stream(spark, tmp_path / "in")
    with monkeypatch.context() as slow:
        slow.setattr("windowpane.stores.open_store", open_slow_store)
        query = start(changes, tmp_path)
        assert begun.wait(60)
        query.stop()
        assert query.exception() is None
        assert is_soon_true(lambda: applied)
    assert rows(str(tmp_path / "views.duckdb")) == [(1, "a")]
    write(tmp_path / "in", 1, (2, "b", "insert"))
    start(changes, tmp_path, availableNow=True).awaitTermination()
    assert rows(str(tmp_path / "views.duckdb")) == [(1, "a"), (2, "b")]


def test_tasks_bring_changes_to_postgres_as_the_driver_does_to_duckdb(
    spark: Any, tmp_path: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that move to another partition of the OVER window are deleted by one task and written by another."""
    folder, stores = tmp_path / "in", (postgres_url, str(tmp_path / "views.duckdb"))
    monkeypatch.setattr(ChangeWriter, "_apply", lambda *given: _driver(given, stores[1]))
    write(folder, 0, *((key, f"p{key % 5}", "insert") for key in range(40)))
    write(folder, 1, *((key, f"p{key % 5}", "delete") for key in range(0, 40, 3)))
    moved = [(key, where, word) for key in range(1, 40, 3) for where, word in (("p" + str(key % 5), "delete"), ("p9", "insert"))]
    write(folder, 2, *moved, (1, "p9", "delete"), (1, "p1", "insert"))

    def run(store: str, name: str) -> None:
        changes = spark.readStream.schema("k bigint, v string, _change_type string").option("maxFilesPerTrigger", 1)
        over = wp.over(changes.parquet(str(folder)), key="k").partition_by("v").order_by("k")
        result = over.select("k", "v", before=wp.lag("k")).emit_on_update()
        sink = ChangeWriter(store, ("k",), "t")
        for _ in range(2):
            query = result.start(main=sink, checkpoint=str(tmp_path / name), trigger={"availableNow": True})
            query.awaitTermination()

    def held(store: str) -> list[tuple[Any, ...]]:
        opened = open_store(store)
        found = sorted(opened.read("SELECT k, v, before FROM t"))
        opened.close()
        return found

    for number, store in enumerate(stores):
        run(store, f"checkpoint-{number}")
    left = [(key, "p9" if key % 3 == 1 and key > 1 else f"p{key % 5}") for key in range(40) if key % 3]
    last: dict[str, int] = {}
    expected = []
    for key, place in left:
        expected.append((key, place, last.get(place)))
        last[place] = key
    assert held(stores[0]) == held(stores[1]) == expected


_of_driver = ChangeWriter._apply


def _driver(given: tuple[Any, ...], store: str) -> None:
    """Apply on the driver, which is for one store alone."""
    assert given[0].store == store
    _of_driver(*given)
