"""The spec of rolling features: calls over windows that end now, and which rows are emitted.

A feature as of ``t`` takes the rows with ``t - length < time <= t``. A hop edge is rounded down to the start of the tile that an
exact edge would cut: such a window is up to one hop too long, never too short::

    exact          |---------- length ----------|
                   ( t - length                 t ]
    hop        |---|---------- length ----------|
               start of the tile

A tick is a multiple of ``step``. All times are integers of microseconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from math import gcd
from typing import TypeVar

from windowpane.arrays import Integers
from windowpane.errors import EdgeError, TileMismatchError, UnboundedStateError
from windowpane.windowing.aggregates import Aggregate
from windowpane.windowing.times import MIN, format_micros, to_micros


class RollingEmit(Enum):
    """Which rows are emitted, and when."""

    CHANGED = "changed"
    """A batch's keys, and at a tick the keys that rows have left."""
    BATCH = "batch"
    """A batch's keys only."""
    TICK = "tick"
    """At each tick, the keys that have changed since the tick before."""
    EACH = "each"
    """One row for each row of the input, once the watermark has passed it."""


@dataclass(frozen=True)
class RollingCall:
    """A feature: an aggregate, whose arguments are names of columns, over the rows of a window where a boolean column is true."""

    name: str
    aggregate: Aggregate
    window: RollingWindow
    condition: str | None = None


@dataclass(frozen=True)
class RollingSpec:
    """Several features of one key."""

    calls: tuple[RollingCall, ...]
    step: int
    emit: RollingEmit = RollingEmit.CHANGED
    keeps_unbounded_state: bool = False
    """Whether aggregates that keep all their values are allowed over more than a day."""
    deletes_empty: bool = False
    """Whether a key whose windows are all empty is emitted as a delete."""
    corrects: bool = False
    """Whether ticks are emitted again for late rows of before them."""

    def __post_init__(self) -> None:
        smallest = min(window.hop for window in self.windows)
        check_multiple("a step", self.step, smallest)
        for call in self.calls:
            if call.aggregate.definition.holistic and not self.keeps_unbounded_state and call.window.length > DAY:
                raise UnboundedStateError(call.name, call.aggregate, str(call.window))
            if not call.window.is_exact and self.emit is RollingEmit.EACH:
                raise EdgeError(f"emit('each') and the hop edge of {call.name!r} over {call.window}")

    @property
    def windows(self) -> tuple[RollingWindow, ...]:
        windows = {call.window for call in self.calls}
        return tuple(sorted(windows, key=lambda window: (window.length, window.hop, not window.is_exact)))

    @property
    def reach(self) -> int:
        """How far behind the watermark a row may lie that a window can still see."""
        return max(window.reach for window in self.windows)

    def horizon(self, watermark: int) -> int:
        """Return the time at or below which no window can see a row any more."""
        return max(watermark - self.reach, MIN)

    @property
    def grain(self) -> int:
        """The length of time whose rows every window takes together: each window, hop and step is a whole number of these.

        Windows with exact edges separate all instants, unless features are asked for at ticks only.
        """
        if self.emit is not RollingEmit.TICK and any(window.is_exact for window in self.windows):
            return 1
        return gcd(self.step, *(window.hop for window in self.windows))

    @property
    def levels(self) -> tuple[tuple[int, tuple[RollingWindow, ...]], ...]:
        """Lengths of time whose rows some windows take together, the longest first, and the windows that separate them.

        Rows that the latter no longer see may be put together.
        """
        windows, found = self.windows, []
        for number in reversed(range(1, len(windows))):
            width = gcd(*(1 if window.is_exact else window.hop for window in windows[number:]))
            if width > self.grain:
                found.append((width, windows[:number]))
        return tuple(found)

    def forgotten(self, time: Instants) -> Instants:
        """Return the watermark at which rows of a time are forgotten: a tick has passed since no window could see their tile.

        Where each row is emitted, no window as of the oldest row that is not dropped: its features are of all rows before it.
        Where ticks are corrected, no window as of a tick before that row, nor of the tick before that.
        """
        return self.tick_from(time // self._tile * self._tile + self._tile - 1 + self._needed)

    def kept_from(self, watermark: int) -> int:
        """Return the earliest time whose rows are not forgotten at a watermark."""
        tile = self._tile
        return -(-(self.last_tick(watermark) - self._needed - tile + 2) // tile) * tile

    @cached_property
    def _tile(self) -> int:
        """The length of time whose rows are forgotten together."""
        return 1 if self.windows[-1].is_exact else self.windows[-1].hop

    @cached_property
    def _needed(self) -> int:
        if self.corrects:
            return 2 * self.reach + self.step
        return self.reach + (self.windows[-1].length if self.emit is RollingEmit.EACH else 0)

    def tick_from(self, instant: Instants) -> Instants:
        """Return the first instant, from ``instant`` on, that is the microsecond before a tick."""
        return -(-(instant + 1) // self.step) * self.step - 1

    def last_tick(self, watermark: int) -> int:
        """Return the last instant, up to ``watermark``, that is the microsecond before a tick."""
        return (watermark + 1) // self.step * self.step - 1


Instants = TypeVar("Instants", int, Integers)
"""One instant, or an array of them."""

_MINUTES = to_micros("5 minutes")
_HOUR = to_micros("1 hour")
DAY = to_micros("1 day")


def default_hop(length: int) -> int:
    """Return the length of the tiles of a window, Chronon's: 5 minutes under 12 hours, 1 hour under 12 days, else 1 day."""
    return _MINUTES if length < 12 * _HOUR else _HOUR if length < 12 * DAY else DAY


def is_exact_by_default(length: int) -> bool:
    return length <= DAY


def check_multiple(what: str, length: int, hop: int) -> None:
    """Refuse a length that tiles do not fill."""
    if length > 0 and hop > 0 and length % hop == 0:
        return
    below = length // hop * hop if hop > 0 else 0
    near = [each for each in (below, below + hop) if each > 0] if length > 0 and hop > 0 else []
    raise TileMismatchError(f"{what} of {format_micros(length)}", format_micros(hop), " and ".join(map(format_micros, near)))


@dataclass(frozen=True)
class RollingWindow:
    """A window that ends now."""

    length: int
    hop: int
    """The length of its tiles."""
    is_exact: bool
    """Whether rows decide its left edge, and not tiles."""

    def __post_init__(self) -> None:
        check_multiple("a window", self.length, self.hop)

    @property
    def overhang(self) -> int:
        return 0 if self.is_exact else self.hop

    @property
    def reach(self) -> int:
        """How far behind the watermark a row may lie that the window can still see."""
        return self.length + self.hop

    def start(self, instant: Instants) -> Instants:
        """Return the earliest time that the window as of ``instant`` takes."""
        start = instant - self.length + 1
        return start if self.is_exact else start // self.hop * self.hop

    def leaving(self, time: Instants) -> Instants:
        """Return the first instant as of which the window no longer takes a row."""
        return time + self.length if self.is_exact else (time // self.hop + 1) * self.hop + self.length - 1

    def __str__(self) -> str:
        return format_micros(self.length)
