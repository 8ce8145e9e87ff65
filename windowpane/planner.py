"""The planner of windowed programs: resolves a plan against the types of its input, and chooses the engine that runs it.

``compile_program`` gives the program an engine runs, with the description that a restart compares. This module knows all engines;
so nothing imports it that only writes a program down (``plan``), or runs one on a worker.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pyarrow as pa

from windowpane.engines import never
from windowpane.engines.late_rows import DROPPED, WINDOWS_MISSED
from windowpane.engines.never import NeverEngine
from windowpane.engines.panes import counts
from windowpane.engines.panes import timed as timed_panes
from windowpane.engines.panes.counts import CountsEngine
from windowpane.engines.panes.timed import TimedPanesEngine
from windowpane.engines.program import WINDOW_END, WINDOW_START, Program, SideOutput
from windowpane.engines.protocol import Engine
from windowpane.engines.row import RowEngine
from windowpane.engines.sessions import engine as sessions
from windowpane.engines.sessions.engine import SessionsEngine
from windowpane.engines.slices import engine as slices
from windowpane.engines.slices.engine import SlicesEngine
from windowpane.errors import InvalidSpecError
from windowpane.plan import EngineChoice, WindowPlan, describe
from windowpane.windowing.aggregates import Aggregate, CombinedAggregate
from windowpane.windowing.arrow_by_key import ArrowByKey, ArrowByRow
from windowpane.windowing.arrow_functions import ArrowAggregateFunction, ArrowWindowFunction
from windowpane.windowing.assigners import GlobalWindows
from windowpane.windowing.functions import PassThrough, WindowFunctionSpec

STATE_FORMAT = "1"


class _ColumnarEngine(NamedTuple):
    refusal: Callable[[Program], str | None]
    reason: str
    make: Callable[[Program], Engine]


_COLUMNAR = {
    SlicesEngine.name: _ColumnarEngine(
        slices.refusal, "windows of fixed size over built-in aggregates share slices", SlicesEngine
    ),
    SessionsEngine.name: _ColumnarEngine(
        sessions.refusal, "sessions of built-in aggregates are islands of rows and open sessions", SessionsEngine
    ),
    TimedPanesEngine.name: _ColumnarEngine(
        timed_panes.refusal, "built-in aggregates are kept by key and window, and clocks fire them", TimedPanesEngine
    ),
    NeverEngine.name: _ColumnarEngine(never.refusal, "the trigger never fires, so nothing needs keeping", NeverEngine),
    CountsEngine.name: _ColumnarEngine(counts.refusal, "running counts cut built-in aggregates where windows fire", CountsEngine),
}
"""The columnar engines by name: why one cannot run a program, why it is chosen, how it is made."""


def choose_engine(program: Program, wanted: str | None = None) -> EngineChoice:
    """Return the fastest engine that covers ``program`` exactly, and why it is this one.

    Args:
        program: the program.
        wanted: the engine the user asked for, ``None`` for the planner's choice.

    Raises:
        InvalidSpecError: the engine asked for cannot run the program, or there is none of that name.
    """
    if wanted == RowEngine.name:
        return EngineChoice(RowEngine.name, "asked for")
    if wanted not in (None, *_COLUMNAR):
        raise InvalidSpecError(f"there is no engine {wanted!r}; there are 'row', {', '.join(map(repr, _COLUMNAR))}.")
    refusals = {}
    for name in _COLUMNAR if wanted is None else (wanted,):
        refused = _COLUMNAR[name].refusal(program)
        if refused is None:
            return EngineChoice(name, _COLUMNAR[name].reason)
        refusals[name] = refused
    if wanted is not None:
        raise InvalidSpecError(f"the {wanted} engine cannot run this program: {refusals[wanted]}.")
    reasons = "; ".join(f"not {name}: {refusals[name]}" for name in _closest(program))
    return EngineChoice(RowEngine.name, f"the reference operator runs every program; {reasons}")


def _closest(program: Program) -> tuple[str, ...]:
    """Return the columnar engines for such windows."""
    if program.spec.merges:
        return (SessionsEngine.name,)
    windowed = () if isinstance(program.spec.assigner, GlobalWindows) else (SlicesEngine.name,)
    return (*windowed, TimedPanesEngine.name, CountsEngine.name)


def engine_of(program: Program) -> Callable[[Program], Engine]:
    """Return the class of the engine that runs ``program``: a worker that is sent it imports no other engine."""
    return _COLUMNAR[program.engine].make if program.engine in _COLUMNAR else RowEngine


def make_engine(program: Program) -> Engine:
    """Return the engine that runs ``program``."""
    return engine_of(program)(program)


@dataclass(frozen=True)
class InputTypes:
    """The types a plan is resolved against, as Arrow has them.

    Args:
        columns: the columns of the input that functions and late rows carry.
        keys: the key columns, named as in the output.
        key_columns: names of the key columns in the input, where they are not those of ``keys``.
        window_bound: type of window bounds.
        argument_columns: for built-in aggregates, the columns that hold the arguments, by output name.
        declared: the function's declared schema, if it declared one.
        side_schemas: declared schema by name of side output.
    """

    columns: pa.Schema
    keys: pa.Schema
    key_columns: tuple[str, ...]
    window_bound: pa.DataType
    argument_columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    declared: pa.Schema | None = None
    side_schemas: Mapping[str, pa.Schema] = field(default_factory=dict)


def compile_program(plan: WindowPlan, types: InputTypes, row_columns: Sequence[str]) -> Program:
    """Return the program for ``plan`` over an input of those types.

    Args:
        plan: the plan.
        types: the types of its input.
        row_columns: the columns that make up a row, as functions see it and as late rows carry it.

    Raises:
        AggregateTypeError: a built-in aggregate does not take the type of its argument.
        InvalidSpecError: the function's columns collide with keys or window bounds, or have no schema.
    """
    function, values, main = _function(plan, types, row_columns)
    program = Program(
        spec=plan.spec_with(function),
        keys=types.keys,
        key_columns=types.key_columns,
        values=values,
        main=_without_keys(main, types.keys, declared=types.declared is not None),
        window_bound=types.window_bound,
        late_columns=tuple(row_columns) if plan.late_tag else (),
        side_outputs=_side_outputs(plan, types, row_columns),
        order_by=plan.order_by,
        upstream=plan.upstream,
        aggregates=_resolved(plan.function.aggregates, types),
        value_types=pa.schema([types.columns.field(name) for name in values]),
        arrow=plan.function.arrow,
        processes_results=plan.function.process is not None,
    )
    if program.arrow is not None:
        program = dataclasses.replace(program, spec=plan.spec_with(_by_key(program, program.arrow)))
    program = dataclasses.replace(program, engine=choose_engine(program, plan.engine).name)
    return dataclasses.replace(program, description=_description(plan, types, program))


def _function(
    plan: WindowPlan, types: InputTypes, row_columns: Sequence[str]
) -> tuple[WindowFunctionSpec, tuple[str, ...], pa.Schema]:
    function = plan.function
    if function.aggregates:
        by_name = {column.name: column.type for column in types.columns}
        combined = CombinedAggregate.of(dict(function.aggregates), types.argument_columns, by_name)
        spec = WindowFunctionSpec.aggregate(combined, function.process)
        arguments = [name for slots in types.argument_columns.values() for name in slots]
        seen = dict.fromkeys([*(row_columns if plan.reads_rows else ()), *arguments])
        return spec, tuple(seen), types.declared if function.process and types.declared else combined.result_schema
    if types.declared is None and function.kind != "reduce":
        raise InvalidSpecError(f"{function.kind} needs schema=, a DDL string or StructType of the columns it returns.")
    visible = tuple(row_columns)
    columns = pa.schema([types.columns.field(name) for name in visible])
    spec = function.spec or WindowFunctionSpec(function.kind, PassThrough())
    return spec, visible, columns if types.declared is None else types.declared


def _by_key(program: Program, function: ArrowAggregateFunction | ArrowWindowFunction) -> WindowFunctionSpec:
    """Return a function on Arrow tables as the reference operator runs it."""
    if isinstance(function, ArrowWindowFunction):
        return WindowFunctionSpec(function.kind, ArrowByKey(function, *program.window_schemas, len(program.keys)))
    rows = pa.schema([program.value_types.field(name) for name in program.values])
    return WindowFunctionSpec.aggregate(ArrowByRow(function, rows, program.main))


def _resolved(
    aggregates: Sequence[tuple[str, Aggregate]], types: InputTypes
) -> tuple[tuple[str, Aggregate, tuple[str, ...]], ...]:
    """Return aggregates whose arguments are the columns that hold them: Columns of Spark do not travel to workers."""
    columns = [tuple(types.argument_columns[name]) for name, _ in aggregates]
    named = [Aggregate(each.name, slots, each.parameters) for (_, each), slots in zip(aggregates, columns, strict=True)]
    return tuple((name, each, slots) for (name, _), each, slots in zip(aggregates, named, columns, strict=True))


def _without_keys(main: pa.Schema, keys: pa.Schema, declared: bool) -> pa.Schema:
    """Return the function's columns less the keys, which the output has anyway; window bounds must not be declared."""
    bounds = {WINDOW_START, WINDOW_END}
    if declared and bounds & set(main.names):
        raise InvalidSpecError(
            f"the declared schema has {sorted(bounds & set(main.names))}, which every output has already: leave them out."
        )
    return pa.schema([column for column in main if column.name not in bounds | set(keys.names)])


def _side_outputs(plan: WindowPlan, types: InputTypes, row_columns: Sequence[str]) -> tuple[SideOutput, ...]:
    outputs = []
    if plan.late_tag is not None:
        bound = types.window_bound
        missed = pa.list_(pa.struct([pa.field("start", bound), pa.field("end", bound)]))
        extra = [pa.field(WINDOWS_MISSED, missed), pa.field(DROPPED, pa.bool_())]
        columns = [types.columns.field(name) for name in row_columns]
        outputs.append(SideOutput(plan.late_tag, pa.schema([*columns, *extra]), is_late=True))
    outputs += [SideOutput(tag, types.side_schemas[tag.name]) for tag in plan.side_tags]
    return tuple(outputs)


def _description(plan: WindowPlan, types: InputTypes, program: Program) -> tuple[tuple[str, str], ...]:
    seen = [types.columns.field(name) for name in program.values]
    return (
        ("state format", STATE_FORMAT),
        ("engine", program.engine),
        ("keys", _columns_text(types.keys)),
        ("assigner", describe(plan.assigner)),
        ("trigger", describe(plan.effective_trigger)),
        ("evictor", describe(plan.evictor)),
        ("allowed lateness", f"{plan.allowed_lateness} µs"),
        ("function", plan.function.kind),
        ("aggregates", ", ".join(f"{name} = {aggregate}" for name, aggregate in plan.function.aggregates) or "none"),
        ("columns", _columns_text(seen)),
    )


def _columns_text(columns: Any) -> str:
    return ", ".join(f"{column.name} {column.type}" for column in columns) or "none"
