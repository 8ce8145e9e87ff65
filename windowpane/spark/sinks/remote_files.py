"""``Files`` on an object store: tasks write by pyarrow, in the folders of ``Files``; the driver keeps the number of the batch.

A task writes one file, named by its partition, when it has all of its rows. A batch that is repeated begins with what the try
before it left taken away, so a folder has the rows of its batch once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.csv
from pyspark import TaskContext

from windowpane.connectors.kafka_writing import MessageFormat
from windowpane.connectors.object_stores import Location
from windowpane.connectors.tables import plain_schema
from windowpane.errors import InvalidSpecError
from windowpane.planning.sinks import Files
from windowpane.spark.sinks.paired import FolderWriter
from windowpane.spark.stages.project import mapped_in_arrow
from windowpane.spark.stages.types import arrow_schema
from windowpane.state.pairs import NONE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_FORMATS = ("parquet", "json", "csv")
_WRITTEN = pa.schema([("name", pa.string())])


@dataclass(frozen=True)
class RemoteFilesWriter(FolderWriter):
    sink: Files
    folders: tuple[str, str]

    def checked(self) -> RemoteFilesWriter:
        """Return it, if its place is there and its files can be written.

        Raises:
            UnreachablePathError: there is no such bucket, or the store does not answer.
            InvalidSpecError: it has another format, or options.
        """
        if self.sink.format not in _FORMATS or self.sink.options:
            raise InvalidSpecError(
                f"{self.sink!r}: on an object store Files writes {', '.join(_FORMATS)}, without options of Spark's writer. "
                "With the jar of its file system Spark writes others, to s3a://."
            )
        self.location.check()
        return self

    @cached_property
    def location(self) -> Location:
        return Location(self.sink.path)

    @property
    def taker(self) -> str:
        return f"folder {str(self.location)!r}"

    def taken(self, dataframe: DataFrame) -> int:
        place = self._number(dataframe)
        found = [self.location.line(f"{place}-{slot}") for slot in (0, 1)]
        return max((int(each) for each in found if each), default=NONE)

    def keep(self, dataframe: DataFrame, number: int) -> None:
        self.location.write(f"{self._number(dataframe)}-{number % 2}", str(number).encode())

    def write(self, dataframe: DataFrame, number: int) -> None:
        folder = f"{self._number(dataframe).rpartition('/')[0]}/{self.folders[1]}={number}"
        self.location.remove([f"{folder}/{name}" for name in self.location.names(folder)])
        columns = plain_schema(arrow_schema(dataframe.schema, str(self.location)))
        writer = PartWriter(self.location, folder, self.sink.format, columns)
        if not mapped_in_arrow(dataframe, writer.__call__, "name string").collect():
            writer.file(columns.empty_table(), 0)

    def takes_empty(self, dataframe: DataFrame, number: int) -> bool:
        """Whether a run that did not commit the batch has written rows of it."""
        folder = f"{self._number(dataframe).rpartition('/')[0]}/{self.folders[1]}={number}"
        return bool(self.location.names(folder))

    def _number(self, dataframe: DataFrame) -> str:
        return f"{self.folders[0]}={self.query.read(dataframe)}/_windowpane"


@dataclass(frozen=True)
class PartWriter:
    """Writes the rows of a task as one file; runs in tasks."""

    location: Location
    folder: str
    format: str
    schema: pa.Schema

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        found = [each for each in batches if each.num_rows]
        if found:
            rows, context = pa.Table.from_batches(found), TaskContext.get()
            name = self.file(rows.select(self.schema.names).cast(self.schema), context.partitionId() if context else 0)
            yield pa.RecordBatch.from_arrays([pa.array([name])], schema=_WRITTEN)

    def file(self, rows: pa.Table, part: int) -> str:
        name = f"{self.folder}/part-{part:05}.{self.format}"
        self.location.write(name, self._content(rows))
        return name

    def _content(self, rows: pa.Table) -> bytes | pa.Buffer:
        if self.format == "json":
            lines = MessageFormat((), "json", "append")(rows.to_batches())
            return b"".join((value or b"") + b"\n" for _, value in lines)
        out = pa.BufferOutputStream()
        if self.format == "csv":
            pa.csv.write_csv(rows, out)
        else:
            from pyarrow.parquet import write_table

            write_table(rows, out)
        return out.getvalue()
