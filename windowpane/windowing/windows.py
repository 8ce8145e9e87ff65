"""Windows: what an assigner puts an element into.

A ``TimeWindow`` is the half-open interval ``[start, end)`` of microseconds; ``GLOBAL_WINDOW`` holds everything. Results of a
window carry its ``max_timestamp``, the last instant inside it. Source of the rules: Flink's TimeWindow and GlobalWindow.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache

from windowpane.errors import TimestampOverflowError, UnrepresentableValueError
from windowpane.guidance import GuidedType
from windowpane.windowing.times import MAX, MIN, format_instant, zone_of

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Window(metaclass=GuidedType):
    """A set of elements that belong together. Windows compare and hash by value."""

    __slots__ = ()

    @property
    @abstractmethod
    def max_timestamp(self) -> int:
        """The largest timestamp, in microseconds, that still belongs to this window."""


@dataclass(frozen=True, slots=True, order=True)
class TimeWindow(Window):
    """The time from ``start`` (inclusive) to ``end`` (exclusive), in microseconds.

    Example:
        >>> TimeWindow(0, 10).max_timestamp
        9
    """

    start: int
    end: int

    def __reduce__(self) -> tuple[type[TimeWindow], tuple[int, int]]:
        return TimeWindow, (self.start, self.end)  # what the dataclass does by default takes ten times as long

    @property
    def max_timestamp(self) -> int:
        """The last microsecond inside: ``end - 1``."""
        return self.end - 1

    @property
    def start_time(self) -> datetime:
        """The start as a datetime in UTC."""
        return _instant(self.start)

    @property
    def end_time(self) -> datetime:
        """The end as a datetime in UTC.

        Example:
            >>> TimeWindow(0, 3_600_000_000).end_time.isoformat()
            '1970-01-01T01:00:00+00:00'

        Raises:
            UnrepresentableValueError: it lies outside of the years 1 to 9999, which Python's datetimes have.
        """
        return _instant(self.end)

    def bounds(self, timezone: str) -> tuple[datetime, datetime]:
        """Return the start and the end as datetimes of a time zone.

        Example:
            >>> start, end = TimeWindow(0, 3_600_000_000).bounds("America/New_York")
            >>> f"{start:%H:%M} to {end:%H:%M}"
            '19:00 to 20:00'

        Raises:
            InvalidSpecError: there is no such time zone.
            UnrepresentableValueError: a bound lies outside of the years 1 to 9999, which Python's datetimes have.
        """
        zone = zone_of(timezone)
        return _instant(self.start, zone), _instant(self.end, zone)

    def intersects(self, other: TimeWindow) -> bool:
        """Whether the two overlap or touch: touching sessions merge, as in Flink."""
        return self.start <= other.end and self.end >= other.start

    def cover(self, other: TimeWindow) -> TimeWindow:
        """Return the smallest window that contains both."""
        return TimeWindow(min(self.start, other.start), max(self.end, other.end))

    def __str__(self) -> str:
        return f"[{format_instant(self.start)}, {format_instant(self.end)})"


def _instant(time: int, zone: tzinfo = UTC) -> datetime:
    try:
        return (_EPOCH + timedelta(microseconds=time)).astimezone(zone)
    except OverflowError as error:
        raise UnrepresentableValueError("of a window", f"the bound {time} µs", error) from error


@dataclass(frozen=True, slots=True)
class GlobalWindow(Window):
    """The one window for all elements. Use the instance ``GLOBAL_WINDOW``."""

    @property
    def max_timestamp(self) -> int:
        """``MAX``: the global window ends when time does."""
        return MAX

    def __str__(self) -> str:
        return "GLOBAL"


GLOBAL_WINDOW = GlobalWindow()


def time_window(start: int, end: int, timestamp: int) -> TimeWindow:
    """Return ``TimeWindow(start, end)`` of the element at ``timestamp``."""
    if start < MIN or end > MAX:
        raise TimestampOverflowError(timestamp, start, end)
    return _time_window(start, end)


_time_window = lru_cache(maxsize=1 << 12)(TimeWindow)
"""Makes a window; those in use are made once, so that equal ones are compared at once."""


def window_start(timestamp: int, offset: int, size: int) -> int:
    """Return the start of the window of length ``size`` that holds ``timestamp``, right for negative times as well.

    Example:
        >>> window_start(-1, 0, 10)
        -10
    """
    return timestamp - (timestamp - offset) % size


def merge_overlapping(windows: Iterable[TimeWindow]) -> list[tuple[TimeWindow, list[TimeWindow]]]:
    """Group windows that overlap or touch; return ``(cover, members)`` for each group of two or more different windows."""
    groups: list[tuple[TimeWindow, list[TimeWindow]]] = []
    for window in sorted(set(windows)):
        if groups and groups[-1][0].intersects(window):
            cover, members = groups[-1]
            groups[-1] = (cover.cover(window), [*members, window])
        else:
            groups.append((window, [window]))
    return [group for group in groups if len(group[1]) > 1]
