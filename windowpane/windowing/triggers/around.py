"""Triggers around another one: dropping the contents at each firing, or firing at the latest after some time.

Source of the rules: Flink's PurgingTrigger and ProcessingTimeoutTrigger.
"""

from __future__ import annotations

from dataclasses import dataclass

from windowpane.arrays.values import Value
from windowpane.windowing.times import Duration, add_clamped, to_micros
from windowpane.windowing.triggers.base import (
    MergeContext,
    Trigger,
    TriggerContext,
    TriggerResult,
    checked_result,
    reads_elements,
)
from windowpane.windowing.windows import Window


@dataclass(frozen=True)
class PurgingTrigger(Trigger):
    """Wraps a trigger and turns each FIRE into FIRE_AND_PURGE.

    Example:
        >>> PurgingTrigger.of(CountTrigger.of(10))
        PurgingTrigger(inner=CountTrigger(max_count=10))
    """

    inner: Trigger

    @classmethod
    def of(cls, inner: Trigger) -> PurgingTrigger:
        """Return ``inner`` with every firing purging."""
        return cls(inner)

    @property
    def reads_elements(self) -> bool:
        """Whether the inner trigger looks into elements."""
        return reads_elements(self.inner)

    def on_element(self, element: Value, timestamp: int, window: Window, context: TriggerContext) -> TriggerResult:
        return self._purging(self.inner.on_element(element, timestamp, window, context), window)

    def on_event_time(self, time: int, window: Window, context: TriggerContext) -> TriggerResult:
        return self._purging(self.inner.on_event_time(time, window, context), window)

    def on_processing_time(self, time: int, window: Window, context: TriggerContext) -> TriggerResult:
        return self._purging(self.inner.on_processing_time(time, window, context), window)

    def can_merge(self) -> bool:
        return self.inner.can_merge()

    def on_merge(self, window: Window, context: MergeContext) -> None:
        self.inner.on_merge(window, context)

    def begin(self, window: Window, context: MergeContext) -> None:
        self.inner.begin(window, context)

    def clear(self, window: Window, context: TriggerContext) -> None:
        self.inner.clear(window, context)

    @property
    def uses_processing_time(self) -> bool:
        return self.inner.uses_processing_time

    def fires_at_end(self, event_time: bool) -> bool:
        return self.inner.fires_at_end(event_time)

    def check_window(self, window: Window) -> None:
        self.inner.check_window(window)

    def _purging(self, result: TriggerResult, window: Window) -> TriggerResult:
        return TriggerResult.FIRE_AND_PURGE if checked_result(self.inner, result, window).is_fire else result


_TIMEOUT = "timeout"
_INNER = "inner/"


@dataclass(frozen=True)
class ProcessingTimeoutTrigger(Trigger):
    """Wraps a trigger and fires on any timer, its own timeout included.

    Args:
        inner: the trigger that decides otherwise. A ``PurgingTrigger`` here purges when ``inner`` fires, and not at the timeout,
            whose rows are shown again, as in Flink: put it around this trigger.
        timeout: microseconds of processing time.
        reset_timer_on_new_record: whether each element starts the timeout anew, rather than only the first.
        clear_on_timeout: whether the inner trigger's state is cleared when a timer fires.

    Example:
        >>> ProcessingTimeoutTrigger.of(CountTrigger.of(1000), "5 seconds")
        ProcessingTimeoutTrigger(inner=CountTrigger(max_count=1000), timeout=5000000, ...)
    """

    inner: Trigger
    timeout: int
    reset_timer_on_new_record: bool = False
    clear_on_timeout: bool = True

    @classmethod
    def of(
        cls,
        inner: Trigger,
        timeout: Duration,
        reset_timer_on_new_record: bool = False,
        clear_on_timeout: bool = True,
    ) -> ProcessingTimeoutTrigger:
        """Return the trigger that fires ``inner`` at the latest ``timeout`` after the first (or last) element."""
        return cls(inner, to_micros(timeout), reset_timer_on_new_record, clear_on_timeout)

    @property
    def reads_elements(self) -> bool:
        """Whether the inner trigger looks into elements."""
        return reads_elements(self.inner)

    def on_element(self, element: Value, timestamp: int, window: Window, context: TriggerContext) -> TriggerResult:
        """Call the inner trigger; if it does not fire, see that a timeout is pending."""
        result = self.inner.on_element(element, timestamp, window, context.prefixed(_INNER))
        if checked_result(self.inner, result, window).is_fire:
            self.clear(window, context)
            return result
        timeout = context.value_state(_TIMEOUT)
        pending = timeout.get()
        if pending is not None and self.reset_timer_on_new_record:
            context.delete_processing_time_timer(pending)
            pending = None
        if pending is None:
            self._wait(context)
        return result

    def _wait(self, context: TriggerContext) -> None:
        due = add_clamped(context.current_processing_time, self.timeout)
        context.value_state(_TIMEOUT).update(due)
        context.register_processing_time_timer(due)

    def begin(self, window: Window, context: MergeContext) -> None:
        self.inner.begin(window, context.prefixed(_INNER))
        self._wait(context)

    def on_event_time(self, time: int, window: Window, context: TriggerContext) -> TriggerResult:
        """Fire, whatever the inner trigger answers to its timer."""
        return self._fire(self.inner.on_event_time(time, window, context.prefixed(_INNER)), window, context)

    def on_processing_time(self, time: int, window: Window, context: TriggerContext) -> TriggerResult:
        return self._fire(self.inner.on_processing_time(time, window, context.prefixed(_INNER)), window, context)

    def _fire(self, inner_result: TriggerResult, window: Window, context: TriggerContext) -> TriggerResult:
        checked_result(self.inner, inner_result, window)
        if self.clear_on_timeout:
            self.clear(window, context)
        return TriggerResult.FIRE_AND_PURGE if inner_result.is_purge else TriggerResult.FIRE

    def clear(self, window: Window, context: TriggerContext) -> None:
        timeout = context.value_state(_TIMEOUT)
        pending = timeout.get()
        if pending is not None:
            context.delete_processing_time_timer(pending)
            timeout.clear()
        self.inner.clear(window, context.prefixed(_INNER))

    def check_window(self, window: Window) -> None:
        self.inner.check_window(window)
