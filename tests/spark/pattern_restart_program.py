"""A row pattern that a test kills and restarts: run as ``python pattern_restart_program.py INPUT WORK STALLS_IN|--finish``.

The query stalls in batch ``STALLS_IN`` and leaves a marker, so that the test can kill it there: in even batches when the tasks
have written results and state and the batch is not committed, in odd ones before they begin. With ``--finish`` it runs to the end
of the input, and what all runs wrote is left in ``WORK/results.json``.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import windowpane as wp
from tests.brief_jvm import brief_settings
from tests.spark.restart_program import stalling_sink

COLUMNS = "k string, t timestamp, kind string, v long"
NEVER = 1_000_000


def unpaid(spark: SparkSession, folder: str) -> Any:
    """Return orders without a payment within ten seconds."""
    rows = spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 1).parquet(folder)
    keyed = wp.stream(rows, event_time="t", watermark="20 seconds").key_by("k")
    kind = wp.col("kind")
    found = keyed.match("placed -> !paid", placed=kind == "order", paid=kind == "pay").within("10 seconds")
    return found.select(v=wp.first("placed.v"))


def main() -> None:
    folder, work, at = sys.argv[1], Path(sys.argv[2]), sys.argv[3]
    stalls_in = NEVER if at == "--finish" else int(at)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = SparkSession.builder.master("local[2]").config(map=brief_settings(work)).getOrCreate()
    sink = stalling_sink(f"{work}/main", f"{work}/stalled.{at}", stalls_in, when_written=stalls_in % 2 == 0)
    query = unpaid(spark, folder).start(checkpoint=f"{work}/checkpoint", trigger={"availableNow": True}, main=sink)
    query.awaitTermination()
    written = spark.read.parquet(f"{work}/main").drop("batch").collect()
    (work / "results.json").write_text(json.dumps([list(row) for row in written]))


if __name__ == "__main__":
    main()
