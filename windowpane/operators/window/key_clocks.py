"""Key clocks: a watermark of its own for each key, made of the key's elements alone.

State, by (key, name): ``operator/clock``, the key's watermark in microseconds, kept for good. Event-time timers are stored by key
(``KeyTimerQueue``), since the watermark of a key makes due no timer of another. Only the operator of the bucket mutates them.
Recovery reads the clocks back: none becomes smaller.

A batch takes its elements under the clocks that the batch before wrote, then each clock advances: a key's windows fire in the
batch whose rows complete them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from windowpane.operators.window.timer_service import KeyClock, OnTimer, TimerService
from windowpane.state.keyed import KeyedState
from windowpane.state.timers import KeyTimerQueue, TimerQueue
from windowpane.windowing.times import MIN, add_clamped

CLOCK = "operator/clock"


class KeyTimerService(TimerService):
    """Clocks and timers of one operator instance whose keys have watermarks of their own: ``watermark`` is the current key's."""

    def __init__(self, state: KeyedState, event_time: KeyTimerQueue, processing_time: TimerQueue, delay: int) -> None:
        super().__init__(event_time, processing_time)
        self._of_keys = event_time
        self._state = state
        self._delay = delay
        self._latest: dict[bytes, tuple[Any, int]] = {}

    def enter_key(self) -> None:
        clock = self._state.get(None, CLOCK)
        self.watermark = self.forwarded_watermark = MIN if clock is None else clock
        self._of_keys.enter_key(self._state.current_key_bytes)

    def take_note(self, timestamp: int) -> None:
        """Note the event time of an element of the current key; the clock moves when the batch ends."""
        key_bytes = self._state.current_key_bytes
        known = self._latest.get(key_bytes)
        if known is None or timestamp > known[1]:
            self._latest[key_bytes] = self._state.current_key, timestamp

    def clocks_to_move(self) -> Iterable[KeyClock]:
        """Return the new watermarks of keys that had elements since the last call."""
        noted, self._latest = self._latest, {}
        return [KeyClock(key, bytes_, add_clamped(time, -self._delay - 1)) for bytes_, (key, time) in noted.items()]

    def advance_watermark(self, watermark: int, on_timer: OnTimer) -> None:
        """Advance the clock of the current key and fire its due timers."""
        if watermark > self.watermark:
            self._state.put(None, CLOCK, watermark)
            super().advance_watermark(watermark, on_timer)
