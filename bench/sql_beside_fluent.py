"""Views of SQL on Spark beside the same programs in Python: processor time and seconds of a batch, in steady state.

Usage: ``python -m bench.sql_beside_fluent [--view NAME] [--rows N] [--keys N] [--batches N] [--few N]``. Files of payments, each
a batch, then as many files of ``--few`` rows. Each system runs in a process of its own; what is counted begins at half of the
batches of each size, when Python workers run and the JVM has compiled much of what it needs, and holds all processes: Python,
the JVM, workers. SQL writes its results to a DuckDB store, a program in Python appends them to Parquet files, and
native Spark, where it has the view, too. Each must emit the same number of rows.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from bench.each_system import arguments, command
from bench.payments import write_batches
from bench.process_tree import ProcessTree

_DELAY = "10 seconds"


class View(NamedTuple):
    """One view.

    Args:
        sql: its query, over ``payments``.
        fluent: the DataFrame of its results, of the payments.
        spark: the same by native Spark, which may lack it.
    """

    sql: str
    fluent: Callable[[Any], Any]
    spark: Callable[[Any], Any] | None


def _windows(assigner: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def results(payments: Any) -> Any:
        import windowpane as wp

        keyed = wp.stream(payments, event_time="at", watermark=_DELAY).key_by("card")
        return keyed.window(assigner(wp)).aggregate(n=wp.count(), total=wp.sum("amount"), top=wp.max("amount")).df

    return results


def _grouped(window: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def results(payments: Any) -> Any:
        from pyspark.sql import functions as F

        groups = payments.withWatermark("at", _DELAY).groupBy("card", window(F))
        return groups.agg(F.count(F.lit(1)).alias("n"), F.sum("amount").alias("total"), F.max("amount").alias("top"))

    return results


def _steps(payments: Any) -> Any:
    import windowpane as wp

    over = wp.over(payments, event_time="at", watermark=_DELAY, key="id").partition_by("card").order_by("at")
    return over.select("card", "at", "amount", before=wp.lag("amount")).emit_on_window_close().df


def _largest(payments: Any) -> Any:
    import windowpane as wp

    keyed = wp.stream(payments, event_time="at", watermark=_DELAY).key_by("card")
    return keyed.window(wp.TumblingEventTimeWindows.of("10 seconds")).aggregate(total=wp.sum("amount")).top(3, by="total").df


_AGGREGATES = "count(*) AS n, sum(amount) AS total, max(amount) AS top"
VIEWS = {
    "tumble": View(
        f"SELECT card, window_start, {_AGGREGATES} FROM tumble(payments, at, INTERVAL '10 seconds') "
        "GROUP BY card, window_start EMIT ON WINDOW CLOSE",
        _windows(lambda wp: wp.TumblingEventTimeWindows.of("10 seconds")),
        _grouped(lambda functions: functions.window("at", "10 seconds")),
    ),
    "hop": View(
        f"SELECT card, window_start, {_AGGREGATES} FROM hop(payments, at, INTERVAL '10 seconds', INTERVAL '1 minute') "
        "GROUP BY card, window_start EMIT ON WINDOW CLOSE",
        _windows(lambda wp: wp.SlidingEventTimeWindows.of("1 minute", "10 seconds")),
        _grouped(lambda functions: functions.window("at", "1 minute", "10 seconds")),
    ),
    "session": View(
        f"SELECT card, window_start, window_end, {_AGGREGATES} "
        "FROM session(payments PARTITION BY card, at, INTERVAL '10 milliseconds') "
        "GROUP BY card, window_start, window_end EMIT ON WINDOW CLOSE",
        _windows(lambda wp: wp.EventTimeSessionWindows.with_gap("10 milliseconds")),
        _grouped(lambda functions: functions.session_window("at", "10 milliseconds")),
    ),
    "lag": View(
        "SELECT card, at, amount, lag(amount) OVER (PARTITION BY card ORDER BY at) AS before FROM payments EMIT ON WINDOW CLOSE",
        _steps,
        None,
    ),
    "top": View(
        "SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY window_start ORDER BY total DESC) AS place FROM "
        "(SELECT card, window_start, sum(amount) AS total FROM tumble(payments, at, INTERVAL '10 seconds') "
        "GROUP BY card, window_start)) WHERE place <= 3 EMIT ON WINDOW CLOSE",
        _largest,
        None,
    ),
}


class Cost(threading.Thread):
    """The processor time of this process and all that it starts, whenever a query has ended a batch."""

    def __init__(self, spark: Any) -> None:
        """Look once it is started."""
        super().__init__(daemon=True)
        self._spark = spark
        self._tree = ProcessTree(os.getpid())
        self.seen: dict[int, float] = {}
        self.progress: dict[int, Any] = {}

    def run(self) -> None:
        """Look ten times a second."""
        while True:
            for query in self._spark.streams.active:
                for each in query.recentProgress:
                    if each.batchId not in self.progress:
                        self.progress[each.batchId] = each
                        self.seen[each.batchId] = self._tree.looked()
            time.sleep(0.1)

    def between(self, first: int, last: int) -> tuple[float, float]:
        """Return the processor time and the median of the seconds of a batch, for the batches behind ``first`` up to ``last``."""
        seconds = [self.progress[number].durationMs["triggerExecution"] / 1000 for number in range(first + 1, last + 1)]
        return (self.seen[last] - self.seen[first]) / (last - first), statistics.median(seconds)


def run(system: str, name: str, folder: Path, batches: int) -> None:
    """Run one system over the files, and print what a batch cost."""
    from bench.systems.spark_job import session

    spark, view = session(), VIEWS[name]
    cost = Cost(spark)
    cost.start()
    with tempfile.TemporaryDirectory() as work:
        if system == "sql":
            rows = _by_sql(spark, view, folder, work, cost, batches)
        else:
            schema = "card string, at timestamp, amount long, id long"
            payments = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder))
            made = view.fluent if system == "fluent" else view.spark
            assert made is not None
            writer = made(payments).writeStream.format("parquet").option("checkpointLocation", f"{work}/checkpoint")
            query = writer.option("path", f"{work}/out").trigger(availableNow=True).start()
            query.awaitTermination()
            rows = spark.read.parquet(f"{work}/out").count()
            _settle(cost, batches)
        many = cost.between(batches // 2 - 1, batches - 1)
        few = cost.between(batches + batches // 2 - 1, 2 * batches - 1)
        print(
            f"{name:8} {system:7} {many[0]:6.2f} s CPU, {many[1]:5.2f} s a batch; few rows {few[0]:6.2f} s CPU, {few[1]:5.2f} s; "
            f"{rows:,} rows out",
            flush=True,
        )


def _by_sql(spark: Any, view: View, folder: Path, work: str, cost: Cost, batches: int) -> int:
    from windowpane.sql import Session

    with Session(spark, f"{work}/store.duckdb") as store:
        store.run(
            "CREATE SOURCE payments (card text, at timestamp, amount bigint, WATERMARK FOR at AS at - INTERVAL '10 seconds') "
            f"WITH (connector = 'parquet', path = '{folder}', maxFilesPerTrigger = '1')"
        )
        store.run(f"CREATE MATERIALIZED VIEW found AS {view.sql}; FLUSH")
        _settle(cost, batches)
        return int(store.query("SELECT count(*) FROM found").rows()[0][0])


def _settle(cost: Cost, batches: int) -> None:
    deadline = time.monotonic() + 10
    while 2 * batches - 1 not in cost.seen and time.monotonic() < deadline:
        time.sleep(0.1)


def main() -> None:
    parser = arguments(__doc__, ("sql", "fluent", "spark"))
    parser.add_argument("--view", choices=VIEWS, action="append")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--few", type=int, default=1_000)
    parser.add_argument("--keys", type=int, default=1_000)
    parser.add_argument("--batches", type=int, default=12)
    given = parser.parse_args()
    if given.system is not None and given.folder is not None:
        run(given.system, given.view[-1], given.folder, given.batches)
        return
    with tempfile.TemporaryDirectory() as folder:
        write_batches(Path(folder), given.rows, given.keys, given.batches, 10)
        write_batches(Path(folder), given.few, given.keys, given.batches, 10, first=given.batches)
        for name in given.view or VIEWS:
            systems = ("sql", "fluent", *(["spark"] if VIEWS[name].spark else []))
            for system in systems if given.system is None else (given.system,):
                subprocess.run(command(system, Path(folder), "--view", name), check=True)


if __name__ == "__main__":
    main()
