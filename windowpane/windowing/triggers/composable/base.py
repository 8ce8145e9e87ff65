"""Composable triggers: a tree of small conditions that says when a window fires, and when it is finished.

A node is a frozen value; what it knows of one window is its *state*, a plain Python value that the window's trigger state holds
for the whole tree (``None`` before the first row). A node takes rows (``add``), answers whether it is ready (``is_ready``), and
is notified when the window fires (``fired``). Beside it the window's state has, for each of Flink's triggers in the tree that
waits, its path, its timers of event time as distances from the window's last instant, and those of the clock. Source of the
rules: Apache Beam's triggers; where Beam's drivers differ, the Java one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from windowpane.arrays.values import Value
from windowpane.windowing.panes import Firing
from windowpane.windowing.triggers.base import MergeContext, Reduce, ReducingState, Trigger, TriggerContext, ValueState
from windowpane.windowing.windows import Window

State: TypeAlias = Any
"""What a node knows of one window: a plain value, of which type the node says; ``None`` before the first row."""


@dataclass
class Moment:
    """What nodes may read while one window is evaluated."""

    window: Window
    context: TriggerContext
    end_reached: bool
    leaf_timers: LeafTimers
    answers: set[str] = field(default_factory=set)
    """The paths of those of Flink's triggers in the tree that fire by the callback behind this evaluation."""
    event_times: frozenset[int] = frozenset()
    """Timers of event time that the tree and the cleanup of the window wait for."""
    processing_times: set[int] = field(default_factory=set)
    """Timers of the clock that the tree waits for."""

    @property
    def now(self) -> int:
        return self.context.current_processing_time

    def wait_until(self, time: int) -> None:
        """Have the tree evaluated at a time of the clock."""
        self.processing_times.add(time)
        self.context.register_processing_time_timer(time)

    def at(self, path: str) -> TriggerContext:
        """Return the context of Flink's trigger at a path: it has state and timers of its own."""
        return LeafContext(self.context.prefixed(path), self, path)


@dataclass(frozen=True)
class LeafContext:
    """The context of one of Flink's triggers in a tree: that of the window, with names of its own.

    A window has one timer for a time, whoever registered it. In Flink a trigger is cleared when its window is, in a tree also
    before: the timers that the tree, the cleanup of the window and other triggers wait for have to stay then.
    """

    inner: TriggerContext
    moment: Moment
    path: str

    @property
    def current_watermark(self) -> int:
        return self.inner.current_watermark

    @property
    def current_processing_time(self) -> int:
        return self.inner.current_processing_time

    def register_event_time_timer(self, time: int) -> None:
        self.moment.leaf_timers.add(self.path, time, event_time=True)
        self.inner.register_event_time_timer(time)

    def register_processing_time_timer(self, time: int) -> None:
        self.moment.leaf_timers.add(self.path, time, event_time=False)
        self.inner.register_processing_time_timer(time)

    def delete_event_time_timer(self, time: int) -> None:
        """Take a timer back that nobody else waits for."""
        self.moment.leaf_timers.discard(self.path, time, event_time=True)
        if time not in self.moment.event_times and not self.moment.leaf_timers.is_awaited(time, event_time=True):
            self.inner.delete_event_time_timer(time)

    def delete_processing_time_timer(self, time: int) -> None:
        """Take a timer back that nobody else waits for."""
        self.moment.leaf_timers.discard(self.path, time, event_time=False)
        if time not in self.moment.processing_times and not self.moment.leaf_timers.is_awaited(time, event_time=False):
            self.inner.delete_processing_time_timer(time)

    def value_state(self, name: str) -> ValueState:
        return self.inner.value_state(name)

    def reducing_state(self, name: str, reduce: Reduce) -> ReducingState:
        return self.inner.reducing_state(name, reduce)

    def announce(self, firing: Firing) -> None:
        self.inner.announce(firing)

    def prefixed(self, prefix: str) -> LeafContext:
        return LeafContext(self.inner.prefixed(prefix), self.moment, self.path)


@dataclass(frozen=True)
class LeafMergeContext(LeafContext):
    inner: MergeContext

    def merge_reducing_state(self, name: str, reduce: Reduce) -> None:
        self.inner.merge_reducing_state(name, reduce)

    def prefixed(self, prefix: str) -> LeafMergeContext:
        return LeafMergeContext(self.inner.prefixed(prefix), self.moment, self.path)


class ComposableTrigger(ABC):
    """A node of a trigger tree.

    Raises:
        InvalidSpecError: where the parts of a node do not go together.
    """

    @property
    def is_once(self) -> bool:
        """Whether it fires at most once and is finished then: what ``AfterAny``, ``AfterAll`` and ``until`` are made of."""
        return False

    @property
    def waits_for_end(self) -> bool:
        """Whether the window's end makes some node of the tree fire, so that an on-time pane may be empty."""
        return any(child.waits_for_end for child in self.children)

    @property
    @abstractmethod
    def children(self) -> Sequence[ComposableTrigger]:
        """The nodes below."""

    @abstractmethod
    def may_finish(self, allowed_lateness: int) -> bool:
        """Return whether it can be finished while rows may still arrive: these would be lost."""

    def add(self, state: State, element: Value, timestamp: int, path: str, moment: Moment) -> State:
        """Return the state after a row was added to the window."""
        return state

    @abstractmethod
    def is_ready(self, state: State, path: str, moment: Moment) -> bool:
        """Return whether the window should fire."""

    @abstractmethod
    def fired(self, state: State, path: str, moment: Moment) -> tuple[State, bool]:
        """Return the state after a firing that this node was ready for, and whether it is finished."""

    def merged(self, left: State, right: State) -> State:
        """Return the state of two windows that become one; the order does not matter."""
        return None

    def settled(self, state: State, path: str, moment: Moment) -> State:
        """Return the state of a merged window, now that its bounds are known."""
        return state

    def due_times(self, state: State) -> Iterator[int]:
        """Yield the times of the clock that are waited for."""
        return iter(())

    def flink_triggers(self, state: State, path: str) -> Iterator[tuple[str, Trigger]]:
        """Yield Flink's triggers that are handed rows in this state, with their paths."""
        return iter(())

    def forget(self, path: str, moment: Moment) -> None:
        """Drop what Flink's triggers below keep by themselves."""
        for number, child in enumerate(self.children):
            child.forget(child_path(path, number), moment)


class Leaf(ComposableTrigger):
    """A node with none below; where it does not say otherwise, one that fires again and again."""

    @property
    def children(self) -> Sequence[ComposableTrigger]:
        return ()

    def may_finish(self, allowed_lateness: int) -> bool:
        return False

    def fired(self, state: State, path: str, moment: Moment) -> tuple[State, bool]:
        return state, False


def child_path(path: str, number: int) -> str:
    return f"{path}{number}/"


_TIMERS = "leaf-timers"
_PAST = "past"
"""Stands among the paths once the window's end is over."""
_Written = tuple[tuple[str, tuple[int, ...], tuple[int, ...]], ...]


class LeafTimers:
    """The timers of Flink's triggers in the tree of one window, by the paths of the triggers."""

    def __init__(self, context: TriggerContext, last_instant: int) -> None:
        self._state = context.value_state(_TIMERS)
        self._end = last_instant
        written: _Written | None = self._state.get()
        self._of = {path: (set(events), set(clocks)) for path, events, clocks in written or ()}

    @property
    def has_passed_end(self) -> bool:
        """Whether the window's end is over: a trigger may still wait for a timer of that instant."""
        return _PAST in self._of

    def note_end(self, is_passed: bool) -> None:
        if not is_passed:
            self.forget(_PAST)
        elif not self.has_passed_end:
            self._of[_PAST] = (set(), set())
            self._write()

    def belongs_to(self, path: str, time: int, event_time: bool) -> bool:
        """Return whether a timer is one of those that the trigger at a path waits for."""
        return self._key(time, event_time) in self._times(path, event_time)

    def is_awaited(self, time: int, event_time: bool) -> bool:
        """Return whether any of the triggers is known to wait for a timer."""
        return any(self._key(time, event_time) in self._times(path, event_time) for path in self._of)

    def add(self, path: str, time: int, event_time: bool) -> None:
        if not self.belongs_to(path, time, event_time):
            self._of.setdefault(path, (set(), set()))
            self._times(path, event_time).add(self._key(time, event_time))
            self._write()

    def discard(self, path: str, time: int, event_time: bool) -> None:
        key, times = self._key(time, event_time), self._times(path, event_time)
        if key in times:
            times.discard(key)
            self._write()

    def fire(self, time: int, event_time: bool) -> None:
        if self.is_awaited(time, event_time):
            for path in self._of:
                self._times(path, event_time).discard(self._key(time, event_time))
            self._write()

    def forget(self, path: str) -> None:
        if self._of.pop(path, None) is not None:
            self._write()

    def clear(self) -> None:
        self._of = {}
        self._state.clear()

    def _times(self, path: str, event_time: bool) -> set[int]:
        events, clocks = self._of.get(path, (set(), set()))
        return events if event_time else clocks

    def _key(self, time: int, event_time: bool) -> int:
        return time - self._end if event_time else time

    def _write(self) -> None:
        waiting = sorted((path, tuple(sorted(events)), tuple(sorted(clocks))) for path, (events, clocks) in self._of.items())
        self._state.update(tuple(each for each in waiting if each[1] or each[2] or each[0] == _PAST))
