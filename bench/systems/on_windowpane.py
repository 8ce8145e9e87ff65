"""windowpane on Spark."""

from __future__ import annotations

from typing import Any

import windowpane as wp
from bench.programs import Program
from bench.systems.spark_job import DELAY, read, run, session
from bench.systems.task_folder import read_task


def assigner(program: Program) -> Any:
    if program.kind == "tumbling":
        return wp.TumblingEventTimeWindows.of(f"{program.size} seconds")
    if program.kind == "sliding":
        return wp.SlidingEventTimeWindows.of(f"{program.size} seconds", f"{program.slide} seconds")
    return wp.EventTimeSessionWindows.with_gap(f"{program.size} seconds")


def main() -> None:
    task = read_task()
    windowed = wp.stream(read(session(), task), event_time="ts", watermark=DELAY).key_by("k").window(assigner(task.program))
    run(task, windowed.aggregate(n=wp.count(), s=wp.sum("price"), m=wp.max("price")).df)


if __name__ == "__main__":
    main()
