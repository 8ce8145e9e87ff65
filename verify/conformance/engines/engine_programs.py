"""A vector's program as a program of an engine: of a columnar engine where it has a built-in form, of rows always.

The planner chooses the columnar engine. What it would leave to rows is skipped there, with the planner's reason.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa

from verify.conformance.reading.built_in import KEY, BuiltIn, built_in
from verify.conformance.reading.fields import Json, LeftToRowsError
from verify.conformance.reading.json_results import CLEARS, SIDES, JsonFunction
from verify.conformance.reading.programs import Program as VectorProgram
from verify.conformance.reading.programs import parse_program
from verify.conformance.replay.verdicts import Options
from windowpane.engines.program import Program
from windowpane.errors import InvalidSpecError
from windowpane.planning.settings import Settings
from windowpane.planning.window_programs import InputTypes, compile_program
from windowpane.planning.windows import FunctionPlan, WindowPlan
from windowpane.windowing.outputs import OutputTag
from windowpane.windowing.spec import Refine

COLUMNS = pa.schema([("key", pa.string()), ("value", pa.int64()), ("ts", pa.int64())])
"""The columns of an element."""
BY_ROW = ("row", "reference")
"""The engines that take rows as Python's."""
_LATE = OutputTag("late")
_JSON = pa.schema([("json", pa.string())])


@dataclass(frozen=True)
class EngineProgram:
    """A program of an engine.

    Args:
        program: the program.
        show: how the vectors write a row that it emits, a dict with ``key`` and ``window``.
        gives_rows: whether a firing may be several of their rows.
    """

    program: Program
    show: Callable[[Json], list[Json]]
    gives_rows: bool = False

    @property
    def coalesces(self) -> bool:
        """Whether several refinements of a window in one batch are emitted as the last one."""
        return self.program.spec.coalesces_refinements


Compile = Callable[[Json, Options], EngineProgram]


def columnar_program(fields: Json, options: Options) -> EngineProgram:
    """Return the program as the planner makes it; with an engine that gives one refinement a row, if there is one.

    Raises:
        LeftToRowsError: rows would run one by one, or by key.
        NotUnderstoodError: its function is no built-in aggregate.
    """
    function, parsed = built_in(fields["function"]["type"]), parse_program(fields)
    aggregates = function.named(parsed.keyed)
    slots = {name: tuple(aggregate.arguments) for name, aggregate in aggregates}
    plan = _plan(parsed, FunctionPlan("aggregate", aggregates=aggregates))
    refines: tuple[Refine, ...] = ("each", "last") if options.batches_steps else ("last",)
    for refine in refines:
        program = compile_program(replace(plan, refine=refine), _types(parsed, slots=slots), COLUMNS.names)
        if program.engine not in BY_ROW:
            return EngineProgram(program, partial(_shown, function, parsed.keyed), function.gives_rows)
    raise LeftToRowsError(f"engine columnar: {program.engine_reason}")


def row_program(fields: Json, options: Options) -> EngineProgram:
    """Return the program of the row engine, or where that refuses of the reference, with the vectors' own functions."""
    try:
        return _own_program(fields, "row")
    except InvalidSpecError:
        return reference_program(fields, options)


def reference_program(fields: Json, options: Options) -> EngineProgram:
    """Return the program of the reference engine, with the vectors' own functions."""
    return _own_program(fields, "reference")


def _own_program(fields: Json, engine: str) -> EngineProgram:
    parsed = parse_program(fields)
    function = replace(parsed.spec.function, process=JsonFunction(parsed.spec.function.process, clears=True, sides=True))
    plan = _plan(parsed, FunctionPlan(function.kind, function, schema=_JSON))
    settings = replace(plan.settings, side_tags=(CLEARS, SIDES), engine=engine)
    plan = replace(plan, settings=settings, refine="each")
    types = replace(_types(parsed), declared=_JSON, side_schemas={CLEARS.name: _JSON, SIDES.name: _JSON})
    return EngineProgram(compile_program(plan, types, COLUMNS.names), _read)


def _plan(parsed: VectorProgram, function: FunctionPlan) -> WindowPlan:
    spec, keys = parsed.spec, ("key",) if parsed.keyed else ()
    settings = Settings(spec.allowed_lateness, _LATE)
    return WindowPlan(keys, spec.assigner, function, spec.trigger, spec.evictor, settings, event_time="ts")


def _types(parsed: VectorProgram, slots: dict[str, tuple[str, ...]] | None = None) -> InputTypes:
    keys = ("key",) if parsed.keyed else ()
    return InputTypes(COLUMNS, pa.schema([COLUMNS.field(name) for name in keys]), keys, pa.int64(), slots or {})


def _shown(function: BuiltIn, keyed: bool, row: Json) -> list[Json]:
    return function.show({**row, "key": row["key"] if keyed else row[KEY] or ""})


def _read(row: Json) -> list[Json]:
    return [json.loads(row["json"])]
