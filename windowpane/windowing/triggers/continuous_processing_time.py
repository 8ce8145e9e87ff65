"""Fire at regular intervals of the clock while a window is open, never beyond its end.

Source of the rule: Flink's ContinuousProcessingTimeTrigger.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from windowpane.errors import InvalidSpecError
from windowpane.windowing.times import Duration, to_micros, truncate
from windowpane.windowing.triggers.base import MergeContext, Trigger, TriggerContext, TriggerResult
from windowpane.windowing.windows import Window

_FIRE_TIME = "fire-time"


@dataclass(frozen=True)
class ContinuousProcessingTimeTrigger(Trigger):
    """Fires each ``interval`` microseconds of processing time.

    Example:
        >>> ContinuousProcessingTimeTrigger.of("10 seconds")
        ContinuousProcessingTimeTrigger(interval=10000000)
    """

    interval: int

    def __post_init__(self) -> None:
        """Refuse an interval that is not positive."""
        if self.interval <= 0:
            raise InvalidSpecError(
                f"ContinuousProcessingTimeTrigger: the interval must be greater than zero, but is {self.interval} µs."
            )

    @classmethod
    def of(cls, interval: Duration) -> Self:
        """Return the trigger that fires each ``interval`` of processing time.

        Raises:
            InvalidSpecError: the interval is not positive.
        """
        return cls(to_micros(interval))

    def on_element(self, element: Any, timestamp: int, window: Window, context: TriggerContext) -> TriggerResult:
        """From the first element on, wait for the next interval of the clock."""
        if context.reducing_state(_FIRE_TIME, min).get() is None:
            self._register_next(truncate(context.current_processing_time, self.interval), window, context)
        return TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: Window, context: TriggerContext) -> TriggerResult:
        """Fire at the pending interval and register the one after it."""
        fire_time = context.reducing_state(_FIRE_TIME, min)
        if fire_time.get() != time:
            return TriggerResult.CONTINUE
        fire_time.clear()
        if time < window.max_timestamp:  # at the end there is no next one; Flink relies on the cleanup that follows
            self._register_next(time, window, context)
        return TriggerResult.FIRE

    def _register_next(self, time: int, window: Window, context: TriggerContext) -> None:
        following = min(time + self.interval, window.max_timestamp)
        context.reducing_state(_FIRE_TIME, min).add(following)
        context.register_processing_time_timer(following)

    def can_merge(self) -> bool:
        """Return true."""
        return True

    def on_merge(self, window: Window, context: MergeContext) -> None:
        """Keep the earliest pending fire time."""
        context.merge_reducing_state(_FIRE_TIME, min)
        pending = context.reducing_state(_FIRE_TIME, min).get()
        if pending is not None:
            context.register_processing_time_timer(pending)

    def clear(self, window: Window, context: TriggerContext) -> None:
        """Drop the pending fire time and its timer."""
        fire_time = context.reducing_state(_FIRE_TIME, min)
        pending = fire_time.get()
        if pending is not None:
            context.delete_processing_time_timer(pending)
            fire_time.clear()
