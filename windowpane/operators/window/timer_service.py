"""The timer service: two clocks, and timers of both kinds by key and window.

A clock that advances fires due timers, earliest first, timers registered meanwhile that are already due included; callbacks
see the new time. Source of the rules: Flink's InternalTimerServiceImpl.

Keys may have watermarks of their own, each made of its key's elements alone. State, by (key, name): ``operator/clock``, the key's
watermark in microseconds, kept for good. Event-time timers are stored by key then (``KeyTimerQueue``), since the watermark of a
key makes due no timer of another. Only the operator of the bucket mutates them. Recovery reads the clocks back: none becomes
smaller. A batch takes its elements under the clocks that the batch before wrote, then each clock advances: a key's windows fire
in the batch whose rows complete them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from windowpane.arrays.values import Value
from windowpane.state.keyed import KeyedState
from windowpane.state.timers import KeyTimerQueue, Timer, TimerQueue
from windowpane.windowing.times import MIN, add_clamped
from windowpane.windowing.windows import Window

OnTimer = Callable[[Timer], None]


class KeyClock(NamedTuple):
    """The watermark that one key is to have."""

    key: Value
    key_bytes: bytes
    watermark: int


class TimerService:
    """Clocks and timers of one operator instance.

    ``watermark`` and ``processing_time`` are microseconds; ``forwarded_watermark`` is the watermark that downstream has seen:
    it follows only after all timers have fired, since the results of a watermark are emitted before the watermark itself.
    """

    def __init__(self, event_time: TimerQueue, processing_time: TimerQueue) -> None:
        """Start with both clocks at ``MIN``: a recovery brings timers back, not the time."""
        self.event_time = event_time
        self.processing_time_queue = processing_time
        self.watermark = MIN
        self.forwarded_watermark = MIN
        self.processing_time = MIN

    def restore_clocks(self, watermark: int, processing_time: int) -> None:
        self.watermark = self.forwarded_watermark = watermark
        self.processing_time = processing_time

    # For keys with watermarks of their own (``KeyTimerService``); one watermark for all is set by ``advance_watermark``.

    def enter_key(self) -> None:
        """Begin with the state's current key."""

    def take_note(self, timestamp: int) -> None:
        """Note the event time of an element of the current key."""

    def clocks_to_move(self) -> Iterable[KeyClock]:
        """Return the watermarks that keys are to have at the end of a batch."""
        return ()

    def register_event_time(self, time: int, key_bytes: bytes, window: Window | None) -> None:
        """Set an event-time timer; one that is already due fires when the watermark next advances."""
        self.event_time.add(time, key_bytes, window)

    def register_processing_time(self, time: int, key_bytes: bytes, window: Window | None) -> None:
        self.processing_time_queue.add(time, key_bytes, window)

    def delete_event_time(self, time: int, key_bytes: bytes, window: Window | None) -> None:
        self.event_time.remove(time, key_bytes, window)

    def delete_processing_time(self, time: int, key_bytes: bytes, window: Window | None) -> None:
        self.processing_time_queue.remove(time, key_bytes, window)

    def forget_all(self) -> None:
        """Delete all timers."""
        for queue in (self.event_time, self.processing_time_queue):
            for timer in list(queue):
                queue.remove(timer.time, timer.key_bytes, timer.window)

    def advance_watermark(self, watermark: int, on_timer: OnTimer) -> None:
        """Advance the watermark and fire due timers; a smaller watermark changes nothing."""
        if watermark < self.watermark:
            return
        self.watermark = watermark
        while (timer := self.event_time.poll(watermark)) is not None:
            on_timer(timer)
        self.forwarded_watermark = watermark

    def advance_processing_time(self, time: int, on_timer: OnTimer) -> None:
        """Move the clock and fire due timers. Unlike a watermark, a clock that is set back stays set back."""
        self.processing_time = time
        while (timer := self.processing_time_queue.poll(time)) is not None:
            on_timer(timer)


CLOCK = "operator/clock"


class KeyTimerService(TimerService):
    """Clocks and timers of one operator instance whose keys have watermarks of their own: ``watermark`` is the current key's."""

    def __init__(self, state: KeyedState, event_time: KeyTimerQueue, processing_time: TimerQueue, delay: int) -> None:
        super().__init__(event_time, processing_time)
        self._of_keys = event_time
        self._state = state
        self._delay = delay
        self._latest: dict[bytes, tuple[Value, int]] = {}

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
