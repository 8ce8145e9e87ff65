"""A query that is deployed anew, as people do it: run as ``python deploy_program.py INPUT WORK STEP``, where a test kills it.

The old program has sessions with late rows, and an OVER window on their results; the new one has one aggregate more, twice the
lateness, and another name for an output of the OVER window. A step ends when it has read all files, or stalls in a batch.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import windowpane as wp
from tests.brief_jvm import brief_settings
from tests.spark.restart_program import LATE, stall

SCHEMA = "k string, t timestamp, v long, heartbeat boolean"


def program(spark: SparkSession, folder: str, is_new: bool) -> Any:
    df = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(folder)
    rows = wp.stream(df, event_time="t", watermark="2 seconds", heartbeat="heartbeat").key_by("k")
    windows = rows.window(wp.EventTimeSessionWindows.with_gap("5 seconds")).side_output_late_data(LATE)
    windows = windows.allowed_lateness("8 seconds" if is_new else "4 seconds")
    calls = {"n": wp.count(), "total": wp.sum("v")} | ({"top": wp.max("v")} if is_new else {})
    sessions = windows.aggregate(**calls)
    over = wp.over(sessions.df, key=["k", "window_start", "n"], event_time="window_end", name="ordered").partition_by("k")
    name = "previous" if is_new else "before"
    return over.order_by("window_end").select("*", **{name: wp.lag("total")}).emit_on_window_close()


def run(
    spark: SparkSession, folder: str, work: Path, is_new: bool, stalls_in: int | None = None, checkpoint: str = "checkpoint"
) -> None:
    """Run a program over all files there are, from the checkpoint; it stalls in a batch once."""

    def write(rows: Any, batch: int) -> None:
        if batch == stalls_in:
            stall(f"{work}/stalled.{batch}")
        rows.write.mode("overwrite").json(f"{work}/main/batch={batch}")

    result = program(spark, folder, is_new)
    query = result.start(
        main=write, late=f"{work}/late", checkpoint=f"{work}/{checkpoint}", changes="accept", trigger={"availableNow": True}
    )
    query.awaitTermination()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("input")
    parser.add_argument("work", type=Path)
    parser.add_argument("step", choices=["old", "new"])
    parser.add_argument("stalls_in", type=int)
    parser.add_argument("checkpoint")
    given = parser.parse_args()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = SparkSession.builder.master("local[2]").config(map=brief_settings(given.work)).getOrCreate()
    run(spark, given.input, given.work, given.step == "new", given.stalls_in, given.checkpoint)


if __name__ == "__main__":
    main()
