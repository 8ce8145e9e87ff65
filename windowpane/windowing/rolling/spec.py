"""The spec of rolling features: calls over windows, and which rows are emitted.

A tick is a multiple of ``step``. All times are integers of microseconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from math import gcd

from windowpane.errors import EdgeError, UnboundedStateError
from windowpane.windowing.aggregates import Aggregate
from windowpane.windowing.rolling.windows import DAY, Instants, RollingWindow, check_multiple
from windowpane.windowing.times import MIN


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
    """A feature: an aggregate over a window.

    Args:
        name: its column in the output.
        aggregate: what is computed; its arguments are names of columns.
        window: over which rows.
        condition: the boolean column that says which rows count, ``None`` for all.
    """

    name: str
    aggregate: Aggregate
    window: RollingWindow
    condition: str | None = None


@dataclass(frozen=True)
class RollingSpec:
    """Several features of one key.

    Args:
        calls: the features, in the order of the output.
        step: the distance of ticks.
        emit: which rows are emitted, and when.
        keeps_unbounded_state: whether aggregates that keep all their values are allowed over more than a day.
        deletes_empty: whether a key whose windows are all empty is emitted as a delete.
        corrects: whether ticks are emitted again for late rows of before them.

    Raises:
        TileMismatchError: the step is no multiple of the smallest hop.
        UnboundedStateError: an aggregate keeps all values of more than a day.
        EdgeError: ``each`` with a hop edge.
    """

    calls: tuple[RollingCall, ...]
    step: int
    emit: RollingEmit = RollingEmit.CHANGED
    keeps_unbounded_state: bool = False
    deletes_empty: bool = False
    corrects: bool = False

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
        """The windows, each once, the shortest first."""
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
