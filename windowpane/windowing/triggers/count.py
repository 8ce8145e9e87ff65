"""Fire by what the elements of a window are: so many, or one that differs enough from the one that fired last.

The count starts anew at each firing and adds up on merge; a merge alone does not fire, the next element does. Source of the
rules: Flink's CountTrigger and DeltaTrigger.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass

from windowpane.arrays.values import Value
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

    def on_element(self, element: Value, timestamp: int, window: Window, context: TriggerContext) -> TriggerResult:
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


_LAST = "last-element"


@dataclass(frozen=True)
class DeltaTrigger(Trigger):
    """Fires when ``delta(last fired element, element) > threshold``; the first element only becomes the reference.

    Args:
        threshold: the difference that must be exceeded.
        delta: takes the old and the new element (rows as dicts) and returns a number.

    Example:
        >>> DeltaTrigger.of(5.0, lambda old, new: abs(new["temp"] - old["temp"]))
    """

    threshold: float
    delta: Callable[[Value, Value], float]

    @classmethod
    def of(cls, threshold: float, delta: Callable[[Value, Value], float]) -> DeltaTrigger:
        """Return the trigger (Flink's spelling)."""
        return cls(threshold, delta)

    def on_element(self, element: Value, timestamp: int, window: Window, context: TriggerContext) -> TriggerResult:
        last = context.value_state(_LAST)
        held = last.get()
        if held is None:
            last.update((element,))
            return TriggerResult.CONTINUE
        if self.delta(held[0], element) > self.threshold:
            last.update((element,))
            return TriggerResult.FIRE
        return TriggerResult.CONTINUE

    def begin(self, window: Window, context: MergeContext) -> None:
        """Do nothing: the next element becomes the reference."""

    def clear(self, window: Window, context: TriggerContext) -> None:
        context.value_state(_LAST).clear()
