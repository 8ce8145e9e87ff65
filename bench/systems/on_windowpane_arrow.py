"""windowpane on Spark, the files read by Arrow in its own Python stage."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

import windowpane as wp
from bench.programs import Task
from bench.systems.on_windowpane import over, warm_session, windowed
from bench.systems.spark_job import input_folder, read, run
from bench.systems.task_folder import read_task

_ROWS = "k bigint, price bigint, ts timestamp"
_NOT_OPTIMISED = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"}
"""A JVM that compiles once: a job of seconds that hardly gives the JVM rows to read, or to take as results, is over before
optimising pays."""
_FEW_RESULTS = 100_000


def timed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Milliseconds -> timestamps."""
    for batch in batches:
        yield pa.table({"k": batch["k"], "price": batch["price"], "ts": batch["ms"].cast(pa.timestamp("ms", "UTC"))})


def identified(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Give each row the id that the others' rows have."""
    for batch in batches:
        micros, key = batch["ts"].cast(pa.int64()), batch["k"]
        place = pc.subtract(key, pc.multiply(pc.divide(key, 1_000), 1_000))
        yield pa.Table.from_batches([batch]).append_column("id", pc.add(pc.multiply(micros, 1_000), place))


def rows(spark: Any, task: Task) -> Any:
    """Return the task's rows: a stream of Parquet as it comes; of CSV, and of rows with an id, what our own reader makes."""
    if task.format == "parquet" and not task.emit:
        return read(spark, task)
    folder, files = input_folder(task), {"maxFilesPerTrigger": task.batch_files}
    if task.format == "csv":
        made = wp.read_in_arrow(spark, folder, "k bigint, price bigint, ms bigint", "csv", **files).map_in_arrow(timed, _ROWS)
    else:
        made = wp.read_in_arrow(spark, folder, _ROWS, **files)
    return made.map_in_arrow(identified, f"{_ROWS}, id bigint") if task.emit else made


def main() -> None:
    task = read_task()
    is_short = task.format == "csv" and not task.emit and task.keys <= _FEW_RESULTS
    made = rows(warm_session(_NOT_OPTIMISED if is_short else None), task)
    run(task, over(task, made) if task.emit else windowed(task, made))


if __name__ == "__main__":
    main()
