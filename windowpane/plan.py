"""Plans: a windowed program as the user wrote it, as a frozen value that prints, compares and explains itself.

A plan knows names, not types. ``compile_program`` resolves it against the types of its input and gives the program an engine
runs, with the description that a restart compares.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pyarrow as pa

from windowpane.engines import never
from windowpane.engines.combining import combiner_refusal
from windowpane.engines.late_rows import DROPPED, WINDOWS_MISSED
from windowpane.engines.never import NeverEngine
from windowpane.engines.panes import counts
from windowpane.engines.panes import timed as timed_panes
from windowpane.engines.panes.counts import CountsEngine
from windowpane.engines.panes.timed import TimedPanesEngine
from windowpane.engines.program import WINDOW_END, WINDOW_START, Program, SideOutput, Upstream
from windowpane.engines.protocol import Engine
from windowpane.engines.row import RowEngine
from windowpane.engines.sessions import engine as sessions
from windowpane.engines.sessions.engine import SessionsEngine
from windowpane.engines.slices import engine as slices
from windowpane.engines.slices.engine import SlicesEngine
from windowpane.errors import InvalidSpecError
from windowpane.windowing.aggregates import Aggregate, CombinedAggregate
from windowpane.windowing.arrow_by_key import ArrowByKey, ArrowByRow
from windowpane.windowing.arrow_functions import ArrowAggregateFunction, ArrowWindowFunction
from windowpane.windowing.assigners import GlobalWindows, WindowAssigner
from windowpane.windowing.element_readers import reads_elements
from windowpane.windowing.evictors import Evictor
from windowpane.windowing.functions import PassThrough, ProcessWindowFunction, WindowFunctionSpec
from windowpane.windowing.over_spec import OrderColumn
from windowpane.windowing.spec import Refine, WindowSpec
from windowpane.windowing.tags import OutputTag
from windowpane.windowing.times import format_micros
from windowpane.windowing.triggers import Trigger

STATE_FORMAT = "1"

_STATE = {
    "row": "sorted pages: keyed state, event-time timers, processing-time timers",
    "slices": "a segment log: partial aggregates by slice and key",
    "sessions": "hash pages: open sessions with their partial aggregates, with an evictor their elements, by a hash of the key",
    "panes": "segment logs by window: partial aggregates, or with an evictor the elements left; fire times by key",
    "never": "nothing",
    "counts": "a segment log by window or shard of keys: partial aggregates and counts, with an evictor the elements left",
}


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


class EngineChoice(NamedTuple):
    """The engine that runs a program, and why it is this one."""

    name: str
    reason: str


_NO_REPR: Any = object.__repr__


@dataclass(frozen=True)
class FunctionPlan:
    """The function of a plan: built-in aggregates by output name, or a function spec of the user's.

    Args:
        kind: the word the user said.
        spec: the user's function; ``None`` with ``aggregates``.
        aggregates: (output name, aggregate) for built-in aggregates.
        process: a full function behind built-in aggregates.
        arrow: a function on Arrow tables in place of ``spec``.
        schema: columns of what the function returns, as the user declared them; ``None`` where they follow from the input.
    """

    kind: str
    spec: WindowFunctionSpec | None = None
    aggregates: tuple[tuple[str, Aggregate], ...] = ()
    process: ProcessWindowFunction | None = None
    arrow: ArrowAggregateFunction | ArrowWindowFunction | None = None
    schema: Any = None


@dataclass(frozen=True)
class WindowPlan:
    """A windowed program.

    Args:
        keys: names of the key columns; empty for ``window_all``.
        assigner: the window assigner.
        function: what a firing window's contents are turned into.
        trigger: ``None`` for the assigner's default.
        evictor: ``None`` for none.
        allowed_lateness: microseconds.
        late_tag: where late rows go, ``None`` to drop (and count) them.
        side_tags: side outputs that a process function writes to.
        event_time: name of the event-time column, ``None`` if there is none.
        order_by: columns that order the rows of a batch before arrival order.
        refine: ``"last"`` or ``"each"``, see ``WindowSpec``.
        upstream: where rows come from.
        engine: the engine asked for, ``None`` for the planner's choice.
    """

    keys: tuple[str, ...]
    assigner: WindowAssigner
    function: FunctionPlan
    trigger: Trigger | None = None
    evictor: Evictor | None = None
    allowed_lateness: int = 0
    late_tag: OutputTag | None = None
    side_tags: tuple[OutputTag, ...] = ()
    event_time: str | None = None
    order_by: tuple[OrderColumn, ...] = ()
    refine: Refine = "last"
    upstream: Upstream = Upstream.SOURCE
    engine: str | None = None

    def __post_init__(self) -> None:
        """Refuse what cannot work before any DataFrame is looked at."""
        self.spec_with(self.function.spec or WindowFunctionSpec("aggregate", PassThrough()))
        names = [tag.name for tag in self.tags]
        if len(set(names)) != len(names) or "main" in names:
            raise InvalidSpecError(f"side outputs need names that differ from each other and from 'main', but are {names}.")
        for tag in self.side_tags:
            if tag.schema is None:
                raise InvalidSpecError(f"{tag!r} is written to by a function, so it needs a schema: OutputTag(name, schema).")

    @property
    def tags(self) -> tuple[OutputTag, ...]:
        """Late data first, then the side outputs."""
        return (*((self.late_tag,) if self.late_tag else ()), *self.side_tags)

    @property
    def effective_trigger(self) -> Trigger:
        """The trigger set, or the assigner's default."""
        return self.trigger or self.assigner.default_trigger()

    @property
    def uses_processing_time(self) -> bool:
        """Whether the program waits for the clock of the machine."""
        by_clock = not self.assigner.is_event_time and not isinstance(self.assigner, GlobalWindows)
        return by_clock or self.effective_trigger.uses_processing_time

    @property
    def reads_rows(self) -> bool:
        """Whether a part of the program sees whole rows, and not only the arguments of built-in aggregates."""
        return not self.function.aggregates or reads_elements(self.assigner, self.effective_trigger, self.evictor)

    def spec_with(self, function: WindowFunctionSpec) -> WindowSpec:
        """Return the window spec around a function."""
        return WindowSpec(self.assigner, function, self.effective_trigger, self.evictor, self.allowed_lateness, self.refine)

    def explain(self, choice: EngineChoice, program: Program) -> str:
        """Return the plan, the engine that runs its program and why, as text."""
        engine, reason = choice
        whole = combiner_refusal(program)
        lines = [
            f"windowed by {describe(self.assigner)}",
            f"  keys            {', '.join(self.keys) or 'none: one window space, one bucket'}",
            f"  event time      {self.event_time or 'none'}",
            f"  trigger         {describe(self.effective_trigger)}{'' if self.trigger else ' (default)'}",
            f"  evictor         {describe(self.evictor) if self.evictor else 'none'}",
            f"  lateness        {format_micros(self.allowed_lateness)}, refinements: {self.refine}",
            f"  late rows       {f'side output {self.late_tag.name}' if self.late_tag else 'counted and dropped'}",
            f"  function        {self._function_text()}",
            f"  engine          {engine}: {reason}",
            f"  state           {_STATE[engine]}; RocksDB behind it",
            f"  combiner        {f'off: {whole}' if whole else 'on: rows fold before the shuffle'}",
            f"  buckets         {'one a shuffle partition' if self.keys else '1'}",
            f"  time mode       {'processing time' if self.uses_processing_time else 'event time'}",
        ]
        return "\n".join(lines)

    def _function_text(self) -> str:
        if not self.function.aggregates:
            return self.function.kind
        return ", ".join(f"{name} = {aggregate}" for name, aggregate in self.function.aggregates)


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


def make_engine(program: Program) -> Engine:
    """Return the engine that runs ``program``."""
    return _COLUMNAR[program.engine].make(program) if program.engine in _COLUMNAR else RowEngine(program)


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


def describe(part: Any) -> str:
    """Return a spec as text that is the same in every process: functions by their qualified name, not their address."""
    if isinstance(part, type):
        return part.__qualname__
    if dataclasses.is_dataclass(part):
        values = [f"{column.name}={describe(getattr(part, column.name))}" for column in dataclasses.fields(part)]
        return f"{type(part).__qualname__}({', '.join(values)})"
    if callable(part) and hasattr(part, "__qualname__"):
        return _callable_name(part)
    if isinstance(part, str | int | float | bool | type(None)) or type(part).__module__ == "enum":
        return repr(part)
    return repr(part) if type(part).__repr__ is not _NO_REPR else type(part).__qualname__


def _callable_name(function: Callable[..., Any]) -> str:
    return f"{getattr(function, '__module__', '')}.{function.__qualname__}"
