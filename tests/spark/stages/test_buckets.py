"""Buckets: ids whose Spark hash lands on each partition in turn."""

from __future__ import annotations

import pytest
from pyspark.sql import functions as F

from windowpane.spark.stages.buckets import bucket_ids, spark_hash

pytestmark = pytest.mark.spark


def test_the_hash_is_sparks_and_every_partition_gets_one_bucket(spark):
    numbers = [*range(40), 2**31 - 1, -1, -(2**31)]
    frame = spark.createDataFrame([(n,) for n in numbers], "n int").select("n", F.hash("n").alias("h"))
    assert {row.n: row.h for row in frame.collect()} == {n: spark_hash(n) for n in numbers}


@pytest.mark.parametrize("partitions", [1, 2, 7, 200])
def test_every_partition_has_one_bucket(spark, partitions):
    ids = bucket_ids(partitions)
    frame = spark.createDataFrame([(i, p) for p, i in enumerate(ids)], "id int, p int")
    placed = frame.select("p", F.pmod(F.hash("id"), F.lit(partitions)).alias("placed")).collect()
    assert len(ids) == partitions
    assert all(row.p == row.placed for row in placed)
