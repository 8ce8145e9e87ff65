"""Rows that are made up as a DataFrame, static or streaming; the offset of a stream is how many there have been."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from windowpane.arrays.values import Row, Value
from windowpane.connectors.generated import COLUMNS, Generated
from windowpane.spark.sources.arrow_rows import ArrowRows
from windowpane.spark.sources.planned import Offset, PlannedStream, ReadLimit, planned
from windowpane.spark.sources.source import Given
from windowpane.spark.stages.types import arrow_schema, declared_schema, spark_schema
from windowpane.windowing.outputs import Schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Batch = Sequence[Sequence[Value] | Row]
"""The rows of a batch, by the order or the names of the columns."""

_RANGE = "start bigint, end bigint"
_TASKS = 8
_FEW = 10_000  # So many rows are not worth a second task


@dataclass(frozen=True)
class RangeReader:
    made: Generated

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
        for batch in batches:
            for row in batch.to_pylist():
                yield from self.made.rows(row["start"], row["end"])


@dataclass(frozen=True)
class ListReader:
    """Reads lists of rows by their numbers."""

    lists: tuple[pa.Table, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
        for batch in batches:
            for row in batch.to_pylist():
                yield from self.lists[row["start"] : row["end"]]


class GeneratedStream(PlannedStream):
    def __init__(self, rows: int | None, rows_per_batch: int) -> None:
        self._rows, self._step, self._known = rows, rows_per_batch, 0

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        return {"rows": 0}

    def latestOffset(self, start: Offset | None = None, limit: ReadLimit | None = None) -> dict[str, int]:  # noqa: N802
        self._known = max(self._known, 0 if start is None else start["rows"])
        end = self._known + self._step
        most = self._rows if self._target is None else self._target
        end = end if most is None else min(end, most)
        self._known = end if start is None else self._known
        return {"rows": end}

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._target = self._rows if self._rows is not None else self._known + self._step

    def parts(self, start: Offset, end: Offset) -> list[tuple[int, int]]:
        self._known = max(self._known, start["rows"])  # before Spark 4.2 the checkpoint alone says where a run begins
        return ranges(start["rows"], end["rows"])


def ranges(start: int, end: int) -> list[tuple[int, int]]:
    """Return a range cut for tasks."""
    tasks = max(1, min(_TASKS, (end - start) // _FEW))
    bounds = [start + (end - start) * number // tasks for number in range(tasks + 1)]
    return [pair for pair in itertools.pairwise(bounds) if pair[0] < pair[1]]


def generated(spark: SparkSession, made: Generated, rows: int | None, rows_per_batch: int, streaming: bool) -> DataFrame:
    """Return the DataFrame, see ``windowpane.generate``."""
    columns = spark_schema(COLUMNS)
    if streaming:
        origin = planned(spark, _RANGE, partial(GeneratedStream, rows, rows_per_batch))
    else:
        origin = spark.createDataFrame(ranges(0, rows or 0), _RANGE)
    found = ArrowRows(origin, RangeReader(made), columns)
    return Given(found, None, None).put_on(found.df)


def given_batches(spark: SparkSession, rows: Sequence[Batch], schema: Schema) -> DataFrame:
    """Return the DataFrame of lists of rows, see ``windowpane.testing.batches``."""
    columns = declared_schema(spark, schema, "batches")
    arrow = arrow_schema(columns, "batches")

    def table(given: Batch) -> pa.Table:
        named = [row if isinstance(row, Mapping) else dict(zip(arrow.names, row, strict=True)) for row in given]
        return pa.Table.from_pylist(named, arrow)

    origin = planned(spark, _RANGE, partial(GeneratedStream, len(rows), 1))
    return ArrowRows(origin, ListReader(tuple(map(table, rows))), columns).df
