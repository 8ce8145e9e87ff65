"""Fire at regular intervals of event time while a window fills: early results, and the final one at its end.

Source of the rule: Flink's ContinuousEventTimeTrigger.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from windowpane.windowing.triggers.base import TriggerContext, TriggerResult
from windowpane.windowing.triggers.continuous import ContinuousTrigger
from windowpane.windowing.windows import Window


@dataclass(frozen=True)
class ContinuousEventTimeTrigger(ContinuousTrigger):
    """Fires each ``interval`` microseconds of event time, and when the watermark reaches the window's end.

    Example:
        >>> ContinuousEventTimeTrigger.of("15 minutes")
        ContinuousEventTimeTrigger(interval=900000000)
    """

    def on_element(self, element: Any, timestamp: int, window: Window, context: TriggerContext) -> TriggerResult:
        """Fire at once behind the watermark; else wait for the end and, from the first element on, for the next interval."""
        if window.max_timestamp <= context.current_watermark:
            return TriggerResult.FIRE
        context.register_event_time_timer(window.max_timestamp)
        self._start(timestamp, window, context)
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: Window, context: TriggerContext) -> TriggerResult:
        """Fire at the end of the window and at the pending interval, and register the one after it."""
        return self._answer(time, window, context)

    def _register(self, time: int, context: TriggerContext) -> None:
        context.register_event_time_timer(time)

    def _delete(self, time: int, context: TriggerContext) -> None:
        context.delete_event_time_timer(time)
