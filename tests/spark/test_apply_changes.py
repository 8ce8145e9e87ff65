"""Changelogs of Spark DataFrames applied to a store."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import functions as F

from windowpane.errors import InvalidSpecError
from windowpane.sinks import apply_changes
from windowpane.stores import open_store

pytestmark = pytest.mark.spark


def rows(store: str) -> list[tuple[Any, ...]]:
    opened = open_store(store)
    found = sorted(opened.read("SELECT k, v FROM t"))
    opened.close()
    return found


def write(folder: Path, number: int, *changes: tuple[int, str, str]) -> None:
    keys, values, words = zip(*changes, strict=True)
    folder.mkdir(exist_ok=True)
    pq.write_table(pa.table({"k": pa.array(keys, pa.int64()), "v": values, "_change_type": words}), folder / f"{number}.parquet")


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


def test_a_static_dataframe_is_applied_at_once(spark: Any, tmp_path: Path) -> None:
    store = str(tmp_path / "views.duckdb")
    apply_changes(spark.createDataFrame([(1, "a"), (2, "b")], "k bigint, v string"), store, ["k"], table="t")
    apply_changes(spark.createDataFrame([(2, "c")], "k bigint, v string"), store, ["k"], table="t")
    assert rows(store) == [(1, "a"), (2, "c")]
    with pytest.raises(InvalidSpecError, match=r"checkpoint='c' belongs to a query, and this DataFrame is static"):
        apply_changes(spark.createDataFrame([(1, "a")], "k bigint, v string"), store, "k", table="t", checkpoint="c")
