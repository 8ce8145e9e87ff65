"""PyFlink's DataStream API: Python window functions in process mode, heap state, no checkpoints."""

from __future__ import annotations

import sys
import time
from typing import Any

from pyflink.common import Configuration, Duration, Types, WatermarkStrategy
from pyflink.common.time import Time
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.connectors.file_system import FileSource, StreamFormat
from pyflink.datastream.functions import AggregateFunction, ProcessWindowFunction
from pyflink.datastream.window import EventTimeSessionWindows, SlidingEventTimeWindows, TumblingEventTimeWindows

from bench.programs import CHECK, TEXT_KEY, Program
from bench.systems.task_folder import read_task, write_figures


class Milliseconds(TimestampAssigner):  # type: ignore[misc]
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int(value.rsplit(",", 1)[1])


class CountSumMax(AggregateFunction):  # type: ignore[misc]
    def create_accumulator(self) -> tuple[int, int, int]:
        return 0, 0, 0

    def add(self, value: Any, accumulator: Any) -> tuple[int, int, int]:
        price = value[1]
        return accumulator[0] + 1, accumulator[1] + price, max(accumulator[2], price)

    def get_result(self, accumulator: Any) -> Any:
        return accumulator

    def merge(self, a: Any, b: Any) -> tuple[int, int, int]:
        return a[0] + b[0], a[1] + b[1], max(a[2], b[2])


class WithEnd(ProcessWindowFunction):  # type: ignore[misc]
    def process(self, key: Any, context: Any, elements: Any) -> Any:
        for n, s, m in elements:
            yield key, context.window().end, n, s, m


def assigner(program: Program) -> Any:
    if program.kind == "tumbling":
        return TumblingEventTimeWindows.of(Time.seconds(program.size))
    if program.kind == "sliding":
        return SlidingEventTimeWindows.of(Time.seconds(program.size), Time.seconds(program.slide))
    return EventTimeSessionWindows.with_gap(Time.seconds(program.size))


def parsed(line: str) -> tuple[int, int]:
    k, price, _ = line.split(",")
    return int(k), int(price)


def named(line: str) -> tuple[str, int]:
    k, price, _ = line.split(",")
    return TEXT_KEY + k, int(price)


def main() -> None:
    task = read_task()
    configuration = Configuration()
    configuration.set_string("python.executable", sys.executable)
    configuration.set_string("taskmanager.memory.process.size", "6g")
    configuration.set_string("python.state.cache-size", "100000")
    environment = StreamExecutionEnvironment.get_execution_environment(configuration)
    environment.set_parallelism(2)
    source = FileSource.for_record_stream_format(StreamFormat.text_line_format(), *task.files).build()
    lateness = Duration.of_millis(task.program.delay * 1000 + 1)
    watermarks = WatermarkStrategy.for_bounded_out_of_orderness(lateness).with_timestamp_assigner(Milliseconds())
    key, parse = (Types.STRING(), named) if task.program.text_keys else (Types.LONG(), parsed)
    results = (
        environment.from_source(source, WatermarkStrategy.no_watermarks(), "bids")
        .assign_timestamps_and_watermarks(watermarks)
        .map(parse, Types.TUPLE([key, Types.LONG()]))
        .key_by(lambda row: row[0], key)
        .window(assigner(task.program))
        .aggregate(CountSumMax(), WithEnd(), Types.PICKLED_BYTE_ARRAY(), Types.TUPLE([key, *[Types.LONG()] * 4]))
    )
    begun, rows, total = time.monotonic(), 0, 0
    check = compile(CHECK.format(end="end"), "check", "eval")
    with results.execute_and_collect() as found:
        for k, end, n, s, m in found:
            if task.closed_ms is None or end <= task.closed_ms:
                rows += 1
                number = int(k.removeprefix(TEXT_KEY)) if task.program.text_keys else k
                total += eval(check, {}, {"k": number, "end": end, "n": n, "s": s, "m": m})
    write_figures(task, rows_per_s=task.rows / (time.monotonic() - begun), rows=rows, checksum=total)


if __name__ == "__main__":
    main()
