"""Source: the DataFrame a program reads, checked, and with its watermark set.

Rows of an earlier operator of the same query have a watermark already. Either their time is carried beside them (``upstream``),
or a column of theirs is marked by metadata as one that the earlier operator passed its watermark on with.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from types import FunctionType
from typing import TYPE_CHECKING, Protocol, TypeVar, cast

from pyspark.sql import functions as F
from pyspark.sql import types as T

from windowpane.arrays.values import Value
from windowpane.engines.program import Upstream
from windowpane.errors import InvalidSpecError
from windowpane.guidance import no_dataframe
from windowpane.hidden_columns import SYSTEM, hidden
from windowpane.spark.internals.earlier_operators import has_kept_rows, holds_results, results_in, united, waits_for_watermark
from windowpane.spark.internals.file_relation import LeftToSpark, cut_folders
from windowpane.spark.internals.query_plans import WATERMARK, metrics_names, without_watermark
from windowpane.spark.session.checkpoints import holds_batches
from windowpane.spark.session.column_names import column_in, column_named
from windowpane.spark.session.settings import is_local, watermark_policy
from windowpane.spark.sources.arrow_rows import ArrowRows, read_in_arrow
from windowpane.spark.stages.project import quoted
from windowpane.windowing.times import Duration, format_micros
from windowpane.windowing.watermarks import Watermarks

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PASSED_ON = "windowpane.window"
"""Metadata of a column that an earlier operator passed its watermark on with: ``WINDOW_END`` or ``ROW_TIME``."""
WINDOW_END = "end"  # The end of a window: as an event time it counts as the microsecond before
ROW_TIME = "row"  # The event time of a row that an OVER window emitted
DELAY = "windowpane.delay"  # Metadata of such a column: microseconds by which rows may stay behind the watermark
OWN_WATERMARK = "windowpane.own_watermark"
"""Metadata of such a column: the watermark that the earlier operator made itself, which Spark does not pass on."""
OWN_TIME = "windowpane.own_time"  # Metadata beside it, in place of ``PASSED_ON``: what the column is, the same words

NAME = "windowpane"  # Name of the counters of an operator that is given none
_PUNCTUATION = hidden("punctuation")

AWAITED = "windowpane.awaited"  # Metadata of the times of a side output whose rows come as Spark's watermark advances
DELAYED = "windowpane.delayed"  # Metadata of an event time that a reader of a connector was given a watermark for
_PROGRAM = "_windowpane_program"  # The attribute of a DataFrame that has the program that it is the main output of
_GIVEN = "_windowpane_given"  # The attribute of a DataFrame that has what its reader knows of its rows

Asked = TypeVar("Asked")


@dataclass(frozen=True)
class Given:
    """What a reader of a connector knows of the rows of its DataFrame, where they are not asked of Spark."""

    rows: ArrowRows  # how they are made; beside the columns of the DataFrame they may have hidden ones
    event_time: str | None  # the event time, unless another one is said
    watermark: Watermarks | None  # the watermark, unless another one is said

    @classmethod
    def of(cls, dataframe: DataFrame | ArrowRows) -> Given | None:
        """Return what is known of a DataFrame; ``None`` for others, those made of it by Spark included."""
        found: Given | None = getattr(dataframe, "__dict__", {}).get(_GIVEN)
        return found

    def put_on(self, dataframe: DataFrame) -> DataFrame:
        """Return a DataFrame that ``stream`` and others know this of."""
        dataframe.__dict__[_GIVEN] = self
        return dataframe


class Numbered(Protocol):
    """An output, as far as it matters here."""

    @property
    def number(self) -> int: ...


class EarlierProgram(Protocol):
    """A program of the same query that rows come from; ``building.program`` says what each is."""

    @property
    def name(self) -> str: ...
    @property
    def source(self) -> Source: ...
    @property
    def event_type(self) -> T.DataType | None: ...
    @property
    def path(self) -> tuple[EarlierProgram, ...]: ...
    @property
    def has_watermark(self) -> bool: ...
    @property
    def delay(self) -> int: ...
    @property
    def side_outputs(self) -> Mapping[str, Numbered]: ...
    def followed_by(self, name: str) -> Source: ...


@dataclass(frozen=True)
class Source:
    """Where rows come from."""

    dataframe: DataFrame  # the DataFrame
    event_time: str | None = None  # name of the event-time column, ``None`` for none
    watermark: Watermarks | None = None  # how the watermark is made, ``None`` for none (or one that the DataFrame has already)
    heartbeat: str | None = None  # name of the boolean column that marks heartbeats, ``None`` for none
    name: str = NAME  # name of the counters in the query's progress
    upstream: EarlierProgram | None = None  # the earlier program of the same query that the rows come from, ``None`` for a source
    made: ArrowRows | None = None  # how the rows of ``dataframe`` are made in Python, ``None`` where they are Spark's
    left: LeftToSpark | None = None  # why Spark reads files that Arrow might, ``None`` where there are none
    results: tuple[Value, ...] = ()  # the programs of whose outputs the DataFrame is made

    @classmethod
    def of(
        cls,
        rows: DataFrame | ArrowRows,
        event_time: str | None,
        watermark: Watermarks | Duration | None,
        heartbeat: str | None,
        name: str,
    ) -> Source:
        """Return the source of a DataFrame, or of rows that are made in Python, checked.

        A watermark that the DataFrame got last (``df.withWatermark(event_time, ...)``) counts as given here, where it costs less
        than in front of the rows.
        """
        for role, column in (("event_time", event_time), ("heartbeat", heartbeat)):
            if column is not None and not isinstance(column, str):
                raise InvalidSpecError(
                    f"{role}={column!r}: expected the name of a column, such as {role}='scheduled'. What has to be computed gets "
                    "a name before: df.withColumn('scheduled', ...)."
                )
        if not (isinstance(rows, ArrowRows) or hasattr(rows, "isStreaming")):
            raise no_dataframe(rows)
        if (known := Given.of(rows)) is not None:
            rows, event_time, watermark = known.rows, event_time or known.event_time, watermark or known.watermark
        dataframe = rows.df if isinstance(rows, ArrowRows) else rows
        if watermark is None and heartbeat is None and (earlier := _carrying(dataframe, event_time)) is not None:
            return dataclasses.replace(
                earlier.followed_by(f"{earlier.name}_next" if name == NAME else name), event_time=event_time
            )
        event_time, heartbeat = _spelled(dataframe, event_time), _spelled(dataframe, heartbeat)
        given = None if event_time is None or watermark is not None else without_watermark(cast("DataFrame", rows), event_time)
        if given is not None:
            rows, watermark = given.rows, f"{given.delay} milliseconds"
        strategy = None if watermark is None else Watermarks.of(watermark)
        if strategy is not None and (strategy.punctuation or strategy.source):
            punctuation, of = (_spelled(dataframe, column) for column in (strategy.punctuation, strategy.source))
            strategy = dataclasses.replace(strategy, punctuation=punctuation, source=of)
        found = rows if isinstance(rows, ArrowRows) else read_in_arrow(rows, None if given is None else given.steps)
        made = found if isinstance(found, ArrowRows) else None
        left = found if isinstance(found, LeftToSpark) else None
        dataframe = rows.df if isinstance(rows, ArrowRows) else rows
        source = cls(dataframe, event_time, strategy, heartbeat, name, made=made, left=left, results=results_in(dataframe))
        if hasattr(source.dataframe, "columns"):
            source = dataclasses.replace(source, name=_free_name(source))
            source.rows  # noqa: B018 (it is checked)
            source._check_delayed()
            _warn_of_cut_batches(source.dataframe)
        return source

    def require(self, columns: Iterable[Asked], role: str) -> tuple[Asked | str, ...]:
        """Return columns with names as the rows spell them; Columns are Spark's to resolve."""
        return tuple(self._named(each, role) for each in columns)

    def _named(self, given: Asked, role: str) -> Asked | str:
        if isinstance(given, FunctionType):
            raise InvalidSpecError(
                f"{role} takes columns, and was given a function. Give the name of a column, or a Column that Spark "
                "computes, such as F.upper('user')."
            )
        if not isinstance(given, str) or not hasattr(self.dataframe, "columns"):
            return given
        return column_in(self.dataframe, given, role)

    @cached_property
    def rows(self) -> DataFrame:
        """The DataFrame, checked. A watermark that Spark makes of the event time is not in it: it is put behind the encoder."""
        dataframe, strategy = self.dataframe, self.watermark
        self.require([] if self.event_time is None else [self.event_time], "event_time")
        self.require([] if self.heartbeat is None else [self.heartbeat], "heartbeat")
        if self.event_time is not None and self.upstream is None:
            self._check_event_time()
        if strategy is not None:
            self._check_strategy(strategy)
        self._check_passed_on()
        if strategy is None or not self.is_streaming or self.is_passed_on:
            return dataframe
        self._check_watermark()
        return dataframe if strategy.punctuation is None else self._punctuated(strategy.punctuation)

    @property
    def columns(self) -> list[str]:
        """The columns of rows that users see."""
        return [name for name in self.rows.columns if name not in {*SYSTEM, self.heartbeat}]

    @property
    def watermarked(self) -> DataFrame:
        """The rows with the watermark, for those that meet others before they are encoded."""
        delay = self.spark_watermark
        return self.rows if delay is None else self.rows.withWatermark(quoted(str(self.event_time)), delay)

    def _punctuated(self, column: str) -> DataFrame:
        """Return the DataFrame with a watermark of what a column says; the one that Spark watches does not stay."""
        complete_until = F.col(quoted(column))
        if isinstance(self.dataframe.schema[column].dataType, T.BooleanType):
            complete_until = F.when(complete_until, F.col(quoted(str(self.event_time))))
        return self.dataframe.withColumn(_PUNCTUATION, complete_until).withWatermark(_PUNCTUATION, "0 seconds").drop(_PUNCTUATION)

    @property
    def is_streaming(self) -> bool:
        return bool(self.dataframe.isStreaming)

    @property
    def spark_watermark(self) -> str | None:
        """The delay of the watermark as Spark writes it; ``None`` where Spark makes none of the event time."""
        strategy = self.watermark
        if strategy is None or not self.is_streaming or self.is_passed_on:
            return None
        if not strategy.is_sparks or strategy.punctuation is not None:
            return None
        return f"{-(-strategy.delay // 1000)} milliseconds"  # no row that is waited for is late

    @property
    def foresees_watermark(self) -> bool:
        """Whether what a batch leaves behind says how far the watermark of the next one may come; static rows have none.

        Where Spark's policy is ``max``, a stream that is ahead of this one raises the watermark. Where executors can be lost, a
        task may run again on one that does not have the bound, and send whole what it had folded before. The rows are the same,
        but Spark (4.3, for one) sees that they look otherwise, and gives the batch up.
        """
        if not self.is_streaming:
            return True
        if not is_local(self.dataframe.sparkSession):
            return False
        if self.stream_watermark is not None:
            return True
        return self.spark_watermark is not None and watermark_policy(self.dataframe.sparkSession) == "min"

    @property
    def own_watermark(self) -> Watermarks | None:
        """How the operator makes its watermark itself, ``None`` where Spark makes it or there is none."""
        return self.watermark if self.watermark is not None and not self.watermark.is_sparks and self.is_streaming else None

    @property
    def stream_watermark(self) -> Watermarks | None:
        """How the operator makes one watermark for all rows, ``None`` where Spark does, or where each key has its own."""
        own = self.own_watermark
        return None if own is None or own.of_each_key else own

    @property
    def follows_watermark(self) -> bool:
        """Whether the watermark is that of the operator before, which does not have Spark's."""
        before = None if self.upstream is None else self.upstream.source
        return before is not None and (before.stream_watermark is not None or before.follows_watermark)

    @property
    def numbered_from(self) -> int:
        return 0 if self.upstream is None else max((each.number for each in self.upstream.side_outputs.values()), default=0)

    @property
    def event_type(self) -> T.DataType | None:
        if self.upstream is not None:
            return self.upstream.event_type
        return None if self.event_time is None else self.dataframe.schema[self.event_time].dataType

    @property
    def is_passed_on(self) -> bool:
        return self._is_said(PASSED_ON)

    @property
    def is_window_end(self) -> bool:
        return self.upstream is None and WINDOW_END in self._kinds

    @property
    def kind(self) -> Upstream:
        if self.upstream is not None:
            return Upstream.WINDOW_WITH_WATERMARKS
        return Upstream.WINDOW if self.is_passed_on or self._leaves_operator else Upstream.SOURCE

    @cached_property
    def _leaves_operator(self) -> bool:
        """Whether the watermark is that of the DataFrame, and an operator of Spark's may have kept rows while it advanced."""
        if self.event_time is None or self.watermark is not None or not self.is_streaming:
            return False
        return self.has_watermark and has_kept_rows(self.dataframe)

    @property
    def has_watermark(self) -> bool:
        if self.upstream is not None:
            return self.upstream.has_watermark
        if self.is_passed_on or (self.watermark is not None and self.is_streaming):
            return True
        return any(WATERMARK in field.metadata for field in self.dataframe.schema.fields)

    @property
    def has_watermark_below(self) -> bool:
        """Whether Spark's watermark is one that the DataFrame made itself, with other steps since."""
        is_passed_on = self.is_passed_on and all(PASSED_ON in each for each in self._marks)
        is_given = self.upstream is None and not is_passed_on and self.spark_watermark is None
        return is_given and self.is_streaming and self.has_watermark

    @property
    def delay(self) -> int:
        if self.upstream is not None:
            return self.upstream.delay
        if not self.is_passed_on:
            return 0
        return int(self._metadata(DELAY) or 0) + (0 if self.watermark is None else self.watermark.delay)

    @property
    def watermark_delay(self) -> int | None:
        """By how many microseconds the watermark stays behind the rows, ``None`` where nothing says it."""
        if self.upstream is not None:
            return self.upstream.source.watermark_delay
        if self.watermark is not None:
            return self.watermark.delay
        given = {field.metadata[WATERMARK] for field in self.dataframe.schema.fields if WATERMARK in field.metadata}
        return int(given.pop()) * 1000 if len(given) == 1 else None

    @property
    def watermark_text(self) -> str:
        """The line of ``explain`` about the watermark, with its line break; empty for rows that are no stream."""
        text = self.watermark_words
        return f"\n  watermark       {text}" if text else ""

    @property
    def watermark_words(self) -> str:
        if not self.is_streaming:
            return ""
        if self.upstream is not None:
            return "that of the window before"
        if self.event_time is None:
            return ""
        if self.is_passed_on:
            return "that of the operator before" + (f", less {format_micros(self.delay)}" if self.delay else "")
        if self.watermark is not None:
            return self.watermark.explain(self.event_time)
        return "that of the DataFrame; made by Spark" if self.has_watermark else "none"

    @cached_property
    def _marks(self) -> Sequence[Mapping[str, Value]]:
        """The metadata of the event time: of a union, in each of its parts."""
        if self.event_time is None or self.event_time not in self.dataframe.columns:
            return []
        return united(self.dataframe, self.event_time) or [self.dataframe.schema[self.event_time].metadata]

    @property
    def _kinds(self) -> set[str | None]:
        """What the event time is in each part: an end of windows, the time of rows of an operator, or of a source."""
        return {each.get(PASSED_ON, each.get(OWN_TIME)) for each in self._marks}

    def _metadata(self, name: str) -> Value:
        """Return what metadata say: of delays the longest, so that rows of no part of a union are late by those of another."""
        return max((each[name] for each in self._marks if name in each), default=None)

    def _is_said(self, name: str) -> bool:
        """Whether metadata say something of an operator of this query; a table of its results has them, too."""
        return self.upstream is None and self._metadata(name) is not None and self._holds_results

    @cached_property
    def _holds_results(self) -> bool:
        return holds_results(self.dataframe)

    def _check_delayed(self) -> None:
        """Refuse rows whose reader was given a watermark, which others that Spark made of them do not have."""
        if self.watermark is None and self.is_streaming and self.upstream is None and self._metadata(DELAYED) is not None:
            raise InvalidSpecError(
                f"event_time={self.event_time!r} was read with delay={self._metadata(DELAYED)!r} for each partition, and this "
                "DataFrame is made of what was read: which partition a row is of is no longer known. Give wp.stream what was "
                "read itself, or read it with include=('partition',) and say "
                f"watermark=wp.Watermarks.bounded({self._metadata(DELAYED)!r}).per_source('partition')."
            )

    def _check_event_time(self) -> None:
        kind = self.event_type
        if not isinstance(kind, T.TimestampType | T.TimestampNTZType):
            shown = kind.simpleString() if kind is not None else None
            raise InvalidSpecError(
                f"event_time: column {self.event_time!r} is {shown}, but an event time is a timestamp. "
                "Cast it first, for example with timestamp_millis or to_timestamp."
            )

    def _check_strategy(self, strategy: Watermarks) -> None:
        for name, role in ((strategy.punctuation, "punctuated"), (strategy.source, "per_source")):
            self.require([] if name is None else [name], role)
        if strategy.punctuation is not None:
            kind = self.dataframe.schema[strategy.punctuation].dataType
            if not isinstance(kind, T.TimestampType | T.BooleanType):
                raise InvalidSpecError(
                    f"punctuated: column {strategy.punctuation!r} is {kind.simpleString()}. It says up to when the stream is "
                    "complete, so it is a timestamp, or a boolean for rows whose own event time says so."
                )
        if strategy.source is not None:
            kind = self.dataframe.schema[strategy.source].dataType
            if not isinstance(kind, T.StringType | T.IntegralType | T.DateType | T.BooleanType):
                raise InvalidSpecError(
                    f"per_source: column {strategy.source!r} is {kind.simpleString()}, but sources are told apart by text, whole "
                    "numbers, dates or booleans. Cast it first."
                )

    def _check_passed_on(self) -> None:
        """Refuse what follows an operator whose watermark Spark does not know."""
        says_keys = self.watermark is not None and self.watermark.of_each_key
        if self._is_said(OWN_WATERMARK) and not says_keys:
            made_before = self._metadata(OWN_WATERMARK)
            raise InvalidSpecError(
                f"event_time={self.event_time!r} is of an operator that makes its watermark itself, {made_before}, and Spark "
                "does not carry that one to a second operator. Give the first operator a watermark of Spark's (bounded, "
                "monotonous, punctuated), or write its results to a table and read that as a stream."
            )
        if self.is_window_end and len(self._kinds) > 1:
            raise InvalidSpecError(
                f"event_time={self.event_time!r} is the end of a window in some rows of this union and not in others. An end "
                "counts as the microsecond before it, which is wrong for the others. Give them one meaning before the union: "
                "F.expr('window_end - INTERVAL 1 MICROSECOND') for the results."
            )
        if self.is_passed_on and self.watermark is not None and (self.own_watermark or self.watermark.punctuation):
            raise InvalidSpecError(
                f"event_time={self.event_time!r} comes with the watermark of the operator before, and {self.watermark!r} would "
                "be another one. Leave watermark= out, or say by how much to stay behind: watermark='5 minutes'."
            )

    def _check_watermark(self) -> None:
        if self.event_time is None:
            raise InvalidSpecError("watermark= needs event_time=, the column it is made from.")
        if isinstance(self.event_type, T.TimestampNTZType):
            raise InvalidSpecError(
                f"event_time: column {self.event_time!r} is timestamp_ntz, and Spark makes watermarks only of timestamps with "
                "a time zone. Cast it to timestamp first."
            )
        is_least = (
            self.watermark is not None and self.watermark.is_sparks and watermark_policy(self.dataframe.sparkSession) == "min"
        )
        if is_least and (self._is_said(AWAITED) or waits_for_watermark(self.dataframe, PASSED_ON)):
            raise InvalidSpecError(
                f"event_time={self.event_time!r} with {self.watermark!r}: these rows are results of a window or an aggregation "
                "of the same query, or late for one. Spark has one watermark a query, the least of all: results would wait for a "
                "watermark that they have to move, and nothing would ever be emitted. Take the window's end as event time, which "
                "needs no watermark= (window_end of a result, F.window_time('window') of an aggregation), or write the results "
                "to a table and read that as a stream."
            )


def put_program_on(dataframe: DataFrame, program: EarlierProgram) -> DataFrame:
    """Return the main output of a program, from which ``Source.of`` knows the program: none that Spark makes of it."""
    dataframe.__dict__[_PROGRAM] = program
    return dataframe


def _carrying(dataframe: DataFrame, event_time: str | None) -> EarlierProgram | None:
    """Return the program of which a DataFrame is the output, where rows must carry its watermark: Spark does not know it."""
    program: EarlierProgram | None = getattr(dataframe, "__dict__", {}).get(_PROGRAM)
    if program is None or event_time is None or event_time not in dataframe.columns:
        return None
    return program if OWN_WATERMARK in dataframe.schema[event_time].metadata else None


def _spelled(dataframe: DataFrame, name: str | None) -> str | None:
    """Return the name of a column as the rows spell it; a name that they do not have is refused later."""
    if name is None or not hasattr(dataframe, "columns"):
        return name
    return column_named(dataframe, name) or name


def _warn_of_cut_batches(dataframe: DataFrame) -> None:
    """Warn where batches that another query wrote may be read in pieces: rows of one whose time is behind would be late."""
    for folder in cut_folders(dataframe):
        if holds_batches(dataframe.sparkSession, folder):
            logging.getLogger(__name__).warning(
                "%s holds batches of another query, which may be several files each, and this stream takes a number of files or "
                "bytes at once: a batch is read in pieces, and rows of later pieces may be late. Leave maxFilesPerTrigger and "
                "maxBytesPerTrigger out, or put both into one query: result.key_by(...) continues with windows over results, and "
                "start(...) writes the late rows of each.",
                folder,
            )


def _free_name(source: Source) -> str:
    """Return the name of a source's counters; one that the user did not choose is numbered after those there are already."""
    if source.name != NAME or not source.is_streaming:
        return source.name
    taken = metrics_names(source.dataframe)
    numbered = (NAME if number == 1 else f"{NAME}_{number}" for number in count(1))
    return next(name for name in numbered if name not in taken)
