"""windowpane on Spark, with a watermark for each of 64 sources."""

from __future__ import annotations

from pyspark.sql import functions as F

import windowpane as wp
from bench.systems.on_windowpane import spark_rows, windowed
from bench.systems.spark_job import delay, run
from bench.systems.task_folder import read_task

_SOURCES = 64


def main() -> None:
    task = read_task()
    rows = spark_rows(task).withColumn("source", F.col("k") % _SOURCES)
    run(task, windowed(task, rows, watermark=wp.Watermarks.bounded(delay(task)).per_source("source")))


if __name__ == "__main__":
    main()
