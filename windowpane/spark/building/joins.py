"""Build joins: a request of the fluent API and two sources -> one operator that reads both, and its outputs."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windowpane.engines.join.program import JOIN_COUNTERS, LATE, JoinProgram, JoinSide, passed_name
from windowpane.engines.program import MAIN, WINDOW_END, Upstream
from windowpane.errors import (
    ChangelogInputError,
    InvalidSpecError,
    KeyTypeError,
    MissingWatermarkError,
    MixedBoundednessError,
    WatermarkPolicyError,
)
from windowpane.hidden_columns import TIME, hidden
from windowpane.kernels.keys.ordered_codes import is_sortable
from windowpane.planning.join_programs import compile_join, explain
from windowpane.planning.joins import JoinPlan, JoinRequest, side_tags
from windowpane.planning.windows import warn_of_unfired_rows
from windowpane.spark.building.join_names import JoinNames
from windowpane.spark.building.operator_input import BothSides, SourceRows, add_clock
from windowpane.spark.building.outputs import Output
from windowpane.spark.building.program import BuiltProgram, Operator
from windowpane.spark.building.settling import settled
from windowpane.spark.internals.query_plans import metrics_names
from windowpane.spark.session.column_names import column_named, folding
from windowpane.spark.session.settings import watermark_policy
from windowpane.spark.sources.source import DELAY, NAME, PASSED_ON, ROW_TIME, Source
from windowpane.spark.sources.source import WINDOW_END as END_OF_WINDOW
from windowpane.spark.stages.project import Projection, quoted, refuse_compared_collations, refuse_key_collations
from windowpane.spark.stages.types import arrow_schema, declared_schema, spark_schema, window_bound_type
from windowpane.windowing.expressions import SIDES, Expression, Name, Side, SideName, replaced, sides_in
from windowpane.windowing.joins import ArrivalMatch, AsOfMatch, IntervalMatch, Match, WindowMatch, uses_event_time
from windowpane.windowing.outputs import CHANGE_TYPE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_WIDENED = (T.NumericType, T.DateType, T.TimestampType, T.TimestampNTZType)
"""Types of which Spark widens one to another without loss of what a value means."""


def build_join(left: Source, right: Source, request: JoinRequest) -> BuiltProgram:
    left = _of_rows("left", left, request.match)
    if not isinstance(request.match, AsOfMatch | ArrivalMatch):  # these take versions that a changelog ends
        right = _of_rows("right", right, request.match)
    sources: dict[Side, Source] = {"left": left, "right": right}
    request = _spelled(request, sources)
    _check_sources(sources, request)
    watermarks = left.watermark_words, right.watermark_words
    plan = JoinPlan(request, (str(left.event_time), str(right.event_time)), left.is_streaming, watermarks)
    warn_of_unfired_rows(request.trigger, plan.unfired_text)
    unseen = {side: {source.heartbeat, CHANGE_TYPE, _UNITED} for side, source in sources.items()}
    visible = {side: [each for each in source.dataframe.columns if each not in unseen[side]] for side, source in sources.items()}
    spark, declared = left.dataframe.sparkSession, T.StructType([])
    if request.co_group is not None:
        declared = declared_schema(spark, request.co_group[1], "co_group")
    names = JoinNames(request, visible, declared.names, folding(spark))
    keys = tuple(_key_type(sources, *pair) for pair in request.on)
    sides = {side: _Side.of(side, sources[side], names, keys, request) for side in SIDES}
    is_passed = any(source.kind is not Upstream.SOURCE for source in sources.values())
    program = compile_join(
        plan,
        sides["left"].program,
        sides["right"].program,
        window_bound_type(left.event_type),
        Upstream.WINDOW if is_passed else Upstream.SOURCE,
        None if request.co_group is None else arrow_schema(declared, "co_group"),
    )
    reads = BothSides(sides["left"].rows, sides["right"].rows)
    named = dataclasses.replace(left, name=_name(left, right))
    return BuiltProgram(
        (named, right),
        plan,
        operators=(Operator(program, reads),),
        outputs=_outputs(sources, request, program, names, sides, declared),
        explained=partial(explain, plan, program),
        held_back=program.held_back,
        counters=JOIN_COUNTERS,
    )


# The sources.


def _of_rows(side: Side, source: Source, match: Match) -> Source:
    """Return a side of rows that stay."""
    if CHANGE_TYPE in source.dataframe.columns and not uses_event_time(match):
        raise ChangelogInputError(side, CHANGE_TYPE)
    return settled(source, f"the {side} side of the join", role=f"{side}_settled")


_UNITED = hidden("united")  # The event time of rows of several right sides


def united(sources: Mapping[str, Source], keys: Sequence[str]) -> Source:
    """Return the rows of several right sides as one: keys, event time, and a struct for each side, NULL in rows of others."""
    found: dict[str, tuple[tuple[str, ...], T.StructType]] = {}
    for name, source in sources.items():
        _check_united(name, source, next(iter(sources.values())), keys)
        own = source.require(keys, f"on: right side {name!r}")
        found[name] = own, T.StructType([field for field in source.dataframe.schema.fields if field.name not in own])

    def part(name: str, source: Source) -> DataFrame:
        own, kind = found[name]
        values = F.struct(*[F.col(quoted(each)) for each in kind.fieldNames()])
        columns = [(values if each == name else F.lit(None).cast(of_each)).alias(each) for each, (_, of_each) in found.items()]
        named = [F.col(quoted(column)).alias(key) for column, key in zip(own, keys, strict=True)]
        return source.watermarked.select(*named, F.col(quoted(str(source.event_time))).alias(_UNITED), *columns)

    rows = reduce(lambda one, other: one.unionByName(other), (part(*each) for each in sources.items()))
    return Source.of(rows, _UNITED, None, None, next(iter(sources.values())).name)


def _check_united(name: str, source: Source, first: Source, keys: Sequence[str]) -> None:
    refused = {
        "no event time": source.event_time is None,
        "no watermark": source.is_streaming and not source.has_watermark,
        "a watermark that an operator makes": source.own_watermark is not None,
        "an event time that an operator passes on": source.upstream is not None or source.is_passed_on,
        f"an event time of the type {_shown(source.event_type)}": source.event_type != first.event_type,
        f"a column {CHANGE_TYPE!r}": CHANGE_TYPE in source.dataframe.columns,
        "heartbeats": source.heartbeat is not None,
        "the name of a key": name in keys,
        f"{'a stream' if source.is_streaming else 'static rows'}, unlike the first": source.is_streaming != first.is_streaming,
    }
    if has := [what for what, is_so in refused.items() if is_so]:
        raise InvalidSpecError(f"as_of: one of several right sides, {name!r}, has {has[0]}: join it by itself.")


def _spelled(request: JoinRequest, sources: Mapping[Side, Source]) -> JoinRequest:
    """Return a request with the columns of both sides as these spell them."""

    def leaf(part: Expression) -> Expression | None:
        return SideName(part.side, named(part.side, part.name)) if isinstance(part, SideName) else None

    def named(side: Side, name: str) -> str:
        return column_named(sources[side].dataframe, name) or name

    match, condition = request.match, request.condition
    if isinstance(match, IntervalMatch) and match.upper_column is not None:
        match = dataclasses.replace(match, upper_column=named("left", match.upper_column))
    if isinstance(match, AsOfMatch) and match.tolerance_of is not None:
        match = dataclasses.replace(match, tolerance_of=named("left", match.tolerance_of))
    if isinstance(match, AsOfMatch) and match.sequence is not None:
        match = dataclasses.replace(match, sequence=named("right", match.sequence))
    return dataclasses.replace(
        request,
        on=tuple((named("left", one), named("right", other)) for one, other in request.on),
        match=match,
        condition=None if condition is None else replaced(condition, leaf),
        columns=tuple((name, None if given is None else replaced(given, leaf)) for name, given in request.columns),
    )


def _check_sources(sources: Mapping[Side, Source], request: JoinRequest) -> None:
    for side, source in sources.items():
        source.require([pair[SIDES.index(side)] for pair in request.on], f"on: {side} side")
        if source.own_watermark is not None:
            raise InvalidSpecError(
                f"the {side} side has watermark={source.own_watermark!r}, which an operator of one input makes itself. A join "
                "goes by Spark's watermark of both inputs: give the side a duration, or a strategy that Spark runs (bounded, "
                "monotonous, punctuated)."
            )
    right = sources["right"].dataframe
    if CHANGE_TYPE in right.columns and not isinstance(right.schema[CHANGE_TYPE].dataType, T.StringType):
        kind = right.schema[CHANGE_TYPE].dataType.simpleString()
        raise InvalidSpecError(f"{CHANGE_TYPE!r} of the right side is {kind}, but a changelog has it as string.")
    static = [side for side, source in sources.items() if not source.is_streaming]
    if len(static) == 1:
        raise MixedBoundednessError(static[0])
    if uses_event_time(request.match):
        _check_clocks(sources, request.match, static=bool(static))


def _check_clocks(sources: Mapping[Side, Source], match: Match, *, static: bool) -> None:
    for side, source in sources.items():
        if not static and not source.has_watermark:
            event_time = source.event_time or "at"
            raise MissingWatermarkError(
                f"the {side} side of the join has", f"wp.stream(df, event_time={event_time!r}, watermark='10 minutes')"
            )
        if source.event_time is None:
            raise InvalidSpecError(
                f"the {side} side of the join has no event time: name the column with wp.stream(df, event_time=...)."
            )
    left, right = sources["left"], sources["right"]
    if left.event_type != right.event_type:
        raise InvalidSpecError(
            f"the event time of the left side, {left.event_time!r}, is {_shown(left.event_type)}, that of the right side, "
            f"{right.event_time!r}, is {_shown(right.event_type)}: cast one of them to the type of the other before the join."
        )
    _check_upper(left, match)
    if isinstance(match, AsOfMatch):
        _check_as_of(left, right, match)
    policy = watermark_policy(left.dataframe.sparkSession)
    if not static and policy != "min":
        raise WatermarkPolicyError(policy)


def _check_upper(left: Source, match: Match) -> None:
    """Refuse an upper bound of each row that is no time as the event time is."""
    name = match.upper_column if isinstance(match, IntervalMatch) else None
    if name is None:
        return
    left.require([name], "within: left side")
    kind = left.dataframe.schema[name].dataType
    if kind != left.event_type:
        raise InvalidSpecError(
            f"within: the upper bound left({name!r}) is {_shown(kind)}, but the event time of the left side is "
            f"{_shown(left.event_type)}: cast it to that before the join."
        )


def _check_as_of(left: Source, right: Source, match: AsOfMatch) -> None:
    if match.tolerance_of is not None:
        left.require([match.tolerance_of], "match: tolerance: left side")
        kind = left.dataframe.schema[match.tolerance_of].dataType
        if not isinstance(kind, T.DayTimeIntervalType):
            raise InvalidSpecError(
                f"match: the tolerance left({match.tolerance_of!r}) is {_shown(kind)}, but it is an interval of days to seconds, "
                "such as F.make_dt_interval(secs='max_age')."
            )
    if match.sequence is not None:
        right.require([match.sequence], "match: sequence: right side")
        field = right.dataframe.schema[match.sequence]
        refuse_compared_collations([field], "match: sequence")
        if not is_sortable(arrow_schema(T.StructType([field]), "match: sequence").field(0).type):
            raise InvalidSpecError(f"match: sequence={match.sequence!r} is {_shown(field.dataType)}, which has no order.")


def _shown(kind: T.DataType | None) -> str:
    return "nothing" if kind is None else str(kind.simpleString())


def _name(left: Source, right: Source) -> str:
    """Return the name of the counters: the left source's, or one that no operator before the join has."""
    if not left.name.startswith(NAME) or not left.is_streaming:
        return left.name
    taken = {*metrics_names(left.dataframe), *metrics_names(right.dataframe)}
    return left.name if left.name not in taken else f"{left.name}_join"


def _key_type(sources: Mapping[Side, Source], of_left: str, of_right: str) -> T.DataType:
    left: T.StructField = sources["left"].dataframe.schema[of_left]
    right: T.StructField = sources["right"].dataframe.schema[of_right]
    if left.dataType == right.dataType:
        return left.dataType
    refused = KeyTypeError(left.name, left.dataType.simpleString(), right.name, right.dataType.simpleString())
    are_numbers = [isinstance(each.dataType, T.NumericType) for each in (left, right)]
    if not all(isinstance(each.dataType, _WIDENED) for each in (left, right)) or len(set(are_numbers)) > 1:
        raise refused
    none = F.lit(None)
    both = F.coalesce(none.cast(left.dataType), none.cast(right.dataType)).alias("key")
    found: T.DataType = sources["left"].dataframe.sparkSession.range(0).select(both).schema["key"].dataType
    return found


# A side.


@dataclass(frozen=True)
class _Side:
    rows: SourceRows
    program: JoinSide
    schema: T.StructType

    @classmethod
    def of(cls, side: Side, source: Source, names: JoinNames, types: tuple[T.DataType, ...], request: JoinRequest) -> _Side:
        projection = Projection(source.rows)
        keys = tuple(pair[SIDES.index(side)] for pair in request.on)
        carried = list(names.carried[side])
        if side == "right" and CHANGE_TYPE in source.dataframe.columns:
            carried.append(CHANGE_TYPE)
        for name in carried:
            projection.add(name, f"{side} side", "")
        given = projection.dataframe.schema
        for name, kind in zip(keys, types, strict=True):
            if given[name].dataType != kind:
                projection.columns[name] = F.col(quoted(name)).cast(kind).alias(name)
                projection.computed.append(f"key {name!r} as {kind.simpleString()}")
        key_fields = T.StructType([T.StructField(name, kind) for name, kind in zip(keys, types, strict=True)])
        refuse_key_collations(key_fields, "on")
        add_clock(projection, source)
        projected = projection.select()
        schema = T.StructType([projected.schema[name] for name in carried])
        tested = () if request.condition is None else sides_in(request.condition)
        refuse_compared_collations([schema[each.name] for each in tested if each.side == side], f"condition: {side} side")
        has_late_output = side in side_tags(request)
        program = JoinSide(keys, arrow_schema(schema, f"{side} side"), names.passed[side], has_late_output)
        return cls(SourceRows.of(source, projected, projection, keys, {*carried, TIME}, side=side), program, schema)


# The outputs.


def _outputs(
    sources: Mapping[Side, Source],
    request: JoinRequest,
    program: JoinProgram,
    names: JoinNames,
    sides: Mapping[Side, _Side],
    declared: T.StructType,
) -> dict[str, Output]:
    known = [
        T.StructField(passed_name(side, name), sides[side].schema[name].dataType) for side in SIDES for name in names.passed[side]
    ]
    changes = ((CHANGE_TYPE, Name(CHANGE_TYPE)),) if program.retracts else ()
    types = spark_schema(program.main_schema, T.StructType([*known, *declared.fields]))
    marks = _marks(sources, program, names)
    outputs = {"main": Output("main", MAIN, program.main_schema, types, (*names.selected, *changes), marks)}
    for side, tag in side_tags(request).items():
        late = program.late_schema(side)
        late = pa.schema([each for each in late if each.name != CHANGE_TYPE]) if side == "right" else late
        outputs |= Output.late(tag, late, sides[side].schema, LATE[side])
    return outputs


def _marks(sources: Mapping[Side, Source], program: JoinProgram, names: JoinNames) -> dict[str, dict[str, object]]:
    """Return the metadata of the columns that have the event time of results: nothing where no watermark is passed on."""
    if program.held_back is None:
        return {}
    delay, is_windowed = max(source.delay for source in sources.values()), isinstance(program.match, WindowMatch)
    found: dict[str, tuple[str, int | None]] = {WINDOW_END: (END_OF_WINDOW, program.held_back)} if is_windowed else {}
    for side, source in () if is_windowed else sources.items():
        behind = program.held_back if side == "left" else None
        if isinstance(program.match, IntervalMatch):
            behind = dataclasses.replace(program, time_of=side).held_back
        kind = END_OF_WINDOW if source.is_window_end else ROW_TIME
        found[passed_name(side, str(source.event_time))] = kind, behind
    marks = {}
    for name, expression in names.selected:
        kind, behind = found.get(expression.name, ("", None)) if isinstance(expression, Name) else ("", None)
        if behind is not None:
            marks[name] = {PASSED_ON: kind, DELAY: delay + behind}
    return marks
