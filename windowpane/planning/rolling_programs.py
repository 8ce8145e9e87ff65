"""Programs of rolling features: a plan resolved against the types of its input, with its engine.

As ``window_programs``, this module reads the registry of engines, and is imported only where programs are made.
"""

from __future__ import annotations

from typing import TypeVar

from windowpane.engines.changes import Description
from windowpane.engines.rolling.program import PointInTimeProgram, RollingProgram
from windowpane.planning.description.programs import of_rolling
from windowpane.planning.engines import state_text, with_engine
from windowpane.planning.rolling import RollingPlan
from windowpane.windowing.aggregates.results import texts

P = TypeVar("P", RollingProgram, PointInTimeProgram)


def planned(plan: RollingPlan, program: P) -> P:
    """Return a program of a plan with the engine that runs it, and the text that a restart compares.

    Raises:
        AggregateTypeError: an aggregate does not take the type of its argument.
        InvalidSpecError: the requested engine cannot run it.
    """
    program.main_schema  # noqa: B018 (types are checked)
    request, seen = plan.request, () if isinstance(program, RollingProgram) else (plan.labels,)

    def described(chosen: P) -> Description:
        return of_rolling(chosen, request.keys, plan.event_time, seen, texts(request.results))

    return with_engine(program, request.settings.engine, described)


def explain(plan: RollingPlan, program: RollingProgram | PointInTimeProgram, buckets: str) -> str:
    """Return a plan as text, with the engine that runs its program, and why it is this one."""
    engine = {"engine": f"{program.engine}: {program.engine_reason}", "state": state_text(program)}
    return plan.explain(engine, buckets)
