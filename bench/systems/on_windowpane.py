"""windowpane on Spark, which reads the rows and hands them over."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import functions as F

import windowpane as wp
from bench.programs import Program, Task
from bench.systems.spark_job import delay, read, run, session
from bench.systems.task_folder import read_task


def assigner(program: Program) -> Any:
    if program.kind == "tumbling":
        return wp.TumblingEventTimeWindows.of(f"{program.size} seconds")
    if program.kind == "sliding":
        return wp.SlidingEventTimeWindows.of(f"{program.size} seconds", f"{program.slide} seconds")
    return wp.EventTimeSessionWindows.with_gap(f"{program.size} seconds")


def windowed(task: Task, rows: Any, windows: Any = None, watermark: Any = None) -> Any:
    stream = wp.stream(rows, event_time="ts", watermark=watermark or delay(task))
    stream = stream.key_by("k").window(windows or assigner(task.program))
    return stream.aggregate(n=wp.count(), s=wp.sum("price"), m=wp.max("price")).df


def over(task: Task, rows: Any) -> Any:
    """LAG has a watermark, behind which no row may come in between; the growth of an update is that of rows it keeps for ever.

    Rows have an id.
    """
    clock = {"watermark": delay(task)} if task.emit == "close" or task.program.kind == "lag" else {}
    stream = wp.over(rows, event_time="ts", key="id", **clock).partition_by(task.program.key).order_by("ts")
    if task.program.kind == "lag":
        calls = {"s": wp.col("price"), "m": wp.lag("price")}
    else:
        frame = (-task.program.preceding, 0)
        calls = {"s": wp.sum("price").rows(*frame), "m": wp.max("price").rows(*frame)}
    selection = stream.select("k", wp.col("ts").alias("window_end"), **calls)
    result = selection.emit_on_window_close() if task.emit == "close" else selection.emit_on_update()
    return result.df.withColumns({"n": F.lit(0), "m": F.coalesce("m", F.lit(0))})


def warm_session(settings: Mapping[str, str] | None = None) -> Any:
    """Return a session whose Python workers are starting."""
    spark = session(settings)
    wp.warm_up(spark)
    return spark


def identified(rows: Any) -> Any:
    return rows.withColumn("id", F.unix_micros("ts") * 1_000 + F.col("k") % 1_000)


def spark_rows(task: Task) -> Any:
    """Return the rows of a task as Spark reads them."""
    return read(warm_session({"spark.windowpane.files.readInArrow": "false"}), task)


def main() -> None:
    task = read_task()
    rows = spark_rows(task)
    run(task, over(task, identified(rows)) if task.emit else windowed(task, rows))


if __name__ == "__main__":
    main()
