"""Frames of OVER windows: which rows around a row a function sees.

A frame is written ``Frame.rows(preceding(3), CURRENT_ROW)``. What bounds may be combined is SQL's rule as RisingWave applies it:
a start behind the end of its own side, ``1 PRECEDING AND 10 PRECEDING``, is legal and empty; a start on a later side than the
end is refused.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import timedelta
from decimal import Decimal
from enum import Enum

from windowpane.errors import InvalidFrameError, MistakeError
from windowpane.windowing.intervals import Interval

Offset = int | float | Decimal | Interval


class Units(Enum):
    """What the offsets of a frame count."""

    ROWS = "ROWS"
    """Rows."""
    RANGE = "RANGE"
    """The distance of the order value."""
    GROUPS = "GROUPS"
    """Groups of peers: rows with equal order values."""
    SESSION = "SESSION"
    """No offsets: the frame of a row is its session, the run of rows whose distances stay below a gap (RisingWave)."""


class Exclude(Enum):
    """Which rows around the current one are taken out of the frame."""

    NO_OTHERS = "NO OTHERS"
    CURRENT_ROW = "CURRENT ROW"
    GROUP = "GROUP"
    """The current row and its peers."""
    TIES = "TIES"
    """The peers of the current row, but not the row itself."""


class Side(Enum):
    """On which side of the current row a bound lies; ordered from the start of the partition to its end."""

    UNBOUNDED_PRECEDING = 0
    PRECEDING = 1
    CURRENT_ROW = 2
    FOLLOWING = 3
    UNBOUNDED_FOLLOWING = 4


@dataclass(frozen=True, slots=True)
class Bound:
    """One end of a frame: a side, and how far on that side."""

    side: Side
    offset: Offset | None = None

    @property
    def is_unbounded(self) -> bool:
        return self.side in (Side.UNBOUNDED_PRECEDING, Side.UNBOUNDED_FOLLOWING)

    @property
    def steps(self) -> int | None:
        """The signed distance in rows or groups, negative before the current row; ``None`` if unbounded or not a count."""
        if self.side is Side.CURRENT_ROW:
            return 0
        if not isinstance(self.offset, int):
            return None
        return -self.offset if self.side is Side.PRECEDING else self.offset

    def __str__(self) -> str:
        name = self.side.name.replace("_", " ")
        return name if self.offset is None else f"{_offset_text(self.offset)} {name}"

    def __repr__(self) -> str:
        if self.offset is None:
            return self.side.name
        return f"{self.side.name.lower()}({self.offset!r})"


UNBOUNDED_PRECEDING = Bound(Side.UNBOUNDED_PRECEDING)
CURRENT_ROW = Bound(Side.CURRENT_ROW)
UNBOUNDED_FOLLOWING = Bound(Side.UNBOUNDED_FOLLOWING)


def preceding(offset: Offset | timedelta) -> Bound:
    """Return the bound ``offset PRECEDING``.

    Args:
        offset: an integer for ROWS and GROUPS; a number, an ``Interval`` or a ``timedelta`` for RANGE. Not below zero.

    Raises:
        InvalidFrameError: the offset is negative, infinite or no number.
    """
    return Bound(Side.PRECEDING, _checked(offset))


def following(offset: Offset | timedelta) -> Bound:
    """Return the bound ``offset FOLLOWING``; the offset is that of ``preceding``."""
    return Bound(Side.FOLLOWING, _checked(offset))


@dataclass(frozen=True, slots=True)
class Frame:
    """Which rows a function sees, relative to the current row.

    Raises:
        InvalidFrameError: the bounds cannot be combined, or an offset does not fit the units.

    Example:
        >>> print(Frame.rows(preceding(3)))
        ROWS BETWEEN 3 PRECEDING AND CURRENT ROW
    """

    units: Units  # what offsets count
    start: Bound  # the first end
    end: Bound  # the last end
    exclude: Exclude = Exclude.NO_OTHERS  # what is taken out
    # for SESSION, the distance of order values at which a new session starts (a distance of exactly the gap does)
    gap: Offset | None = None

    def __post_init__(self) -> None:
        if self.start.side is Side.UNBOUNDED_FOLLOWING:
            raise InvalidFrameError(f"{self}: a frame cannot start at UNBOUNDED FOLLOWING. Start it earlier.")
        if self.end.side is Side.UNBOUNDED_PRECEDING:
            raise InvalidFrameError(f"{self}: a frame cannot end at UNBOUNDED PRECEDING. End it later.")
        if self.start.side.value > self.end.side.value:
            raise InvalidFrameError(f"{self}: the frame ends before it starts. Exchange the bounds, or move the end.")
        counts = self.units in (Units.ROWS, Units.GROUPS)
        for offset in (self.start.offset, self.end.offset):
            if counts and offset is not None and not isinstance(offset, int):
                raise InvalidFrameError(f"{self}: an offset of {self.units.value} is a whole number, not {offset!r}.")
        if (self.gap is not None) != (self.units is Units.SESSION):
            raise InvalidFrameError(f"{self.units.value} with a gap of {self.gap!r}: SESSION frames have a gap, and only they.")

    @classmethod
    def rows(cls, start: Bound, end: Bound = CURRENT_ROW, exclude: Exclude = Exclude.NO_OTHERS) -> Frame:
        return cls(Units.ROWS, start, end, exclude)

    @classmethod
    def range_(cls, start: Bound, end: Bound = CURRENT_ROW, exclude: Exclude = Exclude.NO_OTHERS) -> Frame:
        return cls(Units.RANGE, start, end, exclude)

    @classmethod
    def groups(cls, start: Bound, end: Bound = CURRENT_ROW, exclude: Exclude = Exclude.NO_OTHERS) -> Frame:
        return cls(Units.GROUPS, start, end, exclude)

    @property
    def has_distance(self) -> bool:
        """Whether a bound lies at a distance of the order value."""
        bounds = (self.start, self.end)
        return self.units is Units.RANGE and any(bound.side in (Side.PRECEDING, Side.FOLLOWING) for bound in bounds)

    @property
    def session_gap(self) -> Offset:
        if self.gap is None:
            raise MistakeError("a SESSION frame has a gap")
        return self.gap

    @classmethod
    def session(cls, gap: Offset | timedelta, exclude: Exclude = Exclude.NO_OTHERS) -> Frame:
        """Return the frame that is the row's session: rows follow one another at less than ``gap``."""
        return cls(Units.SESSION, UNBOUNDED_PRECEDING, UNBOUNDED_FOLLOWING, exclude, _checked(gap))

    def excluding(self, exclude: Exclude) -> Frame:
        return replace(self, exclude=exclude)

    @property
    def has_range_offset(self) -> bool:
        """Whether order values are added to: then there must be exactly one order column, of a type that can be."""
        return self.units is Units.SESSION or (
            self.units is Units.RANGE and (self.start.offset is not None or self.end.offset is not None)
        )

    @property
    def is_canonical(self) -> bool:
        """Whether it holds the current row (before ``exclude``)."""
        return self.start.side.value <= Side.CURRENT_ROW.value <= self.end.side.value

    @property
    def n_preceding(self) -> int | None:
        """How many rows (ROWS) or groups (GROUPS) before the current row it can reach; ``None``: to the first."""
        return _reach(self, Side.PRECEDING, self.start.side is Side.UNBOUNDED_PRECEDING)

    @property
    def n_following(self) -> int | None:
        """How many rows (ROWS) or groups (GROUPS) after the current row it can reach; ``None``: to the last."""
        return _reach(self, Side.FOLLOWING, self.end.side is Side.UNBOUNDED_FOLLOWING)

    def __str__(self) -> str:
        excluded = "" if self.exclude is Exclude.NO_OTHERS else f" EXCLUDE {self.exclude.value}"
        if self.gap is not None:
            return f"SESSION WITH GAP {_offset_text(self.gap)}{excluded}"
        return f"{self.units.value} BETWEEN {self.start} AND {self.end}{excluded}"


WHOLE_PARTITION = Frame.rows(UNBOUNDED_PRECEDING, UNBOUNDED_FOLLOWING)
"""The frame of a window without ORDER BY."""
RUNNING_RANGE = Frame.range_(UNBOUNDED_PRECEDING, CURRENT_ROW)
"""The default frame of SQL, PostgreSQL and Spark with ORDER BY: peers share a running value."""
RUNNING_ROWS = Frame.rows(UNBOUNDED_PRECEDING, CURRENT_ROW)
"""RisingWave's default frame with ORDER BY: peers have running values of their own."""


def merge_rows_frames(frames: Iterable[Frame]) -> Frame:
    """Return the smallest ROWS frame that holds the current row and reaches as far as each of ``frames``.

    Source: RisingWave's super frame; of no frames it is CURRENT ROW..CURRENT ROW.
    """
    reaches = [(frame.n_preceding, frame.n_following) for frame in frames]
    n_preceding = _farthest([before for before, _ in reaches])
    n_following = _farthest([after for _, after in reaches])
    start = UNBOUNDED_PRECEDING if n_preceding is None else preceding(n_preceding) if n_preceding else CURRENT_ROW
    end = UNBOUNDED_FOLLOWING if n_following is None else following(n_following) if n_following else CURRENT_ROW
    return Frame.rows(start, end)


def _farthest(reaches: list[int | None]) -> int | None:
    return None if None in reaches else max((reach for reach in reaches if reach is not None), default=0)


def _reach(frame: Frame, side: Side, unbounded: bool) -> int | None:
    if unbounded or frame.units in (Units.RANGE, Units.SESSION):
        return None
    counts = [bound.offset for bound in (frame.start, frame.end) if bound.side is side]
    return max((count for count in counts if isinstance(count, int)), default=0)


def _checked(offset: Offset | timedelta) -> Offset:
    given = Interval.of(offset) if isinstance(offset, timedelta) else offset
    if isinstance(given, bool) or not isinstance(given, int | float | Decimal | Interval):
        raise InvalidFrameError(f"{offset!r} is no offset of a frame: use a number, or one such as Interval.of('1 hour').")
    if not isinstance(given, Interval) and not math.isfinite(given):
        raise InvalidFrameError(f"the offset {given!r} of a frame is no finite number: use UNBOUNDED_PRECEDING or _FOLLOWING.")
    negative = given.is_negative if isinstance(given, Interval) else not given >= 0
    if negative:
        raise InvalidFrameError(f"the offset {given!r} of a frame is below zero: use preceding(n) or following(n) with n >= 0.")
    return given


def _offset_text(offset: Offset) -> str:
    return f"'{offset}'" if isinstance(offset, Interval) else str(offset)
