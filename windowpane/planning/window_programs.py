"""Programs of windows: a plan resolved against the types of its input, with the engine that runs it.

This module reads the registry of engines; so nothing imports it that only writes a plan down (``windows``), or runs a program on
a worker.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from windowpane.engines.batch.late_rows import late_schema
from windowpane.engines.changes import Description
from windowpane.engines.program import WINDOW_END, WINDOW_START, Program, SideOutput, pane_columns
from windowpane.errors import InvalidSpecError
from windowpane.planning.description.programs import of_windows
from windowpane.planning.engines import combiner_refusal, state_text, with_engine
from windowpane.planning.windows import WindowPlan
from windowpane.windowing.aggregates import Aggregate, CombinedAggregate
from windowpane.windowing.aggregates.results import texts
from windowpane.windowing.arrow_functions import ArrowAggregateFunction, ArrowByKey, ArrowByRow, ArrowWindowFunction
from windowpane.windowing.functions import PassThrough, WindowFunctionSpec


@dataclass(frozen=True)
class InputTypes:
    """The types a plan is resolved against, as Arrow has them."""

    columns: pa.Schema  # the columns of the input that functions and late rows carry
    keys: pa.Schema  # the key columns, named as in the output
    key_columns: tuple[str, ...]  # names of the key columns in the input, where they are not those of ``keys``
    window_bound: pa.DataType  # type of window bounds
    # for built-in aggregates, the columns that hold the arguments, by output name
    argument_columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    declared: pa.Schema | None = None  # the function's declared schema, if it declared one
    side_schemas: Mapping[str, pa.Schema] = field(default_factory=dict)  # declared schema by name of side output


def compile_program(plan: WindowPlan, types: InputTypes, row_columns: Sequence[str]) -> Program:
    """Return the program of a plan; ``row_columns`` make up a row, as functions see it and as late rows carry it.

    Raises:
        AggregateTypeError: a built-in aggregate does not take the type of its argument.
        InvalidSpecError: the function's columns collide with keys or window bounds, or have no schema.
    """
    function, values, main = _function(plan, types, row_columns)
    value_types = pa.schema([types.columns.field(name) for name in values])
    program = Program(
        spec=plan.spec_with(function),
        keys=types.keys,
        key_columns=types.key_columns,
        values=values,
        main=_without_keys(
            main,
            types.keys,
            pane_columns(plan.panes.options),
            declared=types.declared is not None,
            aggregates=() if plan.function.process else [name for name, _ in plan.function.results or plan.function.aggregates],
        ),
        window_bound=types.window_bound,
        late_columns=tuple(row_columns) if plan.settings.late_tag else (),
        side_outputs=_side_outputs(plan, types, row_columns),
        order_by=plan.order_by,
        upstream=plan.upstream,
        aggregates=_resolved(plan.function.aggregates, types),
        value_types=value_types,
        arrow=plan.function.arrow,
        processes_results=plan.function.process is not None,
        key_delay=plan.key_delay,
        foresees_watermark=plan.foresees_watermark,
    )
    if program.arrow is not None:
        program = dataclasses.replace(program, spec=plan.spec_with(_by_key(program, program.arrow)))
    calls, code = plan.function.aggregates, plan.function.process or plan.function.arrow or plan.function.spec
    computed = texts(plan.function.results, dict(calls))

    def described(chosen: Program) -> Description:
        return of_windows(chosen, plan.event_time, calls, plan.reads_rows, code, computed)

    return with_engine(program, plan.settings.engine, described)


def explain(plan: WindowPlan, program: Program, buckets: str) -> str:
    """Return a plan as text, with the engine that runs its program, and why it is this one."""
    whole = combiner_refusal(program)
    late = ", those that may be late come whole" if program.late_output is not None else ""
    engine = {
        "engine": f"{program.engine}: {program.engine_reason}",
        "state": f"{state_text(program)}; RocksDB behind it",
        "combiner": f"off: {whole}" if whole else f"on: rows fold before the shuffle{late}",
    }
    return plan.explain(engine, buckets)


def _function(
    plan: WindowPlan, types: InputTypes, row_columns: Sequence[str]
) -> tuple[WindowFunctionSpec, tuple[str, ...], pa.Schema]:
    function = plan.function
    if function.aggregates:
        by_name = {column.name: column.type for column in types.columns}
        combined = CombinedAggregate.of(dict(function.aggregates), types.argument_columns, by_name)
        spec = WindowFunctionSpec.aggregate(combined, function.process)
        arguments = [name for slots in types.argument_columns.values() for name in slots]
        gaps = plan.assigner.columns if plan.merges else ()  # the rows of other sessions carry theirs beside their values
        seen = dict.fromkeys([*(row_columns if plan.reads_rows else ()), *arguments, *gaps])
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


def _without_keys(main: pa.Schema, keys: pa.Schema, panes: pa.Schema, declared: bool, aggregates: Sequence[str]) -> pa.Schema:
    """Return the function's columns less the keys, which the output has anyway; window bounds must not be declared.

    ``declared``: the user declared the columns of the function; ``aggregates`` are names of built-in ones among the output's.
    """
    bounds = {WINDOW_START, WINDOW_END}
    taken = {*main.names, *keys.names} & set(panes.names)
    if taken:
        raise InvalidSpecError(f"{sorted(taken)} are columns of the panes: give those of the keys or the function other names.")
    own = sorted((bounds | set(keys.names)) & set(aggregates))
    if own:
        raise InvalidSpecError(
            f"aggregate was given {', '.join(f'{name}=...' for name in own)}, but every output has a column of that name "
            "already, of the key or the window: give the aggregate another name."
        )
    if declared and bounds & set(main.names):
        raise InvalidSpecError(
            f"the declared schema has {sorted(bounds & set(main.names))}, which every output has already: leave them out."
        )
    return pa.schema([column for column in main if column.name not in bounds | set(keys.names)])


def _side_outputs(plan: WindowPlan, types: InputTypes, row_columns: Sequence[str]) -> tuple[SideOutput, ...]:
    outputs = []
    if plan.settings.late_tag is not None:
        own = pa.schema([types.columns.field(name) for name in row_columns])
        schema = late_schema(own, types.window_bound, has_windows=True, has_reason=plan.may_drop_finished)
        outputs.append(SideOutput(plan.settings.late_tag, schema, is_late=True))
    outputs += [SideOutput(tag, types.side_schemas[tag.name]) for tag in plan.settings.side_tags]
    return tuple(outputs)
