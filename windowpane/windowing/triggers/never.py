"""Never fire: the default of global windows. Source of the rule: Flink's GlobalWindows.NeverTrigger."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from windowpane.windowing.triggers.base import MergeContext, Trigger, TriggerContext, TriggerResult
from windowpane.windowing.windows import Window


@dataclass(frozen=True)
class NeverTrigger(Trigger):
    """Never fires, never purges: the default of global windows, in Flink and here.

    Example:
        >>> NeverTrigger()
        NeverTrigger()
    """

    reads_elements = False

    def on_element(self, element: Any, timestamp: int, window: Window, context: TriggerContext) -> TriggerResult:
        return TriggerResult.CONTINUE

    def can_merge(self) -> bool:
        return True

    def on_merge(self, window: Window, context: MergeContext) -> None:
        """Do nothing: there is nothing to carry over."""

    def clear(self, window: Window, context: TriggerContext) -> None:
        """Do nothing: there is nothing to drop."""
