"""Programs of rolling features: a plan resolved against the types of its input, with its engine.

As ``window_programs``, this module reads the registry of engines, and is imported only where programs are made.
"""

from __future__ import annotations

import dataclasses
from typing import Any, TypeVar

from windowpane.engines.rolling.program import PointInTimeProgram, RollingProgram
from windowpane.planning.description import columns_text, describe, description
from windowpane.planning.engines import state_text, with_engine
from windowpane.planning.rolling import RollingPlan

P = TypeVar("P", RollingProgram, PointInTimeProgram)


def planned(plan: RollingPlan, program: P) -> P:
    """Return a program of a plan with the engine that runs it, and the text that a restart compares.

    Raises:
        AggregateTypeError: an aggregate does not take the type of its argument.
        InvalidSpecError: the requested engine cannot run it.
    """
    program.main_schema  # noqa: B018 (types are checked)
    program = with_engine(program, plan.request.settings.engine)
    texts: dict[str, Any] = {"call_texts": _call_texts(program)} if isinstance(program, RollingProgram) else {}
    return dataclasses.replace(program, description=_description(plan, program), **texts)


def explain(plan: RollingPlan, program: RollingProgram | PointInTimeProgram, buckets: str) -> str:
    """Return a plan as text, with the engine that runs its program, and why it is this one."""
    engine = {"engine": f"{program.engine}: {program.engine_reason}", "state": state_text(program)}
    return plan.explain(engine, buckets)


def _description(plan: RollingPlan, program: RollingProgram | PointInTimeProgram) -> tuple[tuple[str, str], ...]:
    spec = program.spec
    rest = {"corrects": "True"} if spec.corrects else {}
    if isinstance(program, PointInTimeProgram):
        rest = {"labels": columns_text(program.labels), "seen_by_labels": str(plan.labels)}
    return description(
        program.engine,
        keys=", ".join(plan.request.keys),
        event_time=plan.event_time,
        features="; ".join(_call_texts(program)),
        step=f"{spec.step} µs",
        emit=spec.emit.value,
        deletes=str(spec.deletes_empty),
        columns=columns_text(program.columns),
        **rest,
    )


def _call_texts(program: RollingProgram | PointInTimeProgram) -> tuple[str, ...]:
    return tuple(f"{call.name} = {call.aggregate} {describe(call.window)} {call.condition}" for call in program.spec.calls)
