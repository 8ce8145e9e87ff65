"""Joins of two streams beside Spark's: two streams of files, each a batch, in a process of its own.

Usage: ``python -m bench.joins [--kind interval|window|as_of] [--how inner|left] [--rows N] [--batches N] [--keys N] [--texts]
[--delay SECONDS]``. A batch has half of its rows on each side, and spans a minute of event time in disorder. Rows join within
ten seconds, in windows of ten seconds, or each left row with the latest right row until then. Beside it runs Spark's
stream-stream join, or where Spark has none, as of an instant, what a user writes by hand on transformWithState. The last batch is
one row a side, a day later, so that all before it is final: both systems must give as many rows. A long ``--delay`` holds many.
``--quick`` shows in a minute that all of it runs.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.batches import FIRST_FILE, put_in_place, seconds_of_batches, steady
from bench.each_system import arguments, run_each

SYSTEMS = ("spark", "windowpane")
KINDS = ("interval", "window", "as_of")
SIDES = ("left", "right")
_SECOND = 1_000_000


def write_batches(folder: Path, rows: int, batches: int, keys: int, *, texts: bool) -> None:
    """Write a file a side and batch, and a last one of a single row."""
    draw = np.random.default_rng(11)
    names = (
        np.array([f"customer-{number:012}-{number * 7919 % keys:012}" for number in range(keys)]) if texts else np.arange(keys)
    )
    for number in range(batches + 1):
        count = rows // 2 if number < batches else 1
        start = FIRST_FILE + (60 * number if number < batches else 86_400)
        for side in SIDES:
            times = start * _SECOND + draw.integers(0, 60 * _SECOND, count)
            columns = {
                "k": names[draw.integers(0, keys, count)],
                "at": pa.array(times, pa.timestamp("us", "UTC")),
                "v": draw.integers(0, 10**6, count),
            }
            path = folder / side / f"{number:03}.parquet"
            path.parent.mkdir(exist_ok=True)
            pq.write_table(pa.table(columns), path)
            put_in_place(path, number)


def run(system: str, folder: Path, kind: str, how: str, delay: int) -> None:
    """Run one system over the files, and print its figures."""
    from pyspark.sql import functions as F

    from bench.systems.spark_job import session

    spark = session()
    key = pq.read_schema(folder / "left" / "000.parquet").field("k").type
    columns = f"k {'string' if pa.types.is_string(key) else 'long'}, at timestamp, v long"
    reader = spark.readStream.schema(columns).option("maxFilesPerTrigger", 1)
    left, right = (reader.parquet(str(folder / side)) for side in SIDES)
    joined = _joined(system, left, right, kind, how, f"{delay} seconds").observe("joined", F.count(F.lit(1)).alias("n"))
    with tempfile.TemporaryDirectory() as work:
        writer = joined.writeStream.format("noop").option("checkpointLocation", work)
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        progress = list(query.recentProgress)
    # The last batch with rows makes all before it final.
    *seconds, _ = seconds_of_batches(progress)
    median = steady(seconds)
    found = sum(each.observedMetrics["joined"].n for each in progress if "joined" in each.observedMetrics)
    rows = sum(pq.read_metadata(folder / side / "000.parquet").num_rows for side in SIDES)
    print(f"{system:10}  {median:6.2f} s a batch  {rows / median / 1e6:5.2f} M rows/s  {found:>11,} rows  {seconds}", flush=True)


def _joined(system: str, left: Any, right: Any, kind: str, how: Any, delay: str) -> Any:
    if system == "windowpane":
        return _by_windowpane(left, right, kind, how, delay)
    return _by_hand(left, right, how, delay) if kind == "as_of" else _by_spark(left, right, kind, how, delay)


def _by_windowpane(left: Any, right: Any, kind: str, how: Any, delay: str) -> Any:
    import windowpane as wp

    one, other = (wp.stream(side, event_time="at", watermark=delay) for side in (left, right))
    if kind == "as_of":
        return wp.as_of(one, other).on("k").match("backward").how(how).select("k", v=wp.left("v"), r_v=wp.right("v")).df
    joined = wp.join(one, other).on("k")
    if kind == "window":
        return joined.window(wp.TumblingEventTimeWindows.of("10 seconds")).how(how).df
    return joined.within("-10 seconds", "10 seconds").how(how).df


def _by_spark(left: Any, right: Any, kind: str, how: Any, delay: str) -> Any:
    from pyspark.sql import functions as F

    one, other = left.withWatermark("at", delay), right.withWatermark("at", delay)
    if kind == "window":
        # Spark takes one column with a watermark a side: that of the windows, not the time that they are made of.
        one, other = (
            side.select("k", F.window("at", "10 seconds").alias("w"), F.unix_micros("at").alias("at"), "v")
            for side in (one, other)
        )
    one, other = one.alias("l"), other.alias("r")
    near = "l.w = r.w" if kind == "window" else "r.at BETWEEN l.at - INTERVAL 10 SECONDS AND l.at + INTERVAL 10 SECONDS"
    columns = [F.col("l.k").alias("k"), *(F.col(f"{of}.{name}").alias(f"{of}_{name}") for of in "lr" for name in ("at", "v"))]
    return one.join(other, F.expr(f"l.k = r.k AND {near}"), how).select(*columns)


def _by_hand(left: Any, right: Any, how: Any, delay: str) -> Any:
    from pyspark.sql import functions as F

    from bench.systems.as_of_tws import SCHEMA, Latest

    marked = left.withColumn("is_left", F.lit(True)).union(right.withColumn("is_left", F.lit(False)))
    rows = marked.withWatermark("at", delay).selectExpr("k", "at", "v", "is_left", "unix_micros(at) AS micros")
    schema = SCHEMA.format(key=left.schema["k"].dataType.simpleString())
    found = rows.groupBy("k").transformWithState(Latest(), schema, "append", "EventTime")
    return found if how == "left" else found.where("r_v IS NOT NULL")


def main() -> None:
    parser = arguments(__doc__, SYSTEMS)
    parser.add_argument("--kind", choices=KINDS, default="interval")
    parser.add_argument("--quick", action="store_true", help="20,000 rows of 500 keys, 3 batches")
    parser.add_argument("--how", choices=("inner", "left"), default="inner")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--batches", type=int, default=8)
    parser.add_argument("--keys", type=int, default=100_000)
    parser.add_argument("--texts", action="store_true", help="keys are texts of 34 characters")
    parser.add_argument("--delay", type=int, default=60)
    given = parser.parse_args()
    if given.quick:
        given.rows, given.keys, given.batches = 20_000, 500, 3

    def write(folder: Path) -> None:
        write_batches(folder, given.rows, given.batches, given.keys, texts=given.texts)

    run_each(given, SYSTEMS, write, lambda system, folder: run(system, folder, given.kind, given.how, given.delay))


if __name__ == "__main__":
    main()
