"""One windowed computation as a value: assigner, trigger, evictor, lateness and function, checked when it is built."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from windowpane.errors import InvalidSpecError, NonMergingTriggerError
from windowpane.windowing.assigners import GlobalWindows, MergingWindowAssigner, WindowAssigner
from windowpane.windowing.evictors import CountEvictor, Evictor, TimeEvictor
from windowpane.windowing.functions import FoldAggregate, WindowFunctionSpec
from windowpane.windowing.lateness import Lateness
from windowpane.windowing.panes import NO_PANES, PaneOptions
from windowpane.windowing.times import MAX
from windowpane.windowing.triggers import (
    ContinuousEventTimeTrigger,
    ContinuousProcessingTimeTrigger,
    CountTrigger,
    EachBatch,
    EventTimeTrigger,
    ProcessingTimeTrigger,
    PurgingTrigger,
    Trigger,
)

Refine = Literal["last", "each"]


@dataclass(frozen=True)
class WindowSpec:
    """One windowed computation.

    Args:
        assigner: which windows an element belongs to.
        function: what a firing window's contents are turned into.
        trigger: when a window fires; the assigner's default where none is given.
        evictor: which elements leave a firing window; with one, every element is kept.
        allowed_lateness: microseconds a window is kept behind the watermark; processing-time assigners ignore it.
        refine: ``"each"`` fires for every late element as Flink does; ``"last"`` fires once a batch for each refined window.
        panes: what results show of the firings that they are from.

    Raises:
        NonMergingTriggerError: the assigner's windows merge and the trigger cannot.
        InvalidSpecError: negative lateness, or a fold that cannot merge on merging windows.
    """

    assigner: WindowAssigner
    function: WindowFunctionSpec
    trigger: Trigger
    evictor: Evictor | None = None
    allowed_lateness: int = 0
    refine: Refine = "each"
    panes: PaneOptions = NO_PANES

    def __post_init__(self) -> None:
        if not isinstance(self.trigger, Trigger):
            raise InvalidSpecError(
                f"{self.trigger!r} is no Trigger. A WindowSpec takes the trigger that runs: give a composable one to "
                "WindowedStream.trigger or to WindowTestHarness."
            )
        if not 0 <= self.allowed_lateness <= MAX:
            raise InvalidSpecError(f"The allowed lateness cannot be negative, but is {self.allowed_lateness} µs.")
        if self.merges and not (self.trigger.can_merge() and _says_how_to_merge(self.trigger)):
            raise NonMergingTriggerError(self.assigner, self.trigger)
        fold = self.function.accumulate
        if self.merges and self.evictor is None and isinstance(fold, FoldAggregate) and fold.merge_folds is None:
            raise InvalidSpecError(
                f"{self.assigner!r} merges windows and a fold cannot be merged; give fold(..., merge=function) or use aggregate."
            )
        if self.refine not in ("last", "each"):
            raise InvalidSpecError(f"refine must be 'last' or 'each', but is {self.refine!r}.")

    @property
    def merges(self) -> bool:
        """Whether windows of one key merge."""
        return isinstance(self.assigner, MergingWindowAssigner)

    @property
    def lateness(self) -> Lateness:
        """When its windows are over, and which elements are late."""
        return Lateness(self.allowed_lateness, self.assigner.is_event_time)

    @property
    def purges(self) -> bool:
        """Whether a firing drops the contents of its window."""
        return isinstance(self.trigger, PurgingTrigger)

    @property
    def firing_trigger(self) -> Trigger:
        """The trigger that says when windows fire: what a purging trigger wraps, or the trigger itself."""
        return self.trigger.inner if isinstance(self.trigger, PurgingTrigger) else self.trigger

    @property
    def fires_at_window_end(self) -> bool:
        """Whether the trigger is the one that waits for the windows' own clock, purging or not."""
        return type(self.firing_trigger) is (EventTimeTrigger if self.assigner.is_event_time else ProcessingTimeTrigger)

    @property
    def refines_each(self) -> bool:
        """Whether a window that has fired fires again for each late row by itself."""
        return self.refine != "last" and self.assigner.is_event_time and self.allowed_lateness > 0

    @property
    def coalesces_refinements(self) -> bool:
        """Whether of several late firings of one window in one batch only the last is emitted.

        Only where the trigger fires once for each late element by itself, and where the last firing is known without the
        others: built-in evictors call no user code, and evict the same whether the function was called or not. A purging trigger
        shows all new elements together then; an evictor before it would drop elements that Flink has shown piece by piece.
        Count, delta and custom triggers fire at every boundary, whatever ``refine`` is.
        """
        return self.refine == "last" and self.fires_for_late_elements and self._evicts_predictably

    @property
    def fires_each_batch(self) -> bool:
        """Whether windows fire when a batch ends, and at no other time."""
        return isinstance(self.firing_trigger, EachBatch)

    @property
    def fires_for_late_elements(self) -> bool:
        """Whether the trigger fires once for each element that arrives behind the watermark, and for no other element."""
        return isinstance(self.firing_trigger, EventTimeTrigger | ContinuousEventTimeTrigger)

    @property
    def _evicts_predictably(self) -> bool:
        if self.evictor is None:
            return True
        known = type(self.evictor) in (CountEvictor, TimeEvictor)
        return known and (self.evicts_after or not self.purges)

    @property
    def evicts_after(self) -> bool:
        """Whether a built-in evictor runs after the function, which sees the evicted elements then."""
        return isinstance(self.evictor, CountEvictor | TimeEvictor) and self.evictor.do_evict_after


_OWN = frozenset(kind.__module__ for kind in (ContinuousEventTimeTrigger, ContinuousProcessingTimeTrigger))
"""Modules of triggers whose ``on_merge`` is in a base class that keeps their state."""


def _says_how_to_merge(trigger: Trigger) -> bool:
    """Whether a trigger has an ``on_merge`` for its own ``on_element``: an inherited one knows nothing of the state it keeps."""
    kind = type(trigger.inner if isinstance(trigger, PurgingTrigger) else trigger)
    on_element, on_merge = (next(cls for cls in kind.__mro__ if name in vars(cls)) for name in ("on_element", "on_merge"))
    return on_merge is not Trigger and (issubclass(on_merge, on_element) or on_element.__module__ in _OWN)


def count_window(size: int, slide: int | None = None) -> tuple[WindowAssigner, Trigger, Evictor | None]:
    """Return the assigner, trigger and evictor of a count window, as Flink builds it.

    ``count_window(n)`` is a global window with a purging count trigger; ``count_window(n, slide)`` keeps the last ``n``
    elements and fires every ``slide``.
    """
    if slide is None:
        return GlobalWindows(), PurgingTrigger(CountTrigger(size)), None
    return GlobalWindows(), CountTrigger(slide), CountEvictor(size)
