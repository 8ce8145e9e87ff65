"""Streams of Parquet files in tests, and how they are read."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import windowpane as wp

SCHEMA = "k string, v bigint, t timestamp"
BY_ARROW = "files read by Arrow, where they are encoded"


def written(
    folder: Path, number: int, columns: dict[str, pa.Array] | None = None, name: str | None = None, place: int | None = None
) -> Path:
    """Write a file of forty rows; files follow one another in time, but for one that has another ``place`` there."""
    folder.mkdir(exist_ok=True, parents=True)
    seconds = np.arange(40) % 7 + 10 * (number if place is None else place)
    made = columns or {
        "v": pa.array(np.arange(40)),
        "k": pa.array([f"key {each % 5}" if each % 5 else None for each in range(40)]),
        "unused": pa.array([{"a": each} for each in range(40)]),
        "t": pa.array(seconds * 1_000_000).cast(pa.timestamp("us", "UTC")),
    }
    path = folder / (name or f"{number:03}.parquet")
    pq.write_table(pa.table(made), path, row_group_size=9)
    os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))
    return path


def stream(spark: Any, folder: Path, schema: str = SCHEMA, **options: Any) -> Any:
    """Return the files of a folder as a stream, a file a batch."""
    return spark.readStream.options(maxFilesPerTrigger=1, **options).schema(schema).parquet(str(folder))


def windowed(rows: Any) -> Any:
    """Return windows of five seconds over such rows."""
    keyed = wp.stream(rows, event_time="t", watermark="1 second").key_by("k")
    return keyed.window(wp.TumblingEventTimeWindows.of("5 seconds")).aggregate(n=wp.count(), s=wp.sum("v"))


def results(result: Any, tmp_path: Path, checkpoint: str = "checkpoint") -> list[tuple[Any, ...]]:
    """Run a query over what is there and return its rows so far, sorted."""
    out = tmp_path / "out"
    writer = result.df.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / checkpoint))
    query = writer.option("path", str(out)).trigger(availableNow=True).start()
    query.awaitTermination()
    spark = result.df.sparkSession
    return sorted(map(tuple, spark.read.parquet(str(out)).collect()), key=repr)


def how(result: Any) -> str:
    """Return what ``explain()`` says of how rows are read, nothing if it does not."""
    return next((line.split(maxsplit=1)[1] for line in result.explain().splitlines() if line.startswith("  rows  ")), "")
