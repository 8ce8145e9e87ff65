"""What the systems on rows like users' have in common: the rows as a stream, and the figures of a query."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from bench.programs import Task
from bench.shapes import ROWS_OF_USERS
from bench.systems import spark_job
from bench.user_rows import UserCase, write_rows


def case_of(task: Task) -> UserCase:
    """Return what a task computes."""
    return ROWS_OF_USERS[task.program.view]


def rows(spark: SparkSession, task: Task) -> DataFrame:
    """Return the rows as a stream, a file a batch."""
    case, folder = case_of(task), Path(task.work) / "input"
    write_rows(case, task, folder)
    files = spark.readStream.option("maxFilesPerTrigger", task.batch_files).schema(f"{case.schema}, ts timestamp")
    stream = files.parquet(str(folder))
    return stream.where(case.where) if case.where else stream


def run(task: Task, results: Any, mode: str = "append") -> None:
    """Run a query to its end and leave the figures, with the number of results and what is added up over them."""
    checked = results.observe("check", F.count(F.lit(1)).alias("rows"), F.sum(F.expr(case_of(task).check)).alias("checksum"))
    spark_job.run(task, checked, mode, check=False)
