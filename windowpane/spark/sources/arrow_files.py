"""Files read in Python by Arrow: contents come as they are from Spark's file source, which keeps account of what was read.

One file is one row of Spark's, so it is read by one task, whole.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.json

from windowpane.errors import InvalidSpecError, MalformedRowError, PatternNameError, UnreadableFileError
from windowpane.hidden_columns import ORIGIN
from windowpane.malformed import POLICIES, MalformedRow, csv_cells, json_cells, json_documents, shortened
from windowpane.spark.sources.arrow_rows import ArrowRows, Reading
from windowpane.spark.sources.file_names import START_AGAIN, has_one_file_a_batch, is_pattern, odd_name
from windowpane.spark.sources.parquet_reader import local_path
from windowpane.spark.stages.types import arrow_schema, declared_schema

_CONTENTS = "path string, modificationTime timestamp, length bigint, content binary"
_ZONE_AT_END = r"(?:[zZ]|[+-]\d{2}(?::?\d{2})?)$"
_UTC = pa.timestamp("us", "UTC")
_GAP = pa.scalar(86_400_000_000, pa.duration("us"))


@dataclass(frozen=True)
class CsvFormat:
    header: bool = False  # whether the first line names the columns; without it, columns are those of the schema, in its order
    delimiter: str = ","  # the separator of values
    null: str = ""  # the text of NULL, quoted or not, as for Spark's reader


def arrow_files(
    spark: Any,
    path: str,
    schema: Any,
    format: str,
    csv: CsvFormat,
    options: Mapping[str, Any],
    *,
    streaming: bool,
    malformed: str,
) -> ArrowRows:
    """Return the rows of files, see ``windowpane.read_in_arrow``."""
    if malformed not in POLICIES:
        raise InvalidSpecError(f"malformed={malformed!r}: it is one of {', '.join(map(repr, POLICIES))}.")
    if malformed != "fail" and format == "parquet":
        raise InvalidSpecError(f"malformed={malformed!r}: a file of Parquet is read whole, or not at all.")
    if format not in _READERS:
        known = ", ".join(map(repr, _READERS))
        raise InvalidSpecError(f"format={format!r}: Arrow reads {known}; leave others to Spark's readers.")
    columns = declared_schema(spark, schema, "read_in_arrow")
    zone = str(spark.conf.get("spark.sql.session.timeZone"))
    reader = spark.readStream if streaming else spark.read
    contents = reader.format("binaryFile").schema(_CONTENTS).options(**options).load(path).select("path", "content")
    given = {name.lower(): str(value) for name, value in options.items()}
    takes_any_name = not streaming or has_one_file_a_batch(given)
    if not takes_any_name and odd_name(local_path(path), given) is not None:
        contents, takes_any_name = contents.repartition("path"), True
    reading = None if format == "parquet" else Reading(malformed)
    reader = FileReader(format, arrow_schema(columns, "read_in_arrow"), csv, zone, path, reading, takes_any_name)
    return ArrowRows(contents, reader, columns, reading=reading)


@dataclass(frozen=True)
class FileReader:
    format: str  # ``csv``, ``json`` (an object a line) or ``parquet``
    schema: pa.Schema  # the columns
    csv: CsvFormat  # how CSV is written
    zone: str  # where instants are that are written without a zone
    source: str = ""  # what malformed rows name as their source
    reading: Reading | None = None  # what becomes of malformed rows, and those that were met; ``None`` where one is an error
    # whether no name doubles others: all contents of one path come to one task, or files come one by one
    takes_any_name: bool = True

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
        read = set[str]()
        for batch in batches:
            for path, content in zip(batch["path"].to_pylist(), batch["content"], strict=True):
                if path in read:
                    continue
                read.add(path)
                if not self.takes_any_name and is_pattern(path):
                    raise PatternNameError(path, START_AGAIN)
                yield self._tried(path, content.as_buffer())

    def _tried(self, path: str, content: pa.Buffer) -> pa.Table:
        """Read a file: at once, or where that fails row by row."""
        try:
            return self._read(content)
        except (pa.ArrowException, OSError) as error:
            if self.reading is None:
                raise UnreadableFileError(path, self.format, error) from error
        return self._by_rows(path, content.to_pybytes(), self.reading)

    def _by_rows(self, path: str, content: bytes, reading: Reading) -> pa.Table:
        names = self.schema.names
        if self.format == "csv":
            cells = csv_cells(content, names, self.csv.delimiter, heading=self.csv.header, null=self.csv.null)
        else:
            nested = [field.name for field in self.schema if pa.types.is_nested(field.type)]
            cells = json_cells(json_documents(content), names, nested)
        found = [MalformedRow(self.source, f"{path}, {each.position}", None, each.value, each.reason) for each in cells.misread]
        texts = cells.table(reading.policy)
        columns, lost = [], np.zeros(texts.num_rows, np.bool_)
        for field in self.schema:
            column, misfits = self._fitted(texts[field.name], field)
            columns.append(column)
            for row, reason in misfits:
                position, value = f"{path}, {texts[ORIGIN][row]}", shortened(texts[field.name][row].as_py())
                found.append(MalformedRow(self.source, position, field.name, value, reason))
                lost[row] |= reading.policy == "drop" or field.name == reading.event_time
        if found and reading.policy == "fail":
            raise MalformedRowError(found[0], path)
        reading.met.extend(found)
        return pa.table(columns, schema=self.schema).filter(pa.array(~lost))

    def _fitted(self, texts: pa.ChunkedArray, field: pa.Field) -> tuple[pa.ChunkedArray, list[tuple[int, str]]]:
        """Return the values of texts, NULL where one does not fit, with the row and the reason of each that does not."""
        pieces: list[pa.Array] = []
        misfits: list[tuple[int, str]] = []
        waiting = [(0, len(texts))]
        while waiting:
            start, end = waiting.pop()
            try:
                values = self._values(texts.slice(start, end - start), field)
                pieces += values.chunks if isinstance(values, pa.ChunkedArray) else [values]
            except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
                middle = (start + end) // 2
                if end - start > 1:
                    waiting += [(middle, end), (start, middle)]
                    continue
                misfits.append((start, str(error).split("\n")[0]))
                pieces.append(pa.nulls(1, field.type))
        return pa.chunked_array(pieces, field.type), misfits

    def _values(self, texts: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray | pa.Array:
        if pa.types.is_nested(field.type):
            return pa.array([None if text is None else json.loads(text) for text in texts.to_pylist()], field.type)
        return self._column(pa.table({field.name: texts}), field)

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
        from pyarrow.parquet import ParquetFile  # a tenth of a second, which a worker that reads text need not wait

        file = ParquetFile(pa.BufferReader(content), coerce_int96_timestamp_unit="us")
        table = file.read([name for name in self.schema.names if name in file.schema_arrow.names])
        utc = {
            column.path for column in map(file.schema.column, range(len(file.schema.names))) if column.physical_type == "INT96"
        }
        fields = [field.with_type(_UTC) if field.name in utc else field for field in table.schema]
        return table.cast(pa.schema(fields))

    def delimited(self, content: pa.Buffer) -> pa.Table:
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
