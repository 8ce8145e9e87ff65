"""Read tables by the jars of Delta and Iceberg, and print windows over them; run by ``test_by_jars``."""

from __future__ import annotations

import os
import sys
from typing import Any

from pyspark.sql import SparkSession

import windowpane as wp
from tests.brief_jvm import brief_settings
from tests.spark.helpers import rows


def main() -> None:
    jars, delta, iceberg, folder = sys.argv[1:]
    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {
        "spark.jars": jars,
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    }
    spark = SparkSession.builder.master("local[2]").config(map={**brief_settings(folder), **settings}).getOrCreate()
    print(rows(spark.read.format("delta").load(delta).select("k", "v")))
    print(rows(spark.read.format("iceberg").load(iceberg).select("k", "v")))
    stream: Any = spark.readStream.format("delta").load(delta)
    keyed = wp.stream(stream, "t", "10 seconds").key_by("k").window(wp.TumblingEventTimeWindows.of("10 seconds"))
    query = keyed.aggregate(n=wp.count(), s=wp.sum("v")).start(
        main=f"{folder}/main", checkpoint=f"{folder}/checkpoint", trigger={"availableNow": True}, flush_at_end=True
    )
    query.awaitTermination()
    print(rows(spark.read.parquet(f"{folder}/main").select("k", "window_start", "n", "s")))
    spark.stop()


if __name__ == "__main__":
    main()
