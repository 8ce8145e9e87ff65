"""Watermarks: how far a stream is believed to be complete, and what that is made of.

``Watermarks`` says how, as a frozen value. ``advance`` makes the watermark of the next batch from what is known after this one.
It is pure, and all it needs to know of earlier batches is a ``Standing``. ``WatermarkGenerator`` is the same a row at a time,
with the method names of Flink's generators.

Rules, for a watermark that windowpane makes itself (Spark makes the others):

- It never goes back. It is in Flink's meaning: nothing at or below it is still expected.
- The watermark of a batch is made from the batches before it. So rows are late only if they came after rows, or a clock, that
  an earlier batch has seen: a query that takes long over a batch makes nothing late by it.
- *Sources*: each has a watermark, its latest time less the delay. The stream's is the least of those that are not idle. Where all
  are idle it is the greatest of all: nothing is left to wait for (Flink's CombinedWatermarkStatus and StatusWatermarkValve).
- A source is *idle* when it brought no row for so long. That time is counted from batch to batch of one run, so a stopped query
  counts none, and no single batch counts for more than half of it. A row ends the idleness of its source.
- *Not behind now*: the clock of the machine, less a bound, moves the watermark where rows do not. A run that begins is behind,
  perhaps by the time it was stopped: the clock counts from the first batch on that brings no row, or one as late as the clock
  less the bound.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from windowpane.errors import InvalidSpecError
from windowpane.instants import format_instant
from windowpane.windowing.times import MIN, Duration, add_clamped, format_micros, to_micros

SourceName = str | None
"""A source as text; ``None`` for rows whose source is NULL, and for all rows where sources are not told apart."""


@dataclass(frozen=True, repr=False)
class Watermarks:
    """How the watermark of a stream is made. Begin with ``bounded``, ``monotonous`` or ``punctuated``.

    Source: Flink's ``WatermarkStrategy``.

    Example:
        >>> wp.Watermarks.bounded("5 minutes").per_source("partition").with_idleness("1 minute")
    """

    delay: int = 0
    punctuation: str | None = None
    source: str | None = None
    idleness: int | None = None
    behind_now: int | None = None

    @classmethod
    def bounded(cls, delay: Duration) -> Watermarks:
        """Rows come at most ``delay`` behind the latest event time seen: what ``watermark="5 minutes"`` says.

        Raises:
            InvalidDurationError: the delay is no duration.
            InvalidSpecError: it is negative.

        Example:
            >>> wp.stream(df, event_time="at", watermark=wp.Watermarks.bounded("5 minutes"))
        """
        return cls(_not_negative("bounded", delay))

    @classmethod
    def monotonous(cls) -> Watermarks:
        """Event times do not go back from batch to batch: ``bounded`` by nothing.

        Example:
            >>> wp.stream(df, event_time="at", watermark=wp.Watermarks.monotonous())
        """
        return cls()

    @classmethod
    def punctuated(cls, column: str) -> Watermarks:
        """Rows say themselves how far the stream is complete.

        Args:
            column: a timestamp: nothing before it is still to come; or a boolean: where it is true, nothing before the row's own
                event time is. Rows where it is NULL or false say nothing.

        Example:
            >>> wp.stream(df, event_time="at", watermark=wp.Watermarks.punctuated("complete_until"))
        """
        return cls(punctuation=_column("punctuated", column))

    def per_source(self, column: str) -> Watermarks:
        """Follow the slowest of several sources: the watermark is the least of theirs, not the greatest.

        A fast source makes the rows of a slow one late no more. A source is known from its first row on; what is behind the
        watermark then is late.

        Args:
            column: what tells sources apart, such as Kafka's ``partition``: text, a whole number, a date or a boolean. Each value
                is kept for good, so this is no place for users or devices.

        Source: Flink's watermarks of splits.

        Example:
            >>> wp.Watermarks.bounded("5 minutes").per_source("partition")
        """
        return dataclasses.replace(self, source=_column("per_source", column))

    def with_idleness(self, after: Duration) -> Watermarks:
        """Wait no longer for a source that brought no row for so long; where all are idle, wait for none.

        Only time in which the query runs counts. Rows of a source that comes back do not move the watermark back: those behind it
        are late. Needs ``per_source``.

        Raises:
            InvalidDurationError: the time is no duration.
            InvalidSpecError: it is not positive.

        Source: Flink's ``withIdleness``, with FLIP-471's clock.

        Example:
            >>> wp.Watermarks.bounded("5 minutes").per_source("partition").with_idleness("1 minute")
        """
        return dataclasses.replace(self, idleness=_positive("with_idleness", after))

    def not_behind_now(self, bound: Duration) -> Watermarks:
        """Move on with the machine's clock where rows do not: the watermark is never more than ``bound`` behind it.

        Windows close so long after their end even if no row comes any more. Rows that are older than that are late. A run that
        begins takes what has queued up first, see *Quiet streams*.

        Raises:
            InvalidDurationError: the bound is no duration.
            InvalidSpecError: it is negative.

        Example:
            >>> wp.Watermarks.bounded("5 minutes").not_behind_now("10 minutes")
        """
        return dataclasses.replace(self, behind_now=_not_negative("not_behind_now", bound))

    @classmethod
    def of(cls, given: Duration | Watermarks) -> Watermarks:
        """Return what ``watermark=`` was given as a strategy, whole: one that lacks a part it needs is refused.

        Raises:
            InvalidDurationError: it is neither a strategy nor a duration.
            InvalidSpecError: parts of it do not go together.
        """
        strategy = given if isinstance(given, Watermarks) else cls(_not_negative("watermark", given))
        if strategy.idleness is not None and strategy.source is None:
            raise InvalidSpecError(
                f"{strategy!r}: a single source that is idle holds nothing back, so with_idleness alone changes nothing. Add "
                ".per_source('partition') to wait for the slowest of several, or say .not_behind_now('10 minutes') for windows "
                "that close when the stream falls silent."
            )
        if strategy.punctuation is not None and not strategy.is_sparks:
            raise InvalidSpecError(
                f"{strategy!r}: rows that say how far the stream is complete speak for all of it; per_source and not_behind_now "
                "go with bounded and monotonous."
            )
        return strategy

    @property
    def is_sparks(self) -> bool:
        """Whether Spark makes the watermark: the latest of a column, less a delay."""
        return self.source is None and self.behind_now is None

    def __repr__(self) -> str:
        begun = f"bounded({format_micros(self.delay)!r})" if self.delay else "monotonous()"
        parts = [begun if self.punctuation is None else f"punctuated({self.punctuation!r})"]
        parts += [f"per_source({self.source!r})"] if self.source is not None else []
        parts += [f"with_idleness({format_micros(self.idleness)!r})"] if self.idleness is not None else []
        parts += [f"not_behind_now({format_micros(self.behind_now)!r})"] if self.behind_now is not None else []
        return ".".join(["Watermarks", *parts])

    def explain(self, event_time: str | None) -> str:
        """Return what the watermark is and who makes it, in words."""
        if self.punctuation is not None:
            return f"what column {self.punctuation!r} says; made by Spark"
        text = f"the latest {event_time}" + (f" less {format_micros(self.delay)}" if self.delay else "")
        if self.is_sparks:
            return f"{text}; made by Spark"
        if self.source is not None:
            text += f" of each {self.source}, the least of them"
            text += f" but those idle for {format_micros(self.idleness)}" if self.idleness is not None else ""
        if self.behind_now is not None:
            text += f", at least the clock less {format_micros(self.behind_now)}"
        return f"{text}; made by windowpane, since Spark's is the latest of all rows and moves by rows alone"


def _not_negative(role: str, duration: Duration) -> int:
    micros = to_micros(duration)
    if micros < 0:
        raise InvalidSpecError(f"{role}({duration!r}): it cannot be negative.")
    return micros


def _positive(role: str, duration: Duration) -> int:
    micros = to_micros(duration)
    if micros <= 0:
        raise InvalidSpecError(f"{role}({duration!r}): it must be longer than nothing.")
    return micros


def _column(role: str, name: Any) -> str:
    if not isinstance(name, str) or not name:
        raise InvalidSpecError(f"{role}({name!r}): expected the name of a column.")
    return name


@dataclass(frozen=True)
class SourceMark:
    """What is known of one source: its latest event time, and for how long it has brought no row. Microseconds."""

    latest: int
    silent: int = 0


@dataclass(frozen=True)
class Standing:
    """What is known after a batch, for the batches to come.

    Args:
        watermark: the watermark of the next batch.
        held_by: what holds it back, in words.
        sources: what is known of each source.
        now: the clock of the batch, ``None`` before the first one.
        run: the run of the query that the batch belongs to.
        caught_up: whether this run has taken what there was when it began.
    """

    watermark: int = MIN
    held_by: str = "no row has come"
    sources: Mapping[SourceName, SourceMark] = field(default_factory=dict)
    now: int | None = None
    run: str = ""
    caught_up: bool = False


def advance(strategy: Watermarks, before: Standing, latest: Mapping[SourceName, int], now: int, run: str = "") -> Standing:
    """Return what is known after a batch.

    Args:
        strategy: how the watermark is made.
        before: what was known before it.
        latest: the latest event time of each source that has rows in the batch.
        now: the clock of the machine, microseconds, as it was when the batch was planned.
        run: which run of the query it is; between runs the query was stopped.
    """
    same_run = before.run == run and before.now is not None
    sources = _seen(strategy, before, latest, max(0, now - (before.now or 0)) if same_run else 0)
    bound = strategy.behind_now
    is_near = bound is not None and any(time >= now - bound for time in latest.values())
    caught_up = (same_run and before.caught_up) or not latest or is_near
    watermark, held_by = _of_rows(strategy, sources)
    if bound is not None and now - bound - 1 > watermark:
        if caught_up:
            watermark, held_by = now - bound - 1, f"the clock, less {format_micros(bound)}"
        else:
            held_by += "; the clock waits until this run has caught up"
    if before.watermark > watermark:
        watermark, held_by = before.watermark, f"an earlier batch; {held_by}"
    return Standing(watermark, held_by, sources, now, run, caught_up)


def _seen(strategy: Watermarks, before: Standing, latest: Mapping[SourceName, int], passed: int) -> dict[SourceName, SourceMark]:
    """Return what is known of each source after ``passed`` microseconds and rows that reach to ``latest``."""
    if strategy.idleness is not None:
        passed = min(passed, (strategy.idleness + 1) // 2)
    sources = {name: SourceMark(mark.latest, mark.silent + passed) for name, mark in before.sources.items()}
    for name, time in latest.items():
        known = sources.get(name)
        sources[name] = SourceMark(time if known is None else max(known.latest, time))
    return sources


def _of_rows(strategy: Watermarks, sources: Mapping[SourceName, SourceMark]) -> tuple[int, str]:
    """Return the watermark that rows have made, and what holds it back."""
    if not sources:
        return MIN, "no row has come"
    idleness = strategy.idleness
    waited_for = {name: mark for name, mark in sources.items() if idleness is None or mark.silent < idleness}
    if waited_for:
        name = min(waited_for, key=lambda each: (waited_for[each].latest, str(each)))
        latest = waited_for[name].latest
        held_by = f"rows, the latest at {format_instant(latest)}"
        if strategy.source is not None:
            held_by = f"{strategy.source} {name}, whose latest row is at {format_instant(latest)}"
    else:
        latest = max(mark.latest for mark in sources.values())
        held_by = f"nothing: each {strategy.source} is idle"
    return add_clamped(latest, -strategy.delay - 1), held_by


class WatermarkGenerator:
    """A strategy a row at a time: takes rows, and gives the watermark when it is asked for one.

    Args:
        strategy: how the watermark is made.
        standing: what an earlier generator knew, for one that goes on from it.
        run: the run of the query; another one than the standing's means that the query was stopped between.

    Raises:
        InvalidSpecError: parts of the strategy do not go together.

    Source: Flink's ``WatermarkGenerator``.

    Example:
        >>> generator = WatermarkGenerator(Watermarks.bounded(5))
        >>> generator.on_event({}, timestamp=100)
        >>> generator.on_periodic_emit(now=0)
        94
    """

    def __init__(self, strategy: Watermarks, standing: Standing | None = None, run: str = "") -> None:
        """Begin where ``standing`` was, or with nothing."""
        self.strategy = Watermarks.of(strategy)
        self.standing = standing or Standing()
        self._run = run
        self._latest: dict[SourceName, int] = {}

    def on_event(self, row: Any, timestamp: int) -> None:
        """Take a row; the columns that the strategy names are read from it."""
        time: int | None = timestamp
        if self.strategy.punctuation is not None:
            said = row[self.strategy.punctuation]
            time = (timestamp if said else None) if isinstance(said, bool) else said
        if time is None:
            return
        source = None if self.strategy.source is None else _text(row[self.strategy.source])
        self._latest[source] = max(self._latest.get(source, time), time)

    def on_periodic_emit(self, now: int) -> int:
        """Return the watermark that the rows so far and the clock make, and end the batch."""
        latest, self._latest = self._latest, {}
        self.standing = advance(self.strategy, self.standing, latest, now, self._run)
        return self.standing.watermark


def _text(source: Any) -> SourceName:
    return None if source is None else str(source)
