"""Rows that Python makes: for ``stream`` and ``over`` in place of a DataFrame, without the way to the JVM and back.

A source that Python understands better than Spark (messages in bytes, files that Arrow reads) is mapped to rows here. Whatever
follows in one program, keys, event time, aggregates by name, is encoded in the same Python stage.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from windowpane.arrays.values import Row, Value
from windowpane.malformed import Policy
from windowpane.windowing.outputs import Schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from windowpane.spark.sources.arrow_rows import ArrowRows, BatchFunction


def map_in_arrow(rows: DataFrame | ArrowRows, function: BatchFunction, schema: Schema) -> ArrowRows:
    """Map the rows of a DataFrame by a function on record batches, as ``DataFrame.mapInArrow`` does, for ``stream`` and ``over``.

    ``df.mapInArrow(function, schema)`` would give the same results; its rows go to the JVM and come back. Here they stay in
    Python, as long as keys, arguments and order are named columns. What only Spark can do, a Column computed from others or a key
    of doubles, sends them that way after all; ``explain()`` says so.

    Args:
        rows: a DataFrame, streaming or static, or rows that another function made.
        function: takes an iterator of ``pyarrow.RecordBatch`` and yields such, or tables, of the columns of ``schema``.
        schema: the columns it yields, a DDL string or StructType.

    Returns:
        Rows to begin ``stream`` or ``over`` with; ``.df`` has them as a DataFrame.

    Raises:
        InvalidSpecError: the schema is not understood.
        ArrowResultError: when the query runs and a batch does not have these columns.

    Example:
        >>> def parsed(batches):
        ...     for batch in batches:
        ...         yield pa.RecordBatch.from_pylist([decode(value) for value in batch["value"].to_pylist()])
        >>> trades = wp.map_in_arrow(kafka.select("value"), parsed, "sym string, price double, at timestamp")
        >>> wp.stream(trades, event_time="at", watermark="5 seconds").key_by("sym")
    """
    from windowpane.spark.sources.arrow_rows import mapped

    return mapped(rows, function, schema)


def read_in_arrow(
    spark: SparkSession,
    path: str,
    schema: Schema,
    format: Literal["csv", "json", "parquet"] = "parquet",
    *,
    header: bool = False,
    delimiter: str = ",",
    null: str = "",
    malformed: Policy = "fail",
    streaming: bool = True,
    **options: str | int | bool,
) -> ArrowRows:
    """Read files by Arrow in Python, for ``stream`` and ``over``: new files of a folder as they arrive, or those that it holds.

    Spark finds the files, hands over their contents and records them in the checkpoint, as those of any file source; Arrow reads
    them in the Python stage that encodes the rows. A file is read whole by one task: several files a batch keep several cores
    busy.

    Args:
        spark: the session.
        path: a folder, on any file system that Spark reads; or at ``s3://``, ``gs://`` or ``abfss://``, where tasks read by
            pyarrow without a jar, a folder, a file, or a pattern with ``*``.
        schema: the columns, a DDL string or StructType. A column that a file does not have is NULL there.
        format: ``csv``, ``json`` (an object a line) or ``parquet``.
        header: for CSV, whether the first line names the columns; else they are those of the schema, in its order.
        delimiter: for CSV, the separator of values.
        null: for CSV, how NULL is written.
        malformed: for CSV and JSON, what becomes of a row that cannot be read: ``fail`` stops the query at the first; ``null``
            leaves out what is no row, and makes values that do not fit NULL; ``drop`` leaves out the whole row. All are counted
            (``wp.progress``), and are rows of the output ``malformed`` of ``start``, beside which ``fail`` is ``null``. A row
            whose event time does not fit is left out.
        streaming: whether to wait for new files.
        options: of Spark's file source, such as ``maxFilesPerTrigger``, ``pathGlobFilter`` or ``latestFirst``; of an object store
            the first two.

    Returns:
        Rows to begin ``stream`` or ``over`` with; ``.df`` has them as a DataFrame, ``.map_in_arrow`` maps them further.

    Raises:
        InvalidSpecError: the schema is not understood, or Arrow does not read the format.
        UnreachablePathError: an object store has nothing there, or does not answer.
        MalformedRowError: when the query runs and a row of CSV or JSON cannot be read, with ``malformed="fail"``; Spark's reader
            would have made NULLs of it.
        UnreadableFileError: when the query runs and a file of Parquet does not fit the schema.

    Example:
        >>> bids = wp.read_in_arrow(spark, "landing/bids", "k bigint, price bigint, ts timestamp", "csv", maxFilesPerTrigger=4)
        >>> wp.stream(bids, event_time="ts", watermark="2 seconds").key_by("k")
    """
    from windowpane.spark.sources.arrow_files import CsvFormat, arrow_files

    written = CsvFormat(header, delimiter, null)
    return arrow_files(spark, path, schema, format, written, options, streaming=streaming, malformed=malformed)


def in_batches(spark: SparkSession, rows: Sequence[Sequence[Sequence[Value] | Row]], schema: Schema) -> DataFrame:
    """Return a stream of lists of rows, see ``windowpane.testing.batches``."""
    from windowpane.spark.sources.generated import given_batches

    return given_batches(spark, rows, schema)
