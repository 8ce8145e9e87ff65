"""Build windows: a plan of the fluent API and a source -> one operator on a DataFrame, and its outputs."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windowpane.engines.program import MAIN, WINDOW_END, WINDOW_START, Program
from windowpane.errors import InvalidSpecError, UnsupportedTypeError
from windowpane.hidden_columns import FIRING_WATERMARK, PREFIX, SYSTEM, TIME
from windowpane.planning.engines import combiner_of
from windowpane.planning.window_programs import InputTypes, compile_program, explain
from windowpane.planning.windows import FunctionPlan, WindowPlan, warn_of_unfired_rows
from windowpane.spark.building.expressions import column_of, sort_of
from windowpane.spark.building.operator_input import SourceRows, add_clock, next_watermark_for
from windowpane.spark.building.outputs import Output, time_mark
from windowpane.spark.building.program import BuiltProgram, Operator
from windowpane.spark.building.settling import settled
from windowpane.spark.sources.source import WINDOW_END as END_OF_WINDOW
from windowpane.spark.sources.source import Source
from windowpane.spark.stages.project import Projection, refuse_compared_collations
from windowpane.spark.stages.types import arrow_schema, declared_schema, spark_schema, window_bound_type
from windowpane.windowing.aggregates import Aggregate, Returns
from windowpane.windowing.aggregates.results import Results, checked
from windowpane.windowing.assigners import EventTimeSessionWindows, ProcessingTimeSessionWindows, WindowAssigner
from windowpane.windowing.assigners.closed_sessions import CLOSES, WEIGHT, ClosedSessionWindows
from windowpane.windowing.assigners.session import GapColumn
from windowpane.windowing.expressions import Argument, ColumnLike, Expression, Name, OrderLike, calls_in, is_column
from windowpane.windowing.over.spec import OrderColumn

if TYPE_CHECKING:
    from pyspark.sql import Column


def build_windows(
    source: Source, plan: WindowPlan, keys: tuple[ColumnLike, ...], order_by: tuple[OrderLike, ...]
) -> BuiltProgram:
    source = settled(source, "windows", is_event_time=plan.assigner.is_event_time)
    called = tuple((name, _of_columns(name, aggregate)) for name, aggregate in plan.function.aggregates)
    own = source.own_watermark
    plan = dataclasses.replace(
        plan,
        function=dataclasses.replace(plan.function, aggregates=called),
        event_time=source.event_time,
        upstream=source.kind,
        key_delay=own.delay if own is not None and own.of_each_key else None,
        foresees_watermark=source.foresees_watermark,
    )
    _check_key_clocks(source, plan, keys)
    projection = Projection(source.rows)
    projection.add_system()
    key_columns, key_fields = projection.add_keys(keys)
    if bounds := sorted({WINDOW_START, WINDOW_END} & set(key_fields.names)):
        raise InvalidSpecError(f"key_by was given {bounds}, which every output has of its windows: rename the column first.")
    arguments = projection.add_arguments(plan.function)
    plan = dataclasses.replace(plan, assigner=_with_columns(projection, plan))
    order = order_columns(projection, order_by)
    hidden = set(SYSTEM)
    needs_rows = plan.reads_rows or plan.settings.late_tag is not None
    rows = tuple(source.columns) if needs_rows else ()
    for name in rows:
        if TIME not in projection.columns or name in source.rows.columns:
            projection.add(name, "input", "")
    add_clock(projection, source)
    projected = projection.select()
    for name, aggregate in plan.function.aggregates:
        first = aggregate.definition.compared_from
        read = () if first is None else arguments[name][first:]
        refuse_compared_collations([projected.schema[column] for column in read], f"aggregate {name}={aggregate}")
    types = InputTypes(
        columns=arrow_schema(T.StructType([each for each in projected.schema if each.name not in hidden]), "input"),
        keys=arrow_schema(key_fields, "key_by"),
        key_columns=key_columns,
        window_bound=window_bound_type(source.event_type),
        argument_columns=arguments,
        declared=_declared(source, plan),
        side_schemas=_side_schemas(source, plan),
    )
    plan = dataclasses.replace(plan, keys=tuple(key_fields.names), order_by=order)
    warn_of_unfired_rows(plan.trigger, plan.unfired_text)
    program = compile_program(plan, types, rows)
    delay = None if source.spark_watermark is None or source.watermark is None else source.watermark.delay
    program = dataclasses.replace(program, description={**program.description, "watermark delay": delay})
    _check_clock(source, plan)
    kept = {
        *plan.assigner.columns,
        *program.values,
        *program.late_columns,
        *program.key_columns,
        *(column.name for column in program.order_by),
    }
    combiner = combiner_of(program)
    next_watermark = next_watermark_for(combiner, source)
    options = {"combiner": combiner, "next_watermark": next_watermark}
    reads = SourceRows.of(source, projected, projection, program.key_columns, kept | hidden, **options)
    return BuiltProgram(
        (source,),
        plan,
        operators=(Operator(program, reads, next_watermark=next_watermark),),
        outputs=_outputs(
            source, plan, program, T.StructType([*key_fields, *_results(plan.function, arguments, projected.schema)])
        ),
        explained=partial(explain, plan, program),
        held_back=_held_back(plan),
    )


def _of_columns(name: str, aggregate: Aggregate) -> Aggregate:
    """Return an aggregate with Columns in place of arguments that are expressions."""
    if not any(isinstance(each, Expression) for each in aggregate.arguments):
        return aggregate
    if any(isinstance(each, Expression) and any(calls_in(each)) for each in aggregate.arguments):
        raise InvalidSpecError(
            f"aggregate {name}={aggregate!r}: an aggregate inside another. Windows over results have one: "
            ".aggregate(n=wp.count()).window_all(...).aggregate(most=wp.max('n'))."
        )
    arguments = (each.name if isinstance(each, Name) else column_of(each) for each in aggregate.arguments)
    return Aggregate(aggregate.name, tuple(arguments), aggregate.parameters)


def _held_back(plan: WindowPlan) -> int | None:
    """Return by how many microseconds results may be changed behind the watermark; a result that stays is none that changes."""
    if not plan.retracts:
        return 0
    return plan.settings.allowed_lateness if plan.assigner.is_event_time and plan.assigner.has_ends else None


def order_columns(projection: Projection, order_by: Sequence[OrderLike]) -> tuple[OrderColumn, ...]:
    sorts = [sort_of(item) for item in order_by]
    by = [sort.expression.name if isinstance(sort.expression, Name) else column_of(sort.expression) for sort in sorts]
    names = [projection.add(column, "order_by", f"order_{number}") for number, column in enumerate(by)]
    schema = projection.select().schema if names else T.StructType([])
    for item, name in zip(order_by, names, strict=True):
        refuse_compared_collations([schema[name]], "order_by")
        if not isinstance(schema[name].dataType, T.AtomicType):
            kind = schema[name].dataType.simpleString()
            raise UnsupportedTypeError(f"order_by: {item!r} is {kind}, which has no order here. Order by a field of it.")
    found = zip(names, sorts, strict=True)
    return tuple(OrderColumn(name, sort.descending, nulls_first=sort.nulls_first) for name, sort in found)


# What says how sessions end.

_WHOLE = (T.ByteType, T.ShortType, T.IntegerType, T.LongType)


def _with_columns(projection: Projection, plan: WindowPlan) -> WindowAssigner:
    """Select the columns that an assigner reads, and return it with their names in place of Columns."""
    assigner = plan.assigner
    if isinstance(assigner, ClosedSessionWindows):
        return _with_closing_columns(projection, assigner)
    if isinstance(assigner, EventTimeSessionWindows | ProcessingTimeSessionWindows) and isinstance(assigner.gap, GapColumn):
        return dataclasses.replace(assigner, gap=_gap_column(projection, plan, assigner.gap.column))
    return assigner


def _gap_column(projection: Projection, plan: WindowPlan, given: Argument) -> GapColumn:
    """Select the gaps of rows.

    Raises:
        InvalidSpecError: they are neither intervals nor texts, or a function would see a column that Spark computes.
    """
    named = given.name if isinstance(given, Name) else given
    column = named if isinstance(named, str) else _column("with_dynamic_gap", named)
    if not isinstance(column, str) and plan.reads_rows:
        raise InvalidSpecError(
            f"with_dynamic_gap({given!r}): a part of the program sees whole rows, so the gap is to be one of their columns: "
            "df.withColumn('gap', ...), and with_dynamic_gap('gap')."
        )
    name = projection.add(column, "with_dynamic_gap", "gap")
    kind = projection.select().schema[name].dataType
    if not isinstance(kind, T.DayTimeIntervalType | T.StringType):
        raise InvalidSpecError(
            f"with_dynamic_gap({given!r}) is {kind.simpleString()}, and a gap is an interval or a text such as '5 minutes'. "
            "Seconds become one with F.make_dt_interval(secs=...)."
        )
    return GapColumn(name)


def _with_closing_columns(projection: Projection, assigner: ClosedSessionWindows) -> ClosedSessionWindows:
    """Select the columns of an assigner, and return it with texts in place of Columns: these do not travel to workers.

    Raises:
        InvalidSpecError: a condition that is no boolean, or a size of a column that has no whole numbers.
    """
    condition, size = assigner.condition, assigner.size
    if condition is not None:
        column = F.expr(condition) if isinstance(condition, str) else _column("closed_by", condition)
        kind = _type(projection, column)
        if not isinstance(kind, T.BooleanType):
            raise InvalidSpecError(f"closed_by({condition!r}) is {kind.simpleString()}, and a condition is true or false.")
        projection.add(column, "closed_by", CLOSES.removeprefix(PREFIX))
        condition = _text(condition)
    if size is not None:
        column = _column("closed_by", size[0])
        kind = _type(projection, column)
        if not isinstance(kind, _WHOLE):
            raise InvalidSpecError(
                f"closed_by(size={size!r}): the column is {kind.simpleString()}, and sums that close sessions are of whole "
                "numbers. Cast it to bigint, in a smaller unit where it has fractions."
            )
        projection.add(column.cast("long"), "closed_by size", WEIGHT.removeprefix(PREFIX))
        size = (_text(size[0]), size[1])
    return dataclasses.replace(assigner, condition=condition, size=size)


def _column(role: str, given: object) -> Column:
    if not is_column(given) and not isinstance(given, str | Expression):
        raise InvalidSpecError(f"{role} was given {given!r}, which is neither text nor a Column.")
    return column_of(given)


def _type(projection: Projection, column: Column) -> T.DataType:
    return projection.dataframe.select(column).schema[0].dataType


def _text(given: object) -> str:
    return given if isinstance(given, str) else str(given) if is_column(given) else repr(given)


# Types and clock.


def _declared(source: Source, plan: WindowPlan) -> pa.Schema | None:
    function = plan.function
    if function.schema is None:
        return None
    return arrow_schema(declared_schema(source.dataframe.sparkSession, function.schema, function.kind), function.kind)


def _side_schemas(source: Source, plan: WindowPlan) -> dict[str, pa.Schema]:
    schemas = {}
    for tag in plan.settings.side_tags:
        declared = declared_schema(source.dataframe.sparkSession, tag.schema, f"side output {tag.name!r}")
        schemas[tag.name] = arrow_schema(declared, tag.name)
    return schemas


def _check_clock(source: Source, plan: WindowPlan) -> None:
    if not plan.assigner.is_event_time:
        return
    if source.event_time is None and source.upstream is None:
        raise InvalidSpecError(
            f"{plan.assigner!r} assigns windows by event time: name the column with wp.stream(df, event_time=...)."
        )
    if source.is_streaming and not source.has_watermark:
        raise InvalidSpecError(
            "a stream in event-time windows needs a watermark, else no window ever closes: "
            f"wp.stream(df, event_time={source.event_time!r}, watermark='10 minutes')."
        )


def _check_key_clocks(source: Source, plan: WindowPlan, keys: tuple[ColumnLike, ...]) -> None:
    """Refuse a watermark of each key where rows have none, or where rows that move it would not reach it."""
    if plan.key_delay is None:
        return
    if isinstance(plan.assigner, ClosedSessionWindows):
        raise InvalidSpecError(
            f"watermark={source.watermark!r}: sessions that closed_by ends are cut by the one watermark of all keys. Leave "
            "per_key out."
        )
    if not keys:
        raise InvalidSpecError(
            f"watermark={source.watermark!r}: without key_by there is no key to have a watermark of its own. Leave per_key out."
        )
    refuse_heartbeats_of_keys(source)


def refuse_heartbeats_of_keys(source: Source) -> None:
    if source.heartbeat is not None:
        raise InvalidSpecError(
            f"watermark={source.watermark!r}: heartbeats speak for the whole stream, and the watermark of a key is moved by its "
            "own rows alone. Leave heartbeat= out."
        )


# The outputs.


def _results(function: FunctionPlan, arguments: Mapping[str, Sequence[str]], given: T.StructType) -> list[T.StructField]:
    """Return the results of aggregates that are values of the first argument, or lists of them, with its type of Spark's."""
    fields: list[T.StructField] = []
    if function.schema is not None:
        return fields
    for name, aggregate in function.aggregates:
        if aggregate.definition.returns is not Returns.OWN:
            kind = given[arguments[name][0]].dataType
            fields.append(T.StructField(name, kind if aggregate.definition.returns is Returns.VALUE else T.ArrayType(kind)))
    return fields


def _selected(plan: WindowPlan, program: Program) -> Results | None:
    """Return the columns of results where Spark computes some of the aggregates; ``None`` for those of the operator."""
    if not plan.function.results:
        return None
    bounds = [*program.keys.names, WINDOW_START, WINDOW_END]
    own = [(name, Name(name)) for name in (*bounds, *program.pane_columns.names)]
    there = [name for name in program.main_schema.names if name not in (TIME, FIRING_WATERMARK)]
    results = [(name, checked(made, f"aggregate {name}", there)) for name, made in plan.function.results]
    return (*own[: len(bounds)], *results, *own[len(bounds) :])


def _outputs(source: Source, plan: WindowPlan, program: Program, known: T.StructType) -> dict[str, Output]:
    """Return the outputs by name: ``main`` first, then late data and side outputs.

    Columns that come from the input keep its types of Spark's, and so do keys and what is ``known`` of the results: Arrow knows
    no char(3), no collation and no interval of hours.
    """
    rows = source.rows.schema
    returns_rows = plan.function.kind == "reduce" and plan.function.schema is None
    own_rows = [each for each in rows.fields if each.name not in (WINDOW_START, WINDOW_END)] if returns_rows else []
    main = T.StructType([*own_rows, *known.fields])
    behind = _held_back(plan)
    has_time = behind is not None and plan.assigner.has_ends
    marks = {WINDOW_END: time_mark(source, END_OF_WINDOW, behind or 0)} if has_time else {}
    columns = spark_schema(program.main_schema, main)
    outputs = {"main": Output("main", MAIN, program.main_schema, columns, _selected(plan, program), marks=marks)}
    for number, side in enumerate(program.side_outputs, start=source.numbered_from + 1):
        columns = spark_schema(side.schema, rows if side.is_late else None)
        outputs[side.tag.name] = Output(side.tag.name, number, side.schema, columns)
    return outputs
