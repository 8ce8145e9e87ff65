"""Build OVER windows: a request of the fluent API and a source -> a chain of operators on a DataFrame, and its outputs."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from functools import partial

import pyarrow as pa

from windowpane.engines.over.program import Emit, Inconsistent, OverProgram
from windowpane.engines.over.reference import OverReferenceEngine
from windowpane.engines.program import LATE, MAIN
from windowpane.errors import InvalidSpecError
from windowpane.hidden_columns import FIRING_WATERMARK, PARTITION, POSITION, SYSTEM, TIME
from windowpane.planning.over import OverPlan, OverRequest
from windowpane.planning.over_programs import compile_stages
from windowpane.spark.building.operator_input import OperatorInput, PassedRows, SourceRows, encoder_of
from windowpane.spark.building.outputs import Output, time_marks
from windowpane.spark.building.over_names import Names
from windowpane.spark.building.program import BuiltProgram, Operator
from windowpane.spark.building.settling import settled
from windowpane.spark.building.windows import refuse_heartbeats_of_keys
from windowpane.spark.sources.source import Source
from windowpane.spark.stages.project import refuse_key_collations
from windowpane.spark.stages.types import spark_schema
from windowpane.windowing.expressions import Name, names_in
from windowpane.windowing.outputs import CHANGE_TYPE

_SYSTEM = (TIME, FIRING_WATERMARK)


def build_over(source: Source, request: OverRequest) -> BuiltProgram:
    if request.mode is Emit.CLOSE:
        source = settled(source, "emit_on_window_close")
    names = Names(source, request)
    own = source.own_watermark
    plan = OverPlan(
        calls=names.calls,
        key=request.key,
        mode=request.mode,
        event_time=source.event_time,
        has_watermark=source.has_watermark,
        append_only=not names.is_changelog,
        key_delay=own.delay if own is not None and own.of_each_key else None,
        is_bounded=source.is_passed_on or source.upstream is not None,
        retain=request.retain,
        on_inconsistent=request.on_inconsistent,
        settings=request.settings,
    )
    _check_watermark(source, plan)
    programs = compile_stages(plan, names.arrow, source.kind)
    *before, last = programs
    known = [*last.columns.names, *last.outputs.names]
    read = {each for _, made in names.selected for each in names_in(made)}.intersection(known)
    programs = (*before, dataclasses.replace(last, read=frozenset(read or known[:1])))
    return BuiltProgram(
        (source,),
        plan,
        operators=_operators(source, names, plan, programs),
        outputs=_outputs(source, names, plan, programs),
        explained=partial(plan.explain, [(each.engine, each.engine_reason) for each in programs]),
    )


def _check_watermark(source: Source, plan: OverPlan) -> None:
    lacks_one = source.is_streaming and not source.has_watermark
    if lacks_one and plan.mode is Emit.CLOSE:
        raise InvalidSpecError(
            "a stream emitted on window close needs a watermark, else no row is ever final: "
            f"wp.over(df, event_time={source.event_time!r}, watermark='10 minutes', ...)."
        )
    if lacks_one and plan.retain is not None:
        raise InvalidSpecError(
            "retain= counts back from the watermark, and there is none: wp.over(df, ..., watermark='10 minutes')."
        )
    if plan.key_delay is not None:
        refuse_heartbeats_of_keys(source)


def _operators(source: Source, names: Names, plan: OverPlan, programs: Sequence[OverProgram]) -> tuple[Operator, ...]:
    operators: list[Operator] = []
    for program, stage in zip(programs, plan.stages, strict=True):
        refuse_key_collations(names.types_of(program.spec.partition_by), "partition_by")
        reads_order = program.on_inconsistent is Inconsistent.WARN or program.engine == OverReferenceEngine.name
        # The order of arrival is not needed where all rows are inserts: a second one of a key is an error.
        ordered = () if reads_order or not program.append_only else (PARTITION, POSITION)
        encoder = encoder_of(
            source,
            program.spec.partition_by,
            columns=(*names.projection.columns, *ordered),
            kept={*program.columns.names, CHANGE_TYPE, *SYSTEM},
            is_first=not operators,
        )
        if operators:
            arrow = _without_system(operators[-1].program.main_schema)
            reads: OperatorInput = PassedRows(arrow, spark_schema(arrow, names.schema), encoder)
        else:
            reads = SourceRows(source, names.projected, names.projection, encoder)
        operators.append(Operator(program, reads, stage.behind))
    return tuple(operators)


def _without_system(columns: pa.Schema) -> pa.Schema:
    return pa.schema([field for field in columns if field.name not in _SYSTEM])


def _outputs(source: Source, names: Names, plan: OverPlan, programs: Sequence[OverProgram]) -> dict[str, Output]:
    changes = [(CHANGE_TYPE, Name(CHANGE_TYPE))] if plan.mode is Emit.UPDATE else []
    selected = (*names.selected, *changes)
    arrow = _without_system(programs[-1].main_schema)
    marks = time_marks(source, selected, plan.held_back)
    main = Output("main", MAIN, arrow, spark_schema(arrow, names.schema), selected, marks)
    hidden = {*programs[0].columns.names} - {*names.input}
    late = pa.schema([field for field in programs[0].late_schema if field.name not in hidden]) if plan.settings.late_tag else None
    return {"main": main, **Output.late(plan.settings.late_tag, late, names.schema, source.numbered_from + LATE)}
