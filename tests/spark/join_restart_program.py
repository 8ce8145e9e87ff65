"""Joins that a test kills and restarts: run as ``python join_restart_program.py INPUT WORK [--finish]``.

One join of each kind, on the same two streams. Each stalls once in the middle of a batch and leaves a marker, so that the test
can kill it there. With ``--finish`` the input is run to its end, and what all runs wrote is left in ``WORK/results.json``.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import windowpane as wp
from tests.brief_jvm import brief_settings
from tests.spark.restart_program import stalling_sink

STALLS_IN = 3


def side(spark: SparkSession, folder: str, value: str) -> wp.Stream:
    """Return a side, one file a micro-batch."""
    df = spark.readStream.schema(f"k string, t timestamp, {value} long").option("maxFilesPerTrigger", 1).parquet(folder)
    return wp.stream(df, event_time="t", watermark="20 seconds")


def joins(spark: SparkSession, folder: str) -> dict[str, Any]:
    """Return a join of each kind."""
    sides = side(spark, f"{folder}/left", "v"), side(spark, f"{folder}/right", "w")
    keyed, as_of = wp.join(*sides).on("k"), wp.as_of(*sides).on("k")
    return {
        "interval": keyed.within("-5 seconds", "3 seconds").how("full").select("v", "w"),
        "window": keyed.window(wp.TumblingEventTimeWindows.of("10 seconds")).how("left").select("v", "w"),
        "as_of": as_of.match("backward").select("v", "w"),
        "on_update": as_of.match("backward").select("v", "w").emit_on_update(key="v"),
    }


def main() -> None:
    folder, work, finishes = sys.argv[1], Path(sys.argv[2]), "--finish" in sys.argv
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = SparkSession.builder.master("local[2]").config(map=brief_settings(work)).getOrCreate()
    queries = []
    for name, joined in joins(spark, folder).items():
        main = stalling_sink(f"{work}/{name}/main", f"{work}/{name}.stalled", STALLS_IN)
        queries.append(joined.start(checkpoint=f"{work}/{name}/checkpoint", trigger={"availableNow": True}, main=main))
        # One after the other: workers of Spark must answer in ten seconds.
        while not (finishes or os.path.exists(f"{work}/{name}.stalled")) and queries[-1].isActive:
            time.sleep(0.05)
        if finishes or not queries[-1].isActive:
            queries[-1].awaitTermination()
    for query in queries:
        query.awaitTermination()
    written = {name: spark.read.parquet(f"{work}/{name}/main").drop("batch").collect() for name in joins(spark, folder)}
    (work / "results.json").write_text(json.dumps({name: [list(row) for row in rows] for name, rows in written.items()}))


if __name__ == "__main__":
    main()
