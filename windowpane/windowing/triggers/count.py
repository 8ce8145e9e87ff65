"""Fire each time a window has received so many elements. Source of the rule: Flink's CountTrigger.

The count starts anew at each firing and adds up on merge; a merge alone does not fire, the next element does.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any

from windowpane.windowing.triggers.base import MergeContext, Trigger, TriggerContext, TriggerResult
from windowpane.windowing.windows import Window

_COUNT = "count"


@dataclass(frozen=True)
class CountTrigger(Trigger):
    """Fires at every ``max_count`` elements of a window; at every element if ``max_count <= 0``, as in Flink.

    Example:
        >>> CountTrigger.of(100)
        CountTrigger(max_count=100)
    """

    reads_elements = False
    max_count: int

    @classmethod
    def of(cls, max_count: int) -> CountTrigger:
        """Return the trigger that fires at every ``max_count`` elements."""
        return cls(max_count)

    def on_element(self, element: Any, timestamp: int, window: Window, context: TriggerContext) -> TriggerResult:
        count = context.reducing_state(_COUNT, operator.add)
        count.add(1)
        if count.get() >= self.max_count:
            count.clear()
            return TriggerResult.FIRE
        return TriggerResult.CONTINUE

    def can_merge(self) -> bool:
        return True

    def on_merge(self, window: Window, context: MergeContext) -> None:
        context.merge_reducing_state(_COUNT, operator.add)

    def clear(self, window: Window, context: TriggerContext) -> None:
        context.reducing_state(_COUNT, operator.add).clear()
