"""Fire at the end of each micro-batch, for the windows whose rows it brought: results that follow the input.

Spark's update mode for windows, and RisingWave's windowed aggregates without EMIT ON WINDOW CLOSE.
"""

from __future__ import annotations

from dataclasses import dataclass

from windowpane.arrays.values import Value
from windowpane.windowing.triggers.base import MergeContext, Trigger, TriggerContext, TriggerResult
from windowpane.windowing.windows import Window


@dataclass(frozen=True)
class EachBatch(Trigger):
    """Fires once a micro-batch for each window that its rows changed, when all of them are in.

    With ``.accumulation("retracting")`` the results are a changelog that keeps a table of windows right.

    Example:
        >>> windowed.trigger(EachBatch()).accumulation("retracting").aggregate(n=wp.count())
    """

    reads_elements = False

    def on_element(self, element: Value, timestamp: int, window: Window, context: TriggerContext) -> TriggerResult:
        """Fire; the operator holds it back until the batch ends."""
        return TriggerResult.FIRE

    def fires_at_end(self, event_time: bool) -> bool:
        """Return true: no row is left when a batch ends."""
        return True

    def can_merge(self) -> bool:
        return True

    def on_merge(self, window: Window, context: MergeContext) -> None:
        """Do nothing: the row that merges windows makes the merged one fire."""

    def clear(self, window: Window, context: TriggerContext) -> None:
        """Do nothing: nothing is kept."""
