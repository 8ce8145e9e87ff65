"""Fire at regular intervals of the clock while a window is open, never beyond its end.

Source of the rule: Flink's ContinuousProcessingTimeTrigger.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from windowpane.windowing.triggers.base import TriggerContext, TriggerResult
from windowpane.windowing.triggers.continuous import ContinuousTrigger
from windowpane.windowing.windows import Window


@dataclass(frozen=True)
class ContinuousProcessingTimeTrigger(ContinuousTrigger):
    """Fires each ``interval`` microseconds of processing time.

    Example:
        >>> ContinuousProcessingTimeTrigger.of("10 seconds")
        ContinuousProcessingTimeTrigger(interval=10000000)
    """

    def on_element(self, element: Any, timestamp: int, window: Window, context: TriggerContext) -> TriggerResult:
        """From the first element on, wait for the next interval of the clock."""
        self._start(context.current_processing_time, window, context)
        return TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: Window, context: TriggerContext) -> TriggerResult:
        """Fire at the end of the window and at the pending interval, and register the one after it."""
        return self._answer(time, window, context)

    def _register(self, time: int, context: TriggerContext) -> None:
        context.register_processing_time_timer(time)

    def _delete(self, time: int, context: TriggerContext) -> None:
        context.delete_processing_time_timer(time)
