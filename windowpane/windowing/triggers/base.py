"""What every trigger answers, and what its context gives it.

A trigger is a stateless spec: clocks, timers and state come from the context, state by name. Source of the contract: Flink's
Trigger, TriggerResult, TriggerContext and OnMergeContext.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from enum import Enum
from typing import Protocol, TypeAlias

from windowpane.arrays.values import Value
from windowpane.errors import NonMergingTriggerError, TriggerResultError
from windowpane.guidance import SpecType
from windowpane.windowing.panes import Firing
from windowpane.windowing.windows import TimeWindow, Window


class TriggerResult(Enum):
    """What happens to a window after a trigger's callback."""

    CONTINUE = (False, False)
    """Nothing."""
    FIRE = (True, False)
    """The function sees the contents and its results are emitted; the contents stay."""
    PURGE = (False, True)
    """The contents are dropped without being seen; trigger state and timers stay."""
    FIRE_AND_PURGE = (True, True)
    """The function sees the contents, then they are dropped."""

    def __init__(self, is_fire: bool, is_purge: bool) -> None:
        self.is_fire = is_fire
        self.is_purge = is_purge


def checked_result(trigger: object, result: object, window: Window) -> TriggerResult:
    """Return what a callback of a trigger returned for a window."""
    if isinstance(result, TriggerResult):
        return result
    raise TriggerResultError(trigger, result, window)


Reduce: TypeAlias = Callable[[Value, Value], Value]
"""Makes one value of two."""


class ValueState(Protocol):
    """One value that belongs to the current key and window; ``None`` means empty."""

    def get(self) -> Value:
        """Return the value, ``None`` if there is none."""

    def update(self, value: Value) -> None:
        """Set the value."""

    def clear(self) -> None:
        """Remove the value."""


class ReducingState(Protocol):
    """A value of the current key and window that grows by a reduce function, and so can merge."""

    def get(self) -> Value:
        """Return the value, ``None`` if there is none."""

    def add(self, value: Value) -> None:
        """Combine ``value`` into the state."""

    def clear(self) -> None:
        """Remove the value."""


class TriggerContext(Protocol):
    """Clocks, timers and state of the current key and window."""

    @property
    def current_watermark(self) -> int:
        """The watermark in microseconds, ``MIN`` before the first."""

    @property
    def current_processing_time(self) -> int:
        """The processing time in microseconds."""

    def register_event_time_timer(self, time: int) -> None:
        """Have ``on_event_time`` called once the watermark reaches ``time``; one time registered twice is one timer."""

    def register_processing_time_timer(self, time: int) -> None:
        """Have ``on_processing_time`` called once the clock reaches ``time``."""

    def delete_event_time_timer(self, time: int) -> None:
        """Take an event-time timer back."""

    def delete_processing_time_timer(self, time: int) -> None:
        """Take a processing-time timer back."""

    def value_state(self, name: str) -> ValueState:
        """Return this trigger's value state of that name in the current key and window."""

    def reducing_state(self, name: str, reduce: Reduce) -> ReducingState:
        """Return this trigger's reducing state of that name in the current key and window."""

    def announce(self, firing: Firing) -> None:
        """Say what the firing that the callback answers with is; triggers that do not say fire as Flink's do."""

    def prefixed(self, prefix: str) -> TriggerContext:
        """Return this context with every state name prefixed, so that a nested trigger keeps its state apart."""


class MergeContext(TriggerContext, Protocol):
    """The context of ``on_merge``: the current window is the result of the merge."""

    def merge_reducing_state(self, name: str, reduce: Reduce) -> None:
        """Combine the state of that name of all merged windows into that of the result, and clear the old ones."""

    def prefixed(self, prefix: str) -> MergeContext:
        """Return this context with every state name prefixed."""


class Trigger(metaclass=SpecType):
    """Decides when a window fires and when its contents are dropped. Setting one replaces the assigner's default.

    Subclass it for your own: the three callbacks, ``clear``, and for sessions ``can_merge`` and ``on_merge``.

    Example:
        >>> class FireOnMarker(Trigger):
        ...     def on_element(self, element, timestamp, window, context):
        ...         return TriggerResult.FIRE if element["marker"] else TriggerResult.CONTINUE
        ...     def clear(self, window, context): pass
    """

    @abstractmethod
    def on_element(self, element: Value, timestamp: int, window: Window, context: TriggerContext) -> TriggerResult:
        """Answer for an element just added to ``window``; ``timestamp`` is ``MIN`` where the element has none."""

    def on_event_time(self, time: int, window: Window, context: TriggerContext) -> TriggerResult:
        """Answer for an event-time timer set for ``time``. The cleanup timer of the window calls it, too."""
        return TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: Window, context: TriggerContext) -> TriggerResult:
        """Answer for a processing-time timer set for ``time``. The cleanup timer of the window calls it, too."""
        return TriggerResult.CONTINUE

    def can_merge(self) -> bool:
        """Return whether this trigger works on merging windows (sessions); then ``on_merge`` must carry its state over."""
        return False

    def on_merge(self, window: Window, context: MergeContext) -> None:
        """Carry state and timers of the merged windows over to ``window``, their result. It cannot fire.

        Raises:
            NonMergingTriggerError: a trigger that does not say how.
        """
        raise NonMergingTriggerError(window, self)

    def begin(self, window: Window, context: MergeContext) -> None:
        """Begin with ``window``, whose rows another trigger has seen: wait for clocks, and count none of them. It cannot fire.

        By default as for a merged window of nothing. Only triggers of windowpane's are asked.
        """
        self.on_merge(window, context)

    @abstractmethod
    def clear(self, window: Window, context: TriggerContext) -> None:
        """Drop state and timers of ``window``: called when it is cleaned up or merged away, not when it is purged."""

    @property
    def uses_processing_time(self) -> bool:
        """Whether this trigger may register processing-time timers: by default, whether it overrides ``on_processing_time``."""
        return type(self).on_processing_time is not Trigger.on_processing_time

    def fires_at_end(self, event_time: bool) -> bool:
        """Return whether a window fires when its clock passes its end; where not, rows since its last firing are never shown.

        Args:
            event_time: whether that clock is the watermark, and not the clock of the machine.

        By default, whether it overrides the callback of that clock's timers, which the cleanup of a window calls, too.
        """
        name = "on_event_time" if event_time else "on_processing_time"
        return getattr(type(self), name) is not getattr(Trigger, name)

    def check_window(self, window: Window) -> None:
        """Refuse a kind of window this trigger cannot work on; called before each callback. The default takes every kind."""


def reject_unless_time_window(trigger: Trigger, window: Window) -> None:
    """Refuse the global window for a trigger that is made for time windows only."""
    if not isinstance(window, TimeWindow):
        from windowpane.errors import WindowTypeError

        raise WindowTypeError(trigger, window)


def reads_elements(*parts: object) -> bool:
    """Return whether an assigner, a trigger or an evictor looks into elements, and not only at their number and times.

    One of the package that does not says so in its class, ``reads_elements = False``; a subclass may do anything.
    """
    return any(part is not None and _reads(part) for part in parts)


def _reads(part: object) -> bool:
    own = vars(type(part)).get("reads_elements", True)
    return bool(own.__get__(part) if isinstance(own, property) else own)
