"""Strategies: how the watermark of a stream is made, as a frozen value that prints as it is written."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from windowpane.errors import InvalidSpecError
from windowpane.windowing.times import Duration, format_micros, to_micros


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
    of_each_key: bool = False
    is_at_once: bool = False

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
        """Rows carry themselves how far the stream is complete.

        Args:
            column: a timestamp: nothing before it is still to come; or a boolean: where it is true, nothing before the row's own
                event time is. Rows where it is NULL or false have no effect.

        Example:
            >>> wp.stream(df, event_time="at", watermark=wp.Watermarks.punctuated("complete_until"))
        """
        return cls(punctuation=_column("punctuated", column))

    def per_source(self, column: str) -> Watermarks:
        """Follow the slowest of several sources: the watermark is the least of theirs, not the greatest.

        A fast source makes the rows of a slow one late no more. A source is known from its first row on; what is behind the
        watermark then is late.

        Args:
            column: what identifies a source, such as Kafka's ``partition``: text, a whole number, a date or a boolean. Each value
                is kept for good, so this is no place for users or devices.

        Source: Flink's watermarks of splits.

        Example:
            >>> wp.Watermarks.bounded("5 minutes").per_source("partition")
        """
        return dataclasses.replace(self, source=_column("per_source", column))

    def with_idleness(self, after: Duration) -> Watermarks:
        """Wait no longer for a source that brought no row for so long; where all are idle, wait for none.

        Only time in which the query runs counts. A source that brings rows again does not move the watermark back: those behind
        it are late. Needs ``per_source``.

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

        Windows close so long after their end even if no row arrives any more. Rows that are older than that are late. A run that
        begins takes what has queued up first, see *Quiet streams*.

        Raises:
            InvalidDurationError: the bound is no duration.
            InvalidSpecError: it is negative.

        Example:
            >>> wp.Watermarks.bounded("5 minutes").not_behind_now("10 minutes")
        """
        return dataclasses.replace(self, behind_now=_not_negative("not_behind_now", bound))

    def per_key(self) -> Watermarks:
        """Give each key a watermark of its own, made of its rows alone.

        For devices that are offline for hours: one makes no other late, and the windows of each close by its own rows, in the
        batch that brings them. The windows of a key that brings no more rows stay open. Windows by key have it, and OVER windows
        that emit on window close, by their partition; an operator behind them is told it again, of the times of results. The
        reference engine runs it, and keeps a number for each key for good.

        Example:
            >>> wp.stream(df, event_time="at", watermark=wp.Watermarks.bounded("1 minute").per_key()).key_by("device")
        """
        return dataclasses.replace(self, of_each_key=True)

    def at_once(self) -> Watermarks:
        """Let rows close windows in the micro-batch that brings them, not in the one after.

        Rows are late as before, under the watermark of the batches before them; then the watermark advances to the one that they
        make. Results are the same, one trigger interval sooner. Windowpane makes such a watermark itself, so a bucket works twice
        in a batch whose rows advance it. With ``with_idleness`` or ``not_behind_now`` the query runs a batch at each trigger.

        Example:
            >>> wp.Watermarks.bounded("5 minutes").at_once()
        """
        return dataclasses.replace(self, is_at_once=True)

    @classmethod
    def of(cls, given: Duration | Watermarks) -> Watermarks:
        """Return what ``watermark=`` was given as a strategy, whole: one that lacks a part it needs is refused.

        Raises:
            InvalidDurationError: it is neither a strategy nor a duration.
            InvalidSpecError: parts of it do not go together.
        """
        strategy = given if isinstance(given, Watermarks) else cls(_not_negative("watermark", given))
        beside = (strategy.source, strategy.idleness, strategy.behind_now, strategy.punctuation)
        if strategy.of_each_key and (strategy.is_at_once or any(each is not None for each in beside)):
            raise InvalidSpecError(
                f"{strategy!r}: the watermark of a key is made of the key's rows alone, so per_key goes with bounded and "
                "monotonous, and with nothing else."
            )
        if strategy.idleness is not None and strategy.source is None:
            raise InvalidSpecError(
                f"{strategy!r}: a single source that is idle holds nothing back, so with_idleness alone changes nothing. Add "
                ".per_source('partition') to wait for the slowest of several, or say .not_behind_now('10 minutes') for windows "
                "that close when the stream falls silent."
            )
        if strategy.punctuation is not None and not strategy.is_sparks:
            raise InvalidSpecError(
                f"{strategy!r}: rows that say how far the stream is complete speak for all of it; per_source, not_behind_now "
                "and at_once go with bounded and monotonous."
            )
        return strategy

    @property
    def is_sparks(self) -> bool:
        """Whether Spark makes the watermark: the latest of a column, less a delay."""
        return self.source is None and self.behind_now is None and not self.of_each_key and not self.is_at_once

    @property
    def waits_for_rows_alone(self) -> bool:
        """Whether nothing has to be done after a batch until rows arrive: they close windows at once, and no clock does."""
        return self.is_at_once and self.behind_now is None and self.idleness is None

    def __repr__(self) -> str:
        begun = f"bounded({format_micros(self.delay)!r})" if self.delay else "monotonous()"
        parts = [begun if self.punctuation is None else f"punctuated({self.punctuation!r})"]
        parts += ["per_key()"] if self.of_each_key else []
        parts += [f"per_source({self.source!r})"] if self.source is not None else []
        parts += [f"with_idleness({format_micros(self.idleness)!r})"] if self.idleness is not None else []
        parts += [f"not_behind_now({format_micros(self.behind_now)!r})"] if self.behind_now is not None else []
        parts += ["at_once()"] if self.is_at_once else []
        return ".".join(["Watermarks", *parts])

    def explain(self, event_time: str | None) -> str:
        """Return what the watermark is and who makes it, in words."""
        if self.punctuation is not None:
            return f"what column {self.punctuation!r} says; made by Spark"
        text = f"the latest {event_time}" + (f" less {format_micros(self.delay)}" if self.delay else "")
        if self.is_sparks:
            return f"{text}; made by Spark"
        if self.of_each_key:
            return f"{text} of each key; made by windowpane, since Spark has one watermark for all"
        if self.source is not None:
            text += f" of each {self.source}, the least of them"
            text += f" but those idle for {format_micros(self.idleness)}" if self.idleness is not None else ""
        if self.behind_now is not None:
            text += f", at least the clock less {format_micros(self.behind_now)}"
        text += ", in the batch that brings it" if self.is_at_once else ""
        if self.source is None and self.behind_now is None:
            return f"{text}; made by windowpane, since Spark's is that of the batches before"
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


def _column(role: str, name: object) -> str:
    if not isinstance(name, str) or not name:
        raise InvalidSpecError(f"{role}({name!r}): expected the name of a column.")
    return name
