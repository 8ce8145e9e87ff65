"""Results of windows that are still open, beside Spark's update mode: one stream of files, each a batch, in a process of its own.

Usage: ``python -m bench.early_results [--rows N] [--keys N] [--batches N] [--check]``. Keys are texts; a file is some seconds of
event time, in disorder, and windows are minutes, so most of what a batch brings is of windows that batches before have shown.
``spark`` gives each changed window in update mode. ``batch`` does so with ``EachBatch``, ``changelog`` takes the result before
back as well, ``second`` shows a window a second of the clock after its first new row, and once more at its end. With ``--check``
the last results of all closed windows are compared with DuckDB's answer instead.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from bench.batches import seconds_of_batches, steady
from bench.each_system import arguments, run_each
from bench.payments import SECOND, write_batches

SYSTEMS = ("spark", "batch", "changelog", "second")
_WATERMARK = "10 seconds"


def run(system: str, folder: Path, checks: bool) -> None:
    """Run one system over the files, and print its figures, or how its results compare."""
    from bench.systems.spark_job import session

    spark = session()
    schema = "card string, at timestamp, amount long"
    payments = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder))
    with tempfile.TemporaryDirectory() as work:
        writer = _results(system, payments).writeStream.outputMode("update" if system == "spark" else "append")
        found = Path(work) / "found"
        if checks:
            writer = writer.foreachBatch(lambda shown, number: shown.write.parquet(str(found / f"{number}")))
        else:
            writer = writer.format("noop")
        query = writer.option("checkpointLocation", f"{work}/checkpoint").trigger(availableNow=True).start()
        query.awaitTermination()
        if checks:
            print(f"{system:9}  {_differing(folder, found)} closed windows differ from DuckDB's", flush=True)
            return
    seconds = seconds_of_batches(query.recentProgress)
    median = steady(seconds)
    out = sum(each.observedMetrics["out"].n for each in query.recentProgress if "out" in each.observedMetrics)
    print(f"{system:9}  {median:6.2f} s a batch  {out:>12,} rows out  {seconds}", flush=True)


def _results(system: str, payments: Any) -> Any:
    from pyspark.sql import functions as F

    import windowpane as wp

    if system == "spark":
        windows = payments.withWatermark("at", _WATERMARK).groupBy("card", F.window("at", "1 minute"))
        found = windows.agg(F.count(F.lit(1)).alias("n"), F.sum("amount").alias("total"), F.max("amount").alias("top"))
        found = found.select("card", F.col("window.start").alias("window_start"), "n", "total", "top")
    else:
        keyed = wp.stream(payments, event_time="at", watermark=_WATERMARK).key_by("card")
        trigger = wp.EarlyAndFinal(delay="1 second") if system == "second" else wp.EachBatch()
        windows = keyed.window(wp.TumblingEventTimeWindows.of("1 minute")).trigger(trigger)
        if system == "changelog":
            windows = windows.accumulation("retracting")
        found = windows.aggregate(n=wp.count(), total=wp.sum("amount"), top=wp.max("amount")).df
    return found.observe("out", F.count(F.lit(1)).alias("n"))


def _differing(folder: Path, found: Path) -> int:
    """Return how many windows that the watermark has closed differ from DuckDB's; an open one may lack its last rows."""
    import duckdb

    minute = 60 * SECOND
    shown = f"""
        select card, epoch_us(window_start) as start, max(n) as n, max_by(total, n) as total, max_by(top, n) as top
        from read_parquet('{found}/*/*.parquet') group by all
    """
    right = f"""
        select card, epoch_us("at") // {minute} * {minute} as start, count(*) as n, sum(amount) as total, max(amount) as top
        from '{folder}/*.parquet'
        group by all
        having start + {minute} < (select max(epoch_us("at")) from '{folder}/*.parquet') - 10 * {SECOND}
    """
    rows = duckdb.execute(
        f"""
        select count(*) from ({right}) a left join ({shown}) b using (card, start)
        where (a.n, a.total, a.top) is distinct from (b.n, b.total, b.top)
        """
    ).fetchall()
    return int(rows[0][0])


def main() -> None:
    parser = arguments(__doc__, SYSTEMS)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--keys", type=int, default=100_000)
    parser.add_argument("--batches", type=int, default=18)
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--check", action="store_true")
    given = parser.parse_args()

    def write(folder: Path) -> None:
        write_batches(folder, given.rows, given.keys, given.batches, given.seconds)

    run_each(given, SYSTEMS, write, lambda system, folder: run(system, folder, given.check))


if __name__ == "__main__":
    main()
