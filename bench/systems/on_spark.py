"""Native Spark: groupBy of window or session_window."""

from __future__ import annotations

from typing import Any

from pyspark.sql import functions as F

from bench.programs import Program
from bench.systems.spark_job import delay, read, run, session
from bench.systems.task_folder import read_task


def window(program: Program) -> Any:
    if program.kind == "tumbling":
        return F.window("ts", f"{program.size} seconds")
    if program.kind == "sliding":
        return F.window("ts", f"{program.size} seconds", f"{program.slide} seconds")
    return F.session_window("ts", f"{program.size} seconds")


def main() -> None:
    task = read_task()
    rows = read(session(), task).withWatermark("ts", delay(task))
    grouped = rows.groupBy(window(task.program).alias("w"), "k")
    results = grouped.agg(F.count(F.lit(1)).alias("n"), F.sum("price").alias("s"), F.max("price").alias("m"))
    run(task, results.select("k", F.col("w.end").alias("window_end"), "n", "s", "m"))


if __name__ == "__main__":
    main()
