"""Delta and Iceberg tables as DataFrames: as they are now, or their changes as a stream, whose offsets are versions or snapshots.

A stream without a version to begin from begins with the whole table, as inserts, and goes on with what changes since.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import types as T

from windowpane.arrays.values import Value
from windowpane.connectors import delta, iceberg
from windowpane.connectors.table_changes import Changes, DeltaChanges, IcebergChanges, Starting
from windowpane.connectors.tables import plain_schema
from windowpane.errors import ConnectorError
from windowpane.spark.sources.arrow_rows import ArrowRows
from windowpane.spark.sources.planned import PlannedStream, planned
from windowpane.spark.sources.source import Given
from windowpane.spark.stages.types import spark_schema
from windowpane.windowing.outputs import CHANGE_TYPE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PART = "since bigint, until bigint, part int, of int"


@dataclass(frozen=True)
class PartReader:
    """Reads what lies between two versions of a table, or a share of one; runs in tasks."""

    changes: Changes

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
        for batch in batches:
            for row in batch.to_pylist():
                yield from self.changes.read(row["since"], row["until"], row["part"], row["of"])


class TableStream(PlannedStream):
    """The versions of a table; runs beside the driver."""

    def __init__(self, changes: Changes) -> None:
        self._changes = changes

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        return {"version": self._changes.first()}

    def ends(self) -> dict[str, int]:
        return {"version": self._changes.last()}

    def parts(self, start: dict[str, int], end: dict[str, int]) -> list[tuple[Value, ...]]:
        return self._changes.parts(start["version"], end["version"])


def table_rows(
    spark: SparkSession, table: delta.Table | iceberg.Table, changes: bool, starting: Starting, overwrites: str
) -> DataFrame:
    """Return the DataFrame of a table; see ``windowpane.read_delta`` and ``windowpane.read_iceberg``."""
    if table.opened() is None:
        raise ConnectorError(str(table), "there is no such table")
    found: Changes = (
        DeltaChanges(table, changes, starting)
        if isinstance(table, delta.Table)
        else IcebergChanges(table, changes, starting, overwrites == "skip")
    )
    arrow = plain_schema(found.columns())
    columns = T.StructType([*spark_schema(arrow), *([T.StructField(CHANGE_TYPE, T.StringType())] if changes else [])])
    if changes:
        origin = planned(spark, PART, partial(TableStream, found))
    else:
        origin = spark.createDataFrame(found.parts(-1, found.last()), PART)
    made = ArrowRows(origin, PartReader(found), columns)
    return Given(made, None, None).put_on(made.df)
