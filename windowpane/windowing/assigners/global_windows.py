"""Global windows: one window for all elements of a key; only a trigger or the end of the stream makes it fire.

Source of the rules: Flink's GlobalWindows. It counts as a processing-time assigner: no element is late, nothing is cleaned up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from windowpane.arrays.values import Value
from windowpane.windowing.assigners.base import AssignerContext, WindowAssigner
from windowpane.windowing.triggers import EndOfStreamTrigger, NeverTrigger, Trigger
from windowpane.windowing.windows import GLOBAL_WINDOW, GlobalWindow


@dataclass(frozen=True)
class GlobalWindows(WindowAssigner):
    """One window for everything. Its default trigger never fires: set one.

    Example:
        >>> GlobalWindows.create()
        GlobalWindows(trigger=NeverTrigger())
    """

    reads_elements = False
    is_event_time = False
    has_ends = False
    trigger: Trigger = field(default_factory=NeverTrigger)

    @classmethod
    def create(cls) -> GlobalWindows:
        """Return the assigner whose default trigger never fires."""
        return cls()

    @classmethod
    def create_with_end_of_stream_trigger(cls) -> GlobalWindows:
        """Return the assigner whose default trigger fires once, when a bounded stream ends."""
        return cls(EndOfStreamTrigger())

    def assign_windows(self, element: Value, timestamp: int, context: AssignerContext) -> Sequence[GlobalWindow]:
        return (GLOBAL_WINDOW,)

    def default_trigger(self) -> Trigger:
        return self.trigger
