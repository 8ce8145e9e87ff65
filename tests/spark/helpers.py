"""Programs on Spark in tests: rows as files, one file a micro-batch, and outputs collected batch by batch.

Times are written as seconds after ``ORIGIN``, in rows that go in and in rows that come out.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
import pytest
from pyspark.sql import types as T

from windowpane.spark.stages.types import arrow_schema

ORIGIN = datetime(2024, 1, 1, tzinfo=UTC)
NAIVE_ORIGIN = ORIGIN.replace(tzinfo=None)
SPARK = tuple(int(part) for part in pyspark.__version__.split(".")[:2])
needs_limits = pytest.mark.skipif(
    SPARK < (4, 2), reason="before Spark 4.2 a run with availableNow takes one batch of a source in Python, and none behind it"
)
EVENTS = "k string, t timestamp, v long"
WHY = ["watermark", "late_by", "watermark_delay", "led_by"]
"""The last columns of every output of late rows."""


def instant(seconds: float) -> datetime:
    """Return the instant so many seconds after ``ORIGIN``."""
    return ORIGIN + timedelta(seconds=seconds)


def plain(value: Any) -> Any:
    """Return a value of a result with times as seconds and rows as tuples, so that it is easily written down."""
    if isinstance(value, datetime):
        since = (value - (ORIGIN if value.tzinfo else NAIVE_ORIGIN)).total_seconds()
        return int(since) if since.is_integer() else since
    if isinstance(value, Mapping):
        return tuple(plain(item) for item in value.values())
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


def rows(df: Any) -> list[tuple[Any, ...]]:
    """Return the rows of a DataFrame as plain tuples, in an order that does not depend on partitions."""
    # PySpark's toArrow fails on a null struct of fields that are declared not to be null.
    lenient = json.loads(df.schema.json(), object_hook=_nullable)
    return sorted((plain(row) for row in df.to(T.StructType.fromJson(lenient)).toArrow().to_pylist()), key=repr)


def _nullable(described: dict[str, Any]) -> dict[str, Any]:
    may_be_null = ("nullable", "containsNull", "valueContainsNull")
    return {name: True if name in may_be_null else value for name, value in described.items()}


def table(spark: Any, events: Iterable[Sequence[Any]], schema: str = EVENTS) -> Any:
    """Return a static DataFrame in one partition, times of ``timestamp`` columns given as seconds (``None`` for null)."""
    return spark.createDataFrame(_arrow(list(events), _struct(schema)), _struct(schema)).coalesce(1)


def _struct(ddl: str) -> T.StructType:
    parsed = T.StructType.fromDDL(ddl)
    assert isinstance(parsed, T.StructType)
    return parsed


def _arrow(events: Sequence[Sequence[Any]], schema: T.StructType) -> pa.Table:
    columns = list(zip(*events, strict=True)) or [()] * len(schema)
    timed = [isinstance(f.dataType, T.TimestampType | T.TimestampNTZType) for f in schema]
    arrow = arrow_schema(schema, "events")
    values = [
        [instant(v) if isinstance(v, int | float) and is_time else v for v in column]
        for column, is_time in zip(columns, timed, strict=True)
    ]
    return pa.table([pa.array(column, kind.type) for column, kind in zip(values, arrow, strict=True)], schema=arrow)


@dataclass
class Feed:
    """A folder that a stream reads, one file a micro-batch, in the order the files were added."""

    folder: Path
    schema: str = EVENTS
    count: int = 0

    def add(self, *batches: Sequence[Sequence[Any]]) -> Feed:
        """Add a file for each batch; event times may not repeat a file's modification time, so those are set here."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for batch in batches:
            path = self.folder / f"{self.count:04}.parquet"
            pq.write_table(_arrow(batch, _struct(self.schema)), path)
            os.utime(path, (1_700_000_000 + self.count, 1_700_000_000 + self.count))
            self.count += 1
        return self

    def stream(self, spark: Any) -> Any:
        """Return the streaming DataFrame of the folder."""
        return spark.readStream.schema(self.schema).option("maxFilesPerTrigger", 1).parquet(str(self.folder))


@dataclass
class Collected:
    """What a run wrote: (batch id, row) by output, and the progress of its batches."""

    batches: dict[str, list[tuple[int, tuple[Any, ...]]]] = field(default_factory=dict)
    columns: dict[str, list[str]] = field(default_factory=dict)
    progress: list[Any] = field(default_factory=list)

    def rows(self, output: str = "main") -> list[tuple[Any, ...]]:
        """Return the rows of an output over all batches; of late ones all but why they were late."""
        why = len(WHY) if self.columns.get(output, [])[-len(WHY) :] == WHY else 0
        return sorted((row[: len(row) - why] for _, row in self.batches[output]), key=repr)

    def counted(self, counter: str, name: str = "windowpane") -> list[int]:
        """Return a counter of each batch that reported it."""
        observed = [p["observedMetrics"].get(name) for p in self.progress]
        return [row[counter] for row in observed if row is not None]

    def sink(self, output: str) -> Any:
        """Return a sink that collects ``output``."""
        self.batches[output] = []

        def write(df: Any, batch_id: int) -> None:
            self.columns[output] = df.columns
            self.batches[output] += [(batch_id, row) for row in rows(df)]

        return write


def run(result: Any, *outputs: str, checkpoint: Path | None = None, **options: Any) -> Collected:
    """Run a streaming result until its input is consumed and collect its outputs, ``main`` if none is named.

    ``options`` are further ones of ``start``.
    """
    collected = Collected()
    sinks = {name: collected.sink(name) for name in outputs or ("main",)}
    location = None if checkpoint is None else str(checkpoint)
    query = result.start(checkpoint=location, trigger={"availableNow": True}, **options, **sinks)
    query.awaitTermination()
    collected.progress = list(query.recentProgress)
    return collected


def failure(result: Any, checkpoint: Path | None = None) -> str:
    """Run a streaming result that must fail and return the text of Spark's exception."""
    from pyspark.errors import StreamingQueryException

    try:
        run(result, checkpoint=checkpoint)
    except StreamingQueryException as error:
        return str(error)
    raise AssertionError("the query was to fail")
