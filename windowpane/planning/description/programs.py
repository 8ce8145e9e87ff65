"""A program as a description: parts by the names that people use, each JSON; and the program that a description is of.

A restart compares descriptions part by part (``engines.changes``), so a part holds what state and results depend on. What is
made of other parts, or may be another one in each run, is in ``resolved``, which nothing compares: it is there to read back. What
changes from run to run beyond that (late outputs, the order of a batch's rows) is not described.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from windowpane.arrays.values import JsonValue
from windowpane.engines.changes import FORMAT, Description
from windowpane.engines.deduplication.program import DeduplicationProgram, Keep
from windowpane.engines.filling.program import FillingProgram
from windowpane.engines.join.grouping import CoGroup
from windowpane.engines.join.program import JoinProgram, JoinSide
from windowpane.engines.join.windows import corrects_on_columns
from windowpane.engines.over.program import Emit, OverProgram
from windowpane.engines.patterns.program import PatternProgram
from windowpane.engines.program import BucketProgram, Program
from windowpane.engines.rolling.program import PointInTimeProgram, RollingProgram
from windowpane.engines.settling.program import SettlingProgram
from windowpane.planning.description.values import read, read_columns, read_type, written, written_columns, written_type
from windowpane.windowing.aggregates import Aggregate, CombinedAggregate
from windowpane.windowing.arrow_functions import ArrowAggregateFunction, ArrowWindowFunction
from windowpane.windowing.functions import PassThrough, WindowFunctionSpec
from windowpane.windowing.over.spec import OverCall, OverSpec
from windowpane.windowing.rolling import RollingCall, RollingEmit, RollingSpec
from windowpane.windowing.spec import WindowSpec


def _described(kind: str, program: BucketProgram, **parts: JsonValue) -> Description:
    named = {name.replace("_", " "): part for name, part in parts.items()}
    return {"kind": kind, "format": FORMAT, "engine": program.engine, **named}


def read_back(description: Description) -> BucketProgram:
    """Return the program that a description is of; it takes its rows from a source, and has no late output.

    Raises:
        UnreadableDescriptionError: a part of the user's own that is not found by its name.
    """
    return replace(_READERS[description["kind"]](description), engine=description["engine"], description=description)


# Windows.


def of_windows(
    program: Program,
    event_time: str | None,
    calls: Sequence[tuple[str, Aggregate]],
    reads_rows: bool,
    code: object,
    results: Sequence[str] = (),
) -> Description:
    """Return the description of a program of windows, whose ``calls`` are the built-in aggregates as the user wrote them.

    ``reads_rows``: a part sees whole rows, and not only the arguments of aggregates. ``code`` is the function of the user's,
    ``results`` what Spark computes of the calls, as text.
    """
    spec = program.spec
    resolved = zip(calls, program.aggregates, strict=True)
    return _described(
        "windows",
        program,
        keys=written_columns(program.keys),
        event_time=event_time,
        assigner=written(spec.assigner),
        trigger=written(spec.trigger),
        evictor=written(spec.evictor),
        allowed_lateness=spec.allowed_lateness,
        refinements=spec.refine,
        panes=written(spec.panes),
        watermark_of_each_key=program.key_delay,
        function=spec.function.kind if program.arrow is None or program.aggregates else program_kind(program),
        code=written(code),
        calls=[_call(name, call, slots, program.value_types) for (name, call), (_, _, slots) in resolved],
        columns=written_columns(program.value_types) if reads_rows else [],
        **({"results": list(results)} if results else {}),
        resolved={
            "key columns": list(program.key_columns),
            "values": written_columns(program.value_types),
            "results": written_columns(program.main),
            "bound": written_type(program.window_bound),
            "process": program.processes_results,
        },
    )


def program_kind(program: Program) -> str:
    """Return the word for the function on Arrow tables of a program."""
    return program.arrow.kind if isinstance(program.arrow, ArrowWindowFunction) else "aggregate in Arrow"


def _call(name: str, call: Aggregate, slots: Sequence[str], types: pa.Schema) -> JsonValue:
    return {
        "name": name,
        "function": call.name,
        "arguments": [each if isinstance(each, str) else str(each) for each in call.arguments],
        "parameters": [[key, written(value)] for key, value in call.parameters],
        "types": [written_type(types.field(slot).type) for slot in slots],
        "reads": list(slots),
    }


def _windows(parts: Description) -> Program:
    more = parts["resolved"]
    types = read_columns(more["values"])
    calls = [(each["name"], _aggregate(each, each["reads"])) for each in parts["calls"]]
    arrow: ArrowAggregateFunction | ArrowWindowFunction | None = None
    if calls:
        slots = {each["name"]: tuple(each["reads"]) for each in parts["calls"]}
        combined = CombinedAggregate.of(dict(calls), slots, {field.name: field.type for field in types})
        function = WindowFunctionSpec.aggregate(combined, read(parts["code"]))
    else:
        code = read(parts["code"])
        arrow = code if isinstance(code, ArrowAggregateFunction | ArrowWindowFunction) else None
        function = WindowFunctionSpec(parts["function"], PassThrough()) if arrow is not None else code
    spec = WindowSpec(
        read(parts["assigner"]),
        function,
        read(parts["trigger"]),
        read(parts["evictor"]),
        parts["allowed lateness"],
        parts["refinements"],
        read(parts["panes"]),
    )
    return Program(
        spec=spec,
        keys=read_columns(parts["keys"]),
        key_columns=tuple(more["key columns"]),
        values=tuple(types.names),
        main=read_columns(more["results"]),
        window_bound=read_type(more["bound"]),
        aggregates=tuple((name, call, call.arguments) for name, call in calls),
        value_types=types,
        arrow=arrow,
        processes_results=more["process"],
        key_delay=parts["watermark of each key"],
    )


def _aggregate(call: JsonValue, arguments: Sequence[str]) -> Aggregate:
    return Aggregate(call["function"], tuple(arguments), tuple((name, read(value)) for name, value in call["parameters"]))


# OVER windows.


def of_over(program: OverProgram) -> Description:
    """Return the description of an OVER window."""
    spec = program.spec
    return _described(
        "over",
        program,
        partition_by=list(spec.partition_by),
        order_by=written(spec.order_by),
        row_key=list(spec.key),
        emit_on=program.mode.value,
        event_time=program.time_column,
        input="append-only" if program.append_only else "a changelog",
        allowed_lateness=program.allowed_lateness,
        retention=program.retain,
        **({} if program.key_delay is None else {"watermark_of_each_key": program.key_delay}),
        calls=[
            {"name": output.name, **written(call), "type": written_type(output.type)}
            for call, output in zip(spec.calls, program.outputs, strict=True)
        ],
        columns=written_columns(program.columns),
    )


def _over(parts: Description) -> OverProgram:
    own = ("name", "type")
    calls: list[OverCall] = [read({key: part for key, part in each.items() if key not in own}) for each in parts["calls"]]
    return OverProgram(
        spec=OverSpec(tuple(parts["partition by"]), read(parts["order by"]), tuple(parts["row key"]), tuple(calls)),
        columns=read_columns(parts["columns"]),
        outputs=read_columns(parts["calls"]),
        mode=Emit(parts["emit on"]),
        time_column=parts["event time"],
        allowed_lateness=parts["allowed lateness"],
        append_only=parts["input"] == "append-only",
        retain=parts["retention"],
        key_delay=parts.get("watermark of each key"),
    )


# Joins.


def of_join(program: JoinProgram, event_times: Sequence[str]) -> Description:
    """Return the description of a join, given the event-time columns of both sides."""
    group = program.co_group
    return _described(
        "join",
        program,
        join=program.how,
        match=written(program.match),
        event_time=list(event_times),
        left_keys=list(program.left.keys),
        right_keys=list(program.right.keys),
        null_safe=program.null_safe,
        allowed_lateness=program.allowed_lateness,
        condition=written(program.condition),
        emit_on="update" if program.updates else "close",
        corrections="from rows of earlier batches" if corrects_on_columns(program) else None,
        function=group and group.kind,
        code=group and written(group.function),
        returns=group and written_columns(group.results),
        trigger=group and written(group.trigger),
        evictor=group and written(group.evictor),
        left_columns=written_columns(program.left.columns),
        right_columns=written_columns(program.right.columns),
        resolved={
            "left passed": list(program.left.passed),
            "right passed": list(program.right.passed),
            "time of": program.time_of,
            "bound": written_type(program.window_bound),
            "refinements": group and group.refine,
        },
    )


def _join(parts: Description) -> JoinProgram:
    more = parts["resolved"]
    left, right = (
        JoinSide(tuple(parts[f"{side} keys"]), read_columns(parts[f"{side} columns"]), tuple(more[f"{side} passed"]))
        for side in ("left", "right")
    )
    group = None
    if parts["function"]:
        results, in_arrow = read_columns(parts["returns"]), parts["function"] == "co_group_in_arrow"
        trigger, evictor = read(parts["trigger"]), read(parts["evictor"])
        group = CoGroup(read(parts["code"]), results, in_arrow, trigger, evictor, more["refinements"])
    return JoinProgram(
        match=read(parts["match"]),
        how=parts["join"],
        left=left,
        right=right,
        condition=read(parts["condition"]),
        null_safe=parts["null safe"],
        allowed_lateness=parts["allowed lateness"],
        time_of=more["time of"],
        window_bound=read_type(more["bound"]),
        co_group=group,
        updates=parts["emit on"] == "update",
    )


# Rolling features.


def of_rolling(
    program: RollingProgram | PointInTimeProgram,
    keys: Sequence[str],
    event_time: str,
    labels: Sequence[object] = (),
    results: Sequence[str] = (),
) -> Description:
    """Return the description of rolling features.

    Given are their keys, event time, which labels see which rows, and what Spark computes of the features, as text.
    """
    spec = program.spec
    return _described(
        "rolling" if isinstance(program, RollingProgram) else "labels",
        program,
        keys=list(keys),
        event_time=event_time,
        calls=[
            {
                **_call(each.name, each.aggregate, each.aggregate.arguments, program.columns),
                "window": written(each.window),
                "condition": each.condition,
            }
            for each in spec.calls
        ],
        step=spec.step,
        emit=spec.emit.value,
        deletes=spec.deletes_empty,
        corrects=spec.corrects,
        labels=written_columns(program.labels) if isinstance(program, PointInTimeProgram) else None,
        seen_by_labels=list(map(str, labels)),
        **({"results": list(results)} if results else {}),
        columns=written_columns(program.columns),
        resolved={
            "keys": written_columns(program.keys),
            "unbounded": spec.keeps_unbounded_state,
            **(
                {"key columns": list(program.key_columns), "instant": written_type(program.instant)}
                if isinstance(program, RollingProgram)
                else {
                    "names": list(program.label_names),
                    "inclusive": program.is_inclusive,
                    "known at": program.known_at,
                    "streaming": program.is_streaming,
                }
            ),
        },
    )


def _rolling(parts: Description) -> RollingProgram | PointInTimeProgram:
    more = parts["resolved"]
    calls = tuple(
        RollingCall(each["name"], _aggregate(each, each["arguments"]), read(each["window"]), each["condition"])
        for each in parts["calls"]
    )
    emit = RollingEmit(parts["emit"])
    spec = RollingSpec(calls, parts["step"], emit, more["unbounded"], parts["deletes"], parts["corrects"])
    keys, columns = read_columns(more["keys"]), read_columns(parts["columns"])
    if parts["kind"] == "rolling":
        return RollingProgram(spec, keys, tuple(more["key columns"]), columns, read_type(more["instant"]))
    return PointInTimeProgram(
        spec,
        keys,
        columns,
        read_columns(parts["labels"]),
        tuple(more["names"]),
        more["inclusive"],
        more["known at"],
        more["streaming"],
    )


# Deduplication.


def of_deduplication(program: DeduplicationProgram, event_time: str | None) -> Description:
    """Return the description of a deduplication."""
    return _described(
        "deduplication",
        program,
        keys=list(program.keys),
        within=program.within,
        keep=program.keep.value,
        time="event time" if program.is_event_time else "clock",
        event_time=event_time,
        allowed_lateness=program.allowed_lateness,
        columns=written_columns(program.columns),
        resolved={"passed": list(program.passed), "order": written(program.order_by)},
    )


def _deduplication(parts: Description) -> DeduplicationProgram:
    return DeduplicationProgram(
        keys=tuple(parts["keys"]),
        columns=read_columns(parts["columns"]),
        passed=tuple(parts["resolved"]["passed"]),
        within=parts["within"],
        keep=Keep(parts["keep"]),
        is_event_time=parts["time"] == "event time",
        allowed_lateness=parts["allowed lateness"],
        order_by=read(parts["resolved"]["order"]),
    )


# Filled gaps.


def of_filling(program: FillingProgram) -> Description:
    """Return the description of a filling of gaps."""
    return _described(
        "filling",
        program,
        keys=list(program.keys),
        size=program.size,
        step=program.step,
        until=program.limit,
        values=[*(f"{name} of before" for name in program.previous), *(f"{name} {value!r}" for name, value in program.constants)],
        allowed_lateness=program.allowed_lateness,
        columns=written_columns(program.columns),
        resolved={
            "results": written_columns(program.main_schema),
            "previous": list(program.previous),
            "constants": [[name, written(value)] for name, value in program.constants],
        },
    )


def _filling(parts: Description) -> FillingProgram:
    more = parts["resolved"]
    return FillingProgram(
        keys=tuple(parts["keys"]),
        results=read_columns(more["results"]),
        size=parts["size"],
        step=parts["step"],
        limit=parts["until"],
        previous=tuple(more["previous"]),
        constants=tuple((name, read(value)) for name, value in more["constants"]),
        allowed_lateness=parts["allowed lateness"],
    )


# Settled changelogs.


def of_settling(program: SettlingProgram) -> Description:
    """Return the description of a settling of a changelog."""
    return _described("settling", program, keys=list(program.keys), columns=written_columns(program.columns))


def _settling(parts: Description) -> SettlingProgram:
    keys, columns = tuple(parts["keys"]), read_columns(parts["columns"])
    return SettlingProgram(keys, columns)


# Row patterns.


def of_patterns(program: PatternProgram, conditions: Mapping[str, object]) -> Description:
    """Return the description of a row pattern, given the conditions of its variables as the user wrote them."""
    spec = program.spec
    return _described(
        "patterns",
        program,
        keys=list(program.keys),
        pattern=str(spec.pattern),
        conditions=[f"{name}: {condition}" for name, condition in sorted(conditions.items())],
        subsets=[f"{name}: {', '.join(sorted(of))}" for name, of in sorted(spec.subsets.items())],
        within=spec.within,
        after_match=f"{spec.after_match}, on error {spec.on_error}",
        **({"allowed_lateness": program.allowed_lateness} if program.allowed_lateness else {}),
        order=written(program.order_by),
        event_time=program.event_time,
        columns=written_columns(program.columns),
        asks=sorted(spec.asks),
        reach=spec.lookback,
        remembers_keys=program.remembers_keys,
        only_rows_of=sorted(map(repr, spec.conditions.values())) if program.leaves_rows_out else None,
        retain=program.retain,
        resolved={
            "spec": written(spec),
            "measures": written_columns(program.measures),
            "passed": list(program.passed),
        },
    )


def _patterns(parts: Description) -> PatternProgram:
    more = parts["resolved"]
    return PatternProgram(
        spec=read(more["spec"]),
        keys=tuple(parts["keys"]),
        columns=read_columns(parts["columns"]),
        measures=read_columns(more["measures"]),
        passed=tuple(more["passed"]),
        event_time=parts["event time"],
        order_by=read(parts["order"]),
        allowed_lateness=parts.get("allowed lateness", 0),
        retain=parts["retain"],
    )


_READERS: dict[str, Callable[[Description], BucketProgram]] = {
    "windows": _windows,
    "over": _over,
    "join": _join,
    "rolling": _rolling,
    "labels": _rolling,
    "deduplication": _deduplication,
    "filling": _filling,
    "settling": _settling,
    "patterns": _patterns,
}
