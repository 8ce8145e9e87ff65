"""Fire at the end of something: of a window by the watermark or by the clock, their defaults, of a bounded stream, or never.

Source of the rules: Flink's EventTimeTrigger, ProcessingTimeTrigger, EndOfStreamTrigger and NeverTrigger of GlobalWindows.
"""

from __future__ import annotations

from dataclasses import dataclass

from windowpane.arrays.values import Value
from windowpane.windowing.times import MAX
from windowpane.windowing.triggers.base import MergeContext, Trigger, TriggerContext, TriggerResult, reject_unless_time_window
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

    def on_element(self, element: Value, timestamp: int, window: Window, context: TriggerContext) -> TriggerResult:
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


@dataclass(frozen=True)
class EndOfStreamTrigger(Trigger):
    """Fires when the watermark reaches ``MAX``, that is when a bounded stream has ended.

    Example:
        >>> EndOfStreamTrigger()
        EndOfStreamTrigger()
    """

    reads_elements = False

    def on_element(self, element: Value, timestamp: int, window: Window, context: TriggerContext) -> TriggerResult:
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

    def on_element(self, element: Value, timestamp: int, window: Window, context: TriggerContext) -> TriggerResult:
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


@dataclass(frozen=True)
class NeverTrigger(Trigger):
    """Never fires, never purges: the default of global windows, in Flink and here.

    Example:
        >>> NeverTrigger()
        NeverTrigger()
    """

    reads_elements = False

    def on_element(self, element: Value, timestamp: int, window: Window, context: TriggerContext) -> TriggerResult:
        return TriggerResult.CONTINUE

    def can_merge(self) -> bool:
        return True

    def on_merge(self, window: Window, context: MergeContext) -> None:
        """Do nothing: there is nothing to carry over."""

    def clear(self, window: Window, context: TriggerContext) -> None:
        """Do nothing: there is nothing to drop."""
