"""How two streams are joined: by window, by an interval of event time, or as of an instant. Frozen values, checked when built.

Times are microseconds. A pair is a left and a right row of equal keys that match. ``How``: which rows are emitted beside pairs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, cast, get_args

from windowpane.errors import (
    EmptyIntervalError,
    InvalidDurationError,
    InvalidSpecError,
    NeverClosesError,
    UnboundedIntervalError,
    UnsupportedJoinError,
)
from windowpane.windowing.assigners import WindowAssigner
from windowpane.windowing.assigners.session import GapFunction
from windowpane.windowing.expressions import SideName
from windowpane.windowing.times import Duration, format_micros, to_micros

How = Literal["inner", "left", "right", "full", "semi", "anti"]
Direction = Literal["backward", "forward", "nearest"]
TimeOf = Literal["max", "left", "right"]

PADS_LEFT = ("left", "full")
"""Joins in which a left row without a match is emitted, padded with NULL."""
PADS_RIGHT = ("right", "full")
"""The same of right rows."""
LEFT_ONLY = ("semi", "anti")
"""Joins whose result has the columns of the left side only."""


def checked_how(how: object) -> How:
    if how not in get_args(How):
        raise InvalidSpecError(f"how={how!r}: it is one of {', '.join(map(repr, get_args(How)))}.")
    return cast("How", how)


@dataclass(frozen=True)
class WindowMatch:
    """Rows of one window and key; sessions are those of both sides together."""

    assigner: WindowAssigner

    @property
    def gap_of(self) -> GapFunction | None:
        """The function that says the gap of a session row by row, ``None`` where there is none."""
        gap = getattr(self.assigner, "gap", None)
        return gap if callable(gap) else None

    def __str__(self) -> str:
        return f"in one window of {self.assigner!r}"


@dataclass(frozen=True)
class IntervalMatch:
    """A right row whose time lies between two bounds, both inclusive: the left row's time plus ``lower`` and plus ``upper``.

    ``upper`` is added to ``upper_column``, a timestamp column of the left side, if there is one.
    """

    lower: int
    upper: int
    upper_column: str | None = None

    def __post_init__(self) -> None:
        if self.upper_column is None and self.lower > self.upper:
            raise EmptyIntervalError(format_micros(self.lower), format_micros(self.upper))

    @classmethod
    def of(
        cls,
        lower: Duration | None,
        upper: Duration | SideName | None,
        lower_open: bool = False,
        upper_open: bool = False,
    ) -> IntervalMatch:
        """Return the match of bounds as users give them."""
        if lower is None or upper is None:
            raise UnboundedIntervalError("lower" if lower is None else "upper")
        if isinstance(lower, SideName):
            raise InvalidDurationError(lower, "only the upper bound may be a column")
        begin = to_micros(lower) + int(lower_open)
        if isinstance(upper, SideName):
            if upper.side != "left":
                raise InvalidSpecError(f"within: the upper bound is {upper!r}, but it may only be a column of the left side.")
            return cls(begin, -int(upper_open), upper.name)
        try:
            return cls(begin, to_micros(upper) - int(upper_open))
        except EmptyIntervalError:
            raise EmptyIntervalError(lower, upper) from None

    @property
    def reach(self) -> int:
        return max(self.upper, 0)

    @property
    def lag(self) -> int:
        return max(-self.lower, 0)

    def __str__(self) -> str:
        upper = f"left({self.upper_column!r})" if self.upper_column else f"left + {format_micros(self.upper)}"
        return f"left + {format_micros(self.lower)} <= right <= {upper}"


@dataclass(frozen=True)
class AsOfMatch:
    """The right row that is the latest, the next or the nearest one at the time of the left row."""

    direction: Direction = "backward"
    tolerance: int | None = None
    """How far away it may be, inclusive; ``None`` for any distance."""
    allow_exact: bool = True
    """Whether it may have the very time of the left row."""
    retain: int | None = None
    """How long a right row is kept behind the watermark when no newer one has arrived; ``None`` for ever."""
    tolerance_of: str | None = None
    """An interval column of the left side: how far away the right row of each left row may be besides; NULL for any distance."""
    sequence: str | None = None
    """A column of the right side, by which the largest of rows of one time counts; of equal ones the last to arrive."""
    skips_nulls: bool = False
    """Whether each column has its last value that is no NULL."""

    def __post_init__(self) -> None:
        if self.skips_nulls and (self.direction != "backward" or self.tolerance is not None or self.tolerance_of is not None):
            raise InvalidSpecError(
                "skip_nulls, and several right sides, take the last value of each column, of whatever age: the direction is "
                "'backward', and there is no tolerance. Where the age counts, join a side by itself, without skip_nulls."
            )
        if self.direction not in get_args(Direction):
            raise InvalidSpecError(f"match({self.direction!r}): it is one of {', '.join(map(repr, get_args(Direction)))}.")
        for name, distance in (("tolerance", self.tolerance), ("retain", self.retain)):
            if distance is not None and distance < 0:
                raise InvalidSpecError(f"{name}= cannot be negative, but is {format_micros(distance)}.")

    def check_closes(self) -> None:
        """Refuse a match that no watermark ever makes final."""
        if self.direction != "backward" and self.tolerance is None:
            raise NeverClosesError(f"match({self.direction!r})", "a right row may come at any later time (give tolerance=)")

    def __str__(self) -> str:
        parts: list[str] = [self.direction]
        parts += [] if self.tolerance is None else [f"within {format_micros(self.tolerance)}"]
        parts += [] if self.tolerance_of is None else [f"within left({self.tolerance_of!r})"]
        parts += [] if self.allow_exact else ["not at the same time"]
        parts += [] if self.sequence is None else [f"of one time the largest {self.sequence}"]
        parts += ["the last value of each column"] if self.skips_nulls else []
        parts += [] if self.retain is None else [f"right rows kept {format_micros(self.retain)}"]
        return ", ".join(parts)


@dataclass(frozen=True)
class ArrivalMatch:
    """The right row of its key that has arrived last when the left row arrives."""

    def __str__(self) -> str:
        return "the right row that has arrived last"


Match = WindowMatch | IntervalMatch | AsOfMatch | ArrivalMatch


def uses_event_time(match: Match) -> bool:
    """Whether rows meet by their event time; else by the clock, or as they arrive."""
    if isinstance(match, WindowMatch):
        return match.assigner.is_event_time
    return not isinstance(match, ArrivalMatch)


def uses_clock(match: Match) -> bool:
    return isinstance(match, WindowMatch) and match.assigner.ends_by_clock


def check_join(match: Match, how: How, *, is_co_group: bool = False) -> None:
    """Refuse a kind of join that has no meaning for how rows are matched."""
    if isinstance(match, WindowMatch) and not match.assigner.has_ends and not is_co_group:
        raise UnsupportedJoinError(
            f"window({match.assigner!r})",
            "rows meet at the end of a window, and a global one never ends; take windows that end, or co_group and a trigger",
        )
    if isinstance(match, AsOfMatch | ArrivalMatch) and how not in ("left", "inner"):
        raise UnsupportedJoinError(
            f"how({how!r})", "a join as of an instant gives every left row at most one right row; it is 'left' or 'inner'"
        )
