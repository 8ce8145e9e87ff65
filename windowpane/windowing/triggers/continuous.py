"""Fire at regular intervals of one of the two clocks: one pending fire time a window, moved on by the interval at each firing.

State: ``fire-time``, the pending fire time; merging keeps the earliest. Source of the rules: Flink's ContinuousEventTimeTrigger
and ContinuousProcessingTimeTrigger. Intervals are counted from the epoch, not from the window start.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

from windowpane.arrays.values import Value
from windowpane.errors import InvalidSpecError
from windowpane.windowing.times import Duration, to_micros, truncate
from windowpane.windowing.triggers.base import MergeContext, Trigger, TriggerContext, TriggerResult
from windowpane.windowing.windows import Window

_FIRE_TIME = "fire-time"


@dataclass(frozen=True)
class ContinuousTrigger(Trigger):
    """Fires at multiples of ``interval`` microseconds of one of the two clocks, never beyond the window's end."""

    interval: int
    is_by_watermark: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.interval <= 0:
            raise InvalidSpecError(f"{type(self).__name__}: the interval must be greater than zero, but is {self.interval} µs.")

    @classmethod
    def of(cls, interval: Duration) -> Self:
        """Return the trigger that fires each ``interval``.

        Raises:
            InvalidSpecError: the interval is not positive.
        """
        return cls(to_micros(interval))

    def _register(self, time: int, context: TriggerContext) -> None:
        if self.is_by_watermark:
            context.register_event_time_timer(time)
        else:
            context.register_processing_time_timer(time)

    def _delete(self, time: int, context: TriggerContext) -> None:
        if self.is_by_watermark:
            context.delete_event_time_timer(time)
        else:
            context.delete_processing_time_timer(time)

    def _start(self, now: int, window: Window, context: TriggerContext) -> None:
        """See that a fire time is pending: the first multiple after ``now`` (rounded toward zero first, as in Java)."""
        if context.reducing_state(_FIRE_TIME, min).get() is None:
            self._register_next(truncate(now, self.interval), window, context)

    def _answer(self, time: int, window: Window, context: TriggerContext) -> TriggerResult:
        """Fire at the end of the window and at the pending fire time, and register the one after that.

        At the end the pending fire time stays as it is. Later elements, in a window that is kept beyond its end, find it pending
        and register no other: by the clock, a window never fires beyond its end.
        """
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
        self._register(following, context)

    def can_merge(self) -> bool:
        return True

    def on_merge(self, window: Window, context: MergeContext) -> None:
        context.merge_reducing_state(_FIRE_TIME, min)
        pending = context.reducing_state(_FIRE_TIME, min).get()
        if pending is not None:
            self._register(pending, context)

    def clear(self, window: Window, context: TriggerContext) -> None:
        fire_time = context.reducing_state(_FIRE_TIME, min)
        pending = fire_time.get()
        if pending is not None:
            self._delete(pending, context)
            fire_time.clear()


@dataclass(frozen=True)
class ContinuousEventTimeTrigger(ContinuousTrigger):
    """Fires each ``interval`` microseconds of event time, and when the watermark reaches the window's end.

    Example:
        >>> ContinuousEventTimeTrigger.of("15 minutes")
        ContinuousEventTimeTrigger(interval=900000000)
    """

    reads_elements = False
    is_by_watermark = True

    def on_element(self, element: Value, timestamp: int, window: Window, context: TriggerContext) -> TriggerResult:
        """Fire at once behind the watermark; else wait for the end and, from the first element on, for the next interval."""
        if window.max_timestamp <= context.current_watermark:
            return TriggerResult.FIRE
        context.register_event_time_timer(window.max_timestamp)
        self._start(timestamp, window, context)
        return TriggerResult.CONTINUE

    def begin(self, window: Window, context: MergeContext) -> None:
        """Wait for the end; the next element says for which interval."""
        if window.max_timestamp > context.current_watermark:
            context.register_event_time_timer(window.max_timestamp)

    def on_event_time(self, time: int, window: Window, context: TriggerContext) -> TriggerResult:
        return self._answer(time, window, context)


@dataclass(frozen=True)
class ContinuousProcessingTimeTrigger(ContinuousTrigger):
    """Fires each ``interval`` microseconds of processing time.

    Example:
        >>> ContinuousProcessingTimeTrigger.of("10 seconds")
        ContinuousProcessingTimeTrigger(interval=10000000)
    """

    reads_elements = False

    def on_element(self, element: Value, timestamp: int, window: Window, context: TriggerContext) -> TriggerResult:
        """From the first element on, wait for the next interval of the clock."""
        self._start(context.current_processing_time, window, context)
        return TriggerResult.CONTINUE

    def begin(self, window: Window, context: MergeContext) -> None:
        self._start(context.current_processing_time, window, context)

    def on_processing_time(self, time: int, window: Window, context: TriggerContext) -> TriggerResult:
        return self._answer(time, window, context)
