"""Fire when the watermark passes the end of the window: the default of event-time windows.

Source of the rule: Flink's EventTimeTrigger. Late but allowed elements fire at once, one firing each.
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
class EventTimeTrigger(Trigger):
    """Fires once the watermark reaches the window's max timestamp, and again for each late element that is allowed.

    The default of event-time windows, in Flink and here.

    Example:
        >>> EventTimeTrigger.create()
        EventTimeTrigger()
    """

    reads_elements = False

    @classmethod
    def create(cls) -> EventTimeTrigger:
        """Return the trigger (Flink's spelling)."""
        return cls()

    def on_element(self, element: Any, timestamp: int, window: Window, context: TriggerContext) -> TriggerResult:
        if window.max_timestamp <= context.current_watermark:
            return TriggerResult.FIRE
        context.register_event_time_timer(window.max_timestamp)
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: Window, context: TriggerContext) -> TriggerResult:
        """Fire if this is the timer of the window's end (the cleanup timer of a late window is another one)."""
        return TriggerResult.FIRE if time == window.max_timestamp else TriggerResult.CONTINUE

    def can_merge(self) -> bool:
        return True

    def on_merge(self, window: Window, context: MergeContext) -> None:
        """Wait for the end of the merged window, unless the watermark is already there."""
        if window.max_timestamp > context.current_watermark:
            context.register_event_time_timer(window.max_timestamp)

    def clear(self, window: Window, context: TriggerContext) -> None:
        context.delete_event_time_timer(window.max_timestamp)

    def check_window(self, window: Window) -> None:
        """Refuse the global window, as Flink does: it would end with time itself."""
        reject_unless_time_window(self, window)
