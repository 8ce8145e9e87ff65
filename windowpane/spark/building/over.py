"""Build OVER windows: a request of the fluent API and a source -> a chain of operators on a DataFrame, and its outputs."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from functools import partial

import pyarrow as pa

from windowpane.engines.over.program import CHANGE_TYPE, Emit, Inconsistent, OverProgram
from windowpane.engines.over.reference import OverReferenceEngine
from windowpane.engines.program import MAIN
from windowpane.engines.registry import AnyProgram
from windowpane.errors import InvalidSpecError
from windowpane.hidden_columns import FIRING_WATERMARK, PARTITION, POSITION, TIME
from windowpane.planning.over import OverPlan, OverRequest
from windowpane.planning.over_programs import compile_stages, explain
from windowpane.spark.building.operator_input import OperatorInput, PassedRows, SourceRows, encoder_of
from windowpane.spark.building.outputs import Output, time_marks
from windowpane.spark.building.over_names import Names
from windowpane.spark.building.program import BuiltProgram, Operator
from windowpane.spark.sources.source import Source
from windowpane.spark.stages.encode import Encoder
from windowpane.spark.stages.project import refuse_key_collations
from windowpane.spark.stages.types import spark_schema
from windowpane.windowing.expressions import Expression, Name, names_in

_SYSTEM = (TIME, FIRING_WATERMARK)


def build_over(source: Source, request: OverRequest) -> BuiltProgram:
    """Return OVER windows on the DataFrame of a source."""
    names = Names(source, request)
    plan = OverPlan(
        calls=names.calls,
        key=request.key,
        mode=request.mode,
        event_time=source.event_time,
        has_watermark=source.has_watermark,
        append_only=not names.is_changelog,
        retain=request.retain,
        on_inconsistent=request.on_inconsistent,
        settings=request.settings,
    )
    _check_watermark(source, plan)
    programs = compile_stages(plan, names.arrow, source.kind)
    programs = (*programs[:-1], _emitting(programs[-1], names.selected))
    _check_own_watermark(source)
    operators = _operators(source, names, plan, programs)
    return BuiltProgram(
        (source,),
        plan,
        operators=operators,
        outputs=_outputs(source, names, plan, programs),
        explained=partial(explain, plan, programs),
    )


def _check_watermark(source: Source, plan: OverPlan) -> None:
    if not source.is_streaming or source.has_watermark:
        return
    if plan.mode is Emit.CLOSE:
        raise InvalidSpecError(
            "a stream emitted on window close needs a watermark, else no row is ever final: "
            f"wp.over(df, event_time={source.event_time!r}, watermark='10 minutes', ...)."
        )
    if plan.retain is not None:
        raise InvalidSpecError(
            "retain= counts back from the watermark, and there is none: wp.over(df, ..., watermark='10 minutes')."
        )


def _check_own_watermark(source: Source) -> None:
    if source.own_watermark is not None and source.own_watermark.of_each_key:
        raise InvalidSpecError(
            f"watermark={source.own_watermark!r}: OVER windows have one watermark for all partitions. Leave per_key out, or use "
            ".per_source('column') for sources of which one is behind."
        )


# The chain.


def _operators(source: Source, names: Names, plan: OverPlan, programs: Sequence[OverProgram]) -> tuple[Operator, ...]:
    operators: list[Operator] = []
    for program, stage in zip(programs, plan.stages, strict=True):
        refuse_key_collations(names.types_of(program.spec.partition_by), "partition_by")
        encoder = encoder_of(
            source,
            program.spec.partition_by,
            columns=(*names.projection.columns, *_order_of_arrival(program)),
            kept={*program.columns.names, CHANGE_TYPE, *_SYSTEM},
            is_first=not operators,
        )
        if operators:
            reads: OperatorInput = _passed(names, operators[-1].program, encoder)
        else:
            reads = SourceRows(source, names.projected, names.projection, encoder)
        operators.append(Operator(program, reads, stage.behind))
    return tuple(operators)


def _passed(names: Names, before: AnyProgram, encoder: Encoder) -> PassedRows:
    arrow = _without_system(before.main_schema)
    return PassedRows(arrow, spark_schema(arrow, names.schema), encoder)


def _order_of_arrival(program: OverProgram) -> tuple[str, ...]:
    """The columns with the order of arrival; not needed where all rows are inserts: a second one of a key is an error."""
    warns = program.on_inconsistent is Inconsistent.WARN
    is_needed = not program.append_only or warns or program.engine == OverReferenceEngine.name
    return () if is_needed else (PARTITION, POSITION)


def _without_system(columns: pa.Schema) -> pa.Schema:
    return pa.schema([field for field in columns if field.name not in _SYSTEM])


# The outputs.


def _outputs(source: Source, names: Names, plan: OverPlan, programs: Sequence[OverProgram]) -> dict[str, Output]:
    changes = [(CHANGE_TYPE, Name(CHANGE_TYPE))] if plan.mode is Emit.UPDATE else []
    selected = (*names.selected, *changes)
    arrow = _without_system(programs[-1].main_schema)
    marks = time_marks(source, selected, plan.held_back)
    main = Output("main", MAIN, arrow, spark_schema(arrow, names.schema), selected, marks)
    late = pa.schema([programs[0].columns.field(column) for column in names.input]) if plan.settings.late_tag else None
    return {"main": main, **Output.late(plan.settings.late_tag, late, names.schema)}


def _emitting(last: OverProgram, selected: Sequence[tuple[str, Expression]]) -> OverProgram:
    """Return the last program, which emits what the selected columns are made of and nothing else; one column at least."""
    read = {each for _, expression in selected for each in names_in(expression)}
    known = [*last.columns.names, *last.outputs.names]
    return dataclasses.replace(last, read=frozenset(name for name in known if name in read) or frozenset(known[:1]))
