"""Continuing a checkpoint: what its programs were, against those that start, on the driver and before anything runs.

Layout: beside Spark's own files, ``windowpane/programs`` has, as JSON, an entry for each change of what runs: from which batch
on, the time, for each operator its generations, and the parts that changed. It is in force once its batch is committed. Who may
mutate: a start, before its query. Recovery: a start that has committed nothing leaves an entry that the next one leaves out. A
checkpoint without that file, as ``df.writeStream`` leaves it, is asked for the headers of its state.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.serializers import CloudPickleSerializer
from pyspark.sql import types as T

from windowpane.arrays.values import JsonValue
from windowpane.engines.changes import Accepts, Change, Incomplete, Outcome, Verdict, Way
from windowpane.engines.program import BucketProgram, Program
from windowpane.errors import ChangedPlanError
from windowpane.planning.changing import Behind, Held, Report, check, continued, differs
from windowpane.planning.engines import engine_of
from windowpane.spark.building.history import Cut, micros_of
from windowpane.spark.building.operator_input import SourceRows
from windowpane.spark.building.program import BuiltProgram, Operator
from windowpane.spark.internals.blob_state import SparkBlobStore
from windowpane.spark.internals.session import is_classic
from windowpane.spark.session.checkpoints import last_batches, mark_of, only, read_line, set_mark
from windowpane.spark.stages.bounded import store_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_MARK = "programs"


def continuing(
    built: BuiltProgram, checkpoint: str, accepts: Accepts, cut: Cut | None, incomplete: Incomplete = "null"
) -> tuple[BuiltProgram, dict[str, str]]:
    """Return a program as it goes on with a checkpoint, and say there what runs from its next batch on.

    Programs whose results it reads by way of their DataFrame are part of that, with an engine of their own. Where these go on
    otherwise, the tasks have to be told: also returned is what makes their engines, by the names of operators.

    Args:
        built: the program that starts.
        checkpoint: the checkpoint location.
        accepts: which changes are taken.
        cut: where new windows begin at the earliest, ``None`` for above every event time so far.
        incomplete: what calls that are added give for windows that are open.

    Raises:
        ChangedPlanError: the checkpoint has state that it cannot go on with, or changes that are not taken.
    """
    spark = built.source.dataframe.sparkSession
    committed, _ = last_batches(spark, checkpoint)
    before = _known(spark, checkpoint, committed)
    going_on, reports = _compared(built, checkpoint, committed, before, cut, incomplete)
    check(reports, accepts)
    operators = [_generations(program, held) for program, held in going_on]
    if before is None or before["operators"] != operators:
        time = datetime.now(UTC).isoformat(timespec="seconds")
        parts = [part for each in reports for part in each.as_json()]
        entry = {"batch": committed + 1, "time": time, "parts": parts, "operators": operators}
        kept = [each for each in programs_of(spark, checkpoint) if each["batch"] <= committed]
        set_mark(spark, checkpoint, _MARK, json.dumps([*kept, entry]))
    operators_of = [(each, number) for each in built.programs for number in range(1, len(each.operators) + 1)]
    can_tell, serializer = is_classic(spark), cast(Any, CloudPickleSerializer)()
    told = {
        each.counted_as(number): base64.b64encode(serializer.dumps(partial(engine_of(program), program))).decode()
        for (each, number), (program, _) in zip(operators_of, going_on, strict=True)
        if can_tell and each is not built and program is not each.operators[number - 1].program
    }
    return _with_programs(built, [program for program, _ in going_on]), told


def reports_of(
    built: BuiltProgram, checkpoint: str, cut: Cut | None = None, incomplete: Incomplete = "null"
) -> list[tuple[str, Report]]:
    """Return what a start would change, by the name of each operator; nothing is written.

    Raises:
        ChangedPlanError: the checkpoint has other operators.
    """
    spark = built.source.dataframe.sparkSession
    committed, _ = last_batches(spark, checkpoint)
    _, reports = _compared(built, checkpoint, committed, _known(spark, checkpoint, committed), cut, incomplete)
    return list(zip((name for name, _ in _operators(built)), reports, strict=False))


def _operators(built: BuiltProgram) -> list[tuple[str, Operator]]:
    """Return the operators of a query, with the names of their programs; those of earlier programs first."""
    return [(each.name, operator) for each in built.programs for operator in each.operators]


def _compared(
    built: BuiltProgram,
    checkpoint: str,
    committed: int,
    before: dict[str, JsonValue] | None,
    cut: Cut | None,
    incomplete: Incomplete,
) -> tuple[list[tuple[BucketProgram, Held | None]], list[Report]]:
    """Return each program as it goes on, with what the checkpoint holds of it, and what that changes."""
    operators = _operators(built)
    if committed < 0:
        return [(operator.program, None) for _, operator in operators], []
    spark = built.source.dataframe.sparkSession
    watermark = _watermark(spark, checkpoint, committed)
    at = None if cut is None else micros_of(spark, cut, built.source.event_type or T.TimestampType())
    known = _in_order(_from_state(spark, checkpoint), operators) if before is None else _held(before["operators"])
    if len(known) != len(operators):
        raise ChangedPlanError({"operators": (str(len(known)), str(len(operators)))})
    pairs = zip(known, operators, strict=True)
    if before is not None and any(held is not None and differs(operator.program, held) for held, (_, operator) in pairs):
        in_state = _in_order(_from_state(spark, checkpoint), operators)
        known = [_counted(held, counted) for held, counted in zip(known, in_state, strict=True)]
    going_on: list[tuple[BucketProgram, Held | None]] = []
    reports: list[Report] = []
    earlier = [_held(entry["operators"]) for entry in programs_of(spark, checkpoint) if entry["batch"] <= committed]
    for number, ((_, operator), held) in enumerate(zip(operators, known, strict=True)):
        if held is None:
            going_on.append((operator.program, None))
            continue
        was = [each[number] for each in (*earlier, known) if len(each) == len(known)]
        held = _timed(held, operator, watermark if operator.behind == 0 else None, was)
        program, report = continued(operator.program, held, at, incomplete)
        going_on.append((program, held))
        is_last = any(operator is each for each in built.operators)
        told_of = None if is_classic(spark) else program
        reports.append(report if is_last else _untold(report, told_of, operator.program))
    return going_on, reports


def _counted(held: Held | None, counted: Held | None) -> Held | None:
    """Return what is held with what the headers in state count; where no state can be read that is not known."""
    if held is None or counted is None:
        return held
    return replace(held, open_windows=counted.open_windows, now=counted.now, began=counted.began, behind=counted.behind)


def _timed(held: Held, operator: Operator, watermark: int | None, earlier: Sequence[Held | None]) -> Held:
    """Return it with the watermark of the next batch, and the latest event time that this is made of, where Spark makes it.

    A delay may have been longer before: no row was further above the watermark than the longest one.
    """
    programs = [was for each in earlier if each is not None for was, _ in each.generations]
    held = replace(held, before=(*held.before, *programs))
    delays = [each.get("watermark delay") for each in (operator.program.description, *programs)]
    known = [delay for delay in delays if delay is not None]
    if watermark is None or len(known) < len(delays):
        return replace(held, watermark=-(2**63), latest=None)
    return replace(held, watermark=watermark * 1000 - 1, latest=(watermark + 1) * 1000 + max(known))


def _untold(report: Report, going_on: BucketProgram | None, program: BucketProgram) -> Report:
    """Return the report of a program that comes before others by way of its DataFrame.

    A cut is refused, since its rows would have to come whole; so is, on Spark Connect, what its tasks have to be told of.
    """
    is_told = going_on is not None and (going_on.description != program.description or bool(getattr(going_on, "earlier", ())))
    refused = Outcome(Verdict.REFUSED, "a program whose results others read by way of .df cannot be told of it", Way.CUT)
    parts = tuple(
        replace(each, outcome=refused) if each.outcome.way is Way.CUT or (is_told and _is_more(each)) else each
        for each in report.parts
    )
    return replace(report, parts=parts)


def _is_more(change: Change) -> bool:
    return change.outcome.verdict is Verdict.ACCEPT or change.part.startswith("call ")


def _generations(program: BucketProgram, held: Held | None) -> list[list[JsonValue]]:
    """Return the descriptions of a program and of those before it, each with where its windows begin."""
    own = json.loads(json.dumps(program.description))
    if not isinstance(program, Program):
        return [[own, 0]]
    kept = [] if held is None else [list(each) for each in held.generations[: program.generation]]
    return [*kept, [own, program.begins]]


def _held(operators: Sequence[JsonValue]) -> list[Held | None]:
    return [Held(tuple((was, begins) for was, begins in generations)) for generations in operators]


def _with_programs(built: BuiltProgram, programs: Sequence[BucketProgram]) -> BuiltProgram:
    """Return a built program whose own operators run these, the last of ``programs``; rows arrive whole where old windows end."""
    own = programs[len(programs) - len(built.operators) :]
    operators = tuple(map(_with_program, built.operators, own))
    return built if all(map(lambda one, other: one is other, operators, built.operators)) else replace(built, operators=operators)


def _with_program(operator: Operator, program: BucketProgram) -> Operator:
    if program is operator.program:
        return operator
    reads = operator.reads
    if isinstance(program, Program) and program.earlier and isinstance(reads, SourceRows):
        reads = replace(reads, encoder=replace(reads.encoder, combiner=None, next_watermark=None))
        return replace(operator, program=program, reads=reads, next_watermark=None)
    return replace(operator, program=program)


# The checkpoint.


def programs_of(spark: SparkSession, checkpoint: str) -> list[dict[str, JsonValue]]:
    """Return the programs that wrote a checkpoint, each with the batch and the time from which on it did, the oldest first."""
    try:
        found: list[dict[str, JsonValue]] = json.loads(mark_of(spark, checkpoint, _MARK) or "[]")
    except ValueError:  # a start that was killed has not written it whole
        return []
    return found


def _known(spark: SparkSession, checkpoint: str, committed: int) -> dict[str, JsonValue] | None:
    """Return what is said of the programs that wrote the state, ``None`` where nothing is."""
    return next((entry for entry in reversed(programs_of(spark, checkpoint)) if entry["batch"] <= committed), None)


def _watermark(spark: SparkSession, checkpoint: str, committed: int) -> int:
    """Return the watermark of the next batch in milliseconds, as Spark has committed it."""
    place = f"{checkpoint}/commits/{committed}"
    text = read_line(spark, place) or ""
    if "{" not in text:  # on Spark Connect it is the first line, which is the version
        text = str(spark.read.text(only(place)).collect()[-1][0])
    return int(json.loads(text[text.index("{") :])["nextBatchWatermarkMs"])


def _from_state(spark: SparkSession, checkpoint: str) -> list[Held | None]:
    """Return what the headers in state say, an operator each; nothing where Spark's reader of state does not find it."""
    held = []
    try:
        rows = spark.read.format("state-metadata").load(checkpoint).select("operatorId", "operatorName").distinct().collect()
        for number in sorted(row[0] for row in rows if str(row[1]).startswith("transformWithState")):
            state = (
                spark.read.format("statestore").option("stateVarName", SparkBlobStore.DECLARED[0]).option("operatorId", number)
            )
            whole = state.load(checkpoint)
            headers = whole.filter("user_map_key.name like '%header'").selectExpr("user_map_key.name", "user_map_value.blob")
            of = Held.of([(row[0], bytes(row[1])) for row in headers.collect()])
            held.append(None if of is None else replace(of, behind=partial(_behind, whole)))
    except PySparkException:
        return []
    return held


def _behind(state: DataFrame, instant: int) -> Behind | None:
    """Return what is open behind an instant, ``None`` where that cannot be said."""
    blobs = state.selectExpr("key.bucket", "user_map_key.name", "user_map_value.blob")
    try:
        found = blobs.groupBy("bucket").applyInArrow(_behind_in_bucket(instant), "windows long, rows long").collect()
    except PySparkException:
        return None
    return Behind.together([(row[0], row[1]) for row in found])


def _behind_in_bucket(instant: int) -> Callable[[pa.Table], pa.Table]:
    def look(blobs: pa.Table) -> pa.Table:
        found = Behind.of(store_of(blobs), instant)
        return pa.table({"windows": pa.array([found.windows], pa.int64()), "rows": pa.array([found.rows], pa.int64())})

    return look


def _in_order(known: Sequence[Held | None], operators: Sequence[tuple[str, Operator]]) -> list[Held | None]:
    """Return what is held of each operator: Spark numbers them in an order of its own, so they are known by their parts."""
    left = [each for each in known if each is not None]
    found: list[Held | None] = []
    for _, operator in operators:
        now = operator.program.description
        unlike = [sum(now.get(part) != value for part, value in each.generations[-1][0].items()) for each in left]
        found.append(left.pop(unlike.index(min(unlike))) if left else None)
    return found
