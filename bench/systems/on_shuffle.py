"""Scan and shuffle of the rows, nothing else: what any windowing on Spark pays at least."""

from __future__ import annotations

from bench.systems.spark_job import CORES, read, run, session
from bench.systems.task_folder import read_task


def main() -> None:
    task = read_task()
    run(task, read(session(), task).repartition(CORES, "k"), check=False)


if __name__ == "__main__":
    main()
