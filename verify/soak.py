"""``python -m verify.soak``: a day's events through one query on Spark, and whether what it takes stays flat.

Rows that the generator makes (skewed keys, disorder, late rows, idle spells) run through windows with late output, beside a
scrape of metrics every batch or so. Every few batches a line says what the driver, the JVM (live heap behind a
collection, and resident), the Python workers and the checkpoint take. At the end the second half is compared with its beginning:
more than 5 % growth of anything is a failure. ``--minutes`` bounds the run; the day is then as long as it came.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import psutil
from pyspark.sql import SparkSession

import windowpane as wp
from windowpane.spark.internals.session import jvm_of

_BATCH_ROWS, _BATCH_SECONDS = 2_000, 24
_DAY_BATCHES = 86_400 // _BATCH_SECONDS
_MEGABYTE = 1_000_000
_MOST_GROWTH = 0.05
_SLACK = {"handles": 8, "threads": 6, "checkpoint_mb": 1.0, "jvm_live_mb": 3.0, "driver_mb": 4.0, "workers_mb": 8.0}
"""What comes and goes by itself: growth below this is none."""
_WAIT_S = 0.2


@dataclass(frozen=True)
class Sample:
    """What the processes took at a time."""

    batch: int
    jvm_live_mb: float
    jvm_resident_mb: float
    driver_mb: float
    workers_mb: float
    handles: int
    threads: int
    checkpoint_mb: float


def _query(spark: SparkSession, work: Path, keys: int) -> Any:
    """Start the query."""
    rows = wp.generate(
        spark,
        rows=_BATCH_ROWS * _DAY_BATCHES,
        rows_per_batch=_BATCH_ROWS,
        keys=keys,
        skew=0.8,
        every=f"{_BATCH_SECONDS * 1000 // _BATCH_ROWS} ms",
        disorder="10 seconds",
        late=0.01,
        lateness="10 minutes",
        idle=("1 hour", "5 minutes"),
    )
    keyed = wp.stream(rows, event_time="at", watermark="10 seconds").key_by("key")
    windows = keyed.window(wp.TumblingEventTimeWindows.of("5 minutes")).allowed_lateness("2 minutes")
    windows = windows.side_output_late_data(wp.OutputTag("late"))
    result = windows.aggregate(n=wp.count(), total=wp.sum("value"), p90=wp.approx_quantile("value", 0.9))
    return result.start(main=_nowhere, late=_nowhere, checkpoint=str(work / "checkpoint"), query_name="soak")


def _nowhere(frame: Any, _batch: int) -> None:
    """Compute what a batch gives, and forget it."""
    frame.write.format("noop").mode("overwrite").save()


def _sample(spark: SparkSession, batch: int, checkpoint: Path) -> Sample:
    """Look at the processes and the checkpoint."""
    jvm = jvm_of(spark)
    gc.collect()
    jvm.java.lang.System.gc()
    runtime = jvm.java.lang.Runtime.getRuntime()
    live = (runtime.totalMemory() - runtime.freeMemory()) / _MEGABYTE
    driver = psutil.Process()
    handles = threads = 0
    resident = {"java": 0.0, "python": 0.0}
    for each in driver.children(recursive=True):
        try:
            kind = "java" if "java" in each.name() else "python"
            resident[kind] += each.memory_info().rss / _MEGABYTE
            if kind == "java":
                handles, threads = handles + each.num_fds(), threads + each.num_threads()
        except psutil.NoSuchProcess:
            continue
    stored = sum(_size(path) for path in checkpoint.rglob("*")) / _MEGABYTE
    handles, threads = handles + driver.num_fds(), threads + driver.num_threads()
    own = driver.memory_info().rss / _MEGABYTE
    return Sample(batch, live, resident["java"], own, resident["python"], handles, threads, stored)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:  # the query tidies up
        return 0


def samples(spark: SparkSession, work: Path, *, keys: int, minutes: float, every: int) -> Iterator[Sample]:
    """Run the query, and yield a sample every so many batches."""
    served = wp.metrics.serve(spark, port=0)
    query, until, seen = _query(spark, work, keys), time.monotonic() + 60 * minutes, 0
    try:
        while query.isActive and time.monotonic() < until:
            progress = query.lastProgress
            if progress is None or progress["batchId"] < seen + every:
                time.sleep(_WAIT_S)
                continue
            seen = progress["batchId"]
            with urllib.request.urlopen(f"http://127.0.0.1:{served.port}/metrics") as scrape:
                assert b"windowpane_batch_duration_seconds" in scrape.read()
            yield _sample(spark, seen, work / "checkpoint")
            if seen + every >= _DAY_BATCHES:
                return
    finally:
        query.stop()
        served.close()


def growth(found: Sequence[Sample]) -> dict[str, tuple[float, float]]:
    """Return of each figure the median of the first fifth of the second half, and that of its last fifth."""
    half = found[len(found) // 2 :]
    fifth = max(1, len(half) // 5)
    names = [each.name for each in fields(Sample) if each.name != "batch"]
    figures = {name: [float(getattr(each, name)) for each in half] for name in names}
    return {name: (statistics.median(each[:fifth]), statistics.median(each[-fifth:])) for name, each in figures.items()}


def grown(found: Sequence[Sample]) -> list[str]:
    """Return what grew by more than it may, in words."""
    said = []
    for name, (before, after) in growth(found).items():
        if after > before * (1 + _MOST_GROWTH) and after - before > _SLACK.get(name, 0):
            said.append(f"{name} grew from {before:,.1f} to {after:,.1f}")
    return said


def main() -> None:
    """Run it, and say what grew."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--keys", type=int, default=5_000)
    parser.add_argument("--every", type=int, default=20, help="batches between two samples")
    given = parser.parse_args()
    spark = (
        SparkSession.builder.master("local[2]")
        .config(map={"spark.driver.memory": "1g", "spark.sql.shuffle.partitions": "2", "spark.ui.showConsoleProgress": "false"})
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    found = []
    print(" ".join(f"{each.name:>16}" for each in fields(Sample)), flush=True)
    with tempfile.TemporaryDirectory() as work:
        for each in samples(spark, Path(work), keys=given.keys, minutes=given.minutes, every=given.every):
            print(" ".join(f"{getattr(each, field.name):>16,.1f}" for field in fields(Sample)), flush=True)
            found.append(each)
    spark.stop()
    said = grown(found)
    for line in said:
        print(line)
    print(f"{0 if said else 1} passed, {1 if said else 0} failed in {found[-1].batch} batches" if found else "0 passed, 1 failed")
    raise SystemExit(bool(said) or not found)


if __name__ == "__main__":
    main()
