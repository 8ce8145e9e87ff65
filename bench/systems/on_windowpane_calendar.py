"""windowpane on Spark, with windows of a calendar in place of fixed ones: in London's winter both have the same bounds."""

from __future__ import annotations

import windowpane as wp
from bench.systems.on_windowpane import spark_rows, windowed
from bench.systems.spark_job import run
from bench.systems.task_folder import read_task

_DAY = 86_400


def main() -> None:
    task = read_task()
    windows = wp.CalendarWindows.of(f"{task.program.size // _DAY} days", "Europe/London")
    run(task, windowed(task, spark_rows(task), windows=windows))


if __name__ == "__main__":
    main()
