"""Build a deduplication: a plan of the fluent API and a source -> one operator on a DataFrame, and its outputs."""

from __future__ import annotations

import dataclasses
from functools import partial

from windowpane.engines.deduplication.program import DeduplicationProgram
from windowpane.engines.program import LATE, MAIN
from windowpane.errors import InvalidSpecError
from windowpane.hidden_columns import PARTITION, POSITION, SYSTEM
from windowpane.planning.deduplication import DeduplicationPlan
from windowpane.planning.deduplication_programs import compile_deduplication
from windowpane.spark.building.operator_input import SourceRows
from windowpane.spark.building.outputs import Output, time_marks
from windowpane.spark.building.program import BuiltProgram, Operator
from windowpane.spark.building.settling import settled
from windowpane.spark.building.windows import order_columns
from windowpane.spark.sources.source import Source
from windowpane.spark.stages.project import Projection
from windowpane.spark.stages.types import arrow_schema, spark_schema, window_bound_type
from windowpane.windowing.expressions import ColumnLike, Name, OrderLike


def build_deduplication(
    source: Source, plan: DeduplicationPlan, keys: tuple[ColumnLike, ...], order_by: tuple[OrderLike, ...]
) -> BuiltProgram:
    source = settled(source, "deduplicate", is_event_time=plan.is_event_time)
    dataframe = source.rows
    _check(source, plan)
    projection = Projection(dataframe)
    key_columns, key_fields = projection.add_keys(keys)
    order = order_columns(projection, order_by)
    passed = tuple(source.columns)
    projection.add_system()
    for name in (*passed, *([source.heartbeat] if source.heartbeat else [])):
        projection.add(name, "input", "")
    projected = projection.select()
    given = arrow_schema(projected.drop(*SYSTEM, *([source.heartbeat] if source.heartbeat else [])).schema, "input")
    plan = dataclasses.replace(plan, keys=tuple(key_fields.names), event_time=source.event_time, order_by=order)
    program = compile_deduplication(plan, given, key_columns, passed, source.kind, window_bound_type(source.event_type))
    kept = {*given.names, *SYSTEM, PARTITION, POSITION}
    reads = SourceRows.of(source, projected, projection, key_columns, kept)
    return BuiltProgram(
        (source,),
        plan,
        operators=(Operator(program, reads),),
        outputs=_outputs(source, plan, program),
        explained=partial(plan.explain, program.engine, program.engine_reason),
    )


def _check(source: Source, plan: DeduplicationPlan) -> None:
    if not plan.is_event_time:
        return
    if source.event_time is None and source.upstream is None:
        raise InvalidSpecError(
            "deduplicate needs event time, and none is named: wp.stream(df, event_time='at', watermark='10 minutes'), or use "
            "the clock with deduplicate(..., by='clock')."
        )
    if source.watermark is not None and source.watermark.of_each_key:
        raise InvalidSpecError(
            f"watermark={source.watermark!r}: deduplication has one watermark for all keys. Leave per_key out, or use "
            ".per_source('column') for sources of which one is behind."
        )
    if source.is_streaming and not source.has_watermark:
        raise InvalidSpecError(
            "a stream deduplicated by event time needs a watermark, else nothing is ever forgotten: "
            f"wp.stream(df, event_time={source.event_time!r}, watermark='10 minutes')."
        )


def _outputs(source: Source, plan: DeduplicationPlan, program: DeduplicationProgram) -> dict[str, Output]:
    rows, arrow = source.rows.schema, program.main_schema
    selected = tuple((name, Name(name)) for name in arrow.names)
    marks = time_marks(source, selected, plan.held_back)
    main = Output("main", MAIN, arrow, spark_schema(arrow, rows), selected, marks)
    late = program.late_schema if plan.settings.late_tag else None
    return {
        "main": main,
        **Output.late(plan.settings.late_tag, late, rows, source.numbered_from + LATE),
    }
