"""Fire once, when a bounded stream ends. Source of the rule: Flink's GlobalWindows.EndOfStreamTrigger."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from windowpane.windowing.times import MAX
from windowpane.windowing.triggers.base import MergeContext, Trigger, TriggerContext, TriggerResult
from windowpane.windowing.windows import Window


@dataclass(frozen=True)
class EndOfStreamTrigger(Trigger):
    """Fires when the watermark reaches ``MAX``, that is when a bounded stream has ended.

    Example:
        >>> EndOfStreamTrigger()
        EndOfStreamTrigger()
    """

    reads_elements = False

    def on_element(self, element: Any, timestamp: int, window: Window, context: TriggerContext) -> TriggerResult:
        context.register_event_time_timer(MAX)
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: Window, context: TriggerContext) -> TriggerResult:
        return TriggerResult.FIRE if time == MAX else TriggerResult.CONTINUE

    def fires_at_end(self, event_time: bool) -> bool:
        """Return false: windows that end before the stream are gone by then."""
        return False

    def can_merge(self) -> bool:
        return True

    def on_merge(self, window: Window, context: MergeContext) -> None:
        context.register_event_time_timer(MAX)

    def clear(self, window: Window, context: TriggerContext) -> None:
        context.delete_event_time_timer(MAX)
