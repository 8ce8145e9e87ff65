"""Programs that begin with a history: the rows of a static DataFrame become the state of the stream's first batch.

The history is projected and spread over buckets as the stream is, run by the same engine, and handed to Spark as the initial
state of ``transformWithState``. Every bucket gets a state, also one without rows: it says where the history ends. What the engine
emits of it lies in that state, too, where it is asked for, and leaves with the first batch of its bucket. An operator behind
another one has what that emits of its history for its own.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windowpane.arrays.values import Value
from windowpane.engines.beginning import Past
from windowpane.engines.program import Upstream
from windowpane.engines.protocol import Engine
from windowpane.engines.rolling.program import PointInTimeProgram, RollingProgram
from windowpane.errors import InvalidSpecError, UnknownColumnError, present
from windowpane.hidden_columns import PREFIX
from windowpane.planning.engines import engine_of
from windowpane.spark.building.operator_input import BothSides, OperatorInput, PassedRows, SourceRows, sides_of
from windowpane.spark.building.program import BuiltProgram, Operator
from windowpane.spark.internals.replaced_operators import replaced
from windowpane.spark.session.column_names import spelled_as
from windowpane.spark.session.settings import Buckets, choose_settings
from windowpane.spark.sources.source import Source
from windowpane.spark.stages import bounded, encode
from windowpane.spark.stages.project import mapped_in_arrow, quoted
from windowpane.spark.stages.wire import Wire, wire_of
from windowpane.windowing.outputs import CHANGE_TYPE
from windowpane.windowing.times import MIN

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Cut = str | dt.datetime | dt.date  # An instant; a text or a date is one of the session's time zone
HistoryResults = Literal["emit", "skip"]
"""What becomes of the results that a history has before its cut."""

Histories: TypeAlias = "DataFrame | tuple[DataFrame, ...]"
"""The static rows that a program begins with, one DataFrame for each of its sources."""


def with_history(built: BuiltProgram, history: Histories, cut: Cut | None, results: HistoryResults = "skip") -> BuiltProgram:
    """Return a program of a stream that begins with the rows of a history, a static DataFrame for each source.

    Rows of the history from ``cut`` on are left out, and rows of the stream before it are; ``None`` is the microsecond after the
    newest row of the history.

    Raises:
        InvalidSpecError: the program, or a DataFrame, is of a kind that does not begin so.
    """
    _check(built, results)
    sources = list(sources_of(built))
    pasts = history if isinstance(history, list | tuple) else (history,)
    if len(pasts) != len(sources):
        names = ", ".join(f"{source.name} by {source.event_time!r}" for source in sources)
        raise InvalidSpecError(
            f"history= is a static DataFrame for each source, {len(sources)} here: (left, right) of a join. In order: {names}."
        )
    known = [_past(each, source) for each, source in zip(pasts, sources, strict=True)]
    micros = max(_micros(past, cut) for past in known)
    return _Beginning(built, dict(zip(map(id, sources), known, strict=True)), micros, results == "emit").begun(built)


def going_on_from_history(built: BuiltProgram, emits: bool) -> BuiltProgram:
    """Return a program whose state has a history: rows arrive whole, since those before its cut are passed over one by one."""
    return _Beginning(built, {}, None, emits).begun(built)


def sources_of(built: BuiltProgram) -> Iterator[Source]:
    """Yield the sources of a query, those of the left side of a join first; each once."""
    yield from {id(each): each for each in _sources_of(built)}.values()


def _sources_of(built: BuiltProgram) -> Iterator[Source]:
    for source in built.sources:
        before = _programs_before(source)
        if not before:
            yield source
        for each in before:
            yield from _sources_of(each)


def _programs_before(source: Source) -> tuple[BuiltProgram, ...]:
    """Return the programs whose results a source is; those of their own sources are not among them."""
    found: tuple[Value, ...] = source.results if source.upstream is None else (source.upstream,)
    below = {id(each) for one in found for each in _all_before(one)}
    return tuple(each for each in found if id(each) not in below)


def _all_before(built: BuiltProgram) -> Iterator[BuiltProgram]:
    for each in (each for source in built.sources for each in _programs_before(source)):
        yield each
        yield from _all_before(each)


class _Beginning:
    """The programs of a query as they begin with a history, or go on from one, each made once.

    A program reads the results of those before it from a DataFrame whose plan has their operators. There they are replaced: for
    the stream by those with the state that they begin with, for the history by what they give of theirs.
    """

    def __init__(self, last: BuiltProgram, pasts: Mapping[int, Source], cut: int | None, emits: bool) -> None:
        self._last, self._pasts, self._cut, self._emits = last, pasts, cut, emits
        self._begun: dict[int, BuiltProgram] = {}
        self._folded: dict[tuple[int, int, int], DataFrame] = {}
        self._rows_of: dict[tuple[int, int], DataFrame] = {}

    def begun(self, built: BuiltProgram) -> BuiltProgram:
        if id(built) not in self._begun:
            self._begun[id(built)] = self._made(built)
        return self._begun[id(built)]

    def _made(self, built: BuiltProgram) -> BuiltProgram:
        first, *others = built.operators
        sides = [self._live(each, source) for each, source in zip(sides_of(first.reads), built.sources, strict=True)]
        reads: OperatorInput = BothSides(*sides) if len(sides) > 1 else sides[0]
        is_first = not any(map(_programs_before, built.sources))
        program = first.program
        if is_first:
            first = dataclasses.replace(first, next_watermark=None)
            if isinstance(program, RollingProgram) and self._pasts:
                program = dataclasses.replace(program, cut=self._cut)
        operators = [dataclasses.replace(first, program=program, reads=reads), *others]
        if self._cut is not None:
            states = [self._state(built, number) for number in range(len(operators))]
            operators = [dataclasses.replace(each, history=state) for each, state in zip(operators, states, strict=True)]
        if built is self._last:
            operators[-1] = dataclasses.replace(operators[-1], begins_with_results=self._emits)
        return dataclasses.replace(built, operators=tuple(operators), begun={id(each): self.begun(each) for each in built.beside})

    def _live(self, reads: SourceRows, source: Source) -> SourceRows:
        before = _programs_before(source)
        emits = reads.encoder.calls_all or self._emits
        if not before:
            encoder = dataclasses.replace(reads.encoder, combiner=None, next_watermark=None, calls_all=emits)
            return dataclasses.replace(reads, encoder=encoder)
        encoder = dataclasses.replace(reads.encoder, calls_all=emits)
        rows = replaced(reads.dataframe, partial(self._rows, before, of_history=False), "history=")
        return dataclasses.replace(reads, encoder=encoder, dataframe=rows)

    def _rows(self, before: Sequence[BuiltProgram], name: str, columns: int, *, of_history: bool) -> DataFrame | None:
        """Return what the program of an operator emits, ``None`` where it is none of those before."""
        found = next((each for each in before if each.counted_as(len(each.operators)) == name), None)
        if found is None:
            return None
        main = found.outputs["main"]
        wire = Wire() if columns == _BLOBS else wire_of(main.arrow, main.spark)
        if of_history:
            return self._results(found, len(found.operators) - 1, wire)
        place = id(found), columns
        if place not in self._rows_of:
            self._rows_of[place] = self.begun(found).rows(wire)
        return self._rows_of[place]

    # The history.

    def _state(self, built: BuiltProgram, number: int) -> DataFrame:
        fold = self._fold(built, number, None)
        return self._encoded(built, number).groupBy(encode.BUCKET).applyInArrow(fold, bounded.STATE)

    def _results(self, built: BuiltProgram, number: int, wire: Wire) -> DataFrame:
        place = (id(built), number, len(wire.schema))
        if place not in self._folded:
            rows = self._encoded(built, number).groupBy(encode.BUCKET)
            self._folded[place] = rows.applyInArrow(self._fold(built, number, wire), wire.spark_schema)
        return self._folded[place]

    def _fold(self, built: BuiltProgram, number: int, wire: Wire | None) -> Callable[[pa.Table], pa.Table]:
        operator = built.operators[number]
        is_last = built is self._last and number == len(built.operators) - 1
        is_first = number == 0 and not any(map(_programs_before, built.sources))
        behind = max(source.delay for source in built.sources) + operator.behind
        end = present(self._cut, "there is a history") if built.has_watermark else MIN
        past = Past.below(end, behind, is_first=is_first, emits=not is_last)
        make_engine: Callable[[], Engine] = partial(engine_of(operator.program), operator.program)
        return bounded.history_processor(make_engine, past, wire, keeps=self._emits and is_last)

    def _encoded(self, built: BuiltProgram, number: int) -> DataFrame:
        spark, operator = built.source.dataframe.sparkSession, built.operators[number]
        buckets = Buckets.of(spark, is_streaming=True).number
        encoded = spark.range(0, 1, 1, 1).mapInArrow(bounded.call_to_buckets(buckets), encode.SCHEMA)
        if isinstance(operator.reads, PassedRows):
            encoder = _of_history(operator.reads.encoder, buckets)
            before = self._results(built, number - 1, Wire())
            return encoded.union(dataclasses.replace(operator.reads, encoder=encoder).encoded(before))
        for reads, source in zip(sides_of(operator.reads), built.sources, strict=True):
            encoded = encoded.union(self._encoded_side(reads, source, operator, buckets))
        return encoded

    def _encoded_side(self, reads: SourceRows, source: Source, operator: Operator, buckets: int) -> DataFrame:
        if before := _programs_before(source):
            rows = replaced(reads.dataframe, partial(self._rows, before, of_history=True), "history=")
            return mapped_in_arrow(rows, _of_history(reads.encoder, buckets), encode.SCHEMA)
        cut, program = present(self._cut, "there is a history"), operator.program
        is_alone = operator is self._last.operators[-1]
        first = max(cut - 1 - program.spec.reach, MIN) if isinstance(program, RollingProgram) and is_alone else MIN
        rows = _filled(_visible(self._pasts[id(source)], source.heartbeat, first, cut), reads, operator)
        return _encoded(rows, reads, buckets)


def _past(history: DataFrame, source: Source) -> Source:
    past = Source.of(spelled_as(history, source.dataframe.columns), source.event_time, None, None, "history")
    if past.is_streaming:
        raise InvalidSpecError("history= is a static DataFrame, and this one is a stream. Read its source with spark.read.")
    if past.event_type != source.event_type:
        raise InvalidSpecError(_differing(str(past.event_time), past.event_type, source.event_type))
    choose_settings(past.dataframe.sparkSession)
    return past


_BLOBS = len(Wire().schema)


def _check(built: BuiltProgram, results: HistoryResults) -> None:
    if results not in ("emit", "skip"):
        raise InvalidSpecError(f"history_results={results!r}: it is 'emit' or 'skip'.")
    for each in {id(each): each for each in (*_all_before(built), built)}.values():
        _check_one(each)
    is_rolling = isinstance(built.operators[0].program, RollingProgram) and not _programs_before(built.source)
    if is_rolling and results == "emit":
        raise InvalidSpecError("history_results='emit': rolling features emit nothing of a history. Leave it out.")
    if not is_rolling and results == "skip" and CHANGE_TYPE in built.outputs["main"].arrow.names:
        raise InvalidSpecError(
            "history_results='skip': results of this program change earlier ones, which would be missing. Say 'emit'."
        )


def _check_one(built: BuiltProgram) -> None:
    """Refuse a program that does not begin with a history, or not behind those before it."""
    program = built.operators[0].program
    if isinstance(program, PointInTimeProgram):
        raise InvalidSpecError("history= is the past of rows, and here labels wait for rows to come. Give them static labels.")
    before = [bool(_programs_before(source)) for source in built.sources]
    if any(not has and source.kind is not Upstream.SOURCE for has, source in zip(before, built.sources, strict=True)):
        raise InvalidSpecError(
            "history= goes with rows of a source, and these are results of an operator of Spark's in the same query, whose state "
            "has no history. Write them to a table and read that as a stream."
        )
    own = [source.kind is Upstream.SOURCE and source.event_time is not None for source in built.sources]
    if any(has and is_own for has, is_own in zip(before, own, strict=True)):
        raise InvalidSpecError(
            "history= ends at one cut, and these are results of another operator with a watermark of their own. Take the time "
            "that they pass the watermark on with, or write them to a table and read that as a stream."
        )
    if len(set(before)) > 1:
        raise InvalidSpecError(
            "history= ends at one cut for rows of sources, and here a join has rows of one on one side and results of another "
            "operator on the other, which come later than their times say. Join rows with rows, or results with results."
        )
    if (not any(before) and any(source.event_time is None for source in built.sources)) or built.plan.uses_processing_time:
        raise InvalidSpecError("history= ends at a cut by event time, and this program goes by the clock, or has none.")
    if getattr(program, "key_delay", None) is not None:
        raise InvalidSpecError("history= ends at one cut for all keys, and here each key has a watermark of its own.")


def _of_history(encoder: encode.Encoder, buckets: int) -> encode.Encoder:
    """Return an encoder of static rows of an operator before: nothing is to be said of their watermark."""
    unwatched: dict[str, Any] = {
        "heartbeat": None,
        "own_watermark": None,
        "next_watermark": None,
        "tells_time": False,
        "calls_all": False,
    }
    return dataclasses.replace(encoder, partitions=buckets, **unwatched)


def _encoded(rows: DataFrame, reads: SourceRows, number: int) -> DataFrame:
    projected = dataclasses.replace(reads.projection, dataframe=rows).select()
    for one, other in zip(reads.dataframe.schema.fields, projected.schema.fields, strict=True):
        if one.dataType != other.dataType:
            raise InvalidSpecError(_differing(one.name, other.dataType.simpleString(), one.dataType.simpleString()))
    return mapped_in_arrow(projected, _of_history(reads.encoder, number), encode.SCHEMA)


def _filled(rows: DataFrame, reads: SourceRows, operator: Operator) -> DataFrame:
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


def _visible(past: Source, heartbeat: str | None, first: int, cut: int) -> DataFrame:
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


def _instant(one: DataFrame) -> int | None:
    micros: int | None = one.toArrow()["at"].cast(pa.timestamp("us")).cast(pa.int64())[0].as_py()
    return micros


def _differing(name: str, history: object, stream: object) -> str:
    return f"history: {name!r} is {history}, and {stream} in the stream. Cast it in one of them."
