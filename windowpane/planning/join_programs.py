"""Programs of joins: a plan resolved against the types of its inputs, with its engine.

As ``window_programs``, this module reads the registry of engines, and is imported only where programs are made.
"""

from __future__ import annotations

import pyarrow as pa

from windowpane.engines.join.grouping import CoGroup
from windowpane.engines.join.program import JoinProgram, JoinSide
from windowpane.engines.join.windows import JoinWindowEngine
from windowpane.engines.program import Upstream
from windowpane.errors import ConditionError, UnknownColumnError
from windowpane.kernels.conditions import holds
from windowpane.planning.description.programs import of_join
from windowpane.planning.engines import make_engine, state_text, with_engine
from windowpane.planning.joins import JoinPlan, JoinRequest
from windowpane.windowing.expressions import Expression, Side, SideName, sides_in


def compile_join(
    plan: JoinPlan,
    left: JoinSide,
    right: JoinSide,
    bound: pa.DataType,
    upstream: Upstream,
    declared: pa.Schema | None = None,
) -> JoinProgram:
    """Return the program of a plan; ``declared`` are the columns that a function of ``co_group`` returns.

    Raises:
        ConditionError: the condition has no meaning for the types of its columns, or is no boolean.
        InvalidSpecError: the requested engine cannot run it.
    """
    request = plan.request
    if request.condition is not None:
        _check(request.condition, {"left": left.columns, "right": right.columns})
    program = JoinProgram(
        match=request.match,
        how=request.how,
        left=left,
        right=right,
        condition=request.condition,
        null_safe=request.null_safe,
        allowed_lateness=request.settings.allowed_lateness,
        time_of=request.time_of,
        window_bound=bound,
        upstream=upstream,
        co_group=None if declared is None else _co_group(request, declared),
        updates=bool(request.updates),
    )
    return with_engine(program, request.settings.engine, lambda chosen: of_join(chosen, plan.event_times))


def explain(plan: JoinPlan, program: JoinProgram, buckets: str) -> str:
    """Return a plan as text, with the engine that runs its program, and why it is this one."""
    made = make_engine(program)
    windows = f"; its windows run on the engine {made.windows_on}" if isinstance(made, JoinWindowEngine) else ""
    engine = {
        "engine": f"{program.engine}: {program.engine_reason}{windows}",
        "state": f"{state_text(program)}; RocksDB behind it",
    }
    return plan.explain(program, engine, buckets)


def _co_group(request: JoinRequest, declared: pa.Schema) -> CoGroup | None:
    if request.co_group is None:
        return None
    function, _, in_arrow = request.co_group
    return CoGroup(function, declared, in_arrow, request.trigger, request.evictor, request.refine)


def _check(condition: Expression, columns: dict[Side, pa.Schema]) -> None:
    """Compute the condition on a row of NULLs, which shows whether it has a meaning."""
    for name in sides_in(condition):
        if name.name not in columns[name.side].names:
            raise UnknownColumnError(name.name, f"where: {name.side} side", columns[name.side].names)

    def column(name: Expression) -> pa.Array:
        if not isinstance(name, SideName):
            raise ConditionError(condition, f"{name!r} is of no side: write wp.left('x') or wp.right('x')")
        return pa.nulls(1, columns[name.side].field(name.name).type)

    holds(condition, column, 1)
