"""windowpane with a function of the user's own, on rows as a user gets them by default: count, sum and max kept in Python."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import windowpane as wp
from bench.systems.on_windowpane import assigner, warm_session
from bench.systems.spark_job import delay
from bench.systems.task_folder import read_task
from bench.systems.users_job import case_of, rows, run

_SCHEMA = "n bigint, s bigint, m bigint"


class CountSumMax(wp.AggregateFunction):
    """A row at a time into a tuple."""

    def create_accumulator(self) -> tuple[int, int, int]:
        return 0, 0, 0

    def add(self, value: Any, accumulator: tuple[int, int, int]) -> tuple[int, int, int]:
        price = value["price"]
        return accumulator[0] + 1, accumulator[1] + price, max(accumulator[2], price)

    def get_result(self, accumulator: tuple[int, int, int]) -> dict[str, int]:
        return {"n": accumulator[0], "s": accumulator[1], "m": accumulator[2]}

    def merge(self, left: tuple[int, int, int], right: tuple[int, int, int]) -> tuple[int, int, int]:
        return left[0] + right[0], left[1] + right[1], max(left[2], right[2])


class CountSumMaxOfAll(wp.ProcessWindowFunction):
    """The same of all rows of a window, which are kept until it fires."""

    def process(self, key: Any, context: Any, elements: Any) -> Any:
        prices = [row["price"] for row in elements]
        yield {"n": len(prices), "s": sum(prices), "m": max(prices)}


def main(settings: Mapping[str, str] | None = None, keeps_rows: bool = False) -> None:
    task = read_task()
    stream = wp.stream(rows(warm_session(settings), task), event_time="ts", watermark=delay(task))
    windowed = stream.key_by(*case_of(task).keys).window(assigner(task.program))
    function = windowed.process(CountSumMaxOfAll(), _SCHEMA) if keeps_rows else windowed.aggregate(CountSumMax(), schema=_SCHEMA)
    run(task, function.df)


if __name__ == "__main__":
    main()
