"""Joins of two streams as values: interval joins, as-of joins and joins of windows, and when their rows are final.

Source of the rules: Flink's interval join, window join and temporal join. Where Flink's two APIs differ from each other, or pad
rows that match later, the rule is that of the batch join over the rows that were accepted: each result once, none withdrawn.
All times are microseconds; the watermark is Flink's: nothing at or below it is still expected.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, get_args

from windowpane.errors import InvalidSpecError
from windowpane.windowing.times import MAX, MIN, add_clamped

How = Literal["inner", "left", "right", "full", "semi", "anti"]
"""Which rows come out: pairs, and for an outer join rows without a match; of the left side those with one, or without."""
Direction = Literal["backward", "forward", "nearest"]
"""Where an as-of join looks for the right row: at or before the left row, at or after it, or both ways."""
JoinTime = Literal["max", "left", "right"]
"""The event time of a pair: the later of its two rows', or that of one side."""

LEFT: Final = 0
RIGHT: Final = 1
BOTH: Final = 2
"""What the hidden column ``SIDE`` says: of a row that comes in, its side; of one that comes out, the side it was made of."""


def pads_left(how: How) -> bool:
    """Whether left rows without a match come out, with NULLs or by themselves."""
    return how in ("left", "full", "anti")


def pads_right(how: How) -> bool:
    """Whether right rows without a match come out, with NULLs."""
    return how in ("right", "full")


def gives_pairs(how: How) -> bool:
    """Whether a match comes out as a pair."""
    return how not in ("semi", "anti")


@dataclass(frozen=True)
class IntervalJoin:
    """Rows of equal keys with ``left.time + lower <= right.time <= left.time + upper``.

    Args:
        how: which rows come out.
        lower: the lower bound.
        upper: the upper bound; ``None`` where ``upper_column`` is one.
        upper_column: a left column of microseconds that bounds the right times from above, as absolute times; NULL, or a
            time below the lower bound, matches nothing.
        allowed_lateness: how long rows are taken, and waited for, behind the watermark.
        time: the event time of a pair; a row without a match has its own.

    Raises:
        InvalidSpecError: no time lies between the bounds, or there is not one upper bound.

    Example:
        >>> IntervalJoin("left", lower=-300_000_000, upper=60_000_000).left_final(0)
        60000000
    """

    how: How
    lower: int
    upper: int | None
    upper_column: str | None = None
    allowed_lateness: int = 0
    time: JoinTime = "max"

    def __post_init__(self) -> None:
        """Refuse what cannot work."""
        _require(self.how, How, "how")
        _require(self.time, JoinTime, "event_time")
        _require_lateness(self.allowed_lateness)
        if (self.upper is None) == (self.upper_column is None):
            raise InvalidSpecError("an interval join needs one upper bound, a length or a column.")
        if self.upper is not None and self.upper < self.lower:
            raise InvalidSpecError(f"no time lies between the bounds {self.lower} µs and {self.upper} µs.")

    def left_final(self, time: int, upper: int | None = None) -> int:
        """Return the watermark from which no row that a left row matches can come.

        Args:
            time: the event time of the row.
            upper: what its ``upper_column`` holds; not read where the bound is a length.
        """
        if self.upper is not None:
            return add_clamped(time, self.upper + self.allowed_lateness)
        # A row that can match nothing is final when it comes.
        return MIN if upper is None or upper < time + self.lower else add_clamped(upper, self.allowed_lateness)

    def right_final(self, time: int) -> int:
        """Return the watermark from which no row that a right row matches can come."""
        return add_clamped(time, self.allowed_lateness - self.lower)

    def judged(self, watermark: int) -> int | None:
        """Return the time at or below which no result is that comes out behind ``watermark``, ``None`` if there is none."""
        ahead, behind = max(self.upper or 0, 0), max(-self.lower, 0)
        if self.upper is None and (pads_left(self.how) or self.time != "max"):
            return None
        pairs = {"max": 0, "left": ahead, "right": behind}[self.time] if gives_pairs(self.how) else 0
        left = ahead if pads_left(self.how) or self.how == "semi" else 0
        right = behind if pads_right(self.how) else 0
        return watermark - self.allowed_lateness - max(pairs, left, right)


@dataclass(frozen=True)
class AsOfJoin:
    """Each left row with one right row of its key: the latest at or before it, the earliest at or after it, or the nearest.

    Of right rows with one key and time the last to arrive counts. A right row that deletes hides older ones, and is no match.

    Args:
        how: ``"left"`` or ``"inner"``.
        direction: where to look; ``"nearest"`` looks back on a tie.
        tolerance: how far apart the two may be, both ends included; ``None`` for any distance.
        allow_exact: whether equal times match.
        allowed_lateness: how long rows are taken, and waited for, behind the watermark.
        retain: how long behind the watermark the last version of a key is kept at most; ``None`` for ever.
        by_arrival: whether the newest version that has arrived counts, whatever its time; results are never corrected.
        updates: whether a left row comes out at once and is corrected until it is final, as a changelog.

    Raises:
        InvalidSpecError: settings that do not go together.
    """

    how: Literal["left", "inner"]
    direction: Direction = "backward"
    tolerance: int | None = None
    allow_exact: bool = True
    allowed_lateness: int = 0
    retain: int | None = None
    by_arrival: bool = False
    updates: bool = False

    def __post_init__(self) -> None:
        """Refuse what cannot work."""
        _require(self.direction, Direction, "direction")
        _require_lateness(self.allowed_lateness)
        if self.how not in ("left", "inner"):
            raise InvalidSpecError(f"an as-of join is 'left' or 'inner', not {self.how!r}.")
        if self.tolerance is not None and self.tolerance < 0:
            raise InvalidSpecError(f"the tolerance cannot be negative, but is {self.tolerance} µs.")
        if self.by_arrival and (self.updates or self.direction != "backward"):
            raise InvalidSpecError("by arrival there is one version a key, the newest: no direction, and nothing to correct.")

    @property
    def looks_back(self) -> bool:
        """Whether a right row at or before the left one may match."""
        return self.direction in ("backward", "nearest")

    @property
    def looks_ahead(self) -> bool:
        """Whether a right row at or after the left one may match."""
        return self.direction in ("forward", "nearest")

    def final(self, time: int, before: int | None, after: int | None) -> int:
        """Return the watermark from which the match of a left row is known: at the latest the last of all.

        Args:
            time: the event time of the row.
            before: that of the right row that matches it from before, as far as rows have come; ``None`` if there is none.
            after: the same from behind it.
        """
        if self.direction == "backward":
            return add_clamped(time, self.allowed_lateness)
        ends = [MAX if self.tolerance is None else time + self.tolerance]
        ends += [] if after is None else [after]
        if self.direction == "nearest":
            ends += [] if before is None else [2 * time - before - 1]
        return add_clamped(max(time, min(ends)), self.allowed_lateness)

    def kept_from(self, watermark: int) -> int:
        """Return the event time above which right rows are kept; at or below it, the last one of each key."""
        ahead = self.tolerance or 0 if self.looks_ahead else 0
        return watermark - self.allowed_lateness - ahead


def _require(word: str, words: object, name: str) -> None:
    if word not in get_args(words):
        raise InvalidSpecError(f"{name} must be one of {', '.join(map(repr, get_args(words)))}, but is {word!r}.")


def _require_lateness(lateness: int) -> None:
    if not 0 <= lateness <= MAX:
        raise InvalidSpecError(f"The allowed lateness cannot be negative, but is {lateness} µs.")
