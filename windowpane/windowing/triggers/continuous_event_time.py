"""Fire at regular intervals of event time while a window fills: early results, and the final one at its end.

Source of the rule: Flink's ContinuousEventTimeTrigger. The intervals are counted from the epoch, not from the window start.
Before the epoch the first one is skipped: Flink rounds toward zero, so with interval 5 an element at -7 waits for 0, not for -5.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from windowpane.errors import InvalidSpecError
from windowpane.windowing.times import Duration, to_micros, truncate
from windowpane.windowing.triggers.base import (
    MergeContext,
    Trigger,
    TriggerContext,
    TriggerResult,
)
from windowpane.windowing.windows import Window

_FIRE_TIME = "fire-time"


@dataclass(frozen=True)
class ContinuousEventTimeTrigger(Trigger):
    """Fires each ``interval`` microseconds of event time, and when the watermark reaches the window's end.

    Example:
        >>> ContinuousEventTimeTrigger.of("15 minutes")
        ContinuousEventTimeTrigger(interval=900000000)
    """

    interval: int

    def __post_init__(self) -> None:
        """Refuse an interval that is not positive."""
        if self.interval <= 0:
            raise InvalidSpecError(
                f"ContinuousEventTimeTrigger: the interval must be greater than zero, but is {self.interval} µs."
            )

    @classmethod
    def of(cls, interval: Duration) -> Self:
        """Return the trigger that fires each ``interval`` of event time.

        Raises:
            InvalidSpecError: the interval is not positive.
        """
        return cls(to_micros(interval))

    def on_element(self, element: Any, timestamp: int, window: Window, context: TriggerContext) -> TriggerResult:
        """Fire at once behind the watermark; else wait for the end and, from the first element on, for the next interval."""
        if window.max_timestamp <= context.current_watermark:
            return TriggerResult.FIRE
        context.register_event_time_timer(window.max_timestamp)
        if context.reducing_state(_FIRE_TIME, min).get() is None:
            self._register_next(truncate(timestamp, self.interval), window, context)
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: Window, context: TriggerContext) -> TriggerResult:
        """Fire at the end of the window and at the pending interval, and register the one after it."""
        if time == window.max_timestamp:
            return TriggerResult.FIRE
        fire_time = context.reducing_state(_FIRE_TIME, min)
        if fire_time.get() != time:
            return TriggerResult.CONTINUE
        fire_time.clear()
        self._register_next(time, window, context)
        return TriggerResult.FIRE

    def _register_next(self, time: int, window: Window, context: TriggerContext) -> None:
        following = min(time + self.interval, window.max_timestamp)
        context.reducing_state(_FIRE_TIME, min).add(following)
        context.register_event_time_timer(following)

    def can_merge(self) -> bool:
        """Return true."""
        return True

    def on_merge(self, window: Window, context: MergeContext) -> None:
        """Keep the earliest pending fire time."""
        context.merge_reducing_state(_FIRE_TIME, min)
        pending = context.reducing_state(_FIRE_TIME, min).get()
        if pending is not None:
            context.register_event_time_timer(pending)

    def clear(self, window: Window, context: TriggerContext) -> None:
        """Drop the pending fire time and its timer."""
        fire_time = context.reducing_state(_FIRE_TIME, min)
        pending = fire_time.get()
        if pending is not None:
            context.delete_event_time_timer(pending)
            fire_time.clear()
