"""Rows that a function makes in Python from record batches, and what it takes to encode them where they are made.

``DataFrame.mapInArrow`` hands such rows to the JVM, and an operator's encoder gets them back from there: two hops for nothing.
Here the function and the encoder run in one Python stage, so a row never leaves Python on its way to the shuffle. Spark cannot
see the event time of such rows; the encoder reports the latest one beside its blobs, and Spark's watermark is made of that.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windowpane.errors import ArrowResultError
from windowpane.spark.queries.settings import MANY_ROWS
from windowpane.spark.sources.parquet_files import ParquetColumns, parquet_stream
from windowpane.spark.stages import encode
from windowpane.spark.stages.blobs import HEARTBEAT
from windowpane.spark.stages.buckets import bucket_ids, state_partitions
from windowpane.spark.stages.project import quoted
from windowpane.spark.stages.types import TIMESTAMP, arrow_schema, declared_schema
from windowpane.windowing.arrow.calls import cast_as

Batches = Iterable[pa.RecordBatch]
BatchFunction = Callable[[Iterator[pa.RecordBatch]], Iterable[Any]]

_LATEST = "latest"
_SCHEMA = f"{encode.SCHEMA}, {_LATEST} timestamp"


@dataclass(frozen=True)
class ArrowRows:
    """Rows that ``function`` makes of the record batches of a DataFrame.

    Attributes:
        origin: the DataFrame, streaming or static.
        function: as ``mapInArrow`` takes it; it may yield tables, too.
        schema: the columns of the rows.
        sample: a file that shows how files of Spark's are read, ``None`` for rows that a user's function makes.
    """

    origin: Any
    function: BatchFunction
    schema: T.StructType
    sample: str | None = None

    def map_in_arrow(self, function: BatchFunction, schema: Any) -> ArrowRows:
        """Go on with another function, see ``windowpane.map_in_arrow``."""
        columns = declared_schema(self.origin.sparkSession, schema, "map_in_arrow")
        return ArrowRows(self.origin, _Chained(self.typed, function), columns)

    @property
    def df(self) -> Any:
        """The rows as a DataFrame: for Spark's own operations, at the price of a hop to the JVM."""
        return self.origin.mapInArrow(self.typed.__call__, self.schema)

    @property
    def typed(self) -> TypedFunction:
        """The function, its results checked."""
        return TypedFunction(self.function, arrow_schema(self.schema, "map_in_arrow"))

    def refusal(self, columns: Sequence[str]) -> str | None:
        """Return why ``columns`` of files are left to Spark, ``None`` if they need not be."""
        if self.sample is None or not isinstance(self.function, ParquetColumns):
            return None
        return self.function.refusal(self.sample, columns)

    def _only(self, columns: Sequence[str]) -> TypedFunction:
        """Return the function, of files reading only ``columns``."""
        if not isinstance(self.function, ParquetColumns):
            return self.typed
        narrowed = self.function.narrowed(columns)
        return TypedFunction(narrowed, narrowed.schema)

    def encoded(self, encoder: encode.Encoder, columns: tuple[str, ...], watermark: str | None) -> Any:
        """Return the rows as ``encode.SCHEMA``, with a watermark if there is to be one.

        Args:
            encoder: encodes ``columns``, of which it drops what it does not keep.
            columns: names of the columns that the operator needs.
            watermark: its delay as Spark takes it, ``None`` for none.
        """
        event_time = encoder.event_time
        if event_time is not None and event_time not in columns:
            columns = (*columns, event_time)
            encoder = dataclasses.replace(encoder, dropped=(*encoder.dropped, event_time))
        blobs = self.origin.mapInArrow(_EncodingFunction(self._only(columns), columns, encoder).__call__, _SCHEMA)
        watermarked = blobs if watermark is None else blobs.withWatermark(_LATEST, watermark)
        return watermarked.select(encode.BUCKET, "blob")


def read_in_arrow(dataframe: Any) -> ArrowRows | None:
    """Return the rows of a DataFrame of Parquet files as Arrow reads them, ``None`` where they are Spark's to read."""
    found = parquet_stream(dataframe)
    if found is None:
        return None
    paths, reader, sample = found
    return ArrowRows(paths, reader, dataframe.schema, sample)


def read_columns(dataframe: Any, columns: Sequence[str]) -> Any:
    """Return some columns of a DataFrame, read by Arrow where files of Spark's can be."""
    made = read_in_arrow(dataframe)
    if made is None or made.refusal(columns) is not None or not isinstance(made.function, ParquetColumns):
        return dataframe.select(*[F.col(quoted(name)) for name in columns])
    schema = T.StructType([made.schema[name] for name in columns])
    return ArrowRows(made.origin, made.function.narrowed(columns), schema, made.sample)


def mapped(rows: Any, function: BatchFunction, schema: Any) -> ArrowRows:
    """Return the rows that ``function`` makes, see ``windowpane.map_in_arrow``."""
    if isinstance(rows, ArrowRows):
        return rows.map_in_arrow(function, schema)
    return ArrowRows(rows, function, declared_schema(rows.sparkSession, schema, "map_in_arrow"))


@dataclass(frozen=True)
class TypedFunction:
    """A function whose results have the columns and types of ``schema``."""

    function: BatchFunction
    schema: pa.Schema

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        """Call the function on the batches of one partition."""
        for result in self.function(iter(batches)):
            yield from self._fitted(result).to_batches(max_chunksize=MANY_ROWS)

    def _fitted(self, result: Any) -> pa.Table:
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


@dataclass(frozen=True)
class _Chained:
    """One function after another."""

    first: BatchFunction
    then: BatchFunction

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterable[Any]:
        """Call the second function on what the first one yields."""
        return self.then(iter(self.first(batches)))


@dataclass(frozen=True)
class _EncodingFunction:
    """Makes rows and encodes them, and says beside each blob what the latest event time is by then."""

    function: TypedFunction
    columns: tuple[str, ...]
    encoder: encode.Encoder

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        """Make and encode the rows of one partition."""
        latest = _Latest(self.encoder.event_time)
        told = None
        for blobs in self.encoder(latest.seen(batch.select(self.columns) for batch in self.function(batches))):
            told = latest.value
            yield blobs.append_column(_LATEST, pa.array([told] * blobs.num_rows, TIMESTAMP))
        if latest.value is not None and latest.value != told:
            yield self._heartbeat(latest.value)

    def _heartbeat(self, latest: int) -> pa.RecordBatch:
        """Return a blob without rows: only heartbeats came, or they came last."""
        first = bucket_ids(state_partitions(self.encoder.partitions))[0]
        columns = [pa.array([first], pa.int32()), pa.array([HEARTBEAT], pa.binary()), pa.array([latest], TIMESTAMP)]
        return pa.RecordBatch.from_arrays(columns, [encode.BUCKET, "blob", _LATEST])


@dataclass
class _Latest:
    """The latest event time that came by, in microseconds."""

    event_time: str | None
    value: int | None = None

    def seen(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        """Pass batches on."""
        for batch in batches:
            if self.event_time is not None:
                self._see(pc.max(batch[self.event_time].cast(pa.int64())).as_py())
            yield batch

    def _see(self, time: int | None) -> None:
        if time is not None:
            self.value = time if self.value is None else max(self.value, time)
