"""The timer service: two clocks, and timers of both kinds by key and window.

A clock that advances fires due timers, earliest first, timers registered meanwhile that are already due included; callbacks
see the new time. Source of the rules: Flink's InternalTimerServiceImpl.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from windowpane.state.timers import Timer, TimerQueue
from windowpane.windowing.times import MIN
from windowpane.windowing.windows import Window

OnTimer = Callable[[Timer], None]


class KeyClock(NamedTuple):
    """The watermark that one key is to have."""

    key: Any
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

    # For keys with watermarks of their own (``key_clocks``); one watermark for all is set by ``advance_watermark``.

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
