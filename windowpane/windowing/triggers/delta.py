"""Fire when an element differs enough from the one that fired last. Source of the rule: Flink's DeltaTrigger."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from windowpane.windowing.triggers.base import Trigger, TriggerContext, TriggerResult
from windowpane.windowing.windows import Window

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
    delta: Callable[[Any, Any], float]

    @classmethod
    def of(cls, threshold: float, delta: Callable[[Any, Any], float]) -> DeltaTrigger:
        """Return the trigger (Flink's spelling)."""
        return cls(threshold, delta)

    def on_element(self, element: Any, timestamp: int, window: Window, context: TriggerContext) -> TriggerResult:
        last = context.value_state(_LAST)
        held = last.get()
        if held is None:
            last.update((element,))
            return TriggerResult.CONTINUE
        if self.delta(held[0], element) > self.threshold:
            last.update((element,))
            return TriggerResult.FIRE
        return TriggerResult.CONTINUE

    def clear(self, window: Window, context: TriggerContext) -> None:
        context.value_state(_LAST).clear()
