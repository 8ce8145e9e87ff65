"""A guard against triggers that would keep one clock advance from ever ending.

Flink hangs on both kinds: a trigger that keeps registering timers at times that have passed, and a periodic trigger on a window
without an end when the clock advances to ``MAX``. A run that hangs reports nothing, so windowpane ends it with an error. Timers
that come nearer to the time of the clock may take however long they need: many keys with a timer each, or one with many.
"""

from __future__ import annotations

from windowpane.errors import EndlessTimerError
from windowpane.state.timers import Timer
from windowpane.windowing.times import MAX, MIN
from windowpane.windowing.triggers import Trigger
from windowpane.windowing.windows import Window

MAX_REPEATS = 10_000
"""How often in a row one key and window may fire at times that it has left behind."""

MAX_FIRINGS_WITHOUT_END = 100_000
MAX_FIRINGS_EACH = 1_000
"""How many timers windows without an end may fire again within one advance to ``MAX``: that many, and so many each on average."""


class EndlessTimerGuard:
    """Watches the timers that one advance of a clock fires.

    Timers fire in order of time, key and window. So a timer that a key and window register at a time that has passed fires next,
    and an endless loop is never interrupted by another key or window.
    """

    def __init__(self, trigger: Trigger) -> None:
        self._trigger = trigger
        self.restart(MIN)

    def restart(self, now: int) -> None:
        self._is_last = now == MAX
        self._firing: tuple[bytes, Window | None] | None = None
        self._latest = MIN
        self._repeats = 0
        self._without_end: set[tuple[bytes, Window | None]] = set()
        self._fired_again = 0

    def check(self, timer: Timer) -> None:
        """Take note of a timer about to fire.

        Raises:
            EndlessTimerError: the trigger loops.
        """
        firing = (timer.key_bytes, timer.window)
        if firing == self._firing and timer.time <= self._latest:
            self._repeats += 1
        else:
            self._firing, self._latest, self._repeats = firing, timer.time, 0
        if self._is_last and timer.window is not None and timer.window.max_timestamp == MAX > timer.time:
            self._note_without_end(firing)
        if self._repeats > MAX_REPEATS or self._is_periodic:
            raise EndlessTimerError(self._trigger, timer.key, timer.window, max(self._repeats, self._fired_again))

    def _note_without_end(self, firing: tuple[bytes, Window | None]) -> None:
        self._fired_again += firing in self._without_end
        self._without_end.add(firing)

    @property
    def _is_periodic(self) -> bool:
        return self._fired_again > max(MAX_FIRINGS_WITHOUT_END, MAX_FIRINGS_EACH * len(self._without_end))
