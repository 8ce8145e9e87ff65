"""DuckDB alone: five OVER calls on one table."""

from __future__ import annotations

import statistics
import time

import duckdb
import pyarrow.parquet as pq

from bench.programs import Task
from bench.systems.task_folder import read_task, write_figures

_FRAME = "OVER (PARTITION BY k ORDER BY ts ROWS BETWEEN 10 PRECEDING AND CURRENT ROW)"
_ORDER = "OVER (PARTITION BY k ORDER BY ts)"
_QUERY = f"""
    SELECT *, sum(price) {_FRAME} AS a, max(price) {_FRAME} AS b, count(*) {_FRAME} AS c,
        lag(price) {_ORDER} AS d, row_number() {_ORDER} AS e
    FROM bids ORDER BY ts
"""
TIMES = 5


def main() -> None:
    task: Task = read_task()
    bids, times = pq.read_table(list(task.files)), []
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.register("bids", bids)
        for _ in range(TIMES):
            begun = time.monotonic()
            connection.sql(_QUERY).to_arrow_table()
            times.append(time.monotonic() - begun)
    write_figures(task, batch_s=statistics.median(times), rows_per_s=task.rows / statistics.median(times))


if __name__ == "__main__":
    main()
