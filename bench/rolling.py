"""Rolling features beside Spark's sliding windows: one stream of files, each a batch, in a process of its own.

Usage: ``python -m bench.rolling [--rows N] [--keys N] [--batches N] [--minutes N]``. Keys are texts; a file is some minutes of
event time, in disorder. Spark computes a window of an hour every 5 minutes, so each row is in 12 windows, and gives out the
windows that a batch changed. windowpane keeps the same aggregates over the last hour up to date for each key: with hop edges,
which see the same tiles, and with exact ones; ``both`` adds the last 6 hours, which Spark would need a second query for. What
is emitted is counted, not compared: Spark's windows end at tiles, and windowpane's now.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

from bench.batches import steady
from bench.each_system import arguments, run_each
from bench.payments import write_batches

SYSTEMS = ("spark", "hop", "exact", "both")
_WATERMARK = "2 minutes"


def run(system: str, folder: Path) -> None:
    """Run one system over the files, and print its figures."""
    from bench.systems.spark_job import session

    spark = session()
    schema = "card string, at timestamp, amount long"
    payments = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder))
    before = _cpu_seconds()
    with tempfile.TemporaryDirectory() as work:
        writer = _features(system, payments).writeStream.format("noop").outputMode("update" if system == "spark" else "append")
        query = writer.option("checkpointLocation", work).trigger(availableNow=True).start()
        query.awaitTermination()
        # A batch without rows only moves the watermark: it counts with the batch before it.
        seconds: list[float] = []
        for each in query.recentProgress:
            took = each.durationMs["triggerExecution"] / 1000
            if each.numInputRows or not seconds:
                seconds.append(took)
            else:
                seconds[-1] += took
    cpu = _cpu_seconds() - before
    median = steady(seconds)
    out = sum(each.observedMetrics["out"].n for each in query.recentProgress if "out" in each.observedMetrics)
    print(f"{system:6}  {median:7.2f} s a batch  {cpu:7.1f} s of processors in all  {out:>12,} rows out  {seconds}", flush=True)


def _cpu_seconds() -> float:
    """Return what all processes of this one's session have used of processors: others on the machine do not disturb it."""
    used, own = 0, os.getsid(0)
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == own:
            used += sum(map(int, fields[11:15]))
    return used / os.sysconf("SC_CLK_TCK")


def _features(system: str, payments: Any) -> Any:
    from pyspark.sql import functions as F

    import windowpane as wp

    if system == "spark":
        windows = payments.withWatermark("at", _WATERMARK).groupBy("card", F.window("at", "1 hour", "5 minutes"))
        found = windows.agg(F.count(F.lit(1)).alias("n"), F.sum("amount").alias("total"), F.max("amount").alias("top"))
    else:
        lengths = ("1 hour", "6 hours") if system == "both" else ("1 hour",)
        features = wp.rolling(payments, event_time="at", watermark=_WATERMARK).by("card")
        features = features.over(*lengths, n=wp.count(), total=wp.sum("amount"), top=wp.max("amount"))
        found = features.edge("exact" if system == "exact" else "hop").emit("changed").df
    return found.observe("out", F.count(F.lit(1)).alias("n"))


def main() -> None:
    parser = arguments(__doc__, SYSTEMS)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--keys", type=int, default=100_000)
    parser.add_argument("--batches", type=int, default=16)
    parser.add_argument("--minutes", type=int, default=5)
    given = parser.parse_args()

    def write(folder: Path) -> None:
        write_batches(folder, given.rows, given.keys, given.batches, 60 * given.minutes)

    run_each(given, SYSTEMS, write, run, group=True)


if __name__ == "__main__":
    main()
