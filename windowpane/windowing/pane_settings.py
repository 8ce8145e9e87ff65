"""What a user says of panes, made into the trigger that runs it, or refused where it cannot work or would lose rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

from windowpane.errors import InvalidSpecError
from windowpane.windowing.assigners import WindowAssigner
from windowpane.windowing.evictors import Evictor
from windowpane.windowing.panes import NO_PANES, AccumulationMode, PaneBehavior, PaneOptions
from windowpane.windowing.triggers import EventTimeTrigger, NeverTrigger, PurgingTrigger, Trigger
from windowpane.windowing.triggers.composable import AfterWatermark, ComposableTrigger, Default
from windowpane.windowing.triggers.composable.pane_trigger import PaneTrigger


@dataclass(frozen=True)
class PaneSettings:
    """Settings of panes.

    Args:
        accumulation: what happens to the contents of a window that fired; ``None`` where the user did not say.
        on_time_behavior: whether the pane of the window's end is emitted even where no row is new.
        closing_behavior: whether a pane is emitted at cleanup even where no row is new.
        shows_info: whether results carry the columns of ``.pane_info()``.
        allows_unsafe_triggers: whether a trigger may be finished while rows still arrive, which are lost then.

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
        """Return the trigger that runs the user's trigger with these settings.

        Args:
            trigger: the user's trigger, or the assigner's default.
            assigner: the windows.
            evictor: the evictor, if any.
            allowed_lateness: microseconds a window is kept behind the watermark.

        Raises:
            InvalidSpecError: settings that do not go together, or a trigger that would lose rows.
        """
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
