"""Programs of filling: a plan resolved against the program of the windows whose gaps are filled, with its engine.

As ``window_programs``, this module reads the registry of engines, and is imported only where programs are made.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from windowpane.arrays.misfits import why_not
from windowpane.arrays.values import Value
from windowpane.engines.filling.program import FillingProgram
from windowpane.engines.program import Program, Upstream
from windowpane.errors import InvalidSpecError, MistakeError, UnknownColumnError
from windowpane.planning.description.programs import of_filling
from windowpane.planning.engines import with_engine
from windowpane.planning.filling.plan import FillingPlan
from windowpane.planning.windows import WindowPlan
from windowpane.windowing.aggregates import CombinedAggregate
from windowpane.windowing.assigners import SlidingEventTimeWindows, TumblingEventTimeWindows
from windowpane.windowing.spec import DEFAULT_PANES


def check(windows: WindowPlan, program: Program, plan: FillingPlan, is_streaming: bool) -> None:
    """Refuse results whose gaps have no meaning.

    Raises:
        InvalidSpecError: of windows that have no next one, of functions, under triggers; or without an end.
    """
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


def compile_filling(program: Program, plan: FillingPlan, spelled: Mapping[str, Value], upstream: Upstream) -> FillingProgram:
    """Return the program of a plan over that of the windows; ``spelled`` are its constants, by columns as the results spell them.

    Raises:
        InvalidSpecError: a constant that is no value of its column, a length below that of a window, or there is no such engine.
        UnknownColumnError: a constant of a column that is none of the function's.
    """
    assigner = program.spec.assigner
    if not isinstance(assigner, TumblingEventTimeWindows | SlidingEventTimeWindows):
        raise MistakeError("other windows were refused")
    size = assigner.size
    step = assigner.slide if isinstance(assigner, SlidingEventTimeWindows) else size
    if unknown := sorted(set(spelled) - set(program.main.names)):
        raise UnknownColumnError(unknown[0], "fill_gaps", program.main.names)
    word = plan.values if isinstance(plan.values, str) else plan.others
    rest = [name for name in program.main.names if name not in spelled]
    constants = {name: _constant(name, value, program.main.field(name).type) for name, value in spelled.items()}
    if word == "zero":
        constants |= {name: value for name, value in _of_no_rows(program).items() if name in rest and value is not None}
    filling = FillingProgram(
        keys=tuple(program.keys.names),
        results=program.main_schema,
        size=size,
        step=step,
        limit=plan.windows(size, step),
        previous=tuple(rest) if word == "previous" else (),
        constants=tuple(constants.items()),
        allowed_lateness=plan.allowed_lateness,
        upstream=upstream,
    )
    return with_engine(filling, plan.engine, of_filling)


def _constant(name: str, value: object, kind: pa.DataType) -> object:
    if (reason := why_not(value, kind)) is not None:
        raise InvalidSpecError(f"fill_gaps {name}={value!r}: the column is {kind}, which {reason}.")
    return pa.scalar(value, kind).as_py()


def _of_no_rows(program: Program) -> dict[str, Value]:
    """Return what each aggregate makes of no rows."""
    function = program.spec.function.accumulate
    if not isinstance(function, CombinedAggregate):
        raise MistakeError("built-in aggregates are combined")
    return dict(function.get_result(function.create_accumulator()))
