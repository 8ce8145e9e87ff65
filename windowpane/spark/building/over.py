"""Build OVER windows: a request of the fluent API -> a chain of operators on a DataFrame, and its outputs."""

from __future__ import annotations

from functools import cached_property, partial
from typing import Any

import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windowpane.engines.over.program import CHANGE_TYPE, LATE, Emit, Inconsistent, OverProgram
from windowpane.engines.over.reference import OverReferenceEngine
from windowpane.engines.program import JUDGED, MAIN, PARTITION, POSITION, TIME
from windowpane.errors import InvalidSpecError
from windowpane.planning.engines import engine_of
from windowpane.planning.over import OverPlan, OverRequest
from windowpane.planning.over_programs import compile_stages, explain
from windowpane.spark.building.encoding import encode_source, rows_line
from windowpane.spark.building.outputs import Output
from windowpane.spark.building.over_names import Names
from windowpane.spark.building.over_output import OverOutput
from windowpane.spark.building.program import BuiltProgram, operate
from windowpane.spark.queries.settings import Buckets
from windowpane.spark.sources.source import DELAY, PASSED_ON, ROW_TIME, Source
from windowpane.spark.stages import encode
from windowpane.spark.stages.between_operators import PASSED, NextOperatorRows
from windowpane.spark.stages.types import spark_schema
from windowpane.spark.stages.wire import COUNTER_ROW, Wire
from windowpane.windowing.expressions import Name, names_in

_SYSTEM = (TIME, JUDGED)


class BuiltOver(BuiltProgram):
    """OVER windows on a DataFrame: built once, with one DataFrame an output.

    Args:
        source: where rows come from.
        request: what the fluent API was told.
    """

    waits_for_the_clock = False

    def __init__(self, source: Source, request: OverRequest) -> None:
        self.source = source
        self.spark = source.dataframe.sparkSession
        self._names = Names(source, request)
        self.plan = self._plan(request)
        self._check_watermark()
        self.programs: tuple[OverProgram, ...] = compile_stages(self.plan, self._names.arrow, source.kind)

    def _plan(self, request: OverRequest) -> OverPlan:
        return OverPlan(
            calls=self._names.calls,
            key=request.key,
            mode=request.mode,
            event_time=self.source.event_time,
            has_watermark=self.source.has_watermark,
            append_only=not self._names.is_changelog,
            retain=request.retain,
            on_inconsistent=request.on_inconsistent,
            settings=request.settings,
        )

    def _check_watermark(self) -> None:
        if self.is_streaming and self.plan.mode is Emit.CLOSE and not self.source.has_watermark:
            raise InvalidSpecError(
                "a stream emitted on window close needs a watermark, else no row is ever final: "
                f"wp.over(df, event_time={self.source.event_time!r}, watermark='10 minutes', ...)."
            )
        if self.is_streaming and self.plan.retain is not None and not self.source.has_watermark:
            raise InvalidSpecError(
                "retain= counts back from the watermark, and there is none: wp.over(df, ..., watermark='10 minutes')."
            )

    @property
    def is_streaming(self) -> bool:
        """Whether the input is a stream."""
        return bool(self.source.dataframe.isStreaming)

    def explain(self) -> str:
        """Return the plan as text: which engines run it, and why."""
        plan = explain(self.plan, self.programs, Buckets.of(self.spark, self.is_streaming).text)
        keys = self._names.types_of(self.programs[0].spec.partition_by)
        return plan + rows_line(self.source, self._names.projection, keys)

    # The stages.

    def rows(self, wire: Wire) -> Any:
        """Return the rows of the last operator, as they travel by ``wire``."""
        return self._operated(len(self.programs) - 1, wire)

    def _operated(self, number: int, wire: Wire) -> Any:
        """Return the rows of operator ``number``, after those before it."""
        program, stage = self.programs[number], self.plan.stages[number]
        return operate(
            self._encoded(number, program),
            partial(engine_of(program), program),
            wire,
            time_mode=self._time_mode if self.is_streaming else None,
            delay=self.source.delay + stage.behind,
            counted_as=self.source.name if number == 0 else f"{self.source.name}_{number + 1}",
        )

    def _encoded(self, number: int, program: OverProgram) -> Any:
        keys = program.spec.partition_by
        dataframe = self._names.with_hash(self._rows_for(number), keys)
        encoder = self._encoder(dataframe, program, is_first=number == 0)
        if number:
            return dataframe.mapInArrow(encoder, encode.SCHEMA)
        return encode_source(self.source, dataframe, self._names.projection, self._names.types_of(keys), encoder)

    @property
    def _time_mode(self) -> str:
        return "EventTime" if self.source.has_watermark else "None"

    def _rows_for(self, number: int) -> Any:
        """Return what operator ``number`` reads: the input, or the main rows of the operator before it."""
        if number == 0:
            return self._names.projected
        return self._passed(self._operated(number - 1, Wire()), self.programs[number - 1])

    def _encoder(self, dataframe: Any, program: OverProgram, is_first: bool) -> encode.Encoder:
        kept = {*program.columns.names, CHANGE_TYPE, *_SYSTEM}
        return encode.Encoder(
            keys=program.spec.partition_by,
            event_time=self.source.event_time,
            window_end=self.source.is_window_end,
            heartbeat=self.source.heartbeat if is_first else None,
            dropped=tuple(
                name for name in (*dataframe.columns, *_order_of_arrival(program)) if name not in kept and name != PASSED
            ),
            partitions=int(self.spark.conf.get("spark.sql.shuffle.partitions")),
        )

    def _passed(self, blobs: Any, program: OverProgram) -> Any:
        """Return the main rows of an operator as a DataFrame for the next one."""
        arrow = pa.schema([field for field in program.main_schema if field.name not in _SYSTEM])
        carried = T.StructType([*self._spark_types(arrow).fields, T.StructField(PASSED, T.BinaryType(), True)])
        tagged = blobs.filter(F.col("output") != COUNTER_ROW).select("output", "blob")
        return tagged.mapInArrow(NextOperatorRows(arrow).__call__, carried)

    # The outputs.

    @cached_property
    def outputs(self) -> dict[str, Output]:
        """The outputs by name: ``main``, and late rows where they are asked for."""
        tag = self.plan.settings.late_tag
        return {"main": self._main()} | ({} if tag is None else {tag.name: self._late(tag.name)})

    def output(self, name: str) -> Any:
        """Return a DataFrame of output ``name``."""
        return self.named(name).of(*self.wired)

    def _main(self) -> OverOutput:
        arrow, selected = self._read_by_select(), self._selected()
        behind = self.plan.held_back
        passes = behind is not None and self.source.has_watermark
        return OverOutput(
            "main",
            MAIN,
            arrow,
            self._spark_types(arrow),
            selected=selected,
            event_time=self.source.event_time if passes else None,
            metadata={PASSED_ON: ROW_TIME, DELAY: self.source.delay + (behind or 0)},
        )

    def _read_by_select(self) -> pa.Schema:
        """Return the columns of the last operator that the selected ones are made of: no others leave it."""
        read = {each for _, expression in self._selected() for each in names_in(expression)}
        rows = [field for field in self.programs[-1].main_schema if field.name not in _SYSTEM]
        return pa.schema([field for field in rows if field.name in read] or rows[:1])

    def _selected(self) -> tuple[Any, ...]:
        changes = [(CHANGE_TYPE, Name(CHANGE_TYPE))] if self.plan.mode is Emit.UPDATE else []
        return (*self._names.selected, *changes)

    def _late(self, name: str) -> Output:
        arrow = pa.schema([self.programs[0].columns.field(column) for column in self._names.input])
        return Output(name, LATE, arrow, self._spark_types(arrow))

    def _spark_types(self, arrow: pa.Schema) -> T.StructType:
        """Return Spark's types of columns: those of the input where they come from there (Arrow knows no char(3))."""
        known = {field.name: field.dataType for field in self._names.schema.fields}
        return T.StructType([T.StructField(f.name, known.get(f.name, f.dataType), True) for f in spark_schema(arrow).fields])


def _order_of_arrival(program: OverProgram) -> tuple[str, ...]:
    """The columns with the order of arrival, if nothing asks for it: all are inserts, and a second of a key is an error."""
    asks = not program.append_only or program.on_inconsistent is Inconsistent.WARN or program.engine == OverReferenceEngine.name
    return () if asks else (PARTITION, POSITION)
