"""Programs of OVER windows: a plan resolved against the types of its input, a program for each stage, with its engine.

As ``window_programs``, this module reads the registry of engines, and is imported only where programs are made.
"""

from __future__ import annotations

import pyarrow as pa

from windowpane.engines.over.program import Emit, OverProgram
from windowpane.engines.program import Upstream
from windowpane.planning.description.programs import of_over
from windowpane.planning.engines import with_engine
from windowpane.planning.over import OverPlan, Stage
from windowpane.windowing.over.types import output_schema


def compile_stages(plan: OverPlan, columns: pa.Schema, upstream: Upstream) -> tuple[OverProgram, ...]:
    """Return a program for each stage of a plan, the first of which reads these columns.

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
        allowed_lateness=plan.settings.allowed_lateness if is_first else 0,
        append_only=plan.append_only and (is_first or plan.mode is Emit.CLOSE),
        retain=plan.retain,
        on_inconsistent=plan.on_inconsistent,
        key_delay=plan.key_delay,
        has_late_output=is_first and plan.settings.late_tag is not None,
        upstream=source or Upstream.WINDOW,
    )
    return with_engine(program, plan.settings.engine, of_over)
