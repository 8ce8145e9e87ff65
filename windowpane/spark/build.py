"""Build: a request of the fluent API -> the four stages on a DataFrame, and its outputs."""

from __future__ import annotations

import dataclasses
from functools import cached_property
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windowpane.engines.program import JUDGED, MAIN, TIME, Program, Upstream
from windowpane.errors import InvalidSpecError, UndeclaredSideOutputError, UnknownColumnError
from windowpane.plan import InputTypes, WindowPlan, choose_engine, combiner_of, compile_program
from windowpane.spark import bounded, encode, process
from windowpane.spark.available_now import end_available_now_runs
from windowpane.spark.key_hashes import KEY_HASH
from windowpane.spark.outputs import WINDOW_METADATA, Output
from windowpane.spark.project import Projection
from windowpane.spark.types import TIMESTAMP, arrow_schema, declared_schema, spark_schema, window_bound_type
from windowpane.windowing.tags import OutputTag
from windowpane.windowing.times import to_micros

_PROVIDER = "spark.sql.streaming.stateStore.providerClass"
_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_CHANGELOG = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"
_ARROW_ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"
_ARROW_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"
_MANY_ROWS = "1000000"
"""Spark's 10,000 rows a batch double the time that rows take from the JVM to Python; bytes bound a batch, too."""
_WATERMARK_METADATA = "spark.watermarkDelayMs"


@dataclasses.dataclass(frozen=True)
class Source:
    """Where rows come from.

    Args:
        dataframe: the DataFrame.
        event_time: name of the event-time column, ``None`` for none.
        watermark: delay of the watermark as Spark writes it, ``None`` for none (or one that the DataFrame has already).
        heartbeat: name of the boolean column that marks heartbeats, ``None`` for none.
        name: name of the counters in the query's progress.
        upstream: the earlier window the rows come from, ``None`` for a source.
    """

    dataframe: Any
    event_time: str | None = None
    watermark: Any = None
    heartbeat: str | None = None
    name: str = "windowpane"
    upstream: Windowed | None = None


class Windowed:
    """A windowed program on a DataFrame: built once, with one DataFrame an output.

    Args:
        source: where rows come from.
        plan: the program; its keys, order and aggregate arguments are those of ``keys`` and so on.
        keys: names or Columns.
        order_by: names or Columns.
    """

    def __init__(self, source: Source, plan: WindowPlan, keys: tuple[Any, ...], order_by: tuple[Any, ...]) -> None:
        self.source = source
        self.spark = source.dataframe.sparkSession
        self._dataframe = self._watermarked(source.dataframe)
        self._window_end = self._is_window_end()
        upstream = Upstream.SOURCE
        if source.upstream is not None:
            upstream = Upstream.JUDGED_WINDOW
        elif self._window_end:
            upstream = Upstream.WINDOW
        self._resolve(dataclasses.replace(plan, upstream=upstream), keys, order_by)

    @property
    def is_streaming(self) -> bool:
        """Whether the input is a stream."""
        return bool(self._dataframe.isStreaming)

    # Resolving the plan.

    def _watermarked(self, dataframe: Any) -> Any:
        source = self.source
        for name, role in ((source.event_time, "event_time"), (source.heartbeat, "heartbeat")):
            if name is not None and name not in dataframe.columns:
                raise UnknownColumnError(name, role, dataframe.columns)
        if source.event_time is not None and source.upstream is None:
            kind = dataframe.schema[source.event_time].dataType
            if not isinstance(kind, T.TimestampType | T.TimestampNTZType):
                raise InvalidSpecError(
                    f"event_time: column {source.event_time!r} is {kind.simpleString()}, but an event time is a timestamp. "
                    "Cast it first, for example with timestamp_millis or to_timestamp."
                )
        if source.watermark is None or not dataframe.isStreaming or self._metadata(dataframe, WINDOW_METADATA):
            return dataframe
        if source.event_time is None:
            raise InvalidSpecError("watermark= needs event_time=, the column it is made from.")
        if isinstance(dataframe.schema[source.event_time].dataType, T.TimestampNTZType):
            raise InvalidSpecError(
                f"event_time: column {source.event_time!r} is timestamp_ntz, and Spark makes watermarks only of timestamps with "
                "a time zone. Cast it to timestamp first."
            )
        return dataframe.withWatermark(source.event_time, f"{to_micros(source.watermark) // 1000} milliseconds")

    def _metadata(self, dataframe: Any, name: str) -> Any:
        event_time = self.source.event_time
        return dataframe.schema[event_time].metadata.get(name) if event_time in dataframe.columns else None

    def _is_window_end(self) -> bool:
        return self.source.upstream is None and self._metadata(self._dataframe, WINDOW_METADATA) == "end"

    def _resolve(self, plan: WindowPlan, keys: tuple[Any, ...], order_by: tuple[Any, ...]) -> None:
        projection = Projection(self._dataframe)
        projection.add_system()
        key_columns, key_fields = projection.add_keys(keys)
        arguments = projection.add_arguments(plan.function)
        order = tuple(projection.add(column, "order_by", f"order_{i}") for i, column in enumerate(order_by))
        rows = self._row_columns(plan)
        for name in (*rows, self.source.heartbeat):
            if name is not None and (TIME not in projection.columns or name in self._dataframe.columns):
                projection.add(name, "input", "")
        self._add_event_time(projection)
        projected = projection.select()
        event_type = self._event_type()
        types = InputTypes(
            columns=arrow_schema(self._schema_without_system(projected), "input"),
            keys=arrow_schema(key_fields, "key_by"),
            key_columns=key_columns,
            window_bound=window_bound_type(event_type),
            argument_columns=arguments,
            declared=self._declared(plan),
            side_schemas={tag.name: arrow_schema(self._side_schema(tag), tag.name) for tag in plan.side_tags},
        )
        self.plan = dataclasses.replace(plan, keys=tuple(key_fields.names), order_by=order, event_time=self.source.event_time)
        self.program: Program = compile_program(self.plan, types, rows)
        self._key_fields = key_fields
        self._projected = projected
        self._projection = projection
        self._check_clock()

    def _add_event_time(self, projection: Projection) -> None:
        name = self.source.event_time
        if name is None or (TIME in projection.columns and name not in self._dataframe.columns):
            return
        if self._window_end:
            projection.add(name, "input", "")
        else:
            projection.add_event_time(name)

    def _row_columns(self, plan: WindowPlan) -> tuple[str, ...]:
        """Return the columns that make up a row, where the program needs rows and not only aggregate arguments."""
        if not plan.reads_rows and plan.late_tag is None:
            return ()
        hidden = {TIME, JUDGED, self.source.heartbeat}
        return tuple(name for name in self._dataframe.columns if name not in hidden)

    def _schema_without_system(self, dataframe: Any) -> T.StructType:
        hidden = {TIME, JUDGED, KEY_HASH}
        return T.StructType([field for field in dataframe.schema.fields if field.name not in hidden])

    def _event_type(self) -> T.DataType | None:
        if self.source.upstream is not None:
            bound = self.source.upstream.program.window_bound
            return T.TimestampType() if bound == TIMESTAMP else T.TimestampNTZType()
        if self.source.event_time is None:
            return None
        return self._dataframe.schema[self.source.event_time].dataType  # type: ignore[no-any-return]

    def _declared(self, plan: WindowPlan) -> pa.Schema | None:
        if plan.function.schema is None:
            return None
        return arrow_schema(declared_schema(self.spark, plan.function.schema, plan.function.kind), plan.function.kind)

    def _side_schema(self, tag: OutputTag) -> T.StructType:
        return declared_schema(self.spark, tag.schema, f"side output {tag.name!r}")

    def _check_clock(self) -> None:
        if self.plan.assigner.is_event_time and self.source.event_time is None and self.source.upstream is None:
            raise InvalidSpecError(
                f"{self.plan.assigner!r} assigns windows by event time: name the column with wp.stream(df, event_time=...)."
            )
        if self.is_streaming and self.plan.assigner.is_event_time and not self.has_watermark:
            raise InvalidSpecError(
                "a stream in event-time windows needs a watermark, else no window ever closes: "
                f"wp.stream(df, event_time={self.source.event_time!r}, watermark='10 minutes')."
            )

    @cached_property
    def has_watermark(self) -> bool:
        """Whether Spark keeps a watermark for the query."""
        if self.source.upstream is not None:
            return self.source.upstream.has_watermark
        if self._window_end or (self.source.watermark is not None and self.is_streaming):
            return True
        return any(_WATERMARK_METADATA in field.metadata for field in self._dataframe.schema.fields)

    @property
    def time_mode(self) -> str:
        """Spark's time mode for the stateful operator."""
        if self.plan.uses_processing_time:
            return "ProcessingTime"
        return "EventTime" if self.has_watermark else "None"

    @property
    def waits_for_the_clock(self) -> bool:
        """Whether this operator or one before it has processing-time timers."""
        upstream = self.source.upstream
        return self.time_mode == "ProcessingTime" or (upstream is not None and upstream.waits_for_the_clock)

    def explain(self) -> str:
        """Return the plan as text: which engine runs it, and why."""
        return self.plan.explain(choose_engine(self.program, self.plan.engine))

    # The stages.

    @cached_property
    def operator_df(self) -> Any:
        """The DataFrame of tagged blobs and counters that all outputs are decoded from."""
        encoded = self._projected.mapInArrow(self._encoder(), encode.SCHEMA)
        grouped = encoded.groupBy(encode.BUCKET)
        if not self.is_streaming:
            return grouped.applyInArrow(bounded.bounded_processor(self.program), process.SCHEMA)
        self._choose_settings()
        processor = process.BucketProcessor(self.program, self.time_mode, self._delay())
        blobs = grouped.transformWithStateInPandas(processor, process.SCHEMA, "append", self.time_mode)
        return blobs.observe(self.source.name, *[F.coalesce(F.sum(name), F.lit(0)).alias(name) for name in process.COUNTERS])

    def _delay(self) -> int:
        delayed = self._window_end and self.source.watermark is not None
        return to_micros(self.source.watermark) if delayed else 0

    def _encoder(self) -> encode.Encoder:
        event_time = self.source.event_time
        kept = {*self.program.values, *self.program.late_columns, *self.program.key_columns, *self.program.order_by}
        kept |= {TIME, JUDGED}
        return encode.Encoder(
            keys=self.program.key_columns,
            event_time=event_time,
            window_end=self._window_end,
            heartbeat=self.source.heartbeat,
            dropped=tuple(name for name in self._projection.columns if name not in kept),
            partitions=int(self.spark.conf.get("spark.sql.shuffle.partitions")),
            combiner=combiner_of(self.program),
        )

    def _choose_settings(self) -> None:
        """Set, where the user set nothing: RocksDB with a changelog, which transformWithState needs; large Arrow batches."""
        if self.spark.conf.get(_ARROW_ROWS, None) is None and _bounds_arrow_bytes(self.spark):
            self.spark.conf.set(_ARROW_ROWS, _MANY_ROWS)
        if self.spark.conf.get(_PROVIDER, None) is None:
            self.spark.conf.set(_PROVIDER, _ROCKSDB)
            if self.spark.conf.get(_CHANGELOG, None) is None:
                self.spark.conf.set(_CHANGELOG, "true")

    # The outputs.

    @cached_property
    def outputs(self) -> dict[str, Output]:
        """The outputs by name: ``main`` first, then late data and side outputs."""
        schemas = [("main", self.program.main_schema)]
        schemas += [(side.tag.name, side.schema) for side in self.program.side_outputs]
        return {
            name: Output(name, number, schema, self._spark_schema(number, schema))
            for number, (name, schema) in enumerate(schemas)
        }

    def output(self, name: str, with_system: bool = False) -> Any:
        """Return a DataFrame of output ``name``."""
        if self.is_streaming and self.waits_for_the_clock:
            end_available_now_runs(self.spark)
        return self.named(name).of(self.operator_df, with_system)

    def named(self, name: str) -> Output:
        """Return output ``name``; refuse a name nobody declared."""
        if name not in self.outputs:
            raise UndeclaredSideOutputError(name, [other for other in self.outputs if other != "main"])
        return self.outputs[name]

    def _spark_schema(self, number: int, schema: pa.Schema) -> T.StructType:
        """Return Spark's types for an output: those of the input where columns come from there (Arrow knows no char(3))."""
        known = {field.name: field.dataType for field in self._dataframe.schema.fields} if self._keeps_types(number) else {}
        if number == MAIN:
            known |= {field.name: field.dataType for field in self._key_fields.fields}
        fields = spark_schema(schema).fields
        return T.StructType([T.StructField(f.name, known.get(f.name, f.dataType), True) for f in fields])

    def _keeps_types(self, number: int) -> bool:
        if number == MAIN:
            return self.plan.function.kind == "reduce" and self.plan.function.schema is None
        return self.program.side_outputs[number - 1].is_late


def _bounds_arrow_bytes(spark: Any) -> bool:
    """Whether this Spark bounds an Arrow batch by bytes (4.1 and later do), so that wide rows cannot fill the memory."""
    try:
        limit = str(spark.conf.get(_ARROW_BYTES))
    except PySparkException:  # this Spark has no such setting
        return False
    return limit not in ("-1", str(2**31 - 1), str(2**63 - 1))
