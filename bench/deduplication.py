"""Deduplication beside Spark's ``dropDuplicatesWithinWatermark``: one stream of files, each a batch, in a process of its own.

Usage: ``python -m bench.deduplication [--rows N] [--batches N] [--again SHARE]``. Keys are texts of 36
characters, as UUIDs are. A share of the rows of a batch are sent again: rows of the batch before. Both must give as many rows.
"""

from __future__ import annotations

import tempfile
import uuid
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.batches import FIRST_FILE, put_in_place, seconds_of_batches, steady
from bench.each_system import arguments, run_each

SYSTEMS = ("spark", "windowpane")
_MINUTE = 60_000_000


def write_batches(folder: Path, rows: int, batches: int, again: float) -> None:
    """Write a file a batch: a minute of event time, in disorder, the rows sent again among the others."""
    draw, before = np.random.default_rng(7), None
    for number in range(batches):
        fresh = rows if before is None else rows - int(rows * again)
        keys = [str(uuid.UUID(bytes=each)) for each in _ids(draw, fresh)]
        times = FIRST_FILE * 1_000_000 + number * _MINUTE + draw.integers(0, _MINUTE, fresh)
        table = pa.table({"id": keys, "at": pa.array(times, pa.timestamp("us", "UTC")), "value": draw.integers(0, 10**6, fresh)})
        sent = table if before is None else pa.concat_tables([table, before.slice(0, rows - fresh)])
        sent = sent.take(pa.array(draw.permutation(sent.num_rows)))
        path = folder / f"{number:03}.parquet"
        pq.write_table(sent, path)
        put_in_place(path, number)
        before = table


def _ids(draw: np.random.Generator, count: int) -> list[bytes]:
    drawn = draw.bytes(16 * count)
    return [drawn[at : at + 16] for at in range(0, len(drawn), 16)]


def run(system: str, folder: Path, rows: int) -> None:
    """Run one system over the files, and print its figures."""
    from bench.systems.spark_job import session

    spark = session()
    events = spark.readStream.schema("id string, at timestamp, value long").option("maxFilesPerTrigger", 1).parquet(str(folder))
    with tempfile.TemporaryDirectory() as work:
        writer = _deduplicated(system, events).writeStream.format("noop").option("checkpointLocation", work)
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        seconds = seconds_of_batches(query.recentProgress)
    median = steady(seconds)
    kept = sum(each.observedMetrics["kept"].n for each in query.recentProgress if "kept" in each.observedMetrics)
    print(
        f"{system:10}  {median:6.2f} s a batch  {rows / median / 1e6:5.2f} M rows/s  {kept:>10,} rows kept  {seconds}", flush=True
    )


def _deduplicated(system: str, events: Any) -> Any:
    from pyspark.sql import functions as F

    import windowpane as wp

    if system == "spark":
        kept = events.withWatermark("at", "10 minutes").dropDuplicatesWithinWatermark(["id"])
    else:
        kept = wp.stream(events, event_time="at", watermark="10 minutes").key_by("id").deduplicate(within="10 minutes").df
    return kept.observe("kept", F.count(F.lit(1)).alias("n"))


def main() -> None:
    parser = arguments(__doc__, SYSTEMS)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--batches", type=int, default=8)
    parser.add_argument("--again", type=float, default=0.1)
    given = parser.parse_args()

    def write(folder: Path) -> None:
        write_batches(folder, given.rows, given.batches, given.again)

    run_each(given, SYSTEMS, write, lambda system, folder: run(system, folder, given.rows))


if __name__ == "__main__":
    main()
