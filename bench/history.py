"""A query that begins with a history, beside the batch job over the same rows.

Usage: ``python -m bench.history [--rows N] [--keys N] [--runs N]``. ``static`` computes the windows of all rows as a batch job;
``history`` starts a stream whose first state they are, with one live batch of a hundredth of the rows. Both write nowhere and run
in one session, which has run each once before; the figures are medians of the runs, in seconds.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from bench.batches import FIRST_FILE
from bench.payments import write_batches

_FILES, _SECONDS = 20, 60


def _program(rows: Any) -> Any:
    import windowpane as wp

    keyed = wp.stream(rows, event_time="at", watermark="2 seconds").key_by("card")
    return keyed.window(wp.TumblingEventTimeWindows.of("1 minute")).aggregate(n=wp.count(), total=wp.sum("amount"))


def _static(spark: SparkSession, past: Path, _live: Path) -> None:
    _program(spark.read.parquet(str(past))).df.write.format("noop").mode("overwrite").save()


def _history(spark: SparkSession, past: Path, live: Path) -> None:
    rows = spark.readStream.schema("card string, at timestamp, amount long, id long").parquet(str(live))
    with tempfile.TemporaryDirectory() as work:
        query = _program(rows).start(
            main=lambda frame, _: frame.write.format("noop").mode("overwrite").save(),
            checkpoint=f"{work}/checkpoint",
            history=spark.read.parquet(str(past)),
            cut=time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(FIRST_FILE + _FILES * _SECONDS)),
            trigger={"availableNow": True},
        )
        query.awaitTermination()


def _seconds(job: Callable[[SparkSession, Path, Path], None], *given: Any) -> float:
    began = time.perf_counter()
    job(*given)
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--keys", type=int, default=100_000)
    parser.add_argument("--runs", type=int, default=3)
    given = parser.parse_args()
    from bench.systems.spark_job import session

    spark = session({})
    with tempfile.TemporaryDirectory() as folder:
        past, live = Path(folder) / "past", Path(folder) / "live"
        for each, rows, first, files in ((past, given.rows // _FILES, 0, _FILES), (live, given.rows // 100, _FILES, 1)):
            each.mkdir()
            write_batches(each, rows, given.keys, files, _SECONDS, first)
        jobs = {"static": _static, "history": _history}
        for job in jobs.values():
            job(spark, past, live)
        runs = [{name: _seconds(job, spark, past, live) for name, job in jobs.items()} for _ in range(given.runs)]
    medians = {name: statistics.median(each[name] for each in runs) for name in jobs}
    for name, seconds in medians.items():
        print(f"{name:8} {seconds:6.2f} s")
    print(f"history by static: {medians['history'] / medians['static']:.2f}")


if __name__ == "__main__":
    main()
