"""The start of a view of SQL on Spark beside that of the same program in Python, in a session that is warm.

Usage: ``python -m bench.sql_start [--view NAME] [--rows N] [--runs N]``. One file of payments. Each run starts the program in
Python, until its first batch is committed, and the view in a store of its own, from ``CREATE MATERIALIZED VIEW`` until
``FLUSH`` has returned: its first batch is in the store then. The first run of both is not counted. The figures are medians:
seconds, and the processor time of this process alone, and of it with the JVM and the Python workers.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.payments import write_batches
from bench.process_tree import ProcessTree
from bench.sql_beside_fluent import VIEWS, View


def fluent(spark: Any, view: View, folder: Path, measure: Callable[[], Any]) -> None:
    payments = spark.readStream.schema("card string, at timestamp, amount long, id long").parquet(str(folder))
    with tempfile.TemporaryDirectory() as work:
        with measure():
            writer = view.fluent(payments).writeStream.format("parquet").option("checkpointLocation", f"{work}/checkpoint")
            query = writer.option("path", f"{work}/out").start()
            while query.lastProgress is None or query.lastProgress["batchId"] < 0:
                time.sleep(0.01)
        query.stop()


def sql(spark: Any, view: View, folder: Path, measure: Callable[[], Any]) -> None:
    from windowpane.sql import Session

    with tempfile.TemporaryDirectory() as work, Session(spark, f"{work}/store.duckdb") as store:
        store.run(
            "CREATE SOURCE payments (card text, at timestamp, amount bigint, id bigint, "
            f"WATERMARK FOR at AS at - INTERVAL '10 seconds') WITH (connector = 'parquet', path = '{folder}')"
        )
        with measure():
            store.run(f"CREATE MATERIALIZED VIEW found AS {view.sql}; FLUSH")


class Start:
    """What the starts of one system took."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self.here: list[float] = []
        self.everywhere: list[float] = []

    @contextmanager
    def measured(self) -> Iterator[None]:
        tree = ProcessTree(os.getpid())
        everywhere, begun, here = tree.looked(), time.perf_counter(), time.process_time()
        yield
        self.seconds.append(time.perf_counter() - begun)
        self.here.append(time.process_time() - here)
        self.everywhere.append(tree.looked() - everywhere)

    def __str__(self) -> str:
        seconds, here, everywhere = (statistics.median(each[1:]) for each in (self.seconds, self.here, self.everywhere))
        return f"{seconds:5.2f} s, processor {here:5.2f} s here, {everywhere:5.2f} s in all"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--view", choices=VIEWS, action="append")
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--runs", type=int, default=5)
    given = parser.parse_args()
    from bench.systems.spark_job import session

    spark = session()
    with tempfile.TemporaryDirectory() as folder:
        write_batches(Path(folder), given.rows, 100, 1, 60)
        for name in given.view or VIEWS:
            starts = {start: Start() for start in (fluent, sql)}
            for _ in range(given.runs + 1):
                for start, figures in starts.items():
                    start(spark, VIEWS[name], Path(folder), figures.measured)
            for start, figures in starts.items():
                print(f"{name:8} {start.__name__:7} {figures}", flush=True)


if __name__ == "__main__":
    main()
