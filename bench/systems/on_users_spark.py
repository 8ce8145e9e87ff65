"""Native Spark on rows like users'."""

from __future__ import annotations

from typing import Any

from pyspark.sql import functions as F

from bench.systems.on_spark import window
from bench.systems.spark_job import delay, session
from bench.systems.task_folder import read_task
from bench.systems.users_job import case_of, rows, run


def main() -> None:
    task = read_task()
    case, spark = case_of(task), session()
    aggregates: list[Any] = [
        (F.count(F.lit(1)) if column is None else getattr(F, function)(column)).alias(name)
        for name, (function, column) in case.aggregates.items()
    ]
    grouped = rows(spark, task).withWatermark("ts", delay(task)).groupBy(window(task.program).alias("w"), *case.keys)
    run(task, grouped.agg(*aggregates))


if __name__ == "__main__":
    main()
