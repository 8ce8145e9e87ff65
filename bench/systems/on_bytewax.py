"""Bytewax: its windowing operators, one worker process, state in memory."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import bytewax.operators as op
import bytewax.operators.windowing as windowing
import pyarrow as pa
import pyarrow.parquet as pq
from bytewax.dataflow import Dataflow
from bytewax.inputs import DynamicSource, StatelessSourcePartition
from bytewax.outputs import DynamicSink, StatelessSinkPartition
from bytewax.testing import cluster_main

from bench.programs import CHECK, Program, Task
from bench.systems.task_folder import read_task, write_figures

_CHUNK = 5_000
_ZERO = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


class Bids(DynamicSource):  # type: ignore[misc]
    """The rows of the files, from one worker."""

    def __init__(self, task: Task) -> None:
        self._task = task

    def build(self, step_id: str, worker_index: int, worker_count: int) -> StatelessSourcePartition[Any]:
        return _Reader(self._task if worker_index == 0 else None)


class _Reader(StatelessSourcePartition):  # type: ignore[misc,type-arg]
    def __init__(self, task: Task | None) -> None:
        self._chunks = _chunks(task) if task else iter(())

    def next_batch(self) -> list[Any]:
        return next(self._chunks)


def _chunks(task: Task) -> Iterator[list[Any]]:
    for file in task.files:
        for batch in pq.ParquetFile(file).iter_batches(_CHUNK):
            times = batch["ts"].cast(pa.timestamp("us")).to_pylist()
            columns = (batch["k"].cast("string").to_pylist(), batch["price"].to_pylist(), times)
            yield [(k, (price, ts.replace(tzinfo=UTC))) for k, price, ts in zip(*columns, strict=True)]


class _Sum(StatelessSinkPartition):  # type: ignore[misc,type-arg]
    """Adds up the results that windows give."""

    rows = 0
    total = 0
    check = compile(CHECK.format(end="end"), "check", "eval")

    def __init__(self, closed_ms: int | None) -> None:
        self._closed = closed_ms

    def write_batch(self, items: list[Any]) -> None:
        for k, (end, (n, s, m)) in items:
            if self._closed is None or end <= self._closed:
                _Sum.rows += 1
                _Sum.total += eval(self.check, {}, {"k": int(k), "end": end, "n": n, "s": s, "m": m})


class Summed(DynamicSink):  # type: ignore[misc]
    """Where results end."""

    def __init__(self, closed_ms: int | None) -> None:
        self._closed = closed_ms

    def build(self, step_id: str, worker_index: int, worker_count: int) -> _Sum:
        return _Sum(self._closed)


def windower(program: Program) -> Any:
    length = timedelta(seconds=program.size)
    if program.kind == "tumbling":
        return windowing.TumblingWindower(length=length, align_to=_ZERO)
    if program.kind == "sliding":
        return windowing.SlidingWindower(length=length, offset=timedelta(seconds=program.slide), align_to=_ZERO)
    return windowing.SessionWindower(gap=length)


def flow(task: Task) -> Dataflow:
    # With the time of the machine the watermark would run on while rows are read, and make some of them late.
    delay = timedelta(seconds=task.program.delay)
    clock = windowing.EventClock(lambda row: row[1], wait_for_system_duration=delay, now_getter=lambda: _ZERO)
    dataflow = Dataflow("bids")
    rows = op.input("rows", dataflow, Bids(task))
    folded = windowing.fold_window(
        "fold",
        rows,
        clock,
        windower(task.program),
        lambda: (0, 0, 0),
        lambda held, row: (held[0] + 1, held[1] + row[0], max(held[2], row[0])),
        lambda a, b: (a[0] + b[0], a[1] + b[1], max(a[2], b[2])),
    )
    length = timedelta(seconds=task.program.size)
    slide = timedelta(seconds=task.program.slide or task.program.size)

    def with_end(item: Any) -> Any:
        key, (number, value) = item
        return key, (int((_ZERO + number * slide + length - _ZERO) / _MILLISECOND), value)

    op.output("out", op.map("end", folded.down, with_end), Summed(task.closed_ms))
    return dataflow


def main() -> None:
    task = read_task()
    begun = time.monotonic()
    cluster_main(flow(task), [], 0, worker_count_per_proc=1)
    write_figures(task, rows_per_s=task.rows / (time.monotonic() - begun), rows=_Sum.rows, checksum=_Sum.total)


if __name__ == "__main__":
    main()
