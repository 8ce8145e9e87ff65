"""The hand-written transformWithState on rows like users'."""

from __future__ import annotations

from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from bench.systems.on_tws import Tumbling
from bench.systems.spark_job import delay, session
from bench.systems.task_folder import read_task
from bench.systems.users_job import case_of, rows, run


def main(processor: type[Tumbling] = Tumbling) -> None:
    task = read_task()
    (key,) = case_of(task).keys
    columns = (f"{key} AS k", "price", "ts", "unix_millis(ts) AS ms")
    grouped = rows(session(), task).withWatermark("ts", delay(task)).selectExpr(*columns).groupBy("k")
    schema = "k string, window_end timestamp, n bigint, s bigint, m bigint"
    written: StatefulProcessor = processor(task.program.size)
    run(task, grouped.transformWithState(written, schema, "append", "EventTime").withColumnRenamed("k", key))


if __name__ == "__main__":
    main()
