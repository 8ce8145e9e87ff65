"""One windowed computation as a value: assigner, trigger, evictor, lateness and function, checked when it is built."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from windowpane.errors import InvalidSpecError, NonMergingTriggerError
from windowpane.windowing.assigners import ClosedSessionWindows, GlobalWindows, MergingWindowAssigner, WindowAssigner
from windowpane.windowing.evictors import CountEvictor, Evictor, TimeEvictor
from windowpane.windowing.functions import FoldAggregate, PassThrough, WindowFunctionSpec
from windowpane.windowing.lateness import Lateness
from windowpane.windowing.panes import NO_PANES, AccumulationMode, PaneBehavior, PaneOptions
from windowpane.windowing.times import MAX
from windowpane.windowing.triggers import (
    ContinuousEventTimeTrigger,
    ContinuousProcessingTimeTrigger,
    CountTrigger,
    EachBatch,
    EventTimeTrigger,
    NeverTrigger,
    ProcessingTimeTrigger,
    PurgingTrigger,
    Trigger,
)
from windowpane.windowing.triggers.composable import AfterWatermark, ComposableTrigger, Default
from windowpane.windowing.triggers.composable.pane_trigger import PaneTrigger

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
        if isinstance(self.assigner, ClosedSessionWindows):
            self._check_closed()
        if self.refine not in ("last", "each"):
            raise InvalidSpecError(f"refine must be 'last' or 'each', but is {self.refine!r}.")

    def _check_closed(self) -> None:
        """Refuse what sessions that rows close cannot have: each has one result, made when it is final."""
        asked = {
            f"the trigger {self.trigger!r}": type(self.trigger) is not EventTimeTrigger,
            f"the evictor {self.evictor!r}": self.evictor is not None,
            "allowed lateness": self.allowed_lateness > 0,
            "panes": self.panes != NO_PANES,
            f"the function of {self.function.kind}": not isinstance(self.function.process, PassThrough),
        }
        if refused := [what for what, is_asked in asked.items() if is_asked]:
            raise InvalidSpecError(
                "sessions that closed_by ends have one result, from rows in the order of event time, and do not take "
                f"{refused[0]}. Rows are waited for as long as the watermark's delay says; the function is aggregates, reduce, "
                "fold, or an AggregateFunction. Results at any time are those of sessions without closed_by."
            )

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


# --- what a user says of panes, made into the trigger that runs it, or refused where it cannot work or would lose rows ---


@dataclass(frozen=True)
class PaneSettings:
    """Settings of panes, as the methods of ``wp.WindowedStream`` have them.

    Raises:
        InvalidSpecError: a word that is none of these.
    """

    accumulation: AccumulationMode | None = None
    on_time_behavior: PaneBehavior = "fire_always"
    closing_behavior: PaneBehavior = "fire_if_non_empty"
    shows_info: bool = False
    allows_unsafe_triggers: bool = False

    def __post_init__(self) -> None:
        _require_word("accumulation", self.accumulation, (None, *get_args(AccumulationMode)))
        _require_word("on_time_behavior", self.on_time_behavior, get_args(PaneBehavior))
        _require_word("closing_behavior", self.closing_behavior, get_args(PaneBehavior))

    @property
    def text(self) -> str:
        return ", ".join(
            [
                self.accumulation or "as the trigger says",
                *([f"on time {self.on_time_behavior}"] if self.on_time_behavior != "fire_always" else []),
                *([f"at cleanup {self.closing_behavior}"] if self.closing_behavior != "fire_if_non_empty" else []),
                *(["with pane_info"] if self.shows_info else []),
                *(["finished windows drop rows"] if self.allows_unsafe_triggers else []),
            ]
        )

    @property
    def options(self) -> PaneOptions:
        return PaneOptions(self.shows_info, self.accumulation == "retracting")

    def trigger(
        self, trigger: Trigger | ComposableTrigger, assigner: WindowAssigner, evictor: Evictor | None, allowed_lateness: int
    ) -> Trigger:
        """Return the trigger that runs the user's trigger, or the assigner's default, with these settings."""
        if isinstance(trigger, ComposableTrigger):
            self._check(trigger, assigner, evictor, allowed_lateness)
            if self.options == NO_PANES and _fires_once(trigger, allowed_lateness) and assigner.has_ends:
                return EventTimeTrigger()  # the same, and engines know it
            accumulation = self.accumulation or "accumulating"
            return PaneTrigger(trigger, accumulation, self.on_time_behavior, self.closing_behavior, allowed_lateness)
        if (self.on_time_behavior, self.closing_behavior) != ("fire_always", "fire_if_non_empty"):
            raise InvalidSpecError(
                f"on_time_behavior and closing_behavior speak of composable triggers, and {trigger!r} is one of Flink's: say "
                "AfterWatermark(), or leave them out."
            )
        if self.accumulation is not None and isinstance(trigger, PurgingTrigger | NeverTrigger):
            raise InvalidSpecError(f"{trigger!r} says itself what becomes of the contents: leave .accumulation(...) out.")
        return PurgingTrigger(trigger) if self.accumulation == "discarding" else trigger

    def _check(
        self, trigger: ComposableTrigger, assigner: WindowAssigner, evictor: Evictor | None, allowed_lateness: int
    ) -> None:
        if assigner.ends_by_clock:
            raise InvalidSpecError(
                f"{trigger!r} waits for the watermark's end of a window, and {assigner!r} makes windows of the clock: take "
                "event-time windows, or one of Flink's triggers."
            )
        if evictor is not None:
            raise InvalidSpecError(
                f"{evictor!r} cannot stand beside the composable trigger {trigger!r}: take one of Flink's triggers."
            )
        if self.accumulation is None and not _fires_once(trigger, allowed_lateness):
            raise InvalidSpecError(
                f"{trigger!r} can fire more than once: say .accumulation('accumulating') for panes of all rows so far, "
                "'discarding' for the rows since the last pane, or 'retracting' for a changelog."
            )
        finishing = finishing_node(trigger, allowed_lateness)
        if finishing is not None and not self.allows_unsafe_triggers:
            late = (
                "Give AfterWatermark(late=...), " if isinstance(finishing, AfterWatermark) else f"Say Repeatedly({finishing!r}), "
            )
            raise InvalidSpecError(
                f"{trigger!r} is finished once {finishing!r} is, and rows of the window that come later would be lost. {late}or "
                ".trigger(..., allow_unsafe_triggers=True): then they are counted, and go to the late output, if there is one."
            )


def finishing_node(trigger: ComposableTrigger, allowed_lateness: int) -> ComposableTrigger | None:
    """Return the innermost part of a trigger that makes it finish while rows may arrive, ``None`` if it never does."""
    if not trigger.may_finish(allowed_lateness):
        return None
    if isinstance(trigger, AfterWatermark):
        return trigger
    below = (finishing_node(child, allowed_lateness) for child in trigger.children)
    return next((node for node in below if node is not None), trigger)


def _fires_once(trigger: ComposableTrigger, allowed_lateness: int) -> bool:
    at_end = isinstance(trigger, Default) or (isinstance(trigger, AfterWatermark) and trigger.is_once)
    return at_end and not allowed_lateness


def _require_word(what: str, word: object, words: tuple[object, ...]) -> None:
    if word not in words:
        known = ", ".join(repr(each) for each in words if each is not None)
        raise InvalidSpecError(f"{what} must be one of {known}, but is {word!r}.")


DEFAULT_PANES = PaneSettings()
"""What Flink does: results that say nothing of panes."""
