"""Parquet files of a stream read by Arrow where Spark would read them, with the same rows.

``spark.readStream.schema(...).parquet(folder)`` on a file system that workers see needs nothing of Spark but the account of which
files were read: Arrow reads the columns that the program needs, in the Python stage that encodes the rows. Whatever Arrow might
read otherwise than Spark, a type, an option, a partitioned folder, is left to Spark; ``explain()`` says why.

A checkpoint does not tell who read the files: a restart may go from one to the other.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from glob import glob
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import types as T

from windowpane.errors import UnreadableFileError, UnsupportedTypeError
from windowpane.spark.internals.file_relation import file_relation
from windowpane.spark.queries.settings import setting
from windowpane.spark.stages.types import TIMESTAMP, TIMESTAMP_NTZ, arrow_schema

if TYPE_CHECKING:
    from pyarrow.parquet import ParquetFile

SWITCH = "spark.windowpane.files.readInArrow"
"""Setting of the session; ``false`` leaves all files to Spark."""

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
_LEGACY = (b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96")
_PATHS = "path string, modificationTime timestamp, length bigint, content binary"
_INTEGERS = (pa.int8(), pa.int16(), pa.int32(), pa.int64())


@dataclass(frozen=True)
class ParquetColumns:
    """Reads columns of Parquet files, given their paths.

    Args:
        schema: the columns.
    """

    schema: pa.Schema

    def narrowed(self, columns: Sequence[str]) -> ParquetColumns:
        """Return a reader of some of the columns."""
        return dataclasses.replace(self, schema=pa.schema([self.schema.field(name) for name in columns]))

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
        """Read the files of one partition.

        Raises:
            UnreadableFileError: a file is no Parquet, or Spark would read it otherwise; the message says what to set.
        """
        with ThreadPoolExecutor(1) as ahead:
            for batch in batches:
                for path in batch["path"].to_pylist():
                    yield from self._file(path, ahead)

    def _file(self, path: str, ahead: ThreadPoolExecutor) -> Iterator[pa.Table]:
        try:
            file = _opened(local_path(path))
            if "=" in path.rpartition("/")[0]:
                raise ValueError("a folder with '=' in its name holds values of a column, which Spark reads")
            columns = self._columns(file)
            groups = range(file.num_row_groups)
            names = [name for name in columns.values() if name is not None]
            # The next row group is read while this one is encoded.
            waiting = ahead.submit(file.read_row_group, 0, names) if groups else None
            for group in groups:
                assert waiting is not None, "there are groups"
                table = waiting.result()
                if group + 1 < len(groups):
                    waiting = ahead.submit(file.read_row_group, group + 1, names)
                rows = file.metadata.row_group(group).num_rows
                yield pa.table([self._column(table, columns[f.name], f.type, rows) for f in self.schema], schema=self.schema)
        except (pa.ArrowException, OSError, ValueError) as error:
            said = ValueError(f"{error} (with {SWITCH}=false, Spark reads the files)")
            raise UnreadableFileError(path, "parquet", said) from error

    def _columns(self, file: ParquetFile) -> dict[str, str | None]:
        """Return the name in the file of each column, ``None`` if it has none.

        Raises:
            ValueError: Spark would read a column otherwise than Arrow.
        """
        found: dict[str, str | None] = {}
        refused = _refused_file(file)
        if refused is not None:
            raise ValueError(refused)
        for field in self.schema:
            alike = [name for name in file.schema_arrow.names if name.lower() == field.name.lower()]
            if len(alike) > 1:
                raise ValueError(f"the columns {alike} differ in case only")
            if alike and _way(_file_type(file, alike[0]), field.type) is None:
                raise ValueError(f"column {alike[0]!r} is {_file_type(file, alike[0])} there, {field.type} in the schema")
            found[field.name] = alike[0] if alike else None
        return found

    def _column(self, table: pa.Table, name: str | None, kind: pa.DataType, rows: int) -> pa.ChunkedArray | pa.Array:
        if name is None:
            return pa.nulls(rows, kind)
        column = table[name]
        for step in _way(column.type, kind) or ():
            column = column.cast(step)
        return column

    def refusal(self, sample: str, columns: Sequence[str]) -> str | None:
        """Return why Spark reads files like ``sample`` otherwise, ``None`` if it does not."""
        try:
            self.narrowed(columns)._columns(_opened(sample))
        except (pa.ArrowException, OSError, ValueError) as error:
            return f"in {sample}, {error}"
        return None


def parquet_stream(dataframe: Any) -> tuple[Any, ParquetColumns, str] | None:
    """Return the paths of the files that a DataFrame reads, their reader and a sample; ``None`` where Spark is to read them."""
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
    sample = _sample(local_path(relation.path))
    schema = _readable(dataframe.schema)
    if sample is None or schema is None:
        return None
    reader = spark.readStream.format("binaryFile").schema(_PATHS).options(**relation.options)
    return reader.load(relation.path).select("path"), ParquetColumns(schema), sample


def local_path(path: str) -> str:
    """Return the path of a file on the local file system, given as Hadoop writes it: ``file:/a`` or ``file:///a``."""
    return path.removeprefix("file:").removeprefix("//")


def _readable(schema: T.StructType) -> pa.Schema | None:
    try:
        return arrow_schema(schema, "files")
    except UnsupportedTypeError:
        return None


def _sample(path: str) -> str | None:
    """Return one of the files that are there, ``None`` if there is none, or a folder holds values of a column."""
    for found in sorted(glob(path))[:1]:
        at = Path(found)
        if at.is_file():
            return str(at)
        if any("=" in entry.name for entry in at.iterdir() if entry.is_dir()):
            return None
        files = (entry for entry in sorted(at.iterdir()) if entry.is_file() and not entry.name.startswith(("_", ".")))
        return next((str(entry) for entry in files), None)
    return None


def _opened(path: str) -> ParquetFile:
    from pyarrow.parquet import ParquetFile  # a tenth of a second, which a worker that reads no Parquet need not wait

    return ParquetFile(path, coerce_int96_timestamp_unit="us", pre_buffer=True)


def _refused_file(file: ParquetFile) -> str | None:
    """Return what in the file's own description Spark minds and Arrow does not."""
    described = file.metadata.metadata or {}
    if any(key in described for key in _LEGACY) or described.get(b"org.apache.spark.version", b"9").startswith((b"2.", b"3.0")):
        return "a Spark before 3.1, or its calendar, wrote the file"
    return None


def _file_type(file: ParquetFile, name: str) -> pa.DataType:
    """Return the type that Arrow reads a column as; instants of 96 bits are in UTC."""
    return file.schema_arrow.field(name).type


def _way(found: pa.DataType, wanted: pa.DataType) -> tuple[pa.DataType, ...] | None:
    """Return the casts that give Spark's values of a column, ``None`` where Spark reads it otherwise, or refuses it."""
    if found == wanted and not pa.types.is_nested(found):
        return ()
    if pa.types.is_dictionary(found) or pa.types.is_large_string(found):
        inner = found.value_type if pa.types.is_dictionary(found) else found
        return (wanted,) if wanted == pa.string() and inner in (pa.string(), pa.large_string()) else None
    if pa.types.is_timestamp(found) and found.unit in ("ms", "us"):
        if wanted == TIMESTAMP:
            return (pa.timestamp("us", found.tz), pa.int64(), TIMESTAMP)  # Spark takes wall times as they are in UTC
        return (TIMESTAMP_NTZ,) if wanted == TIMESTAMP_NTZ and found.tz is None else None
    if found in _INTEGERS and wanted in _INTEGERS:
        return (wanted,) if _INTEGERS.index(found) < _INTEGERS.index(wanted) else None
    return (wanted,) if (found, wanted) == (pa.float32(), pa.float64()) else None
