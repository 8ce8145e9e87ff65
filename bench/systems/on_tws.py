"""What a user of Spark writes by hand: transformWithState with one group a key, a map of window to sums, a timer a window."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from bench.programs import Task
from bench.systems.spark_job import delay, read, run, session
from bench.systems.task_folder import read_task

_SCHEMA = "k bigint, window_end timestamp, n bigint, s bigint, m bigint"


class Tumbling(StatefulProcessor):
    """count, sum and max of each open window of a key."""

    def __init__(self, size: int) -> None:
        self._size = size * 1000

    def init(self, handle: Any) -> None:
        self._handle = handle
        self._windows = handle.getMapState("windows", "window_end bigint", "n bigint, s bigint, m bigint")

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803
        brought: dict[int, tuple[int, int, int]] = {}
        for row in rows:
            end = row.ms // self._size * self._size + self._size
            n, s, m = brought.get(end, (0, 0, 0))
            brought[end] = (n + 1, s + row.price, max(m, row.price))
        for end, (n, s, m) in brought.items():
            held = self._windows.getValue((end,))
            if held is None:
                self._handle.registerTimer(end)
                self._windows.updateValue((end,), (n, s, m))
            else:
                self._windows.updateValue((end,), (n + held[0], s + held[1], max(m, held[2])))
        return iter(())

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Row]:  # noqa: N802, N803
        from datetime import UTC, datetime

        end = expiredTimerInfo.getExpiryTimeInMs()
        n, s, m = self.taken(end)
        self._windows.removeKey((end,))
        yield Row(k=key[0], window_end=datetime.fromtimestamp(end / 1000, UTC), n=n, s=s, m=m)

    def taken(self, end: int) -> tuple[int, int, int]:
        """Return count, sum and max of a window that ends."""
        n, s, m = self._windows.getValue((end,))
        return n, s, m

    def close(self) -> None:
        """Nothing to release."""


class Lag(StatefulProcessor):
    """The price of the row before, for rows that come in order."""

    def init(self, handle: Any) -> None:
        self._last = handle.getValueState("last", "price bigint")

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803
        held = self._last.get()
        last = held[0] if held is not None else 0
        for row in sorted(rows, key=lambda row: row.ts):
            yield Row(k=row.k, window_end=row.ts, n=0, s=row.price, m=last)
            last = row.price
        self._last.update((last,))

    def close(self) -> None:
        """Nothing to release."""


def main() -> None:
    task: Task = read_task()
    if task.program.kind == "lag":
        grouped = read(session(), task).groupBy(task.program.key)
        run(task, grouped.transformWithState(Lag(), _SCHEMA, "append", "None"))
        return
    rows = read(session(), task).withWatermark("ts", delay(task)).selectExpr("k", "price", "ts", "unix_millis(ts) AS ms")
    run(task, rows.groupBy("k").transformWithState(Tumbling(task.program.size), _SCHEMA, "append", "EventTime"))


if __name__ == "__main__":
    main()
