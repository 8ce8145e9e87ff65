"""Window contents: how the elements of a window are kept, and what the function reads when it fires.

Three ways, one interface: folded into an accumulator, kept as a list, or kept as a list that an evictor reads at each
firing. Contents are stored under a state window, so that merged sessions need not move them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from typing import Protocol, TypeVar

from windowpane.arrays.values import Value
from windowpane.state.keyed import KeyedState
from windowpane.windowing.evictors import Evictor, EvictorContext, TimestampedValue
from windowpane.windowing.functions import AnyAggregateFunction
from windowpane.windowing.spec import WindowSpec
from windowpane.windowing.windows import Window

State = TypeVar("State")


def merged_states(target: State | None, sources: Iterable[State | None], merge: Callable[[State, State], State]) -> State | None:
    """Return the state of a merged window, of the one that stays and those that move; ``None`` is none."""

    def join(left: State | None, right: State | None) -> State | None:
        return right if left is None else left if right is None else merge(left, right)

    return join(target, reduce(join, sources, None))


CONTENTS = "window-contents"

Emit = Callable[[Sequence[Value]], None]


class Contents(Protocol):
    """The contents of the windows of the current key."""

    def add(self, state_window: Window, value: object, timestamp: int) -> bool:
        """Add an element; return whether the window was empty before. A fold may leave it empty then."""

    def fire(self, state_window: Window, window: Window, emit: Emit) -> bool:
        """Hand what the function is to see to ``emit``; return false without a call if the window is empty."""

    def of_nothing(self) -> Sequence[Value]:
        """Return what the function is to see of a window without elements."""

    def evict(self, state_window: Window, window: Window) -> None:
        """Change the contents as ``fire`` does, without calling the function."""

    def is_empty(self, state_window: Window) -> bool:
        """Return whether nothing is kept."""

    def clear(self, state_window: Window) -> bool:
        """Drop everything; return whether there was anything."""

    def merge(self, target: Window, sources: Sequence[Window]) -> int:
        """Move the contents of ``sources`` into ``target``, in that order; return how many non-empty windows vanished."""


class FoldedContents:
    """One accumulator a window. A function that returns ``None`` for it leaves the window empty, as in Flink."""

    def __init__(self, state: KeyedState, function: AnyAggregateFunction) -> None:
        self._state = state
        self.function = function

    def add(self, state_window: Window, value: object, timestamp: int) -> bool:
        held = self.held(state_window)
        self.keep(state_window, self.function.add(value, self.function.create_accumulator() if held is None else held))
        return held is None

    def fire(self, state_window: Window, window: Window, emit: Emit) -> bool:
        held = self.held(state_window)
        result = None if held is None else self.function.get_result(held)
        if result is None:
            return False
        emit([result])
        return True

    def of_nothing(self) -> Sequence[Value]:
        return [self.function.get_result(self.function.create_accumulator())]

    def evict(self, state_window: Window, window: Window) -> None:
        """Do nothing: there is no evictor."""

    def is_empty(self, state_window: Window) -> bool:
        return self.held(state_window) is None

    def clear(self, state_window: Window) -> bool:
        had = not self.is_empty(state_window)
        self._state.remove(state_window, CONTENTS)
        return had

    def merge(self, target: Window, sources: Sequence[Window]) -> int:
        """Merge the accumulators: those of the sources, then that of the target with theirs."""
        held = [self.held(window) for window in (target, *sources)]
        merged = merged_states(held[0], held[1:], self.function.merge)
        for window in sources:
            self._state.remove(window, CONTENTS)
        self.keep(target, merged)
        return sum(accumulator is not None for accumulator in held) - (merged is not None)

    def held(self, state_window: Window) -> Value:
        held = self._state.get(state_window, CONTENTS)
        return None if held is None else held[0]

    def keep(self, state_window: Window, accumulator: object) -> None:
        """Set the accumulator; ``None`` leaves the window empty."""
        if accumulator is None:
            self._state.remove(state_window, CONTENTS)
        else:
            self._state.put(state_window, CONTENTS, (accumulator,))


class ListedContents:
    """All elements, in arrival order."""

    def __init__(self, state: KeyedState) -> None:
        self._state = state

    def elements(self, state_window: Window) -> list[TimestampedValue]:
        return self._state.get_list(state_window, CONTENTS)

    def values(self, state_window: Window) -> list[Value]:
        return [element.value for element in self.elements(state_window)]

    def add(self, state_window: Window, value: object, timestamp: int) -> bool:
        was_empty = self.is_empty(state_window)
        self._state.append(state_window, CONTENTS, TimestampedValue(value, timestamp))
        return was_empty

    def fire(self, state_window: Window, window: Window, emit: Emit) -> bool:
        values = self.values(state_window)
        if not values:
            return False
        emit(values)
        return True

    def of_nothing(self) -> Sequence[Value]:
        return []

    def evict(self, state_window: Window, window: Window) -> None:
        """Do nothing: there is no evictor."""

    def is_empty(self, state_window: Window) -> bool:
        return not self._state.has_list(state_window, CONTENTS)

    def clear(self, state_window: Window) -> bool:
        """Drop the list."""
        had = not self.is_empty(state_window)
        if had:
            self._state.put_list(state_window, CONTENTS, [])
        return had

    def merge(self, target: Window, sources: Sequence[Window]) -> int:
        lists = [self._state.get_list(window, CONTENTS) for window in (target, *sources)]
        present = [elements for elements in lists if elements]
        for window in sources:
            self.clear(window)
        if present:
            self._state.put_list(target, CONTENTS, [element for elements in present for element in elements])
        return max(0, len(present) - 1)


class EvictingContents(ListedContents):
    """All elements, and an evictor that decides at each firing which of them stay.

    evict_before -> function -> evict_after -> survivors back to state. The function runs even when ``evict_before`` left
    nothing. With an incremental function the survivors are folded at each firing: pre-aggregation is off.
    """

    def __init__(
        self, state: KeyedState, evictor: Evictor, function: AnyAggregateFunction | None, context: EvictorContext
    ) -> None:
        super().__init__(state)
        self._evictor = evictor
        self._function = function
        self._context = context

    def fire(self, state_window: Window, window: Window, emit: Emit) -> bool:
        return self._go_over(state_window, window, lambda seen: emit(self._folded([element.value for element in seen])))

    def evict(self, state_window: Window, window: Window) -> None:
        self._go_over(state_window, window, lambda seen: None)

    def _go_over(self, state_window: Window, window: Window, show: Callable[[Sequence[TimestampedValue]], None]) -> bool:
        elements = self.elements(state_window)
        if not elements:
            return False
        seen = self._evictor.evict_before(elements, len(elements), window, self._context)
        show(seen)
        kept = self._evictor.evict_after(seen, len(seen), window, self._context)
        if len(kept) != len(elements):
            self._state.put_list(state_window, CONTENTS, list(kept))
        return True

    def _folded(self, values: list[Value]) -> list[Value]:
        if self._function is None:
            return values
        accumulator = self._function.create_accumulator()
        for value in values:
            accumulator = self._function.add(value, accumulator)
        return [self._function.get_result(accumulator)]


def contents_for(
    spec: WindowSpec,
    state: KeyedState,
    context: EvictorContext,
    listed: type[ListedContents] = ListedContents,
    evicting: type[EvictingContents] = EvictingContents,
) -> Contents:
    """Return the contents that ``spec`` asks for; lists of elements are of these classes."""
    if spec.evictor is not None:
        return evicting(state, spec.evictor, spec.function.accumulate, context)
    if spec.function.accumulate is not None:
        return FoldedContents(state, spec.function.accumulate)
    return listed(state)
