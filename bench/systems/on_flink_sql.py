"""Flink SQL in streaming mode: heap state, no checkpoints, as many slots as cores; the job's own run time counts for its rate.

A run with few rows writes its results to files, so that they can be checked; a run with many throws them away.
"""

from __future__ import annotations

import csv
import time
from pathlib import Path

from pyflink.table import EnvironmentSettings, TableEnvironment

from bench.programs import CHECK, TEXT_KEY, Program, Task
from bench.systems.task_folder import read_task, write_figures

CORES = 2
CHECKED_ROWS = 1_000_000
_COLUMNS = "k BIGINT, window_end BIGINT, n BIGINT, s BIGINT, m BIGINT"


def environment() -> TableEnvironment:
    table_environment = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    settings = {
        "parallelism.default": str(CORES),
        "state.backend.type": "hashmap",
        "table.local-time-zone": "UTC",
        "table.exec.source.idle-timeout": "1 s",
        "taskmanager.memory.process.size": "6g",
    }
    for name, value in settings.items():
        table_environment.get_config().set(name, value)
    return table_environment


def source(task: Task) -> str:
    folder = Path(task.files[0]).parent.as_uri()
    return f"""CREATE TABLE bids (
        k BIGINT, price BIGINT, ms BIGINT, ts AS TO_TIMESTAMP_LTZ(ms, 3),
        WATERMARK FOR ts AS ts - INTERVAL '{task.program.delay}.001' SECOND(1, 3)
    ) WITH ('connector' = 'filesystem', 'path' = '{folder}', 'format' = 'csv')"""


def sink(task: Task) -> str:
    if task.rows > CHECKED_ROWS:
        return f"CREATE TABLE results ({_COLUMNS}) WITH ('connector' = 'blackhole')"
    path = Path(task.work).joinpath("results").as_uri()
    return f"CREATE TABLE results ({_COLUMNS}) WITH ('connector' = 'filesystem', 'path' = '{path}', 'format' = 'csv')"


def query(program: Program) -> str:
    if program.kind == "tumbling":
        return f"""INSERT INTO results
            SELECT k, UNIX_TIMESTAMP(CAST(window_end AS STRING)) * 1000, COUNT(*), SUM(price), MAX(price)
            FROM TABLE(TUMBLE(TABLE bids, DESCRIPTOR(ts), INTERVAL '{program.size}' SECOND))
            GROUP BY k, window_start, window_end"""
    key = f"'{TEXT_KEY}' || CAST(k AS STRING)" if program.text_keys else "k"
    if program.kind == "over":
        frame = f"PARTITION BY {key} ORDER BY ts ROWS BETWEEN {program.preceding} PRECEDING AND CURRENT ROW"
        return f"INSERT INTO results SELECT k, ms, 0, SUM(price) OVER ({frame}), MAX(price) OVER ({frame}) FROM bids"
    lag = f"LAG(price) OVER (PARTITION BY {key} ORDER BY ts)"
    return f"INSERT INTO results SELECT k, ms, 0, price, COALESCE({lag}, 0) FROM bids"


def checked(task: Task) -> dict[str, int]:
    """Return number and checksum of the results that were written, windows up to the last watermark of Spark only."""
    if task.rows > CHECKED_ROWS:
        return {}
    check, rows, total = compile(CHECK.format(end="end"), "check", "eval"), 0, 0
    for path in sorted(Path(task.work).joinpath("results").rglob("*")):
        if path.is_file():
            with path.open() as file:
                for k, end, n, s, m in csv.reader(file):
                    if task.closed_ms is None or int(end) <= task.closed_ms:
                        rows += 1
                        total += eval(check, {}, {"k": int(k), "end": int(end), "n": int(n), "s": int(s), "m": int(m)})
    return {"rows": rows, "checksum": total}


def main() -> None:
    task = read_task()
    table_environment = environment()
    table_environment.execute_sql(source(task))
    table_environment.execute_sql(sink(task))
    begun = time.monotonic()
    result = table_environment.execute_sql(query(task.program))
    result.wait()
    seconds = time.monotonic() - begun
    write_figures(task, rows_per_s=task.rows / seconds, **checked(task))


if __name__ == "__main__":
    main()
