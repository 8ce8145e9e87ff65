"""The leaves of a trigger tree: counts, delays, the window's end, always, never, and Flink's triggers or users' own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from windowpane.arrays.values import Value
from windowpane.errors import InvalidSpecError
from windowpane.windowing.times import Duration, add_clamped, to_micros
from windowpane.windowing.triggers.around import PurgingTrigger
from windowpane.windowing.triggers.at_end import EventTimeTrigger, NeverTrigger
from windowpane.windowing.triggers.base import Trigger, TriggerResult
from windowpane.windowing.triggers.composable.base import ComposableTrigger, Leaf, Moment, State
from windowpane.windowing.triggers.each_batch import EachBatch


class _OnceLeaf(Leaf):
    """A leaf that finishes when it has fired."""

    @property
    def is_once(self) -> bool:
        return True

    def may_finish(self, allowed_lateness: int) -> bool:
        return True


@dataclass(frozen=True)
class AfterCount(_OnceLeaf):
    """Fires once, when so many rows were added since it began.

    Rows are counted one by one, wherever micro-batches begin and end.

    Args:
        count: how many rows, at least 1.

    Raises:
        InvalidSpecError: the count is below 1.

    Example:
        >>> Repeatedly(AfterCount(100))
        Repeatedly(trigger=AfterCount(count=100))
    """

    count: int

    def __post_init__(self) -> None:
        if isinstance(self.count, bool) or not isinstance(self.count, int) or self.count < 1:
            raise InvalidSpecError(f"AfterCount counts rows, from 1 on, but was given {self.count!r}.")

    def add(self, state: int | None, element: Value, timestamp: int, path: str, moment: Moment) -> int:
        return (state or 0) + 1

    def is_ready(self, state: int | None, path: str, moment: Moment) -> bool:
        return (state or 0) >= self.count

    def fired(self, state: int | None, path: str, moment: Moment) -> tuple[int | None, bool]:
        return state, True

    def merged(self, left: int | None, right: int | None) -> int:
        return (left or 0) + (right or 0)


@dataclass(frozen=True, init=False)
class AfterProcessingTime(_OnceLeaf):
    """Fires once, a delay after the first row that was added since it began, by the clock. Later rows do not move it.

    Args:
        delay: the delay; integers are microseconds.

    Raises:
        InvalidSpecError: the delay is negative or no duration.

    Example:
        >>> AfterProcessingTime("1 minute")
        AfterProcessingTime(delay=60000000)
    """

    delay: int

    def __init__(self, delay: Duration) -> None:
        object.__setattr__(self, "delay", to_micros(delay))
        if self.delay < 0:
            raise InvalidSpecError(f"AfterProcessingTime waits for a time that is not negative, but was given {delay!r}.")

    def add(self, state: int | None, element: Value, timestamp: int, path: str, moment: Moment) -> int:
        if state is not None:
            return state
        due = add_clamped(moment.now, self.delay)
        moment.wait_until(due)
        return due

    def is_ready(self, state: int | None, path: str, moment: Moment) -> bool:
        return state is not None and moment.now >= state

    def fired(self, state: int | None, path: str, moment: Moment) -> tuple[int | None, bool]:
        return None, True

    def merged(self, left: int | None, right: int | None) -> int | None:
        return min((time for time in (left, right) if time is not None), default=None)

    def settled(self, state: int | None, path: str, moment: Moment) -> int | None:
        if state is not None:
            moment.wait_until(state)
        return state

    def due_times(self, state: int | None) -> Iterator[int]:
        if state is not None:
            yield state


@dataclass(frozen=True)
class Default(Leaf):
    """Fires when the watermark reaches the window's end, and for each late row behind it; Flink's EventTimeTrigger.

    Example:
        >>> Default()
        Default()
    """

    @property
    def waits_for_end(self) -> bool:
        return True

    def is_ready(self, state: State, path: str, moment: Moment) -> bool:
        return moment.end_reached


@dataclass(frozen=True)
class Always(Leaf):
    """Fires for each row, and at the window's end. Beam's.

    Example:
        >>> Always()
        Always()
    """

    def is_ready(self, state: State, path: str, moment: Moment) -> bool:
        return True


@dataclass(frozen=True)
class Never(Leaf):
    """Never fires: the contents of the window are emitted when it is cleaned up.

    Beam's. Flink's ``NeverTrigger`` drops what a window holds.

    Example:
        >>> Never()
        Never()
    """

    @property
    def is_once(self) -> bool:
        return True

    def is_ready(self, state: State, path: str, moment: Moment) -> bool:
        return False


@dataclass(frozen=True)
class FlinkTrigger(Leaf):
    """A trigger of Flink's: ready where the callback behind the evaluation answered FIRE. Never finished.

    Its state and timers are its own, under its path; the tree holds nothing for it.
    """

    trigger: Trigger

    def add(self, state: State, element: Value, timestamp: int, path: str, moment: Moment) -> State:
        if fires(self.trigger, self.trigger.on_element(element, timestamp, moment.window, moment.at(path))):
            moment.answers.add(path)
        return state

    def is_ready(self, state: State, path: str, moment: Moment) -> bool:
        return path in moment.answers

    def flink_triggers(self, state: State, path: str) -> Iterator[tuple[str, Trigger]]:
        yield path, self.trigger

    def forget(self, path: str, moment: Moment) -> None:
        self.trigger.clear(moment.window, moment.at(path))
        moment.leaf_timers.forget(path)


def fires(trigger: Trigger, result: TriggerResult) -> bool:
    """Return whether a trigger inside a tree answered FIRE."""
    if result.is_purge:
        raise InvalidSpecError(
            f"{trigger!r} answered {result.name} inside a composable trigger, where .accumulation('discarding') says that a "
            "firing drops the contents: answer FIRE."
        )
    return result.is_fire


def as_node(trigger: ComposableTrigger | Trigger) -> ComposableTrigger:
    """Return a trigger as a node of a tree."""
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
