"""Rows that a function makes in Python from record batches, and what it takes to encode them where they are made.

``DataFrame.mapInArrow`` hands such rows to the JVM, and an operator's encoder gets them back from there: two hops for nothing.
Here the function and the encoder run in one Python stage, so a row never leaves Python on its way to the shuffle. Spark cannot
see the event time of such rows; the encoder reports the latest one beside its blobs, and Spark's watermark is made of that.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windowpane.errors import ArrowResultError
from windowpane.malformed import MalformedRow, rows_table
from windowpane.spark.internals.file_relation import LeftToSpark
from windowpane.spark.internals.plan_trees import Steps
from windowpane.spark.session.settings import MANY_ROWS
from windowpane.spark.sources.file_names import refuse_odd_name
from windowpane.spark.sources.parquet_files import ParquetStream, parquet_stream
from windowpane.spark.sources.parquet_reader import ParquetColumns
from windowpane.spark.stages import encode
from windowpane.spark.stages.messages import malformed_blob
from windowpane.spark.stages.project import encoded, quoted
from windowpane.spark.stages.types import arrow_schema, declared_schema
from windowpane.windowing.arrow_functions import cast_as
from windowpane.windowing.outputs import Schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass
class Reading:
    """How a task reads rows that may be malformed, and what it has met: shared by what reads them and what encodes them."""

    policy: str = "fail"  # what becomes of malformed rows, one of ``POLICIES``
    event_time: str | None = None  # the column without which a row is of no use, ``None`` for none
    met: list[MalformedRow] = field(default_factory=list)  # the malformed rows of the task


Batches = Iterable[pa.RecordBatch]
BatchFunction = Callable[[Iterator[pa.RecordBatch]], Iterable[pa.RecordBatch | pa.Table]]


@dataclass(frozen=True)
class ArrowRows:
    """Rows that ``function`` makes of the record batches of a DataFrame."""

    origin: DataFrame
    function: BatchFunction  # as ``mapInArrow`` takes it; it may yield tables, too
    schema: T.StructType  # the columns of the rows
    sample: str | None = None  # a file that shows how files of Spark's are read, ``None`` for rows that a user's function makes
    reading: Reading | None = None  # how rows that may be malformed are read, ``None`` where none can be

    def map_in_arrow(self, function: BatchFunction, schema: Schema) -> ArrowRows:
        columns = declared_schema(self.origin.sparkSession, schema, "map_in_arrow")
        return ArrowRows(self.origin, partial(_chained, self.typed, function), columns, reading=self.reading)

    @property
    def df(self) -> DataFrame:
        """The rows as a DataFrame: for Spark's own operations, at the price of a hop to the JVM."""
        function = self.typed.__call__ if self.reading is None else partial(_said_on_tasks, self.typed, self.reading)
        return self.origin.mapInArrow(function, self.schema)

    @property
    def typed(self) -> TypedFunction:
        return TypedFunction(self.function, arrow_schema(self.schema, "map_in_arrow"))

    def refusal(self, columns: Sequence[str]) -> str | None:
        if self.sample is None or not isinstance(self.function, ParquetColumns):
            return None
        reason = self.function.refusal(self.sample, columns)
        if reason is not None:
            refuse_odd_name(self.function.odd)
        return reason

    @property
    def filtered(self) -> str:
        """What ``explain`` says of rows of files that are left out, " and filtered"; nothing where there are none."""
        return " and filtered" if isinstance(self.function, ParquetColumns) and self.function.filter is not None else ""

    def _only(self, columns: Sequence[str], coded: frozenset[str]) -> Callable[[Batches], Iterator[pa.RecordBatch]]:
        if not isinstance(self.function, ParquetColumns):
            return self.typed.__call__
        return partial(_read, self.function.narrowed(columns, coded & frozenset(columns)))

    def encoded(self, encoder: encode.Encoder, columns: tuple[str, ...], watermark: str | None) -> DataFrame:
        """Return the rows as ``encode.SCHEMA``, with a watermark if there is to be one."""
        encoder = dataclasses.replace(encoder, tells_time=watermark is not None)
        event_time = encoder.event_time
        if event_time is not None and event_time not in columns:
            columns = (*columns, event_time)
            encoder = dataclasses.replace(encoder, dropped=(*encoder.dropped, event_time))
        if self.reading is not None:
            self.reading.event_time = event_time
        function = partial(_encoding, self._only(columns, encoder.coded), columns, encoder, self.reading)
        return encoded(self.origin, function, watermark)


def read_in_arrow(dataframe: DataFrame, steps: Steps | None = None) -> ArrowRows | LeftToSpark | None:
    """Return the rows of a stream of Parquet files as Arrow reads them, or why it does not; ``None`` for other DataFrames."""
    found = parquet_stream(dataframe, steps)
    if not isinstance(found, ParquetStream):
        return found
    return ArrowRows(found.places, found.reader, dataframe.schema, found.sample)


def read_columns(dataframe: DataFrame, columns: Sequence[str]) -> DataFrame | ArrowRows:
    """Return some columns of a DataFrame, read by Arrow where files of Spark's can be."""
    made = read_in_arrow(dataframe)
    if not isinstance(made, ArrowRows) or made.refusal(columns) is not None or not isinstance(made.function, ParquetColumns):
        return dataframe.select(*[F.col(quoted(name)) for name in columns])
    schema = T.StructType([made.schema[name] for name in columns])
    return ArrowRows(made.origin, made.function.narrowed(columns), schema, made.sample)


def mapped(rows: DataFrame | ArrowRows, function: BatchFunction, schema: Schema) -> ArrowRows:
    if isinstance(rows, ArrowRows):
        return rows.map_in_arrow(function, schema)
    return ArrowRows(rows, function, declared_schema(rows.sparkSession, schema, "map_in_arrow"))


@dataclass(frozen=True)
class TypedFunction:
    function: BatchFunction
    schema: pa.Schema

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        for result in self.function(iter(batches)):
            yield from self._fitted(result).to_batches(max_chunksize=MANY_ROWS)

    def _fitted(self, result: object) -> pa.Table:
        if isinstance(result, pa.RecordBatch):
            result = pa.Table.from_batches([result])
        if not isinstance(result, pa.Table):
            raise ArrowResultError(self.function, f"it yielded a {type(result).__name__}, but a record batch was expected")
        missing = [name for name in self.schema.names if name not in result.column_names]
        if missing:
            raise ArrowResultError(
                self.function, f"its batch has the columns {result.column_names}, but {self.schema.names} were declared"
            )
        return cast_as(self.function, result, self.schema, "batch")


def _chained(first: BatchFunction, then: BatchFunction, batches: Iterator[pa.RecordBatch]) -> Iterable[pa.RecordBatch | pa.Table]:
    return then(iter(first(batches)))


def _read(columns: ParquetColumns, batches: Batches) -> Iterator[pa.RecordBatch]:
    for table in columns(iter(batches)):
        yield from table.to_batches(max_chunksize=MANY_ROWS)


def _encoding(
    function: Callable[[Batches], Iterator[pa.RecordBatch]],
    columns: tuple[str, ...],
    encoder: encode.Encoder,
    reading: Reading | None,
    batches: Batches,
) -> Iterator[pa.RecordBatch]:
    yield from encoder(batch.select(columns) for batch in function(batches))
    if reading is not None and reading.met:
        yield encoder.sent(malformed_blob(rows_table(reading.met)))


def _said_on_tasks(function: TypedFunction, reading: Reading, batches: Batches) -> Iterator[pa.RecordBatch]:
    """Malformed rows have no way to an operator here: the task says how many it left out or changed."""
    yield from function(batches)
    if reading.met:
        logging.getLogger(__name__).warning("%d malformed rows, the first: %s", len(reading.met), reading.met[0])
