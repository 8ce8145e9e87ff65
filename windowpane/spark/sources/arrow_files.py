"""Files read in Python by Arrow: contents come as they are from Spark's file source, which keeps account of what was read.

One file is one row of Spark's, so it is read by one task, whole. Those of object stores are read by tasks, ``remote_files``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import BufferedReader, BytesIO
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.csv

from windowpane.connectors.object_stores import is_remote, shown
from windowpane.connectors.typed_cells import TypedCells, as_text
from windowpane.errors import InvalidSpecError, MalformedRowError, PatternNameError, UnreadableFileError
from windowpane.hidden_columns import ORIGIN
from windowpane.malformed import POLICIES, MalformedRow, csv_cells, json_cells, json_documents, shortened
from windowpane.planning.sinks import SparkOptions
from windowpane.spark.session.column_names import folding
from windowpane.spark.sources.arrow_rows import ArrowRows, Reading
from windowpane.spark.sources.file_names import START_AGAIN, has_one_file_a_batch, is_pattern, odd_name
from windowpane.spark.sources.parquet_files import OPTIONS
from windowpane.spark.sources.parquet_reader import local_path
from windowpane.spark.sources.remote_files import RemoteFiles, RemoteReader
from windowpane.spark.stages.types import arrow_schema, declared_schema
from windowpane.windowing.outputs import Schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CONTENTS = "path string, modificationTime timestamp, length bigint, content binary"
_UTC = pa.timestamp("us", "UTC")


@dataclass(frozen=True)
class CsvFormat:
    header: bool = False  # whether the first line names the columns; without it, columns are those of the schema, in its order
    delimiter: str = ","  # the separator of values
    null: str = ""  # the text of NULL, quoted or not, as for Spark's reader


_OPTIONS = OPTIONS | {
    "discardcachedinputratio",
    "modifiedbefore",
    "modifiedafter",
    "ignoremissingfiles",
    "ignoredpathsegmentregex",
    "basepath",
}
"""Those of Spark's file source that say which files there are; those with a dot are settings of Hadoop's.

All others say how a file is read. Spark would pass over them without a word, since Arrow reads.
"""


def arrow_files(
    spark: SparkSession,
    path: str,
    schema: Schema,
    format: str,
    csv: CsvFormat,
    options: SparkOptions,
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
    if unknown := [name for name in options if name.lower() not in _OPTIONS and "." not in name and not is_remote(path)]:
        raise InvalidSpecError(
            f"read_in_arrow has no option {unknown[0]!r}: it takes those by which Spark finds files, such as maxFilesPerTrigger. "
            "How CSV is written is said by header=, delimiter= and null=. Where more has to be said let Spark read: "
            f"spark.readStream.schema(...).option({unknown[0]!r}, ...).{format}(...)."
        )
    columns = declared_schema(spark, schema, "read_in_arrow")
    zone = str(spark.conf.get("spark.sql.session.timeZone"))
    any_case = folding(spark) is not str
    given = {name.lower(): str(value) for name, value in options.items()}
    reading = None if format == "parquet" else Reading(malformed)
    if is_remote(path):
        files = RemoteFiles.of(path, given)
        of_file = FileReader(format, arrow_schema(columns, "read_in_arrow"), csv, zone, shown(path), reading, any_case=any_case)
        origin = files.origin(spark, streaming=streaming)
        return ArrowRows(origin, RemoteReader(files.location, of_file.table), columns, reading=reading)
    builder = spark.readStream if streaming else spark.read
    contents = builder.format("binaryFile").schema(_CONTENTS).options(**options).load(path).select("path", "content")
    takes_any_name = not streaming or has_one_file_a_batch(given)
    if not takes_any_name and odd_name(local_path(path), given) is not None:
        contents, takes_any_name = contents.repartition("path"), True
    reader = FileReader(format, arrow_schema(columns, "read_in_arrow"), csv, zone, path, reading, takes_any_name, any_case)
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
    any_case: bool = True  # whether columns of CSV and Parquet are found whatever the case of their names

    @property
    def cells(self) -> TypedCells:
        return TypedCells(self.schema, self.zone, of_json=self.format == "json")

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
        read = set[str]()
        for batch in batches:
            for path, content in zip(batch["path"].to_pylist(), batch["content"], strict=True):
                if path in read:
                    continue
                read.add(path)
                if not self.takes_any_name and is_pattern(path):
                    raise PatternNameError(path, START_AGAIN)
                yield self.table(path, content.as_buffer())

    def table(self, path: str, content: pa.Buffer) -> pa.Table:
        """Return the rows of a file: read at once, or where that fails row by row."""
        try:
            return self._read(content)
        except (pa.ArrowException, OSError, ValueError) as error:
            if self.reading is None:
                raise UnreadableFileError(path, self.format, error) from error
        return self._by_rows(path, content.to_pybytes(), self.reading)

    def _by_rows(self, path: str, content: bytes, reading: Reading) -> pa.Table:
        names = self.schema.names
        if self.format == "csv":
            cells = csv_cells(
                content, names, self.csv.delimiter, heading=self.csv.header, null=self.csv.null, any_case=self.any_case
            )
        else:
            cells = json_cells(json_documents(content), names, self.cells.nested, of_spark=True)
        found = [MalformedRow(self.source, f"{path}, {each.position}", None, each.value, each.reason) for each in cells.misread]
        texts = cells.table(reading.policy)
        columns, lost = [], np.zeros(texts.num_rows, np.bool_)
        for field in self.schema:
            column, misfits = self.cells.fitted(texts[field.name], field)
            columns.append(column)
            for row, reason in misfits:
                position, value = f"{path}, {texts[ORIGIN][row]}", shortened(texts[field.name][row].as_py())
                found.append(MalformedRow(self.source, position, field.name, value, reason))
                lost[row] |= reading.policy == "drop" or field.name == reading.event_time
        if found and reading.policy == "fail":
            raise MalformedRowError(found[0], path)
        reading.met.extend(found)
        return pa.table(columns, schema=self.schema).filter(pa.array(~lost))

    def _read(self, content: pa.Buffer) -> pa.Table:
        if not content.size:
            return self.schema.empty_table()
        table = _READERS[self.format](self, content)
        return self.cells.table(table)

    def parquet(self, content: pa.Buffer) -> pa.Table:
        from pyarrow.parquet import ParquetFile  # a tenth of a second, which a worker that reads text need not wait

        file = ParquetFile(pa.BufferReader(content), coerce_int96_timestamp_unit="us")
        stored = self._stored(file.schema_arrow.names)
        if not stored:  # a table without columns would forget how many rows there are
            first = self.schema.field(0)
            return pa.table([pa.nulls(file.metadata.num_rows, first.type)], [first.name])
        table = file.read(list(stored.values()))
        utc = {
            column.path for column in map(file.schema.column, range(len(file.schema.names))) if column.physical_type == "INT96"
        }
        fields = [field.with_type(_UTC) if field.name in utc else field for field in table.schema]
        return table.cast(pa.schema(fields)).select(list(stored.values())).rename_columns(list(stored))

    def _stored(self, names: Sequence[str]) -> dict[str, str]:
        """Return the names that a file has for the columns, as far as it has them."""
        found = {name: name for name in self.schema.names if name in names}
        for name in self.schema.names if self.any_case else ():
            alike = [each for each in names if each.lower() == name.lower()]
            if name not in found and len(alike) > 1:
                raise ValueError(f"the columns {alike} differ in case only, and none is {name!r}")
            if alike:
                found.setdefault(name, alike[0])
        return found

    def delimited(self, content: pa.Buffer) -> pa.Table:
        names = None if self.csv.header else self.schema.names
        parsing = pa.csv.ParseOptions(delimiter=self.csv.delimiter)
        heading = BufferedReader(pa.BufferReader(content)).readline() if self.csv.header else b""
        stored = self._stored(pa.csv.read_csv(BytesIO(heading), parse_options=parsing).column_names if heading.strip() else [])
        called = {name: stored.get(name, name) for name in self.schema.names}
        table = pa.csv.read_csv(
            pa.BufferReader(content),
            read_options=pa.csv.ReadOptions(column_names=names, block_size=8 << 20),
            parse_options=parsing,
            convert_options=pa.csv.ConvertOptions(
                include_columns=list(called.values()),
                include_missing_columns=True,
                column_types={called[field.name]: as_text(field.type) for field in self.schema},
                null_values=[self.csv.null],
                strings_can_be_null=True,
                quoted_strings_can_be_null=True,
            ),
        )
        return table.rename_columns(self.schema.names)

    def lines(self, content: pa.Buffer) -> pa.Table:
        return self.cells.json_lines(content)


_READERS: Mapping[str, Callable[[FileReader, pa.Buffer], pa.Table]] = {
    "csv": FileReader.delimited,
    "json": FileReader.lines,
    "parquet": FileReader.parquet,
}


__all__ = ["CsvFormat", "FileReader", "arrow_files"]
