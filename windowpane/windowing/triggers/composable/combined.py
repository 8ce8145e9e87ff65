"""The inner nodes of a trigger tree: any, all, one after the other, again and again, until."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from windowpane.arrays.values import Value
from windowpane.errors import InvalidSpecError
from windowpane.windowing.triggers.base import Trigger
from windowpane.windowing.triggers.composable.base import ComposableTrigger, Moment, State, child_path
from windowpane.windowing.triggers.composable.leaves import as_node

Turn: TypeAlias = tuple[int, State]
"""The number of the part whose turn it is, and its state."""
_States: TypeAlias = tuple[State, ...] | None


def _require_once(owner: ComposableTrigger, parts: Sequence[ComposableTrigger]) -> None:
    for part in parts:
        if not part.is_once:
            raise InvalidSpecError(
                f"{type(owner).__name__} takes triggers that fire once (AfterCount, AfterProcessingTime, AfterWatermark(), "
                f"AfterAny, AfterAll, Never), but was given {part!r}, which may fire again. OrFinally(main, until) fires as any "
                "trigger does until one of these."
            )


class _Several(ComposableTrigger):
    """A node that hands each row to all of its children. State: theirs, in order."""

    def add(self, state: _States, element: Value, timestamp: int, path: str, moment: Moment) -> _States:
        states = self._states(state)
        return tuple(
            child.add(held, element, timestamp, child_path(path, number), moment)
            for number, (child, held) in enumerate(zip(self.children, states, strict=True))
        )

    def merged(self, left: _States, right: _States) -> _States:
        both = zip(self.children, self._states(left), self._states(right), strict=True)
        return tuple(child.merged(one, other) for child, one, other in both)

    def settled(self, state: _States, path: str, moment: Moment) -> _States:
        return tuple(
            child.settled(held, child_path(path, number), moment)
            for number, (child, held) in enumerate(zip(self.children, self._states(state), strict=True))
        )

    def due_times(self, state: _States) -> Iterator[int]:
        for child, held in zip(self.children, self._states(state), strict=True):
            yield from child.due_times(held)

    def flink_triggers(self, state: _States, path: str) -> Iterator[tuple[str, Trigger]]:
        for number, (child, held) in enumerate(zip(self.children, self._states(state), strict=True)):
            yield from child.flink_triggers(held, child_path(path, number))

    def _states(self, state: _States) -> tuple[State, ...]:
        return (None,) * len(self.children) if state is None else tuple(state)

    def _ready(self, state: _States, path: str, moment: Moment) -> list[bool]:
        return [
            child.is_ready(held, child_path(path, number), moment)
            for number, (child, held) in enumerate(zip(self.children, self._states(state), strict=True))
        ]


@dataclass(frozen=True, init=False)
class _OfOnce(_Several):
    triggers: tuple[ComposableTrigger, ...]

    def __init__(self, *triggers: ComposableTrigger | Trigger) -> None:
        if not triggers:
            raise InvalidSpecError(f"{type(self).__name__} combines triggers, but was given none.")
        object.__setattr__(self, "triggers", tuple(map(as_node, triggers)))
        _require_once(self, self.triggers)

    @property
    def children(self) -> Sequence[ComposableTrigger]:
        return self.triggers

    @property
    def is_once(self) -> bool:
        return True

    def fired(self, state: State, path: str, moment: Moment) -> tuple[State, bool]:
        return None, True


class AfterAny(_OfOnce):
    """Fires once, when any of its triggers is ready.

    Raises:
        InvalidSpecError: a trigger may fire more than once.

    Example:
        >>> AfterAny(AfterCount(100), AfterProcessingTime("5 seconds"))
        AfterAny(triggers=(AfterCount(count=100), AfterProcessingTime(delay=5000000)))
    """

    def may_finish(self, allowed_lateness: int) -> bool:
        return any(trigger.may_finish(allowed_lateness) for trigger in self.triggers)

    def is_ready(self, state: State, path: str, moment: Moment) -> bool:
        return any(self._ready(state, path, moment))


class AfterAll(_OfOnce):
    """Fires once, when all of its triggers are ready.

    Raises:
        InvalidSpecError: a trigger may fire more than once.

    Example:
        >>> AfterAll(AfterCount(10), AfterWatermark())
        AfterAll(triggers=(AfterCount(count=10), AfterWatermark(early=None, late=None)))
    """

    def may_finish(self, allowed_lateness: int) -> bool:
        return all(trigger.may_finish(allowed_lateness) for trigger in self.triggers)

    def is_ready(self, state: State, path: str, moment: Moment) -> bool:
        return all(self._ready(state, path, moment))


class InTurn(ComposableTrigger):
    """A node one of whose parts has its turn, and alone sees the rows. State: (the number of the part, its state)."""

    @abstractmethod
    def part(self, turn: int) -> ComposableTrigger | None:
        """Return the part of a number, ``None`` where nothing is called in its turn."""

    def add(self, state: Turn | None, element: Value, timestamp: int, path: str, moment: Moment) -> Turn | None:
        turn, held = state or FIRST_TURN
        part = self.part(turn)
        return turn, held if part is None else part.add(held, element, timestamp, child_path(path, turn), moment)

    def is_ready(self, state: Turn | None, path: str, moment: Moment) -> bool:
        turn, held = state or FIRST_TURN
        part = self.part(turn)
        return part is not None and part.is_ready(held, child_path(path, turn), moment)

    def settled(self, state: Turn | None, path: str, moment: Moment) -> Turn | None:
        turn, held = state or FIRST_TURN
        part = self.part(turn)
        return turn, held if part is None else part.settled(held, child_path(path, turn), moment)

    def due_times(self, state: Turn | None) -> Iterator[int]:
        turn, held = state or FIRST_TURN
        part = self.part(turn)
        return iter(()) if part is None else part.due_times(held)

    def flink_triggers(self, state: Turn | None, path: str) -> Iterator[tuple[str, Trigger]]:
        turn, held = state or FIRST_TURN
        part = self.part(turn)
        return iter(()) if part is None else part.flink_triggers(held, child_path(path, turn))


FIRST_TURN: Turn = (0, None)


@dataclass(frozen=True, init=False)
class AfterEach(InTurn):
    """Fires as the first of its triggers does until that is finished, then as the second does, and so on.

    A trigger knows nothing of the rows before its turn.

    Example:
        >>> AfterEach(AfterCount(1), Default())
        AfterEach(triggers=(AfterCount(count=1), Default()))
    """

    triggers: tuple[ComposableTrigger, ...]

    def __init__(self, *triggers: ComposableTrigger | Trigger) -> None:
        if not triggers:
            raise InvalidSpecError("AfterEach combines triggers, but was given none.")
        object.__setattr__(self, "triggers", tuple(map(as_node, triggers)))

    @property
    def children(self) -> Sequence[ComposableTrigger]:
        return self.triggers

    def part(self, turn: int) -> ComposableTrigger:
        return self.triggers[turn]

    def may_finish(self, allowed_lateness: int) -> bool:
        return all(trigger.may_finish(allowed_lateness) for trigger in self.triggers)

    def fired(self, state: Turn | None, path: str, moment: Moment) -> tuple[Turn | None, bool]:
        """Give the turn to the next if this one is finished; finish after the last."""
        turn, held = state or FIRST_TURN
        below = child_path(path, turn)
        held, is_finished = self.triggers[turn].fired(held, below, moment)
        if not is_finished:
            return (turn, held), False
        self.triggers[turn].forget(below, moment)
        return (None, True) if turn + 1 == len(self.triggers) else ((turn + 1, None), False)

    def merged(self, left: Turn | None, right: Turn | None) -> Turn | None:
        """Take the latest turn; of windows at the same one, the merged state."""
        (turn, one), (other_turn, other) = left or FIRST_TURN, right or FIRST_TURN
        if turn == other_turn:
            return turn, self.triggers[turn].merged(one, other)
        return (turn, one) if turn > other_turn else (other_turn, other)


@dataclass(frozen=True, init=False)
class Repeatedly(InTurn):
    """Fires as its trigger does, which begins anew whenever it is finished. Never finished.

    Example:
        >>> Repeatedly(AfterAny(AfterCount(100), AfterProcessingTime("5 seconds"))).may_finish(0)
        False
    """

    trigger: ComposableTrigger

    def __init__(self, trigger: ComposableTrigger | Trigger) -> None:
        object.__setattr__(self, "trigger", as_node(trigger))

    @property
    def children(self) -> Sequence[ComposableTrigger]:
        return (self.trigger,)

    def part(self, turn: int) -> ComposableTrigger:
        return self.trigger

    def may_finish(self, allowed_lateness: int) -> bool:
        return False

    def fired(self, state: Turn | None, path: str, moment: Moment) -> tuple[Turn | None, bool]:
        below = child_path(path, 0)
        held, is_finished = self.trigger.fired((state or FIRST_TURN)[1], below, moment)
        if is_finished:
            self.trigger.forget(below, moment)
        return None if is_finished else (0, held), False

    def merged(self, left: Turn | None, right: Turn | None) -> Turn | None:
        return 0, self.trigger.merged((left or FIRST_TURN)[1], (right or FIRST_TURN)[1])


@dataclass(frozen=True, init=False)
class OrFinally(_Several):
    """Fires as ``main`` does, until ``until`` fires, with which it is finished.

    Both see every row: the count of ``OrFinally(Repeatedly(AfterCount(2)), AfterCount(5))`` ends with the fifth row.

    Raises:
        InvalidSpecError: ``until`` may fire more than once.

    Example:
        >>> OrFinally(Repeatedly(AfterCount(10)), AfterWatermark()).may_finish(0)
        False
    """

    main: ComposableTrigger
    until: ComposableTrigger

    def __init__(self, main: ComposableTrigger | Trigger, until: ComposableTrigger | Trigger) -> None:
        object.__setattr__(self, "main", as_node(main))
        object.__setattr__(self, "until", as_node(until))
        _require_once(self, (self.until,))

    @property
    def children(self) -> Sequence[ComposableTrigger]:
        return self.main, self.until

    def may_finish(self, allowed_lateness: int) -> bool:
        return self.main.may_finish(allowed_lateness) or self.until.may_finish(allowed_lateness)

    def is_ready(self, state: _States, path: str, moment: Moment) -> bool:
        return any(self._ready(state, path, moment))

    def fired(self, state: _States, path: str, moment: Moment) -> tuple[_States, bool]:
        """Fire those that are ready; finish if one of them does."""
        states, is_finished = list(self._states(state)), False
        for number, is_ready in enumerate(self._ready(state, path, moment)):
            if is_ready:
                states[number], ends = self.children[number].fired(states[number], child_path(path, number), moment)
                is_finished |= ends
        return (None, True) if is_finished else (tuple(states), False)
