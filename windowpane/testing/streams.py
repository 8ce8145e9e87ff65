"""Streams of rows that a test gives, a batch each: on classic sessions and on Spark Connect, which has no memory stream."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from windowpane.arrays.values import Row, Value
from windowpane.windowing.outputs import Schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def batches(spark: SparkSession, rows: Sequence[Sequence[Sequence[Value] | Row]], schema: Schema) -> DataFrame:
    """Make a stream of rows, of which each batch of a query takes one list.

    Before Spark 4.2 a run with ``availableNow`` takes one list.

    Args:
        spark: the session, classic or Connect (from Spark 4.1).
        rows: lists of rows: tuples, or mappings by column.
        schema: the columns, a DDL string or StructType.

    Returns:
        A streaming DataFrame, which ends with the last list. A restart goes on behind those that its checkpoint has.

    Raises:
        InvalidSpecError: the schema does not parse.

    Example:
        >>> rows = batches(spark, [[("a", 1)], [("b", 2), ("a", 3)]], "k string, v long")
        >>> result = wp.stream(rows).key_by("k").count_window(2).aggregate(total=wp.sum("v"))
    """
    from windowpane.sources.arrow_input import in_batches

    found: DataFrame = in_batches(spark, rows, schema)
    return found
