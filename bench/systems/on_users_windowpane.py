"""windowpane on rows like users', as a user gets it by default: the plain Parquet stream is read by Arrow."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame

import windowpane as wp
from bench.programs import Task
from bench.systems.on_windowpane import assigner, warm_session
from bench.systems.spark_job import delay
from bench.systems.task_folder import read_task
from bench.systems.users_job import case_of, rows, run


def results(task: Task, stream: DataFrame) -> DataFrame:
    case = case_of(task)
    keyed = wp.stream(stream, event_time="ts", watermark=delay(task)).key_by(*case.keys)
    windowed = keyed.window(assigner(task.program))
    if case.late:
        windowed = windowed.side_output_late_data("late")
    if case.early:
        windowed = windowed.trigger(wp.EachBatch())
    aggregates = {name: getattr(wp, function)(*arguments) for name, (function, *arguments) in case.aggregates.items()}
    return windowed.aggregate(**aggregates).df


def main(settings: Mapping[str, str] | None = None) -> None:
    task = read_task()
    run(task, results(task, rows(warm_session(settings), task)))


if __name__ == "__main__":
    main()
