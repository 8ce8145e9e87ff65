"""Build rolling features: the arguments of the fluent API and a source -> one operator on a DataFrame, and its outputs."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windowpane.engines.program import LATE, MAIN
from windowpane.engines.rolling.program import AS_OF, IS_LABEL, ROLLING_COUNTERS, PointInTimeProgram, RollingProgram
from windowpane.errors import DuplicateColumnError, InvalidSpecError, MissingWatermarkError, WatermarkPolicyError
from windowpane.hidden_columns import SYSTEM, TIME, hidden
from windowpane.planning.rolling import RollingPlan, RollingRequest, aggregate_of
from windowpane.planning.rolling_programs import explain, planned
from windowpane.spark.building.expressions import column_of
from windowpane.spark.building.operator_input import SourceRows, add_clock
from windowpane.spark.building.outputs import Output, time_mark
from windowpane.spark.building.program import BuiltProgram, Operator
from windowpane.spark.building.settling import settled
from windowpane.spark.session.settings import watermark_policy
from windowpane.spark.sources.source import ROW_TIME, Source
from windowpane.spark.stages.project import Projection, quoted, refuse_compared_collations, refuse_key_collations
from windowpane.spark.stages.types import arrow_schema, spark_schema, window_bound_type
from windowpane.windowing.aggregates.results import Results, checked, texts
from windowpane.windowing.expressions import Argument, ColumnLike, Constant, Name
from windowpane.windowing.rolling import RollingCall, RollingEmit, RollingSpec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_EVENT_TIME = hidden("event_time")
_KNOWN_AT = hidden("known_at")
_HEARTBEAT = hidden("heartbeat")


def build_rolling(
    source: Source,
    request: RollingRequest,
    emit: RollingEmit,
    deletes_empty: bool = False,
    until: dt.datetime | None = None,
    corrects: bool = False,
) -> BuiltProgram:
    source = settled(source, "rolling features")
    event_time = _checked(source, request)
    if source.is_streaming and not source.has_watermark:
        raise MissingWatermarkError("rolling features have", f"wp.rolling(df, event_time={event_time!r}, watermark='10 minutes')")
    projection = Projection(source.rows)
    projection.add_system()
    key_columns, key_fields = projection.add_keys(request.keys)
    calls = calls_of(projection, request)
    read = columns_read(calls)
    late = source.columns if request.settings.late_tag else []
    for name in late:
        projection.add(name, "input", "")
    add_clock(projection, source)
    projected = projection.select()
    types = {field.name: field for field in projected.schema.fields}
    spec = request.spec(calls, emit, deletes_empty, corrects)
    plan = RollingPlan(request, spec, event_time)
    program = RollingProgram(
        spec=spec,
        keys=arrow_schema(key_fields, "by"),
        key_columns=key_columns,
        columns=arrow_schema(T.StructType(call_columns(calls, projected.schema)), "over"),
        instant=window_bound_type(source.event_type),
        late_columns=arrow_schema(T.StructType([types[name] for name in late]), "late rows") if late else None,
        until=None if source.is_streaming else _until(source, spec, until),
        upstream=source.kind,
    )
    program = planned(plan, program)
    kept = {*key_columns, *read, *late, *SYSTEM}
    arrow = program.main_schema
    main = Output("main", MAIN, arrow, spark_schema(arrow, key_fields), _selected(request, arrow), _marks(source, spec))
    return BuiltProgram(
        (source,),
        plan,
        operators=(Operator(program, SourceRows.of(source, projected, projection, key_columns, kept)),),
        outputs={
            "main": main,
            **Output.late(request.settings.late_tag, program.late_schema, source.rows.schema, source.numbered_from + LATE),
        },
        explained=partial(explain, plan, program),
        counters=ROLLING_COUNTERS,
    )


def build_point_in_time(
    source: Source,
    request: RollingRequest,
    labels: DataFrame,
    time: str,
    on: Sequence[str],
    inclusive: bool,
    known_at: str | None,
) -> BuiltProgram:
    """Return labels with the features of their keys as of their times."""
    source = settled(source, "at")
    event_time = _checked(source, request)
    given = Source.of(labels, time, None, None, "labels")
    heartbeat = source.heartbeat if source.is_streaming else None
    time, on = str(given.event_time), given.require(on, "at: on")
    if known_at is not None:
        (known_at,) = source.require([known_at], "at: known_at")
    _check_labels(source, given, request, on, known_at)
    projection = Projection(source.rows)
    calls = calls_of(projection, request)
    computed = dict(projection.columns)
    rows = [F.col(quoted(key)).alias(hidden(f"key_{number}")) for number, key in enumerate(request.keys)]
    rows += [*computed.values(), F.col(quoted(event_time)).alias(_EVENT_TIME), F.lit(False).alias(IS_LABEL)]
    if known_at is not None:
        rows.append(F.unix_micros(F.col(quoted(known_at))).alias(_KNOWN_AT))
    if heartbeat is not None:
        rows.append(F.col(quoted(heartbeat)).alias(_HEARTBEAT))
    of_labels = [F.col(quoted(key)).alias(hidden(f"key_{number}")) for number, key in enumerate(on)]
    of_labels += [F.col(quoted(name)).alias(hidden(f"label_{name}")) for name in labels.columns]
    of_labels += [F.col(quoted(time)).alias(_EVENT_TIME), F.lit(True).alias(IS_LABEL)]
    both = source.watermarked.select(*rows).unionByName(labels.select(*of_labels), allowMissingColumns=True)
    keys = tuple(hidden(f"key_{number}") for number in range(len(on)))
    carried = tuple(hidden(f"label_{name}") for name in labels.columns)
    key_fields = T.StructType([both.schema[name] for name in keys])
    spec = request.spec(calls, RollingEmit.BATCH)
    counted = f"rows up to {time}, at it included" if inclusive else f"rows strictly before {time}"
    known_when = "by event time: a row counts even if it came late" if known_at is None else f"those known by then ({known_at})"
    plan = RollingPlan(request, spec, event_time, labels=f"{counted}; {known_when}")
    known = () if known_at is None else (both.schema[_KNOWN_AT],)
    columns = arrow_schema(T.StructType([*call_columns(calls, both.schema), *known]), "over")
    program = PointInTimeProgram(
        spec=spec,
        keys=arrow_schema(key_fields, "by"),
        columns=columns,
        labels=arrow_schema(T.StructType([both.schema[name] for name in carried]), "labels"),
        label_names=_label_names(labels.columns, [name for name, _ in request.results]),
        is_inclusive=inclusive,
        known_at=None if known_at is None else _KNOWN_AT,
        is_streaming=source.is_streaming,
        late_names=None if request.settings.late_tag is None or not source.is_streaming else tuple(labels.columns),
        instant=window_bound_type(given.event_type),
    )
    program = planned(plan, program)
    refuse_key_collations(key_fields, "by")
    united = Source(both, _EVENT_TIME, heartbeat=None if heartbeat is None else _HEARTBEAT, name=source.name)
    projection = Projection(both)
    for name in both.columns:
        projection.add(name, "labels", "")
    kept = {*program.keys.names, *program.columns.names, *program.labels.names, IS_LABEL, TIME}
    names = zip(program.label_names, labels.schema.fields, strict=True)
    types = T.StructType([T.StructField(name, field.dataType) for name, field in names])
    columns = spark_schema(program.main_schema, types)
    main = Output("main", MAIN, program.main_schema, columns, _selected(request, program.main_schema))
    late = None if program.late_names is None else program.late_schema
    return BuiltProgram(
        (united,),
        plan,
        operators=(Operator(program, SourceRows.of(united, both, projection, tuple(program.keys.names), kept)),),
        outputs={"main": main, **Output.late(request.settings.late_tag, late, labels.schema)},
        explained=partial(explain, plan, program),
    )


def _marks(source: Source, spec: RollingSpec) -> dict[str, Mapping[str, object]]:
    """Return the mark of the instant of features that come out as the watermark passes it; it is no end of a window."""
    is_in_order = spec.emit in (RollingEmit.EACH, RollingEmit.TICK) and not spec.corrects
    return {AS_OF: time_mark(source, ROW_TIME, 0)} if is_in_order and source.has_watermark else {}


def _selected(request: RollingRequest, there: pa.Schema) -> Results | None:
    """Return the columns of the output where Spark computes some of the features; ``None`` for those of the operator."""
    if not texts(request.results):
        return None
    calls = [call.name for call in request.calls]
    first = there.names.index(calls[0])
    own = [(name, Name(name)) for name in there.names]
    results = [(name, checked(made, f"over {name}", there.names)) for name, made in request.results]
    return (*own[:first], *results, *own[first + len(calls) :])


# The source.


def _checked(source: Source, request: RollingRequest) -> str:
    if source.event_time is None:
        raise InvalidSpecError("rolling features need event time: name the column with wp.rolling(df, event_time=...).")
    if not request.keys:
        raise InvalidSpecError("rolling features are those of a key: name it with .by('card').")
    if source.watermark is not None and source.watermark.of_each_key:
        raise InvalidSpecError(
            f"watermark={source.watermark!r}: rolling features have one watermark for all keys. Leave per_key out."
        )
    return source.event_time


def _until(source: Source, spec: RollingSpec, until: dt.datetime | None) -> int | None:
    """Return the last watermark of a static source in microseconds; ``None`` if it has no rows."""
    if until is not None:
        aware = until if until.tzinfo is not None else until.replace(tzinfo=dt.UTC)
        return (aware - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(microseconds=1)
    if spec.emit in (RollingEmit.BATCH, RollingEmit.EACH):
        return None
    newest = source.dataframe.agg(F.max(quoted(str(source.event_time))).alias("newest")).toArrow()["newest"]
    micros = newest.cast(pa.int64())[0].as_py()
    return None if micros is None else spec.tick_from(micros)


# The calls.


def calls_of(projection: Projection, request: RollingRequest) -> list[RollingCall]:
    calls = []
    first: dict[int, int] = {}
    for count, named in enumerate(request.calls):
        number = first.setdefault(id(named.call), count)  # a call over several lengths reads the same columns
        arguments = [
            projection.add(_plain(each), f"over {named.name}", f"argument_{number}_{place}")
            for place, each in enumerate(named.call.arguments)
        ]
        condition = named.call.condition
        if condition is not None:
            condition = projection.add(_plain(condition), f"over {named.name}: filter", f"filter_{number}")
        calls.append(RollingCall(named.name, aggregate_of(named.call, arguments), request.window(named.length), condition))
    return calls


def call_columns(calls: Sequence[RollingCall], schema: T.StructType) -> list[T.StructField]:
    for call in calls:
        if call.aggregate.name != "count":
            refuse_compared_collations([schema[column] for column in call.aggregate.arguments], f"over {call.name}")
    return [schema[name] for name in columns_read(calls)]


def _plain(given: Argument) -> ColumnLike:
    if isinstance(given, Name):
        return given.name
    return given.value if isinstance(given, Constant) else column_of(given)


def columns_read(calls: Sequence[RollingCall]) -> tuple[str, ...]:
    read = [name for call in calls for name in (*call.aggregate.arguments, call.condition) if name is not None]
    return tuple(dict.fromkeys(read))


# The labels.


def _check_labels(source: Source, labels: Source, request: RollingRequest, on: Sequence[str], known_at: str | None) -> None:
    if source.is_streaming != labels.is_streaming:
        which = ("labels", "the rows of features") if labels.is_streaming else ("the rows of features", "labels")
        raise InvalidSpecError(
            f"at: {which[0]} are a stream and {which[1]} are static: both are one or the other. Read a table as a stream, or the "
            "source of a stream as a table."
        )
    if source.is_streaming:
        _check_streams(source, labels)
    if len(on) != len(request.keys):
        raise InvalidSpecError(f"at: on={list(on)!r} names the keys of labels, one for each of {list(request.keys)!r}.")
    pairs = [(source.dataframe.schema[key], labels.dataframe.schema[name]) for key, name in zip(request.keys, on, strict=True)]
    pairs.append((source.dataframe.schema[str(source.event_time)], labels.dataframe.schema[str(labels.event_time)]))
    for of_rows, of_labels in pairs:
        if of_rows.dataType != of_labels.dataType:
            raise InvalidSpecError(
                f"at: column {of_labels.name!r} of labels is {of_labels.dataType.simpleString()}, and {of_rows.name!r} of rows "
                f"is {of_rows.dataType.simpleString()}. Cast one of them."
            )
    if known_at is not None and not isinstance(source.dataframe.schema[known_at].dataType, T.TimestampType):
        kind = source.dataframe.schema[known_at].dataType.simpleString()
        raise InvalidSpecError(f"at: known_at={known_at!r} is {kind}, but the time from which on a row was known is a timestamp.")


def _check_streams(source: Source, labels: Source) -> None:
    for what, each in (("rows of features have", source), ("labels have", labels)):
        if not each.has_watermark:
            raise MissingWatermarkError(what, f"df.withWatermark({each.event_time!r}, '10 minutes')")
        if each.is_passed_on or each.upstream is not None:
            raise InvalidSpecError(
                f"at: {what} come from another operator of the same query, whose watermark is not that of the other side. Write "
                "them to a table and read that as a stream."
            )
    if source.own_watermark is not None:
        raise InvalidSpecError(
            f"watermark={source.own_watermark!r} is made by an operator of one input, and labels are a second one. Give a "
            "duration, or a strategy that Spark runs (bounded, monotonous, punctuated)."
        )
    policy = watermark_policy(source.dataframe.sparkSession)
    if policy != "min":
        raise WatermarkPolicyError(policy)


def _label_names(given: Sequence[str], features: Sequence[str]) -> tuple[str, ...]:
    """Return the names of label columns: those that are names of features get ``label_``."""
    names = tuple(f"label_{name}" if name in features else name for name in given)
    both = [*names, *features]
    twice = [name for name in dict.fromkeys(both) if both.count(name) > 1]
    if twice:
        raise DuplicateColumnError(twice, "Rename the columns of the labels.")
    return names
