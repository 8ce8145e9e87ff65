"""Fire when the clock passes the end of the window: the default of processing-time windows.

Source of the rule: Flink's ProcessingTimeTrigger.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from windowpane.windowing.triggers.base import (
    MergeContext,
    Trigger,
    TriggerContext,
    TriggerResult,
    reject_unless_time_window,
)
from windowpane.windowing.windows import Window


@dataclass(frozen=True)
class ProcessingTimeTrigger(Trigger):
    """Fires once the processing time reaches the window's max timestamp.

    The default of processing-time windows, in Flink and here.

    Example:
        >>> ProcessingTimeTrigger.create()
        ProcessingTimeTrigger()
    """

    reads_elements = False

    @classmethod
    def create(cls) -> ProcessingTimeTrigger:
        """Return the trigger (Flink's spelling)."""
        return cls()

    def on_element(self, element: Any, timestamp: int, window: Window, context: TriggerContext) -> TriggerResult:
        context.register_processing_time_timer(window.max_timestamp)
        return TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: Window, context: TriggerContext) -> TriggerResult:
        return TriggerResult.FIRE

    def can_merge(self) -> bool:
        return True

    def on_merge(self, window: Window, context: MergeContext) -> None:
        """Wait for the end of the merged window, unless the clock is already there."""
        if window.max_timestamp > context.current_processing_time:
            context.register_processing_time_timer(window.max_timestamp)

    def clear(self, window: Window, context: TriggerContext) -> None:
        context.delete_processing_time_timer(window.max_timestamp)

    def check_window(self, window: Window) -> None:
        """Refuse the global window, as Flink does: it would end with time itself."""
        reject_unless_time_window(self, window)
