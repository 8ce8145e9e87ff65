"""Rolling features that begin with a history: the rows of a static DataFrame become the state of the stream's first batch.

The history is projected and spread over buckets as the stream is, folded by the same engine, and handed to Spark as the initial
state of ``transformWithState``. Every bucket gets a state, also one without rows: it says where the history ends.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windowpane.engines.program import Upstream
from windowpane.engines.rolling.program import RollingProgram
from windowpane.errors import InvalidSpecError
from windowpane.hidden_columns import TIME
from windowpane.planning.engines import engine_of
from windowpane.planning.rolling import RollingPlan, RollingRequest
from windowpane.spark.building.operator_input import encoder_of
from windowpane.spark.building.program import BuiltProgram
from windowpane.spark.building.rolling import call_columns, calls_of, columns_read
from windowpane.spark.session.column_names import spelled_as
from windowpane.spark.session.settings import Buckets, choose_settings
from windowpane.spark.sources.source import Source
from windowpane.spark.stages import bounded, encode
from windowpane.spark.stages.project import Projection, mapped_in_arrow, quoted
from windowpane.spark.stages.types import arrow_schema
from windowpane.windowing.rolling import RollingSpec
from windowpane.windowing.times import MIN

Cut = str | dt.datetime | dt.date  # An instant; a text or a date is one of the session's time zone


def with_history(built: BuiltProgram, history: object, cut: Cut | None) -> BuiltProgram:
    """Return rolling features of a stream that begin with the rows of a history, a static DataFrame.

    Rows of the history from ``cut`` on are left out, and rows of the stream before it are; ``None`` is the microsecond after the
    newest row of the history.
    """
    (operator,) = built.operators
    program, plan = operator.program, built.plan
    if not isinstance(program, RollingProgram) or not isinstance(plan, RollingPlan) or not built.is_streaming:
        raise InvalidSpecError("history= is what a stream of rolling features begins with: emit(...) of a streaming DataFrame.")
    if built.source.kind is not Upstream.SOURCE:
        raise InvalidSpecError(
            "history= goes with rows of a source, and these are results of another operator of the same query. Write them to a "
            "table and read that as a stream."
        )
    past = Source.of(spelled_as(history, built.source.dataframe.columns), built.source.event_time, None, None, "history")
    if past.is_streaming:
        raise InvalidSpecError("history= is a static DataFrame, and this one is a stream. Read its source with spark.read.")
    if past.event_type != built.source.event_type:
        raise InvalidSpecError(_differing(str(past.event_time), past.event_type, built.source.event_type))
    choose_settings(past.dataframe.sparkSession)
    micros = _micros(past, cut)
    folded = _folded(past, built.source.heartbeat, plan.request, program, micros)
    begun = dataclasses.replace(operator, program=dataclasses.replace(program, cut=micros), history=folded)
    return dataclasses.replace(built, operators=(begun,))


def _folded(past: Source, heartbeat: str | None, request: RollingRequest, program: RollingProgram, cut: int) -> Any:
    spark = past.dataframe.sparkSession
    rows = _visible(past, heartbeat, program.spec, cut)
    projection = Projection(rows)
    key_columns, key_fields = projection.add_keys(request.keys)
    calls = calls_of(projection, request)
    projection.add_event_time(str(past.event_time))
    projected = projection.select()
    _check_same(program.keys, arrow_schema(key_fields, "by"))
    _check_same(program.columns, arrow_schema(T.StructType(call_columns(calls, projected.schema)), "over"))
    number = Buckets.of(spark, is_streaming=True).number
    encoder = encoder_of(past, key_columns, projection.columns, {*key_columns, *columns_read(calls), TIME})
    encoder = dataclasses.replace(encoder, partitions=number)
    every = spark.range(0, 1, 1, 1).mapInArrow(bounded.call_to_buckets(number), encode.SCHEMA)
    encoded = mapped_in_arrow(projected, encoder, encode.SCHEMA).union(every)
    make_engine: Any = partial(engine_of(program), program)
    fold = bounded.history_processor(make_engine, cut)
    return encoded.groupBy(encode.BUCKET).applyInArrow(fold, bounded.STATE)


def _visible(past: Source, heartbeat: str | None, spec: RollingSpec, cut: int) -> Any:
    """Return the rows that count: those before the cut that a window can still see, and those without a time, which fail."""
    rows, time = past.dataframe, F.col(quoted(str(past.event_time)))
    kind = rows.schema[past.event_time].dataType
    if heartbeat is not None and heartbeat in rows.columns:
        rows = rows.filter(~F.coalesce(F.col(quoted(heartbeat)), F.lit(False)))
    first = max(cut - 1 - spec.reach, MIN)
    bounds = [F.timestamp_micros(F.lit(bound)).cast(kind) for bound in (first, cut)] if cut > MIN else None
    return rows.filter(F.lit(False)) if bounds is None else rows.filter(time.isNull() | ((time > bounds[0]) & (time < bounds[1])))


def _micros(past: Source, cut: Cut | None) -> int:
    """Return the cut in microseconds; ``MIN`` where the history has no rows and no cut was given."""
    rows, kind = past.dataframe, past.dataframe.schema[past.event_time].dataType
    if cut is None:
        newest = _instant(rows.agg(F.max(quoted(str(past.event_time))).alias("at")))
        return MIN if newest is None else newest + 1
    return micros_of(rows.sparkSession, cut, kind)


def micros_of(spark: Any, cut: Cut, kind: T.DataType) -> int:
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


def _check_same(stream: pa.Schema, history: pa.Schema) -> None:
    for one, other in zip(stream, history, strict=True):
        if one.type != other.type:
            raise InvalidSpecError(_differing(one.name, other.type, one.type))


def _differing(name: str, history: object, stream: object) -> str:
    return f"history: {name!r} is {history}, and {stream} in the stream. Cast it in one of them."
