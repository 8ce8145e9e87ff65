"""Build a filling of gaps: an operator on the results of a window program, in the same query."""

from __future__ import annotations

import dataclasses

from windowpane.engines.program import Program
from windowpane.errors import InvalidSpecError, MistakeError
from windowpane.hidden_columns import PARTITION, POSITION, SYSTEM
from windowpane.planning.engines import state_text
from windowpane.planning.filling.plan import FillingPlan
from windowpane.planning.filling.programs import check, compile_filling
from windowpane.planning.windows import WindowPlan
from windowpane.spark.building.operator_input import SourceRows, add_clock
from windowpane.spark.building.program import BuiltProgram, Operator
from windowpane.spark.stages.project import Projection


def build_filling(earlier: BuiltProgram, plan: FillingPlan) -> BuiltProgram:
    """Fill the results as the windows emit them; what Spark computes of their aggregates it computes of filled ones, too."""
    windows, program, source = earlier.plan, earlier.operators[-1].program, earlier.as_emitted.followed_by(f"{earlier.name}_next")
    if not isinstance(windows, WindowPlan) or not isinstance(program, Program):
        raise MistakeError("the fluent API offers it on windows only")
    check(windows, program, plan, earlier.is_streaming)
    main = earlier.outputs["main"]
    if main.steps:
        raise InvalidSpecError(
            f"fill_gaps comes right behind aggregate(...), and here behind {main.steps[0]}: say that of filled results, "
            ".fill_gaps(...).select(...) or .where(...)."
        )
    plan = dataclasses.replace(plan, event_time=source.event_time, allowed_lateness=windows.settings.allowed_lateness)
    given = {} if isinstance(plan.values, str) else plan.values
    if computed := [name for name in given if name in main.column_names and name not in main.arrow.names]:
        raise InvalidSpecError(
            f"fill_gaps was given constants for {computed}, which Spark computes of aggregates: give constants for results that "
            "are aggregates, or choose them behind, .fill_gaps(...).select('k', rate=wp.apply(F.coalesce, wp.col('rate'), 0))."
        )
    spelled = dict(zip(source.require(tuple(given), "fill_gaps"), given.values(), strict=True))
    filling = compile_filling(program, plan, spelled, source.kind)
    projection = Projection(source.rows)
    projection.add_system()
    for name in filling.main_schema.names:
        if name not in projection.columns:
            projection.add(name, "input", "")
    add_clock(projection, source)
    kept = {*filling.main_schema.names, *SYSTEM, PARTITION, POSITION}
    reads = SourceRows.of(source, projection.select(), projection, filling.keys, kept)
    return BuiltProgram(
        (source,),
        plan,
        operators=(Operator(filling, reads),),
        outputs={"main": dataclasses.replace(main, with_system=False, passing=())},
        explained=lambda buckets: plan.explain(filling, state_text(filling), buckets),
    )
