"""Drop the contents at each firing: windows that report new elements alone, not all so far.

Source of the rule: Flink's PurgingTrigger.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

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

    def on_element(self, element: Any, timestamp: int, window: Window, context: TriggerContext) -> TriggerResult:
        return self._purging(self.inner.on_element(element, timestamp, window, context), window)

    def on_event_time(self, time: int, window: Window, context: TriggerContext) -> TriggerResult:
        return self._purging(self.inner.on_event_time(time, window, context), window)

    def on_processing_time(self, time: int, window: Window, context: TriggerContext) -> TriggerResult:
        return self._purging(self.inner.on_processing_time(time, window, context), window)

    def can_merge(self) -> bool:
        return self.inner.can_merge()

    def on_merge(self, window: Window, context: MergeContext) -> None:
        self.inner.on_merge(window, context)

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
