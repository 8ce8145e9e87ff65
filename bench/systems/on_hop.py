"""Scan and hop of the rows from the JVM to Python, nothing else: what any Python on Spark pays at least."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from pyspark.sql import functions as F

from bench.systems.spark_job import read, run, session
from bench.systems.task_folder import read_task


def drop(batches: Iterable[Any]) -> Iterator[Any]:
    for batch in batches:
        yield batch.slice(0, 0).select(["k"])


def main() -> None:
    task = read_task()
    spark = session()
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "1000000")
    rows = read(spark, task).select("k", "price", F.unix_micros("ts").alias("ts"))
    run(task, rows.mapInArrow(drop, "k bigint"), check=False)


if __name__ == "__main__":
    main()
