"""Inspections of queries on Spark: state in snapshots and change logs, compared with what Spark itself reads of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

import windowpane as wp
from tests.spark.helpers import Feed, run
from windowpane.errors import InvalidSpecError
from windowpane.inspect.checkpoints import Checkpoint
from windowpane.spark.internals.blob_state import SparkBlobStore

pytestmark = pytest.mark.spark

SCHEMA = "k string, t timestamp, v long"
LOGGED = {
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.streaming.stateStore.minDeltasForSnapshot": "2",
    "spark.sql.streaming.stateStore.maintenanceInterval": "300ms",
}


def test_the_blobs_are_those_that_spark_reads(spark: Any, tmp_path: Path) -> None:
    """Keys come and go, and pages of sessions are cut: entries are put, replaced and removed."""
    before = {name: spark.conf.get(name, None) for name in LOGGED}
    for name, value in LOGGED.items():
        spark.conf.set(name, value)
    try:
        batches = [[(f"key {n % 40}", float(20 * b + n % 9), n) for n in range(200)] for b in range(4)]
        feed = Feed(tmp_path / "in", SCHEMA).add(*batches)
        sessions = (
            wp.stream(feed.stream(spark), "t", "5 seconds").key_by("k").window(wp.EventTimeSessionWindows.with_gap("4 seconds"))
        )
        result = sessions.aggregate(n=wp.count(), total=wp.sum("v"))
        with pytest.raises(InvalidSpecError, match="start it"):
            result.explain(cost=True)
        run(result, checkpoint=tmp_path / "ck")
    finally:
        for name, value in before.items():
            spark.conf.unset(name) if value is None else spark.conf.set(name, value)
    cost = result.explain(cost=True)
    assert "800 rows read" in cost
    assert f"windowpane: {sum(n for n in wp.inspect(tmp_path / 'ck').batches['firings'].to_pylist())} results" in cost
    page = wp.ui(vars(result)["_query"])
    try:
        with urlopen(f"{page.url}data") as answer:
            batches = json.loads(answer.read())["queries"][0]["tables"]["batches"]["rows"]
    finally:
        page.close()
    assert [row["rows_in"] for row in batches if row["rows_in"]] == [200] * 4
    checkpoint = Checkpoint(str(tmp_path / "ck"))
    (buckets,) = [checkpoint.buckets(operator, checkpoint.last_batch()) for operator in checkpoint.operators()]
    state = spark.read.format("statestore").option("stateVarName", SparkBlobStore.DECLARED[0]).load(str(tmp_path / "ck"))
    rows = state.selectExpr("partition_id", "user_map_key.name", "user_map_value.blob").collect()
    expected = {(row[0], row[1]): bytes(row[2]) for row in rows}
    assert any(name.endswith(".changelog") for name in checkpoint.names("state/0/0"))
    assert {at: buckets[at[0]].get(at[1]) for at in expected} == expected
    assert all(bucket.get("nothing of that name") is None for bucket in buckets)
    shown = wp.inspect(tmp_path / "ck").contents()
    assert sorted(zip(shown["k"].to_pylist(), shown["n"].to_pylist(), shown["total"].to_pylist(), strict=True)) == sorted(
        (f"key {key}", sum(n % 40 == key for n in range(200)), sum(n for n in range(200) if n % 40 == key)) for key in range(40)
    )
