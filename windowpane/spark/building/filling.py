"""Build a filling of gaps: an operator on the results of a window program, in the same query."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from windowpane.engines.filling.program import FillingProgram
from windowpane.engines.program import Program
from windowpane.errors import InvalidSpecError, MistakeError, UnknownColumnError
from windowpane.hidden_columns import FIRING_WATERMARK, PARTITION, PASSED, POSITION, TIME
from windowpane.planning.description.programs import of_filling
from windowpane.planning.engines import state_text, with_engine
from windowpane.planning.filling import FillingPlan
from windowpane.planning.windows import WindowPlan
from windowpane.spark.building.operator_input import SourceRows, add_clock
from windowpane.spark.building.program import BuiltProgram, Operator
from windowpane.spark.sources.source import Source
from windowpane.spark.stages.project import Projection
from windowpane.windowing.aggregates import CombinedAggregate
from windowpane.windowing.assigners import SlidingEventTimeWindows, TumblingEventTimeWindows
from windowpane.windowing.spec import DEFAULT_PANES


def build_filling(source: Source, earlier: BuiltProgram, plan: FillingPlan) -> BuiltProgram:
    windows, program = earlier.plan, earlier.operators[-1].program
    if not isinstance(windows, WindowPlan) or not isinstance(program, Program):
        raise MistakeError("the fluent API offers it on windows only")
    _check(windows, program, plan, earlier.is_streaming)
    plan = dataclasses.replace(plan, event_time=source.event_time, allowed_lateness=windows.settings.allowed_lateness)
    filling = _program(program, plan, source)
    projection = Projection(source.rows)
    projection.add_system()
    for name in filling.main_schema.names:
        if name not in projection.columns:
            projection.add(name, "input", "")
    add_clock(projection, source)
    kept = {*filling.main_schema.names, TIME, FIRING_WATERMARK, PASSED, PARTITION, POSITION}
    reads = SourceRows.of(source, projection.select(), projection, filling.keys, kept)
    main = earlier.outputs["main"]
    return BuiltProgram(
        (source,),
        plan,
        operators=(Operator(filling, reads),),
        outputs={"main": dataclasses.replace(main, with_system=False, passing=())},
        explained=lambda buckets: plan.explain(filling, state_text(filling), buckets),
    )


def _check(windows: WindowPlan, program: Program, plan: FillingPlan, is_streaming: bool) -> None:
    if not isinstance(windows.assigner, TumblingEventTimeWindows | SlidingEventTimeWindows):
        raise InvalidSpecError(
            f"fill_gaps takes tumbling and sliding windows by event time, and {windows.assigner!r} has no next window that "
            "follows from the last one, or no watermark that ends it."
        )
    if not program.aggregates or program.processes_results:
        raise InvalidSpecError("fill_gaps takes the results of built-in aggregates, one a window: .aggregate(n=wp.count()).")
    if windows.trigger is not None or windows.evictor is not None or windows.panes != DEFAULT_PANES:
        raise InvalidSpecError("fill_gaps takes windows with their default trigger: leave trigger, evictor and accumulation out.")
    if plan.until is None and not is_streaming:
        raise InvalidSpecError(
            "until='forever': a static DataFrame has no end of time up to which windows could be filled. Say how far, such as "
            "until='24 windows'."
        )


def _program(program: Program, plan: FillingPlan, source: Source) -> FillingProgram:
    assigner = program.spec.assigner
    size = assigner.size
    step = assigner.slide if isinstance(assigner, SlidingEventTimeWindows) else size
    given: Mapping[str, Any] = {} if isinstance(plan.values, str) else plan.values
    spelled = dict(zip(source.require(tuple(given), "fill_gaps"), given.values(), strict=True))
    if unknown := sorted(set(spelled) - set(program.main.names)):
        raise UnknownColumnError(unknown[0], "fill_gaps", program.main.names)
    word = plan.values if isinstance(plan.values, str) else plan.others
    rest = [name for name in program.main.names if name not in spelled]
    constants = {name: _constant(name, value, program.main.field(name).type) for name, value in spelled.items()}
    if word == "zero":
        constants |= {name: value for name, value in _of_no_rows(program).items() if name in rest and value is not None}
    filling = FillingProgram(
        keys=tuple(program.keys.names),
        main_schema=program.main_schema,
        size=size,
        step=step,
        limit=plan.windows(size, step),
        previous=tuple(rest) if word == "previous" else (),
        constants=tuple(constants.items()),
        allowed_lateness=plan.allowed_lateness,
        upstream=source.kind,
    )
    filling = with_engine(filling, plan.engine)
    return dataclasses.replace(filling, description=of_filling(filling))


def _constant(name: str, value: object, kind: pa.DataType) -> object:
    try:
        return pa.scalar(value, kind).as_py()
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise InvalidSpecError(f"fill_gaps {name}={value!r}: the column is {kind}, which has no such value ({error}).") from error


def _of_no_rows(program: Program) -> dict[str, Any]:
    """Return what each aggregate makes of no rows."""
    function = program.spec.function.accumulate
    if not isinstance(function, CombinedAggregate):
        raise MistakeError("built-in aggregates are combined")
    return dict(function.get_result(function.create_accumulator()))
