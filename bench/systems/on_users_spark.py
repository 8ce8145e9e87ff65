"""Native Spark on rows like users'."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from bench.programs import Task
from bench.systems.on_spark import window
from bench.systems.spark_job import delay, session
from bench.systems.task_folder import read_task
from bench.systems.users_job import case_of, rows, run

_OTHERWISE = {
    "arg_max": F.max_by,
    "arg_min": F.min_by,
    "approx_quantile": F.percentile_approx,
    # Spark refuses count(DISTINCT) on streams.
    "count_distinct": lambda column: F.size(F.collect_set(column)),
}


def aggregate(function: str, *arguments: Any) -> Any:
    """Return a call of windowpane's as one of Spark."""
    if not arguments:
        return F.count(F.lit(1))
    return _OTHERWISE.get(function, getattr(F, function, None))(*arguments)


def results(task: Task, stream: DataFrame) -> DataFrame:
    case = case_of(task)
    aggregates = [aggregate(*call).alias(name) for name, call in case.aggregates.items()]
    grouped = stream.withWatermark("ts", delay(task)).groupBy(window(task.program).alias("w"), *case.keys)
    return grouped.agg(*aggregates).withColumn("window_end", F.col("w.end"))


def main() -> None:
    task = read_task()
    run(task, results(task, rows(session(), task)), "update" if case_of(task).early else "append")


if __name__ == "__main__":
    main()
