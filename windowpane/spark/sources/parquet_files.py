"""Parquet files of a stream read by Arrow where Spark would read them, with the same rows.

``spark.readStream.schema(...).parquet(folder)``, columns selected of it and simple filters (``file_conditions``) included, on a
file system that workers see needs nothing of Spark but the list of the files that were read, and which task reads what part of
them (``parquet_reader``). Whatever Arrow might read otherwise than Spark, a type, an option, a partitioned folder, is left to
Spark; ``explain()`` says why (``LeftToSpark``).

A checkpoint does not hold who read the files: a restart may go from one to the other, and what is one source of several
operators stays one (``of_one_source``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from glob import glob
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import types as T

from windowpane.errors import UnsupportedTypeError
from windowpane.spark.internals.file_relation import PARQUET, FileRelation, LeftToSpark, file_relation
from windowpane.spark.internals.plan_trees import Steps
from windowpane.spark.internals.session import setting
from windowpane.spark.sources.file_names import has_one_file_a_batch, odd_name, refuse_odd_name
from windowpane.spark.sources.parquet_reader import SWITCH, ParquetColumns, RowFilter, local_path, places
from windowpane.spark.stages.types import arrow_schema
from windowpane.windowing.expressions import names_in

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

OPTIONS = frozenset(
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


@dataclass(frozen=True)
class ParquetStream:
    places: DataFrame
    reader: ParquetColumns
    sample: str


def parquet_stream(dataframe: DataFrame, steps: Steps | None = None) -> ParquetStream | LeftToSpark | None:
    """Return the Parquet files that a DataFrame is a stream of; ``None`` if it is none, or all files are left to Spark."""
    if not getattr(dataframe, "isStreaming", False):
        return None
    relation = file_relation(dataframe, steps)
    if not isinstance(relation, FileRelation):
        return relation if _is_on(dataframe.sparkSession) else None
    odd = odd_name(local_path(relation.path), relation.options) if relation.is_local else None
    found = _read_by_arrow(dataframe, relation, odd)
    if not isinstance(found, ParquetStream):
        refuse_odd_name(odd)
    return found


def _is_on(spark: SparkSession) -> bool:
    return setting(spark, SWITCH, "true").lower() == "true"


def _read_by_arrow(dataframe: DataFrame, relation: FileRelation, odd: str | None) -> ParquetStream | LeftToSpark | None:
    """Return files as Arrow reads them, or why it does not; ``None`` where it reads none like them."""
    spark = dataframe.sparkSession
    if relation.format != PARQUET or not _is_on(spark):
        return None
    reason = _reason(spark, dataframe.schema, relation)
    if reason is not None:
        return LeftToSpark(reason)
    sample = _sample(local_path(relation.path))
    if sample is None:
        return LeftToSpark("the folder has no file yet, or folders of values of a column")
    try:
        takes_any_name = odd is not None or has_one_file_a_batch(relation.options)
        reader = replace(_reader(dataframe.schema, relation), odd=odd, takes_any_name=takes_any_name)
    except UnsupportedTypeError as error:
        return LeftToSpark(str(error))
    return ParquetStream(places(relation.files, is_exact=odd is not None), reader, sample)


def _reason(spark: SparkSession, schema: T.StructType, relation: FileRelation) -> str | None:
    """Return why Spark might read the files otherwise, whatever is in them; ``None`` if it does not."""
    if not relation.is_local:
        return f"{relation.path} is on another file system, where wp.read_in_arrow reads"
    if "=" in relation.path:
        return f"{relation.path} holds values of a column"
    options = sorted(relation.options.keys() - OPTIONS)
    if options:
        return f"the option {options[0]} may say how"
    settings = [name for name in _SETTINGS if spark.conf.get(name, None) is not None]
    if settings:
        return f"{settings[0]} is set"
    described = [field.name for field in schema.fields if field.metadata]
    return f"column {described[0]!r} has metadata" if described else None


def _reader(columns: T.StructType, relation: FileRelation) -> ParquetColumns:
    tested = () if relation.condition is None else dict.fromkeys(names_in(relation.condition))
    schema = arrow_schema(T.StructType([relation.schema[name] for name in tested]), "files")
    kept = None if relation.condition is None else RowFilter(relation.condition, schema)
    return ParquetColumns(arrow_schema(columns, "files"), sources=relation.columns, filter=kept)


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
