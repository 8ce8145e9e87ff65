"""Rolling features that a test kills and restarts: run as ``python rolling_restart_program.py INPUT WORK STALLS_IN|--finish``.

Each row's own features, and features at ticks, of one stream that begins with a history. A query stalls in the middle of batch
``STALLS_IN`` and leaves a marker, so that the test can kill it there. With ``--finish`` the input is run to its end, and what all
runs wrote is left in ``WORK/results.json``.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import windowpane as wp
from tests.brief_jvm import brief_settings
from tests.spark.helpers import instant
from tests.spark.restart_program import stalling_sink

COLUMNS = "k string, t timestamp, v long"
NEVER = 1_000_000


def features(spark: SparkSession, folder: str) -> dict[str, wp.RollingResult]:
    """Return the programs by name."""
    df = spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 1).parquet(f"{folder}/live")
    keyed = wp.rolling(df, event_time="t", watermark="20 seconds").by("k")
    rolling = keyed.over("5 seconds", "30 seconds", n=wp.count(), total=wp.sum("v")).hop("5 seconds").edge("exact")
    return {"each": rolling.emit("each"), "tick": rolling.emit("tick")}


def main() -> None:
    folder, work, at = sys.argv[1], Path(sys.argv[2]), sys.argv[3]
    stalls_in = NEVER if at == "--finish" else int(at)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = SparkSession.builder.master("local[2]").config(map=brief_settings(work)).getOrCreate()
    past = spark.read.schema(COLUMNS).parquet(f"{folder}/past")
    queries = []
    for name, result in features(spark, folder).items():
        sink = stalling_sink(f"{work}/{name}/main", f"{work}/{name}.{at}", stalls_in)
        begun = (work / name / "checkpoint" / "commits" / "0").exists()
        history: dict[str, Any] = {} if begun else {"history": past, "cut": instant(0)}
        checkpoint = f"{work}/{name}/checkpoint"
        queries.append(result.start(checkpoint=checkpoint, trigger={"availableNow": True}, main=sink, **history))
        # One after the other: workers of Spark must answer in ten seconds.
        while stalls_in < NEVER and not os.path.exists(f"{work}/{name}.{at}") and queries[-1].isActive:
            time.sleep(0.05)
        if stalls_in == NEVER:
            queries[-1].awaitTermination()
    for query in queries:
        query.awaitTermination()
    written: dict[str, Any] = {}
    for name in ("each", "tick"):
        rows = spark.read.parquet(f"{work}/{name}/main").drop("batch").withColumn("as_of", F.unix_micros("as_of"))
        written[name] = [list(row) for row in rows.collect()]
    (work / "results.json").write_text(json.dumps(written))


if __name__ == "__main__":
    main()
