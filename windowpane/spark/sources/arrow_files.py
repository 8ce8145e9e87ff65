"""Files read in Python by Arrow: contents come as they are from Spark's file source, which keeps account of what was read.

One file is one row of Spark's, so it is read by one task, whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.json

from windowpane.errors import InvalidSpecError, UnreadableFileError
from windowpane.spark.sources.arrow_rows import ArrowRows
from windowpane.spark.stages.types import arrow_schema, declared_schema

_CONTENTS = "path string, modificationTime timestamp, length bigint, content binary"
_ZONE_AT_END = r"(?:[zZ]|[+-]\d{2}(?::?\d{2})?)$"
_UTC = pa.timestamp("us", "UTC")
_GAP = pa.scalar(86_400_000_000, pa.duration("us"))


@dataclass(frozen=True)
class CsvFormat:
    """How CSV is written.

    Args:
        header: whether the first line names the columns; without it, columns are those of the schema, in its order.
        delimiter: the separator of values.
        null: the text of NULL, quoted or not, as for Spark's reader.
    """

    header: bool = False
    delimiter: str = ","
    null: str = ""


def arrow_files(
    spark: Any, path: str, schema: Any, format: str, csv: CsvFormat, options: Mapping[str, Any], streaming: bool
) -> ArrowRows:
    """Return the rows of files, see ``windowpane.read_in_arrow``."""
    if format not in _READERS:
        known = ", ".join(map(repr, _READERS))
        raise InvalidSpecError(f"format={format!r}: Arrow reads {known}; leave others to Spark's readers.")
    columns = declared_schema(spark, schema, "read_in_arrow")
    zone = str(spark.conf.get("spark.sql.session.timeZone"))
    reader = spark.readStream if streaming else spark.read
    contents = reader.format("binaryFile").schema(_CONTENTS).options(**options).load(path).select("path", "content")
    return ArrowRows(contents, FileReader(format, arrow_schema(columns, "read_in_arrow"), csv, zone), columns)


@dataclass(frozen=True)
class FileReader:
    """Reads (path, content) into the columns of ``schema``.

    Args:
        format: ``csv``, ``json`` (an object a line) or ``parquet``.
        schema: the columns.
        csv: how CSV is written.
        zone: where instants are that are written without a zone.
    """

    format: str
    schema: pa.Schema
    csv: CsvFormat
    zone: str

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
        """Read the files of one partition."""
        for batch in batches:
            for path, content in zip(batch["path"], batch["content"], strict=True):
                try:
                    yield self._read(content.as_buffer())
                except (pa.ArrowException, OSError) as error:
                    raise UnreadableFileError(path.as_py(), self.format, error) from error

    def _read(self, content: pa.Buffer) -> pa.Table:
        if not content.size:
            return self.schema.empty_table()
        table = _READERS[self.format](self, content)
        return pa.table([self._column(table, field) for field in self.schema], schema=self.schema)

    def _column(self, table: pa.Table, field: pa.Field) -> pa.ChunkedArray | pa.Array:
        """Return a column in its type; NULLs where a file has none of its name, as from Spark's reader."""
        if field.name not in table.column_names:
            return pa.nulls(table.num_rows, field.type)
        column = table[field.name]
        if pa.types.is_timestamp(field.type):
            column = _instants(column, self.zone) if field.type.tz is not None else column
        return column.cast(field.type)

    def parquet(self, content: pa.Buffer) -> pa.Table:
        """Read Parquet."""
        from pyarrow.parquet import ParquetFile  # a tenth of a second, which a worker that reads text need not wait

        file = ParquetFile(pa.BufferReader(content), coerce_int96_timestamp_unit="us")
        table = file.read([name for name in self.schema.names if name in file.schema_arrow.names])
        utc = {
            column.path for column in map(file.schema.column, range(len(file.schema.names))) if column.physical_type == "INT96"
        }
        fields = [field.with_type(_UTC) if field.name in utc else field for field in table.schema]
        return table.cast(pa.schema(fields))

    def delimited(self, content: pa.Buffer) -> pa.Table:
        """Read CSV."""
        names = None if self.csv.header else self.schema.names
        return pa.csv.read_csv(
            pa.BufferReader(content),
            read_options=pa.csv.ReadOptions(column_names=names, block_size=8 << 20),
            parse_options=pa.csv.ParseOptions(delimiter=self.csv.delimiter),
            convert_options=pa.csv.ConvertOptions(
                include_columns=self.schema.names,
                include_missing_columns=True,
                column_types={field.name: _as_text(field.type) for field in self.schema},
                null_values=[self.csv.null],
                strings_can_be_null=True,
                quoted_strings_can_be_null=True,
            ),
        )

    def lines(self, content: pa.Buffer) -> pa.Table:
        """Read JSON, an object a line."""
        schema = pa.schema([pa.field(field.name, _as_text(field.type)) for field in self.schema])
        options = pa.json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
        return pa.json.read_json(pa.BufferReader(content), parse_options=options)


_READERS: Mapping[str, Callable[[FileReader, pa.Buffer], pa.Table]] = {
    "csv": FileReader.delimited,
    "json": FileReader.lines,
    "parquet": FileReader.parquet,
}


def _as_text(kind: pa.DataType) -> pa.DataType:
    """Return the type that a text format is parsed to: instants stay text, whose zone is looked at first."""
    return pa.string() if pa.types.is_timestamp(kind) else kind


def _instants(column: pa.ChunkedArray, zone: str) -> pa.ChunkedArray:
    """Return instants of texts or of wall times; those without a zone are in ``zone``."""
    if pa.types.is_timestamp(column.type):
        return column if column.type.tz is not None else _in_zone(column, zone)
    zoned = pc.and_(pc.match_substring_regex(column, _ZONE_AT_END), pc.match_substring(column, ":"))
    if not pc.any(zoned).as_py():
        return _in_zone(column.cast(pa.timestamp("us")), zone)
    instants = pc.if_else(zoned, column, None).cast(_UTC)
    walls = _in_zone(pc.if_else(zoned, None, column).cast(pa.timestamp("us")), zone)
    return pc.coalesce(instants, walls.cast(instants.type))


def _in_zone(walls: pa.ChunkedArray, zone: str) -> pa.ChunkedArray:
    """Return the instants of wall times as Java has them: of two the earlier; one that is skipped moves on by what is skipped."""
    first = pc.assume_timezone(walls, zone, ambiguous="earliest", nonexistent="earliest")
    last = pc.assume_timezone(walls, zone, ambiguous="earliest", nonexistent="latest")
    if first.equals(last):
        return first
    before = pc.subtract(walls, _GAP)
    moved = pc.add(pc.assume_timezone(before, zone, ambiguous="earliest", nonexistent="earliest"), _GAP)
    return pc.if_else(pc.equal(first, last), first, moved)


__all__ = ["CsvFormat", "FileReader", "arrow_files"]
