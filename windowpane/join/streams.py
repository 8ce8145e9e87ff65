"""Two streams that are to be joined, step by step: their keys, and which rows of equal keys are pairs."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass

from windowpane.arrays.values import Value
from windowpane.errors import InvalidSpecError
from windowpane.guidance import Guided, begins
from windowpane.join.results import AsOfJoin, IntervalJoin, WindowJoin
from windowpane.planning.joins import JoinRequest
from windowpane.stream import Stream
from windowpane.windowing.assigners import ClosedSessionWindows, WindowAssigner
from windowpane.windowing.assigners.session import GapColumn
from windowpane.windowing.expressions import SideName
from windowpane.windowing.joins import ArrivalMatch, AsOfMatch, Direction, How, IntervalMatch, Match, WindowMatch
from windowpane.windowing.times import Duration, to_micros

_PREFIXES = ("left_", "right_")


@begins
def join(left: Stream, right: Stream, prefixes: tuple[str, str] = _PREFIXES) -> JoinedStreams:
    """Begin a join of two streams.

    Args:
        left: a stream, ``wp.stream(df, event_time=..., watermark=...)``.
        right: another, or the same one.
        prefixes: put before the names that both sides have, of the left and of the right one; keys keep theirs.

    Returns:
        Two streams to call ``on`` on.

    Raises:
        InvalidSpecError: a side is no stream.

    Example:
        >>> clicks = wp.stream(clicks_df, event_time="at", watermark="10 minutes")
        >>> buys = wp.stream(buys_df, event_time="at", watermark="1 hour")
        >>> wp.join(clicks, buys).on("user").within("0 s", "30 minutes").how("left")
    """
    return JoinedStreams(_Sides.of("join", left, right, prefixes))


@begins
def as_of(left: Stream, right: Stream | Mapping[str, Stream], prefixes: tuple[str, str] = _PREFIXES) -> AsOfStreams:
    """Begin a join of each left row with the one right row that was valid at its time, of one right side or of several.

    Args:
        left: a stream, whose rows are emitted once each.
        right: a stream of versions: a row holds from its event time on, until a newer one of its key arrives. With a string
            column ``_change_type`` it is a changelog, in which a ``delete`` ends a version. Several streams by name are joined
            in one operator, with ``match()`` backward: the result has the last row of each as a struct of that name.
        prefixes: as for ``join``.

    Returns:
        Two streams to call ``on`` on.

    Raises:
        InvalidSpecError: a side is no stream.

    Example:
        >>> wp.as_of(trades, quotes).on("sym").match("backward", tolerance="5 seconds")
        >>> wp.as_of(trades, {"quote": quotes, "rate": rates}).on("sym").match().df.select("qty", "quote.price", "rate.percent")
    """
    if not isinstance(right, Mapping):
        return AsOfStreams(_Sides.of("as_of", left, right, prefixes))
    if not right:
        raise InvalidSpecError("as_of: there is no right side: {'quote': quotes, 'rate': rates} names them.")
    sides = [_Sides.of("as_of", left, each, prefixes) for each in right.values()]
    return AsOfStreams(sides[0], tuple(right.items()))


@dataclass(frozen=True)
class _Sides:
    """Two streams, and how names that both have are distinguished."""

    left: Stream
    right: Stream
    prefixes: tuple[str, str]
    on: tuple[tuple[str, str], ...] = ()
    null_safe: bool = False

    @classmethod
    def of(cls, function: str, left: Stream, right: Stream, prefixes: object) -> _Sides:
        for side, given in (("left", left), ("right", right)):
            if not isinstance(given, Stream):
                raise InvalidSpecError(
                    f"{function}: the {side} side is a {type(given).__name__}. A side is a stream: "
                    "wp.stream(df, event_time='at', watermark='10 minutes')."
                )
        if not (isinstance(prefixes, tuple | list) and len(prefixes) == 2 and all(isinstance(each, str) for each in prefixes)):
            raise InvalidSpecError(f"prefixes={prefixes!r}: expected two texts, such as ('l_', 'r_').")
        return cls(left, right, (prefixes[0], prefixes[1]))

    def keyed(self, keys: tuple[Value, ...], null_safe: bool) -> _Sides:
        pairs = [(key, key) if isinstance(key, str) else key for key in keys]
        if not pairs:
            raise InvalidSpecError("on needs at least one key: on('user'), or on(('user', 'buyer')) where the names differ.")
        for pair in pairs:
            if not (isinstance(pair, tuple | list) and len(pair) == 2 and all(isinstance(each, str) for each in pair)):
                raise InvalidSpecError(
                    f"on: {pair!r} is no key. A key is the name of a column, or a pair of names, left and right. What has to be "
                    "computed gets a name before: df.withColumn('user', ...)."
                )
        return dataclasses.replace(self, on=tuple((pair[0], pair[1]) for pair in pairs), null_safe=null_safe)

    def matched(self, match: Match, how: How) -> JoinRequest:
        return JoinRequest(self.on, match, self.null_safe, how, prefixes=self.prefixes)


@dataclass(frozen=True)
class JoinedStreams(Guided):
    """Two streams, not yet keyed."""

    _sides: _Sides

    def on(self, *keys: str | tuple[str, str], null_safe: bool = False) -> KeyedStreams:
        """Join rows of equal keys.

        Args:
            keys: names of columns that both sides have, or pairs of names, left and right.
            null_safe: whether NULL equals NULL; else a NULL matches nothing.

        Raises:
            InvalidSpecError: there is no key, or one is no name.

        Example:
            >>> wp.join(orders, payments).on(("id", "order_id"))
        """
        return KeyedStreams(self._sides.keyed(keys, null_safe))


@dataclass(frozen=True)
class KeyedStreams(Guided):
    """Two streams with their keys: say which rows of equal keys are pairs."""

    _sides: _Sides

    def window(self, assigner: WindowAssigner) -> WindowJoin:
        """Pair rows that are in one window.

        Args:
            assigner: which windows: tumbling, sliding, cumulating, calendar or session windows. A session is one of both sides
                together: rows of either extend it. Global windows need ``co_group`` and a trigger.

        Raises:
            InvalidSpecError: something else was given.

        Source: Flink's window join.

        Example:
            >>> wp.join(clicks, buys).on("user").window(wp.TumblingEventTimeWindows.of("1 hour"))
        """
        if not isinstance(assigner, WindowAssigner):
            raise InvalidSpecError(
                f"window takes a window assigner, such as wp.TumblingEventTimeWindows.of('1 hour'), got {assigner!r}."
            )
        if isinstance(getattr(assigner, "gap", None), GapColumn):
            raise InvalidSpecError(
                "the gap of a session of both sides is a function: with_dynamic_gap(lambda row: ...), which sees the columns of "
                "the row's own side."
            )
        if isinstance(assigner, ClosedSessionWindows):
            raise InvalidSpecError("a window join has one session of both sides, which closed_by cannot cut: leave it out.")
        return WindowJoin(self._sides.left, self._sides.right, self._sides.matched(WindowMatch(assigner), "inner"))

    def within(
        self,
        lower: Duration,
        upper: Duration | SideName,
        lower_open: bool = False,
        upper_open: bool = False,
    ) -> IntervalJoin:
        """Pair rows whose times are close: ``left time + lower <= right time <= left time + upper``.

        Args:
            lower: a duration, negative for right rows before the left one.
            upper: a duration, or a timestamp column of the left side, ``wp.left("expires")``, until which right rows match.
            lower_open: whether a right row at the very lower bound does not match.
            upper_open: the same of the upper bound.

        Raises:
            EmptyIntervalError: no time lies between the bounds.
            UnboundedIntervalError: a bound is ``None``.
            InvalidDurationError: a bound is no duration of fixed length.

        Source: Flink's interval join, ``between``.

        Example:
            >>> wp.join(clicks, buys).on("user").within("0 seconds", "30 minutes")
        """
        match = IntervalMatch.of(lower, upper, lower_open, upper_open)
        return IntervalJoin(self._sides.left, self._sides.right, self._sides.matched(match, "inner"))


@dataclass(frozen=True)
class AsOfStreams(Guided):
    """Two streams, each row of the left one to be joined with at most one of the right one."""

    _sides: _Sides
    _several: tuple[tuple[str, Stream], ...] = ()

    def on(self, *keys: str | tuple[str, str], null_safe: bool = False) -> KeyedAsOfStreams:
        """Join rows of equal keys, see ``JoinedStreams.on``."""
        return KeyedAsOfStreams(self._sides.keyed(keys, null_safe), self._several)


@dataclass(frozen=True)
class KeyedAsOfStreams(Guided):
    """Two streams with their keys: say which right row a left one is joined with."""

    _sides: _Sides
    _several: tuple[tuple[str, Stream], ...] = ()

    def match(
        self,
        direction: Direction = "backward",
        tolerance: Duration | SideName | None = None,
        allow_exact: bool = True,
        retain: Duration | None = None,
        sequence: str | None = None,
        skip_nulls: bool = False,
    ) -> AsOfJoin:
        """Say which right row it is.

        Args:
            direction: ``"backward"``: the latest one until the time of the left row. ``"forward"``: the next one from then on.
                ``"nearest"``: the one that is less far away, the earlier one of two that are equally far.
            tolerance: how far away it may be, inclusive: a duration, or an interval column of the left side,
                ``wp.left("max_age")``, whose NULL is any distance. On a stream, forward and nearest need a duration.
            allow_exact: whether a right row of the very time of the left one counts.
            retain: how long the newest right row of a key is kept when the watermark moves on without another; by default, for
                ever.
            sequence: a column of the right side: of right rows of one time the one with the largest counts, NULL the smallest;
                of equal ones, and without it, the last to arrive.
            skip_nulls: whether each column has its last value that is no NULL, the last known one, be it of an older right row
                than those of the others. A ``delete`` ends all of them. Keys and the ``sequence`` are those of the newest row.
                Backward only, without a tolerance.

        Raises:
            InvalidSpecError: another word, a negative distance, or parts that do not fit each other.

        Source: kdb+ ``aj``, pandas' ``merge_asof``, Flink's temporal join; ``sequence`` and ``skip_nulls``: Tempo's ``asofJoin``.

        Example:
            >>> wp.as_of(trades, quotes).on("sym").match("backward", tolerance="5 seconds")
            >>> wp.as_of(trades, quotes).on("sym").match(tolerance=wp.left("max_age"), sequence="seq")
        """
        of_row = tolerance if isinstance(tolerance, SideName) else None
        if of_row is not None and of_row.side != "left":
            raise InvalidSpecError(f"match: the tolerance is {of_row!r}, but it may only be a column of the left side.")
        if self._several and (skip_nulls or sequence is not None):
            raise InvalidSpecError(
                "match: of several right sides each gives its last row, whose NULLs count, and of one time the last to arrive: "
                "join a side that needs skip_nulls or sequence by itself."
            )
        match = AsOfMatch(
            direction,
            None if tolerance is None or isinstance(tolerance, SideName) else to_micros(tolerance),
            allow_exact,
            None if retain is None else to_micros(retain),
            None if of_row is None else of_row.name,
            sequence,
            skip_nulls or bool(self._several),
        )
        return AsOfJoin(self._sides.left, self._right(), self._sides.matched(match, "left"))

    def _right(self) -> Stream:
        """Return the right side; of several their rows together, those of each in a column of its name, NULL in the others."""
        if not self._several:
            return self._sides.right
        from windowpane.spark.building.joins import united

        sources = {name: stream.source for name, stream in self._several}
        return Stream(united(sources, [right for _, right in self._sides.on]))

    def by_arrival(self) -> AsOfJoin:
        """Take the right row that has arrived last when the left row arrives, whatever their times are.

        Right rows of a micro-batch are taken before its left rows. A left row is emitted at once and is not corrected, so results
        depend on how rows are cut into batches. One right row a key is held. Neither side needs an event time or a watermark.

        Source: Flink's ``FOR SYSTEM_TIME AS OF`` a processing time.

        Example:
            >>> wp.as_of(orders, wp.stream(rates)).on("currency").by_arrival()
        """
        if self._several:
            raise InvalidSpecError("by_arrival takes one right side: join several one after the other.")
        return AsOfJoin(self._sides.left, self._sides.right, self._sides.matched(ArrivalMatch(), "left"))
