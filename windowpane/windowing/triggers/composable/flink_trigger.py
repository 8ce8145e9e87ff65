"""Flink's triggers, and users' own, as leaves of a trigger tree."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from windowpane.errors import InvalidSpecError
from windowpane.windowing.triggers.base import Trigger
from windowpane.windowing.triggers.composable.base import ComposableTrigger, Leaf, Moment
from windowpane.windowing.triggers.composable.leaves import Default
from windowpane.windowing.triggers.each_batch import EachBatch
from windowpane.windowing.triggers.event_time import EventTimeTrigger
from windowpane.windowing.triggers.never import NeverTrigger
from windowpane.windowing.triggers.purging import PurgingTrigger


@dataclass(frozen=True)
class FlinkTrigger(Leaf):
    """A trigger of Flink's: ready where the callback behind the evaluation answered FIRE. Never finished.

    Its state and timers are its own, under its path; the tree holds nothing for it.
    """

    trigger: Trigger

    def add(self, state: Any, element: Any, timestamp: int, path: str, moment: Moment) -> Any:
        if fires(self.trigger, self.trigger.on_element(element, timestamp, moment.window, moment.at(path))):
            moment.answers.add(path)
        return state

    def is_ready(self, state: Any, path: str, moment: Moment) -> bool:
        return path in moment.answers

    def flink_triggers(self, state: Any, path: str) -> Iterator[tuple[str, Trigger]]:
        yield path, self.trigger

    def forget(self, path: str, moment: Moment) -> None:
        self.trigger.clear(moment.window, moment.at(path))
        moment.leaf_timers.forget(path)


def fires(trigger: Trigger, result: Any) -> bool:
    """Return whether a trigger inside a tree answered FIRE.

    Raises:
        InvalidSpecError: it answered PURGE, which is for ``.accumulation`` to say.
    """
    if result.is_purge:
        raise InvalidSpecError(
            f"{trigger!r} answered {result.name} inside a composable trigger, where .accumulation('discarding') says that a "
            "firing drops the contents: answer FIRE."
        )
    return bool(result.is_fire)


def as_node(trigger: ComposableTrigger | Trigger) -> ComposableTrigger:
    """Return a trigger as a node of a tree.

    Raises:
        InvalidSpecError: it is no trigger, or one that says what accumulation says.
    """
    if isinstance(trigger, ComposableTrigger):
        return trigger
    if isinstance(trigger, EventTimeTrigger):
        return Default()
    if isinstance(trigger, PurgingTrigger):
        raise InvalidSpecError(
            f"{trigger!r} cannot stand inside a composable trigger: say .accumulation('discarding') and {trigger.inner!r}."
        )
    if isinstance(trigger, EachBatch):
        raise InvalidSpecError("EachBatch fires when a micro-batch ends, and cannot stand inside a composable trigger.")
    if isinstance(trigger, NeverTrigger):
        raise InvalidSpecError("NeverTrigger cannot stand inside a composable trigger: say Never(), which releases the rest.")
    if not isinstance(trigger, Trigger):
        raise InvalidSpecError(f"{trigger!r} is no trigger.")
    return FlinkTrigger(trigger)
