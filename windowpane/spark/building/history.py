"""Programs that begin with a history: the rows of a static DataFrame become the state of the stream's first batch.

The history is projected and spread over buckets as the stream is, run by the same engine, and handed to Spark as the initial
state of ``transformWithState``. Every bucket gets a state, also one without rows: it says where the history ends. What the engine
emits of it lies in that state, too, where it is asked for, and leaves with the first batch of its bucket.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windowpane.engines.program import Program, Upstream
from windowpane.engines.rolling.program import PointInTimeProgram, RollingProgram
from windowpane.errors import InvalidSpecError, UnknownColumnError
from windowpane.hidden_columns import PREFIX
from windowpane.planning.engines import engine_of
from windowpane.spark.building.operator_input import BothSides, OperatorInput, SourceRows
from windowpane.spark.building.program import BuiltProgram, Operator
from windowpane.spark.session.column_names import spelled_as
from windowpane.spark.session.settings import Buckets, choose_settings
from windowpane.spark.sources.source import Source
from windowpane.spark.stages import bounded, encode
from windowpane.spark.stages.project import mapped_in_arrow, quoted
from windowpane.windowing.outputs import CHANGE_TYPE
from windowpane.windowing.times import MIN

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Cut = str | dt.datetime | dt.date  # An instant; a text or a date is one of the session's time zone
HistoryResults = Literal["emit", "skip"]
"""What becomes of the results that a history has before its cut."""


def with_history(built: BuiltProgram, history: Any, cut: Cut | None, results: HistoryResults = "skip") -> BuiltProgram:
    """Return a program of a stream that begins with the rows of a history, a static DataFrame for each source.

    Rows of the history from ``cut`` on are left out, and rows of the stream before it are; ``None`` is the microsecond after the
    newest row of the history.

    Raises:
        InvalidSpecError: the program, or a DataFrame, is of a kind that does not begin so.
    """
    operator, sides = _checked(built, results)
    pasts = history if isinstance(history, list | tuple) else (history,)
    if len(pasts) != len(sides):
        raise InvalidSpecError(f"history= is a static DataFrame for each source, {len(sides)} here: (left, right) of a join.")
    known = [_past(each, source) for each, source in zip(pasts, built.sources, strict=True)]
    micros = max(_micros(past, cut) for past in known)
    folded = _folded(known, [source.heartbeat for source in built.sources], operator, sides, micros, results == "emit")
    program = operator.program
    if isinstance(program, RollingProgram):
        program = dataclasses.replace(program, cut=micros)
    begun = dataclasses.replace(operator, program=program, history=folded)
    return going_on_from_history(dataclasses.replace(built, operators=(begun,)), results == "emit")


def _past(history: DataFrame, source: Source) -> Source:
    past = Source.of(spelled_as(history, source.dataframe.columns), source.event_time, None, None, "history")
    if past.is_streaming:
        raise InvalidSpecError("history= is a static DataFrame, and this one is a stream. Read its source with spark.read.")
    if past.event_type != source.event_type:
        raise InvalidSpecError(_differing(str(past.event_time), past.event_type, source.event_type))
    choose_settings(past.dataframe.sparkSession)
    return past


def going_on_from_history(built: BuiltProgram, emits: bool) -> BuiltProgram:
    """Return a program whose state has a history: rows arrive whole, since those before its cut are passed over one by one."""
    (operator,) = built.operators
    sides = [_whole(each, emits) for each in _sides(operator.reads)]
    reads: OperatorInput = BothSides(*sides) if len(sides) > 1 else sides[0]
    going_on = dataclasses.replace(operator, reads=reads, next_watermark=None, begins_with_results=emits)
    return dataclasses.replace(built, operators=(going_on,))


def _whole(reads: SourceRows, emits: bool) -> SourceRows:
    encoder = dataclasses.replace(reads.encoder, combiner=None, next_watermark=None, calls_all=reads.encoder.calls_all or emits)
    return dataclasses.replace(reads, encoder=encoder)


def _sides(reads: OperatorInput) -> tuple[SourceRows, ...]:
    found = (reads.left, reads.right) if isinstance(reads, BothSides) else (reads,)
    sides = tuple(each for each in found if isinstance(each, SourceRows))
    if len(sides) < len(found):
        raise InvalidSpecError("history= goes with rows of a source.")
    return sides


def _checked(built: BuiltProgram, results: HistoryResults) -> tuple[Operator, tuple[SourceRows, ...]]:
    if results not in ("emit", "skip"):
        raise InvalidSpecError(f"history_results={results!r}: it is 'emit' or 'skip'.")
    if isinstance(built.operators[0].program, PointInTimeProgram):
        raise InvalidSpecError("history= is the past of rows, and here labels wait for rows to come. Give them static labels.")
    if any(source.kind is not Upstream.SOURCE for source in built.sources) or len(built.operators) > 1:
        raise InvalidSpecError(
            "history= goes with rows of a source, and these are results of another operator of the same query. Write them to a "
            "table and read that as a stream."
        )
    (operator,) = built.operators
    program = operator.program
    if any(source.event_time is None for source in built.sources) or built.plan.uses_processing_time:
        raise InvalidSpecError("history= ends at a cut by event time, and this program goes by the clock, or has none.")
    if isinstance(program, Program) and program.key_delay is not None:
        raise InvalidSpecError("history= ends at one cut for all keys, and here each key has a watermark of its own.")
    is_rolling = isinstance(program, RollingProgram)
    if is_rolling and results == "emit":
        raise InvalidSpecError("history_results='emit': rolling features emit nothing of a history. Leave it out.")
    if not is_rolling and results == "skip" and CHANGE_TYPE in built.outputs["main"].arrow.names:
        raise InvalidSpecError(
            "history_results='skip': results of this program change earlier ones, which would be missing. Say 'emit'."
        )
    return operator, _sides(operator.reads)


def _folded(
    pasts: Sequence[Source],
    heartbeats: Sequence[str | None],
    operator: Operator,
    sides: Sequence[SourceRows],
    cut: int,
    emits: bool,
) -> Any:
    spark, program = pasts[0].dataframe.sparkSession, operator.program
    first = max(cut - 1 - program.spec.reach, MIN) if isinstance(program, RollingProgram) else MIN
    number = Buckets.of(spark, is_streaming=True).number
    encoded = spark.range(0, 1, 1, 1).mapInArrow(bounded.call_to_buckets(number), encode.SCHEMA)
    for past, heartbeat, reads in zip(pasts, heartbeats, sides, strict=True):
        rows = _filled(_visible(past, heartbeat, first, cut), reads, operator)
        encoded = encoded.union(_encoded(rows, reads, number))
    make_engine: Any = partial(engine_of(program), program)
    fold = bounded.history_processor(make_engine, cut, emits)
    return encoded.groupBy(encode.BUCKET).applyInArrow(fold, bounded.STATE)


def _encoded(rows: Any, reads: SourceRows, number: int) -> Any:
    projected = dataclasses.replace(reads.projection, dataframe=rows).select()
    for one, other in zip(reads.dataframe.schema.fields, projected.schema.fields, strict=True):
        if one.dataType != other.dataType:
            raise InvalidSpecError(_differing(one.name, other.dataType.simpleString(), one.dataType.simpleString()))
    unwatched: dict[str, Any] = {
        "heartbeat": None,
        "own_watermark": None,
        "next_watermark": None,
        "tells_time": False,
        "calls_all": False,
    }
    encoder = dataclasses.replace(reads.encoder, partitions=number, **unwatched)
    return mapped_in_arrow(projected, encoder, encode.SCHEMA)


def _filled(rows: Any, reads: SourceRows, operator: Operator) -> Any:
    """Return rows of a history with all columns that the stream selects; those that its engine does not read may be missing.

    Raises:
        UnknownColumnError: a column that its engine reads is missing.
    """
    program, reader = operator.program, reads.encoder
    unread = {reader.heartbeat, None if reader.own_watermark is None else reader.own_watermark.source}
    if isinstance(program, RollingProgram):  # late rows have all columns, and a history has none that are late
        unread |= {*reads.projection.columns} - {*program.key_columns, *program.columns.names, str(reader.event_time)}
    for name in reads.projection.columns:
        if name.startswith(PREFIX) or name in rows.columns:
            continue
        if name not in unread:
            raise UnknownColumnError(name, "history", rows.columns)
        rows = rows.withColumn(name, F.lit(None).cast(reads.dataframe.schema[name].dataType))
    return rows


def _visible(past: Source, heartbeat: str | None, first: int, cut: int) -> Any:
    """Return the rows that count: those before the cut and after ``first``, and those without a time, which fail."""
    rows, time = past.dataframe, F.col(quoted(str(past.event_time)))
    kind = rows.schema[str(past.event_time)].dataType
    if heartbeat is not None and heartbeat in rows.columns:
        rows = rows.filter(~F.coalesce(F.col(quoted(heartbeat)), F.lit(False)))
    if cut == MIN:
        return rows.filter(F.lit(False))
    is_before = time < F.timestamp_micros(F.lit(cut)).cast(kind)
    seen = is_before if first == MIN else is_before & (time > F.timestamp_micros(F.lit(first)).cast(kind))
    return rows.filter(time.isNull() | seen)


def _micros(past: Source, cut: Cut | None) -> int:
    """Return the cut in microseconds; ``MIN`` where the history has no rows and no cut was given."""
    rows, kind = past.dataframe, past.dataframe.schema[str(past.event_time)].dataType
    if cut is None:
        newest = _instant(rows.agg(F.max(quoted(str(past.event_time))).alias("at")))
        return MIN if newest is None else newest + 1
    return micros_of(rows.sparkSession, cut, kind)


def micros_of(spark: SparkSession, cut: Cut, kind: T.DataType) -> int:
    """Return an instant as users say it in microseconds, given the type of the event time.

    Raises:
        InvalidSpecError: it is none.
    """
    if isinstance(cut, dt.datetime) and cut.tzinfo is not None and isinstance(kind, T.TimestampNTZType):
        raise InvalidSpecError(f"cut={cut!r} has a time zone, and the event time has none.")
    if not isinstance(cut, str | dt.date):
        raise InvalidSpecError(f"cut={cut!r}: it is an instant, such as '2026-01-01', or a datetime.")
    try:
        micros = _instant(spark.range(1).select(F.lit(cut).cast(kind).alias("at")))
    except Exception as error:
        if "CAST_INVALID_INPUT" not in str(error):
            raise
        micros = None
    if micros is None:
        raise InvalidSpecError(f"cut={cut!r} is no instant: write '2026-01-01' or '2026-01-01 12:00:00', or give a datetime.")
    return micros


def _instant(one: Any) -> int | None:
    micros: int | None = one.toArrow()["at"].cast(pa.timestamp("us")).cast(pa.int64())[0].as_py()
    return micros


def _differing(name: str, history: object, stream: object) -> str:
    return f"history: {name!r} is {history}, and {stream} in the stream. Cast it in one of them."
