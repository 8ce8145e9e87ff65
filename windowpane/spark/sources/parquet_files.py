"""Parquet files of a stream read by Arrow where Spark would read them, with the same rows.

``spark.readStream.schema(...).parquet(folder)``, columns selected of it and simple filters (``file_conditions``) included, on a
file system that workers see needs nothing of Spark but the list of the files that were read, and which task reads what part of
them (``parquet_reader``). Whatever Arrow might read otherwise than Spark, a type, an option, a partitioned folder, is left to
Spark; ``explain()`` says why.

A checkpoint does not hold who read the files: a restart may go from one to the other.
"""

from __future__ import annotations

from glob import glob
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import types as T

from windowpane.errors import UnsupportedTypeError
from windowpane.spark.internals.file_relation import FileRelation, file_relation
from windowpane.spark.queries.settings import setting
from windowpane.spark.sources.parquet_reader import SWITCH, ParquetColumns, RowFilter, local_path, places
from windowpane.spark.stages.types import arrow_schema
from windowpane.windowing.expressions import names_in

_OPTIONS = frozenset(
    {
        "maxfilespertrigger",
        "maxbytespertrigger",
        "maxcachedfiles",
        "latestfirst",
        "maxfileage",
        "filenameonly",
        "cleansource",
        "sourcearchivedir",
        "pathglobfilter",
        "recursivefilelookup",
    }
)
"""Options of the file source that say which files are read; others may say how."""
_SETTINGS = (
    "spark.sql.files.ignoreCorruptFiles",
    "spark.sql.files.ignoreMissingFiles",
    "spark.sql.parquet.datetimeRebaseModeInRead",
    "spark.sql.parquet.int96RebaseModeInRead",
    "spark.sql.parquet.int96TimestampConversion",
    "spark.sql.parquet.fieldId.read.enabled",
    "spark.sql.caseSensitive",
)
"""Settings of the session that say how Parquet is read: where one is set, Spark reads it."""


def parquet_stream(dataframe: Any) -> tuple[Any, ParquetColumns, str] | None:
    """Return the places in the files that a DataFrame reads, their reader and a sample; ``None`` where Spark is to read them."""
    if not getattr(dataframe, "isStreaming", False):
        return None
    spark = dataframe.sparkSession
    if setting(spark, SWITCH, "true").lower() != "true":
        return None
    relation = file_relation(dataframe)
    if relation is None or relation.format != "parquet" or not relation.is_local or "=" in relation.path:
        return None
    if not relation.options.keys() <= _OPTIONS or any(spark.conf.get(name, None) is not None for name in _SETTINGS):
        return None
    if any(field.metadata for field in dataframe.schema.fields):
        return None
    sample, reader = _sample(local_path(relation.path)), _reader(dataframe.schema, relation)
    if sample is None or reader is None:
        return None
    return places(spark, relation.path, relation.options), reader, sample


def _reader(columns: T.StructType, relation: FileRelation) -> ParquetColumns | None:
    """Return what reads the columns and the rows of a DataFrame, ``None`` where Arrow has no type for one."""
    schema = _readable(columns)
    if schema is None or relation.condition is None:
        return None if schema is None else ParquetColumns(schema, sources=relation.columns)
    tested = _readable(T.StructType([relation.schema[name] for name in dict.fromkeys(names_in(relation.condition))]))
    if tested is None:
        return None
    return ParquetColumns(schema, sources=relation.columns, filter=RowFilter(relation.condition, tested))


def _readable(schema: T.StructType) -> pa.Schema | None:
    try:
        return arrow_schema(schema, "files")
    except UnsupportedTypeError:
        return None


def _sample(path: str) -> str | None:
    """Return one of the files of the folder, ``None`` if it has none, or a folder holds values of a column."""
    for found in sorted(glob(path))[:1]:
        at = Path(found)
        if at.is_file():
            return str(at)
        if any("=" in entry.name for entry in at.iterdir() if entry.is_dir()):
            return None
        files = (entry for entry in sorted(at.iterdir()) if entry.is_file() and not entry.name.startswith(("_", ".")))
        return next((str(entry) for entry in files), None)
    return None
