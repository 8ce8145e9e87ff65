"""Scan, hop of the rows to Python, and the fixed cost of a batch with state: what any window in Python on Spark pays at least.

Each Arrow batch leaves two rows; a stateful stage of two groups counts them in one value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pandas as pd
import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from bench.systems.spark_job import CORES, read, run, session
from bench.systems.task_folder import read_task


class Counter(StatefulProcessor):
    """The number of Arrow batches so far."""

    def init(self, handle: Any) -> None:
        self._count = handle.getValueState("count", "n bigint")

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[pd.DataFrame]:  # noqa: N802, N803
        count = sum(len(frame) for frame in rows) + (self._count.get() or (0,))[0]
        self._count.update((count,))
        yield pd.DataFrame({"n": [count]})

    def close(self) -> None:
        """Nothing to release."""


def dropped(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for _ in batches:
        yield pa.RecordBatch.from_pydict({"bucket": list(range(CORES))}, pa.schema([("bucket", pa.int64())]))


def main() -> None:
    task = read_task()
    spark = session()
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "1000000")
    rows = read(spark, task).select("k", "price", F.unix_micros("ts").alias("ts"))
    buckets = rows.mapInArrow(dropped, "bucket bigint").groupBy("bucket")
    run(task, buckets.transformWithStateInPandas(Counter(), "n bigint", "append", "none"), check=False)


if __name__ == "__main__":
    main()
