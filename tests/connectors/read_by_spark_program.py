"""Read a topic by Spark's own connector, and print windows over it; run by ``test_by_spark`` with the jars."""

from __future__ import annotations

import os
import sys
from typing import Any

from pyspark.sql import SparkSession

import windowpane as wp
from tests.brief_jvm import brief_settings
from tests.spark.helpers import rows


def main() -> None:
    jars, servers, topic, folder = sys.argv[1:]
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = SparkSession.builder.master("local[2]").config(map=brief_settings(folder)).config("spark.jars", jars).getOrCreate()
    read: dict[str, Any] = {
        "servers": servers,
        "value": wp.json("k string, t timestamp, v long"),
        "event_time": "t",
        "through": "spark",
    }
    events = wp.read_kafka(spark, topic, delay="10 seconds", max_rows_per_batch=2, include="offset", **read)
    keyed = wp.stream(events).key_by("k").window(wp.TumblingEventTimeWindows.of("10 seconds"))
    result = keyed.side_output_late_data("late").aggregate(n=wp.count(), s=wp.sum("v"))
    paths: dict[str, Any] = {name: f"{folder}/{name}" for name in ("main", "late", "malformed")}
    query = result.start(**paths, checkpoint=f"{folder}/checkpoint", trigger={"availableNow": True}, flush_at_end=True)
    query.awaitTermination()
    print([each[:6] for each in rows(spark.read.parquet(paths["main"]).drop("query", "batch"))])
    print(rows(spark.read.parquet(paths["malformed"]).select("topic", "partition", "offset", "key", "value")))
    bounded = wp.read_kafka(spark, topic, streaming=False, include=("partition", "offset"), starting={0: 3, 1: 4}, **read)
    print(rows(bounded.select("k", "v", "partition", "offset").filter("partition = 0")))
    spark.stop()


if __name__ == "__main__":
    main()
