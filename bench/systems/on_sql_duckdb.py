"""DuckDB from scratch: the query of a view over the first file's rows, as a table; processor time, of all threads."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

import duckdb

from bench.programs import Task
from bench.sql_views import VIEWS, loaded, write_rows
from bench.systems.task_folder import read_task, write_figures

TIMES = 5


def main() -> None:
    task: Task = read_task()
    pairs, times = write_rows(task.files[:1], task.file_rows[:1], task.keys, Path(task.work)), []
    with duckdb.connect() as connection:
        loaded(connection, pairs)
        for _ in range(TIMES):
            begun = time.process_time()
            connection.execute(f"CREATE OR REPLACE TABLE result AS {VIEWS[task.program.view].in_duckdb}")
            times.append(time.process_time() - begun)
    seconds = statistics.median(times)
    write_figures(task, batch_s=seconds, rows_per_s=task.file_rows[0] / seconds)


if __name__ == "__main__":
    main()
