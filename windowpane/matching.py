"""The fluent API of row patterns: SQL's ``MATCH_RECOGNIZE`` in Python, with "followed by", and the absence of an event.

``stream(df)`` -> ``key_by`` -> ``match`` -> ``within``, ``after_match`` ... -> ``select`` or ``all_rows`` -> ``MatchResult``.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, cast

from windowpane.arrays.values import Value
from windowpane.engines.changes import Accepts
from windowpane.errors import InvalidSpecError
from windowpane.guidance import Guided
from windowpane.planning.patterns.plan import PatternRequest
from windowpane.planning.settings import Configured
from windowpane.planning.sinks import BatchTrigger, Sink
from windowpane.result import Selectable
from windowpane.windowing.calls import several
from windowpane.windowing.expressions import Argument, Columns, Expression
from windowpane.windowing.outputs import OutputTag
from windowpane.windowing.patterns.spec import AfterMatch, OnError, RowsShown
from windowpane.windowing.times import Duration, to_micros

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

    from windowpane.spark.building.program import BuiltProgram
    from windowpane.spark.sources.source import Source
    from windowpane.windowing.expressions import ColumnLike


@dataclass(frozen=True, eq=False)
class Matching(Configured, Guided):
    """A row pattern over the rows of each key: say what bounds it and what comes out of a match."""

    source: Source
    keys: tuple[ColumnLike, ...]
    request: PatternRequest

    def order_by(self, *columns: Columns) -> Matching:
        """Order rows of one event time by column names or Columns, also ``.desc()``; then by their order of arrival.

        Raises:
            UnknownColumnError: there is no such column.
        """
        order = several(columns[0]) if len(columns) == 1 else columns
        self.source.require(order, "order_by")
        return self._asking(order_by=order)

    def within(self, duration: Duration) -> Matching:
        """Bound a match in time: its last row is less than ``duration`` after its first one.

        It bounds the state, too, and says when an absence is certain: when the watermark has passed the bound.

        Args:
            duration: text such as ``"30 minutes"``, a timedelta, or microseconds.

        Raises:
            InvalidDurationError: it is no duration.
            InvalidSpecError: it is not longer than nothing.

        Source: Flink SQL's ``WITHIN``.

        Example:
            >>> orders.match("placed -> !paid", placed=wp.col("kind") == "order", paid=wp.col("kind") == "pay").within("30 min")
        """
        micros = to_micros(duration)
        if micros <= 0:
            raise InvalidSpecError(f"within({duration!r}): a match takes some time, such as within('30 minutes').")
        return self._asking(within=micros)

    def after_match(self, to: str | tuple[str, str], on_error: OnError = "raise") -> Matching:
        """Say where the search goes on after a match.

        Args:
            to: ``"past last row"`` (if it is not said), ``"to next row"``: at the second row of the match, so that matches
                overlap, ``("to first", "up")`` or ``("to last", "up")``: at a row of a variable or subset.
            on_error: where the match has no such row, or it is the first row of the match: ``"raise"`` a ``SkipTargetError``, or
                go on at the ``"next row"`` and count ``bad_skips``.

        Raises:
            InvalidSpecError: another word.

        Source: SQL:2016, ``AFTER MATCH SKIP``.

        Example:
            >>> ticks.match("up+", up=wp.col("price") > wp.lag("price")).after_match("to next row")
        """
        if on_error not in ("raise", "next row"):
            raise InvalidSpecError(f"on_error={on_error!r}: it is 'raise' or 'next row'.")
        after = AfterMatch(*((to,) if isinstance(to, str) else to))
        return self._asking(after_match=after, on_error=on_error)

    def subset(self, **names: str | Iterable[str]) -> Matching:
        """Give several variables a name together: ``subset(move=("down", "up"))``.

        Raises:
            InvalidSpecError: when the pattern is built: a name is a variable's, or one of the variables is not in the pattern.

        Source: SQL:2016, ``SUBSET``.
        """
        return self._asking(subsets={name: frozenset((of,) if isinstance(of, str) else of) for name, of in names.items()})

    def timeouts(self, tag: OutputTag | str) -> Matching:
        """Send attempts that fail for want of a row within the bound to a side output: the keys, and the measures of their rows.

        Of the ways that an attempt could have gone on, the first one in the order of preference that had a row.

        Args:
            tag: the side output, or its name.

        Raises:
            InvalidSpecError: what was given is neither; or, when the pattern is built, there is no ``within``.

        Source: Flink CEP's timed-out partial matches.

        Example:
            >>> shop.match("view -> cart -> pay", ...).within("1 hour").timeouts("gave_up")
        """
        if not isinstance(tag, OutputTag | str):
            raise InvalidSpecError(f"timeouts takes an OutputTag or a name, such as 'gave_up', got {tag!r}.")
        return self._asking(timeouts=OutputTag(tag) if isinstance(tag, str) else tag)

    def limits(self, max_rows: int | None = None, max_steps: int | None = None, retain: Duration | None = None) -> Matching:
        """Bound what one attempt may hold and how long it may be searched, and how long a key is remembered.

        Args:
            max_rows: an attempt that waits with more rows is given up, counted as ``overflow``, and goes to ``timeouts`` if they
                are declared; 100,000 if it is not said.
            max_steps: the search for one match ends with a ``PatternLimitError``; 10,000,000 if it is not said.
            retain: a key without a waiting row is forgotten when the watermark is so far behind its last row: that there were
                rows before (``^``), the number of its matches, and the rows that ``wp.lag`` looks back at; for ever if it is not
                said.

        Raises:
            InvalidSpecError: a number below one, a negative ``retain``.
            InvalidDurationError: ``retain`` is no duration.
        """
        given = {"most_rows": max_rows, "most_steps": max_steps}
        for name, number in given.items():
            if number is not None and (not isinstance(number, int) or number < 1):
                raise InvalidSpecError(f"limits({name.replace('most', 'max')}={number!r}): it is a whole number from 1 on.")
        if retain is not None:
            given["retain"] = micros = to_micros(retain)
            if micros < 0:
                raise InvalidSpecError(f"limits(retain={retain!r}): a key is remembered for some time, such as '30 days'.")
        return self._asking(**{name: number for name, number in given.items() if number is not None})

    def select(self, **measures: Argument) -> MatchResult:
        """End with one row a match: the keys, then the measures.

        Args:
            measures: by output name: ``wp.first("start.at")``, ``wp.last("down.price")``, ``wp.first("up.price", 1)`` for the
                second one, aggregates such as ``wp.count("bad.at")``, ``wp.classifier()``, ``wp.match_number()``,
                ``wp.match_time()``, and expressions of them, which Spark computes.

        Returns:
            The result. Columns of a variable are ``"variable.column"``; without a variable all rows of the match count.

        Raises:
            InvalidSpecError: no measure, or settings that do not go together.
            PatternError: the text is no pattern.
            UnknownColumnError: a column or variable that there is not.
            NeverClosesError: on a stream: an absence or ``$`` without ``within``.
            UnboundedStateError: on a stream: an attempt could wait for ever with all rows to come.

        Example:
            >>> v.select(low=wp.last("down.price"), high=wp.last("up.price"), since=wp.first("start.at"), n=wp.count())
        """
        if not measures:
            raise InvalidSpecError("select needs a measure, such as since=wp.first('start.at').")
        return self._result((), measures, "one")

    def all_rows(
        self, *columns: str, empty: Literal["show", "omit"] = "show", unmatched: bool = False, **measures: Argument
    ) -> MatchResult:
        """End with the rows of each match, in order, with the measures of the rows up to each.

        Args:
            columns: names of columns, ``"*"`` for all.
            empty: whether a match without rows shows the row it begins at, or is left out with ``"omit"``.
            unmatched: whether rows that are in no match come out, too, their measures NULL.
            measures: as ``select`` takes them; with ``.final()`` those of the whole match.

        Raises:
            InvalidSpecError: another word, two columns of one name; else as ``select``.

        Source: SQL:2016, ``ALL ROWS PER MATCH``.

        Example:
            >>> shop.match("open any* close", ...).within("1 day").all_rows("*", part=wp.classifier(), visit=wp.match_number())
        """
        if empty not in ("show", "omit"):
            raise InvalidSpecError(f"empty={empty!r}: it is 'show' or 'omit'.")
        if unmatched and empty == "omit":
            raise InvalidSpecError("unmatched=True shows the rows of empty matches, too: leave empty='omit' out.")
        return self._result(
            columns or ("*",), measures, "all unmatched" if unmatched else "all omit empty" if empty == "omit" else "all"
        )

    def _asking(self, **parts: Value) -> Matching:
        return dataclasses.replace(self, request=dataclasses.replace(self.request, **parts))

    def _result(self, columns: tuple[str, ...], measures: Mapping[str, Argument], rows: RowsShown) -> MatchResult:
        from windowpane.spark.building.patterns import build_pattern

        for name, measure in measures.items():
            if not isinstance(measure, Expression):
                raise InvalidSpecError(
                    f"{name}={measure!r}: expected a measure, such as wp.last('up.price'), wp.count('a.at') or wp.match_number()."
                )
        request = dataclasses.replace(
            self.request,
            columns=columns,
            measures=tuple(cast("Mapping[str, Expression]", measures).items()),
            rows=rows,
            settings=self._settings,
        )
        return MatchResult(build_pattern(self.source, self.keys, request))


@dataclass(frozen=True, repr=False)
class MatchResult(Selectable):
    """A row pattern, ready to run: matches, and timeouts and late rows where they are asked for, see ``Runnable``."""

    _built: BuiltProgram

    def start(  # type: ignore[override]
        self,
        *unnamed: object,
        checkpoint: str | None = None,
        trigger: BatchTrigger | None = None,
        query_name: str | None = None,
        flush_at_end: bool = False,
        changes: Accepts = "safe",
        cut: str | dt.datetime | dt.date | None = None,
        history: DataFrame | None = None,
        history_results: Literal["emit", "skip"] = "skip",
        on_changed_pattern: Literal["raise", "continue"] = "raise",
        **sinks: Sink,
    ) -> StreamingQuery:
        """Start one query, as ``Runnable.start`` does.

        Args:
            unnamed: as there.
            checkpoint: as there.
            trigger: as there.
            query_name: as there.
            flush_at_end: as there.
            changes: as there.
            cut: as there.
            history: as there.
            history_results: as there.
            on_changed_pattern: where the checkpoint is of another pattern: ``"raise"``, or ``"continue"``: attempts that wait
                begin anew, by the new pattern, over the rows that are kept; what came out stays. It is that of
                ``changes="accept"``.
            sinks: as there.

        Raises:
            ChangedPlanError: another program wrote the checkpoint; or the rows that are kept lack what the new pattern asks for.
            InvalidSpecError: another word; and as ``Runnable.start``.

        Source: asked for in FLINK-7129.

        Example:
            >>> result.start(main="out", checkpoint="ckpt", on_changed_pattern="continue")
        """
        if on_changed_pattern not in ("raise", "continue"):
            raise InvalidSpecError(f"on_changed_pattern={on_changed_pattern!r}: it is 'raise' or 'continue'.")
        taken: Accepts = "accept" if on_changed_pattern == "continue" else changes
        return super().start(
            *unnamed,
            checkpoint=checkpoint,
            trigger=trigger,
            query_name=query_name,
            flush_at_end=flush_at_end,
            changes=taken,
            cut=cut,
            history=history,
            history_results=history_results,
            incomplete="null",
            **sinks,
        )
