"""``Files`` that the tasks of an operator write: Parquet, in a folder of the machine, of rows of which Spark computes nothing.

A task writes its rows to a file in a folder beside the results, and what Spark gets is the path; the driver moves the files of
the tasks that Spark counts into the folder of the batch, which appears whole. So the rows pass neither the JVM nor a job that
only writes. What a crash or a failed task has left stays in the folder beside, which goes with the next batch.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

import pyarrow as pa
from pyspark.sql import functions as F

from windowpane.errors import InvalidSpecError
from windowpane.planning.sinks import Files
from windowpane.spark.building.outputs import Output
from windowpane.spark.internals.session import is_classic
from windowpane.spark.session.checkpoints import files_of
from windowpane.spark.sinks.paired import FilesWriter
from windowpane.spark.stages.wire import Wire, wire_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_CODECS = {name: name for name in ("snappy", "gzip", "zstd", "none")} | {"uncompressed": "none"}  # Spark's, as Arrow has them
_CODEC, _MOST_ROWS = "spark.sql.parquet.compression.codec", "spark.sql.files.maxRecordsPerFile"
_ENCRYPTION = "parquet.crypto.factory.class"
_SCHEMA, _VERSION = "org.apache.spark.sql.parquet.row.metadata", "org.apache.spark.version"
"""What Spark says in each file: its schema, with the marks of columns, and its version, from which the calendar follows."""


@dataclass(frozen=True)
class ToParts:
    """Writes rows to a file of their own, and gives its path; runs in tasks."""

    folder: str
    codec: str
    says: tuple[tuple[str, str], ...] = ()  # what else each file says

    def __call__(self, rows: pa.RecordBatch) -> Iterator[bytes]:
        from pyarrow.parquet import write_table

        path = Path(self.folder) / uuid.uuid4().hex
        path.parent.mkdir(parents=True, exist_ok=True)
        table = pa.Table.from_batches([rows]).replace_schema_metadata(dict(self.says))
        write_table(table, path, compression=self.codec)
        yield os.fsencode(path)


@dataclass(frozen=True)
class Parts:
    """An output whose rows are in files: a sink is given their paths."""

    output: Output
    write: ToParts
    columns: pa.Schema  # of the rows

    @classmethod
    def of_sink(cls, output: Output, sink: Files, spark: SparkSession, checkpoint: str) -> Self | None:
        """Return an output as the files that the tasks of a query write for a sink; ``None`` where Spark has to write them."""
        if sink.format != "parquet" or sink.options or not output.is_as_emitted or not is_classic(spark):
            return None
        codec = _CODECS.get(str(spark.conf.get(_CODEC)))
        if codec is None or spark.conf.get(_MOST_ROWS) != "0" or wire_of(output.arrow, output.spark).main is None:
            return None
        folder = _local_folder(spark, sink.path)
        if folder is None:
            return None
        arrow, schema = output.schemas_as_emitted()
        of_query = hashlib.sha256(checkpoint.encode()).hexdigest()[:16]  # several may write to one folder
        says = ((_SCHEMA, str(schema.json())), (_VERSION, str(spark.version)))
        return cls(output, ToParts(f"{folder}/_windowpane-{of_query}", codec, says), arrow)

    @property
    def number(self) -> int:
        return self.output.number

    @property
    def wire(self) -> Wire:
        """How the rows of the output travel."""
        return Wire(main_blobs=self.output.mapped_by(self.write), cuts_main=False)

    def of(self, rows: DataFrame, wire: Wire) -> DataFrame:
        return rows.filter(F.col("output") == self.number).select("blob")


def _local_folder(spark: SparkSession, path: str) -> str | None:
    """Return a folder as Python has it; ``None`` on another file system, and where Spark encrypts what it writes."""
    files, folder = files_of(spark, path)
    uri = files.makeQualified(folder).toUri()
    is_plain = uri.getScheme() == "file" and files.getConf().get(_ENCRYPTION) is None
    return str(uri.getPath()) if is_plain else None


@dataclass(frozen=True)
class PartsWriter(FilesWriter):
    parts: Parts

    def write(self, dataframe: DataFrame, number: int) -> None:
        """Run the batch, whose rows are the paths of its files, and move these to its folder."""
        to_parts = self.parts.write
        paths = [bytes(path) for (path,) in dataframe.collect()]
        if not paths and number == 0:  # readers find the columns from then on
            paths = list(to_parts(pa.RecordBatch.from_pylist([], schema=self.parts.columns)))
        folder = Path(to_parts.folder).parent / self._batch_folder(dataframe, number)
        draft = folder.with_name(f"_batch-{number}")
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(parents=True)
        for part, file in enumerate(map(Path, map(os.fsdecode, paths))):  # ``read_latest`` reads them in this order
            try:
                file.rename(draft / f"part-{part:05}.parquet")
            except FileNotFoundError:
                raise InvalidSpecError(
                    f"{self.sink!r}: a task wrote {str(file)!r}, which the driver does not see. Give a folder that the driver "
                    "and all executors share, or one in an object store. The query goes on from its checkpoint."
                ) from None
        shutil.rmtree(folder, ignore_errors=True)
        if paths:
            draft.rename(folder)
        else:
            draft.rmdir()
        shutil.rmtree(to_parts.folder, ignore_errors=True)
