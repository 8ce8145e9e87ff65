"""The planner of OVER windows: resolves a plan against the types of its input, and chooses the engine of each stage.

As ``planner`` it knows all engines, so it is imported only where programs are made.
"""

from __future__ import annotations

import dataclasses

import pyarrow as pa

from windowpane.engines.over import engines as over_engines
from windowpane.engines.over.program import Emit, OverProgram
from windowpane.engines.over.reference import OverReferenceEngine
from windowpane.engines.program import Upstream
from windowpane.engines.protocol import Engine
from windowpane.errors import InvalidSpecError
from windowpane.over_plan import OverPlan, Stage
from windowpane.plan import EngineChoice
from windowpane.windowing.over_types import output_schema

STATE_FORMAT = "1"


def compile_stages(plan: OverPlan, columns: pa.Schema, upstream: Upstream) -> tuple[OverProgram, ...]:
    """Return a program for each stage of ``plan``.

    Args:
        plan: the plan.
        columns: names and types of its input columns.
        upstream: where the rows of the first stage come from.

    Raises:
        WindowpaneError: a window does not fit the types of its input, see ``output_schema``.
    """
    programs: list[OverProgram] = []
    for stage in plan.stages:
        outputs = output_schema(stage.spec, columns, stage.names)
        programs.append(_program(plan, stage, columns, outputs, None if programs else upstream))
        columns = pa.schema([*columns, *outputs])
    return tuple(programs)


def _program(plan: OverPlan, stage: Stage, columns: pa.Schema, outputs: pa.Schema, source: Upstream | None) -> OverProgram:
    """Return the program of a stage; ``source`` says where the rows of the first one come from.

    Later stages keep the watermark of their own batch before, since it stays behind that of the stage their rows come from.
    """
    is_first = source is not None
    program = OverProgram(
        spec=stage.spec,
        columns=columns,
        outputs=outputs,
        mode=plan.mode,
        time_column=plan.event_time if plan.has_watermark or plan.mode is Emit.CLOSE else None,
        allowed_lateness=plan.allowed_lateness if is_first else 0,
        append_only=plan.append_only and (is_first or plan.mode is Emit.CLOSE),
        retain=plan.retain,
        on_inconsistent=plan.on_inconsistent,
        has_late_output=is_first and plan.late_tag is not None,
        upstream=source or Upstream.WINDOW,
    )
    program = dataclasses.replace(program, engine=choose_over_engine(program, plan.engine).name)
    return dataclasses.replace(program, description=_description(program))


_KERNELS = {
    Emit.UPDATE: "pages of rows and outputs, affected rows computed by kernels on sorted arrays",
    Emit.CLOSE: "a sort buffer, complete rows computed by kernels on sorted arrays",
}


def choose_over_engine(program: OverProgram, wanted: str | None = None) -> EngineChoice:
    """Return the fastest engine that covers ``program``, and why it is this one.

    Raises:
        InvalidSpecError: the engine asked for cannot run the program, or there is none of that name.
    """
    if wanted == OverReferenceEngine.name:
        return EngineChoice(wanted, "asked for")
    columnar = over_engines.columnar_name(program)
    if wanted not in (None, columnar):
        names = f"{OverReferenceEngine.name!r} and {columnar!r}"
        raise InvalidSpecError(
            f"there is no engine {wanted!r} for OVER windows that emit on {program.mode.value}; there are {names}."
        )
    refused = over_engines.columnar_refusal(program)
    if refused is None:
        return EngineChoice(columnar, f"{_KERNELS[program.mode]}: {over_engines.columnar_calls(program)}")
    if wanted is not None:
        raise InvalidSpecError(f"the engine {columnar!r} cannot run this program: {refused}.")
    return EngineChoice(OverReferenceEngine.name, f"the reference operators run every program; not {columnar}: {refused}")


def make_over_engine(program: OverProgram) -> Engine:
    """Return the engine that runs ``program``."""
    return over_engines.engine_of(program)(program)


def _description(program: OverProgram) -> tuple[tuple[str, str], ...]:
    def text(columns: pa.Schema) -> str:
        return ", ".join(f"{column.name} {column.type}" for column in columns)

    return (
        ("state format", STATE_FORMAT),
        ("engine", program.engine),
        ("window", str(program.spec)),
        ("emit on", program.mode.value),
        ("event time", program.time_column or "none"),
        ("input", "append-only" if program.append_only else "a changelog"),
        ("allowed lateness", f"{program.allowed_lateness} µs"),
        ("retention", "none" if program.retain is None else f"{program.retain} µs"),
        ("columns", text(program.columns)),
        ("results", text(program.outputs)),
    )
