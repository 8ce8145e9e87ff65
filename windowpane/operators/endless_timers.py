"""A guard against triggers that would keep one clock advance from ever ending.

Flink hangs on both kinds: a trigger that registers the timer it has just been called for, and a periodic trigger on a window
without an end when the watermark goes to ``MAX``. A run that hangs says nothing, so windowpane ends it by name.
"""

from __future__ import annotations

from windowpane.errors import EndlessTimerError
from windowpane.state.timers import Timer
from windowpane.windowing.times import MAX
from windowpane.windowing.triggers import Trigger

MAX_REPEATS = 1_000
"""How often in a row one and the same timer may fire."""

MAX_FIRINGS_WITHOUT_END = 100_000
"""How many timers before ``MAX`` windows without an end may fire within one advance of a clock."""


class EndlessTimerGuard:
    """Watches the timers that one advance of a clock fires."""

    def __init__(self, trigger: Trigger) -> None:
        """Watch ``trigger``."""
        self._trigger = trigger
        self.restart()

    def restart(self) -> None:
        """Begin with a new advance."""
        self._last: Timer | None = None
        self._repeats = 0
        self._without_end = 0

    def check(self, timer: Timer) -> None:
        """Take note of a timer about to fire.

        Raises:
            EndlessTimerError: the trigger goes round in circles.
        """
        self._repeats = self._repeats + 1 if timer == self._last else 0
        self._last = timer
        if timer.window is not None and timer.window.max_timestamp == MAX > timer.time:
            self._without_end += 1
        if self._repeats > MAX_REPEATS or self._without_end > MAX_FIRINGS_WITHOUT_END:
            raise EndlessTimerError(self._trigger, timer.key, timer.window, max(self._repeats, self._without_end))
