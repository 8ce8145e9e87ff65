"""Build: a request of the fluent API -> the four stages on a DataFrame, and its outputs."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from functools import cached_property, partial
from typing import Any

import pyarrow as pa
from pyspark.sql import types as T

from windowpane.engines.program import JUDGED, MAIN, TIME, Program
from windowpane.errors import InvalidSpecError, UnsupportedTypeError
from windowpane.planning.engines import combiner_of, engine_of
from windowpane.planning.window_programs import InputTypes, compile_program, explain
from windowpane.planning.windows import WindowPlan
from windowpane.spark.building.encoding import encode_source, rows_line
from windowpane.spark.building.expressions import column_of, sort_of
from windowpane.spark.building.outputs import Output
from windowpane.spark.building.program import BuiltProgram, operate
from windowpane.spark.internals.available_now import end_available_now_runs
from windowpane.spark.queries.settings import Buckets
from windowpane.spark.sources.source import Source
from windowpane.spark.stages import encode
from windowpane.spark.stages.key_hashes import KEY_HASH
from windowpane.spark.stages.project import Projection
from windowpane.spark.stages.types import TIMESTAMP, arrow_schema, declared_schema, spark_schema, window_bound_type
from windowpane.spark.stages.wire import Wire
from windowpane.windowing.expressions import Name
from windowpane.windowing.over.spec import OrderColumn
from windowpane.windowing.tags import OutputTag


class BuiltWindows(BuiltProgram):
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
        self._dataframe = source.watermarked
        self._resolve(dataclasses.replace(plan, upstream=source.kind), keys, order_by)

    @property
    def is_streaming(self) -> bool:
        """Whether the input is a stream."""
        return bool(self._dataframe.isStreaming)

    # Resolving the plan.

    def _resolve(self, plan: WindowPlan, keys: tuple[Any, ...], order_by: tuple[Any, ...]) -> None:
        projection = Projection(self._dataframe)
        projection.add_system()
        key_columns, key_fields = projection.add_keys(keys)
        arguments = projection.add_arguments(plan.function)
        order = _order_columns(projection, order_by)
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
            side_schemas={tag.name: arrow_schema(self._side_schema(tag), tag.name) for tag in plan.settings.side_tags},
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
        if self.source.is_window_end:
            projection.add(name, "input", "")
        else:
            projection.add_event_time(name)

    def _row_columns(self, plan: WindowPlan) -> tuple[str, ...]:
        """Return the columns that make up a row, where the program needs rows and not only aggregate arguments."""
        if not plan.reads_rows and plan.settings.late_tag is None:
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
        return self.source.event_type

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

    @property
    def has_watermark(self) -> bool:
        """Whether Spark keeps a watermark for the query."""
        return self.source.has_watermark

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
        buckets = Buckets.of(self.spark, self.is_streaming)
        return explain(self.plan, self.program, buckets.text) + rows_line(self.source, self._projection, self._key_fields)

    # The stages.

    def rows(self, wire: Wire) -> Any:
        """Return the rows of the operator, as they travel by ``wire``."""
        return operate(
            encode_source(self.source, self._projected, self._projection, self._key_fields, self._encoder()),
            partial(engine_of(self.program), self.program),
            wire,
            time_mode=self.time_mode if self.is_streaming else None,
            delay=self.source.delay,
            counted_as=self.source.name,
        )

    def _encoder(self) -> encode.Encoder:
        event_time = self.source.event_time
        kept = {*self.program.values, *self.program.late_columns, *self.program.key_columns}
        kept |= {TIME, JUDGED, *(column.name for column in self.program.order_by)}
        return encode.Encoder(
            keys=self.program.key_columns,
            event_time=event_time,
            window_end=self.source.is_window_end,
            heartbeat=self.source.heartbeat,
            dropped=tuple(name for name in self._projection.columns if name not in kept),
            partitions=int(self.spark.conf.get("spark.sql.shuffle.partitions")),
            combiner=combiner_of(self.program),
        )

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
        return self.named(name).of(*self.wired, with_system)

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


def _order_columns(projection: Projection, order_by: Sequence[Any]) -> tuple[OrderColumn, ...]:
    """Select what orders the rows of a batch.

    Raises:
        UnsupportedTypeError: values of a type have no order that Arrow knows.
    """
    sorts = [sort_of(item) for item in order_by]
    names = [projection.add(_by(sort), "order_by", f"order_{number}") for number, sort in enumerate(sorts)]
    schema = projection.select().schema if names else T.StructType([])
    for item, name in zip(order_by, names, strict=True):
        if not isinstance(schema[name].dataType, T.AtomicType):
            kind = schema[name].dataType.simpleString()
            raise UnsupportedTypeError(f"order_by: {item!r} is {kind}, which has no order here. Order by a field of it.")
    found = zip(names, sorts, strict=True)
    return tuple(OrderColumn(name, sort.descending, nulls_first=sort.nulls_first) for name, sort in found)


def _by(sort: Any) -> Any:
    return sort.expression.name if isinstance(sort.expression, Name) else column_of(sort.expression)
