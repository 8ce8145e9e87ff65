"""The start of a job: from its process to the results of its first batch, beside native Spark's.

Usage: ``python -m bench.start [--rows N] [--runs N]``. A job reads four files of payments, each a batch, into tumbling windows;
each job is a process of its own, and the systems take turns. ``tws`` is a ``transformWithState`` written by hand, ``plain`` is
windowpane as it comes, ``warm`` with ``wp.warm_up``. The figures are medians,
in seconds since the start of the process but for the processor time, which is that of the process with all its children.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import psutil

from bench.each_system import arguments, command
from bench.payments import write_batches
from bench.process_tree import ProcessTree

SYSTEMS = ("spark", "tws", "plain", "warm")
_POINTS = ("session", "query", "first batch", "end")
_EVERY_SECONDS = 0.1


def run(system: str, folder: Path) -> None:
    """Run one job, and print when it reached each point."""
    began, reached = psutil.Process().create_time(), {}

    from bench.systems.spark_job import session

    spark = session()
    reached["session"] = time.time() - began
    if system == "warm":
        import windowpane as wp

        wp.warm_up(spark)
    payments = spark.readStream.schema("card string, at timestamp, amount long").option("maxFilesPerTrigger", 1)
    rows = payments.parquet(str(folder))
    if system == "spark":
        from pyspark.sql import functions as F

        windows = rows.withWatermark("at", "2 seconds").groupBy("card", F.window("at", "10 seconds"))
        results = windows.agg(F.count(F.lit(1)).alias("n"), F.sum("amount").alias("total"))
    elif system == "tws":
        from bench.systems.on_tws import Tumbling

        timed = rows.withWatermark("at", "2 seconds").selectExpr("card AS k", "amount AS price", "at", "unix_millis(at) AS ms")
        schema = "k string, window_end timestamp, n bigint, s bigint, m bigint"
        results = timed.groupBy("k").transformWithState(Tumbling(10), schema, "append", "EventTime")
    else:
        import windowpane as wp

        keyed = wp.stream(rows, event_time="at", watermark="2 seconds").key_by("card")
        results = keyed.window(wp.TumblingEventTimeWindows.of("10 seconds")).aggregate(n=wp.count(), total=wp.sum("amount")).df
    with tempfile.TemporaryDirectory() as work:
        writer = results.writeStream.format("noop").option("checkpointLocation", f"{work}/checkpoint")
        query = writer.trigger(availableNow=True).start()
        reached["query"] = time.time() - began
        while query.lastProgress is None and query.isActive:
            time.sleep(0.01)
        reached["first batch"] = time.time() - began
        query.awaitTermination()
    reached["end"] = time.time() - began
    print(json.dumps(reached), flush=True)


def measured(system: str, folder: Path) -> dict[str, float]:
    """Run one job in a process of its own, and return its figures."""
    compiled_once = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}  # as where the package was installed
    process = subprocess.Popen(
        command(system, folder), env=compiled_once, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    tree = ProcessTree(process.pid)
    while process.poll() is None:
        time.sleep(_EVERY_SECONDS)
        tree.looked()
    assert process.stdout is not None
    said = process.stdout.read()
    if process.returncode:
        raise SystemExit(f"{system} failed; run it alone: {' '.join(command(system, folder))}")
    figures: dict[str, float] = json.loads(said)
    return {**figures, "processor time": tree.cpu_s}


def main() -> None:
    parser = arguments(__doc__, SYSTEMS)
    parser.add_argument("--rows", type=int, default=1_000)
    parser.add_argument("--runs", type=int, default=3)
    given = parser.parse_args()
    if given.system is not None and given.folder is not None:
        run(given.system, given.folder)
        return
    systems = SYSTEMS if given.system is None else (given.system,)
    with tempfile.TemporaryDirectory() as folder:
        write_batches(Path(folder), given.rows, 100, 4, 10)
        runs = [{system: measured(system, Path(folder)) for system in systems} for _ in range(given.runs)]
    for system in systems:
        medians = {name: statistics.median(each[system][name] for each in runs) for name in (*_POINTS, "processor time")}
        print(f"{system:8}", "  ".join(f"{name} {value:6.2f}" for name, value in medians.items()), flush=True)


if __name__ == "__main__":
    main()
