"""Contents of windows that the elements of a batch are added to together: state is read and written once, not for each.

A list of elements is stored in runs of those that arrived together, by column where that pays. A buffer is what is added to one
window: between ``reload`` and ``store`` nobody else reads or writes the contents of that window.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from windowpane.arrays.values import Value
from windowpane.engines.row.reference import ColumnsOfNow
from windowpane.errors import MistakeError
from windowpane.operators.window.contents import CONTENTS, Contents, EvictingContents, FoldedContents, ListedContents
from windowpane.operators.window.operator import OperatorCounters
from windowpane.state.column_runs import ColumnRun
from windowpane.windowing.evictors import TimestampedValue
from windowpane.windowing.windows import Window


@dataclass(frozen=True, slots=True)
class ElementRun:
    """Elements that were added to a list together: ``values`` and their ``timestamps``."""

    values: list[Value]
    timestamps: list[int]

    def __reduce__(self) -> tuple[type[ElementRun], tuple[list[Value], list[int]]]:
        return ElementRun, (self.values, self.timestamps)


Entry = TimestampedValue | ElementRun | ColumnRun
"""An entry of a list: one element, or a run of them."""


def values_of(entry: Entry) -> Sequence[Value]:
    return (entry.value,) if isinstance(entry, TimestampedValue) else entry.values


def _elements_of(entry: Entry) -> Iterable[TimestampedValue]:
    return (entry,) if isinstance(entry, TimestampedValue) else map(TimestampedValue, entry.values, entry.timestamps)


class ColumnsOfNowInRuns(ColumnsOfNow):
    """Makes rows of before rows of now, in runs, too."""

    def __call__(self, held: object) -> Value:
        if isinstance(held, ElementRun):
            return ElementRun(self(held.values), held.timestamps)
        return held.padded(self.columns) if isinstance(held, ColumnRun) else super().__call__(held)


class RunContents(ListedContents):
    """All elements, in arrival order, in runs of those that were added together."""

    def extend(self, state_window: Window, run: ElementRun | ColumnRun) -> None:
        self._state.append(state_window, CONTENTS, run)

    def elements(self, state_window: Window) -> list[TimestampedValue]:
        return [each for entry in self._state.get_list(state_window, CONTENTS) for each in _elements_of(entry)]

    def values(self, state_window: Window) -> list[Value]:
        return [value for entry in self._state.get_list(state_window, CONTENTS) for value in values_of(entry)]


class EvictingRunContents(RunContents, EvictingContents):
    """The same, and an evictor that decides at each firing which of them stay."""


class Buffer(Protocol):
    """The contents of one window of the current key.

    ``culprit`` is the element at which a function raised.
    """

    culprit: Value

    def add(self, value: object, timestamp: int) -> None:
        """Add an element."""

    def add_all(self, values: list[Value], timestamps: Iterable[int]) -> None:
        """Add elements, in order."""

    def store(self) -> None:
        """Write what was added."""

    def reload(self) -> None:
        """Begin anew with what state holds."""


class FoldedBuffer:
    """An accumulator."""

    __slots__ = ("_add", "_contents", "_counters", "_create", "_held", "_window", "culprit")

    def __init__(self, contents: FoldedContents, counters: OperatorCounters, state_window: Window) -> None:
        self._contents, self._counters, self._window = contents, counters, state_window
        self._add, self._create = contents.function.add, contents.function.create_accumulator
        self._held: Value = contents.held(state_window)
        self.culprit: Value = None

    def add(self, value: object, timestamp: int) -> None:
        """Fold the element in; a function that returns ``None`` leaves the window empty."""
        held = self._held
        if held is None:
            held = self._create()
            self._counters.windows_opened += 1
        held = self._held = self._add(value, held)
        if held is None:
            self._counters.windows_closed += 1

    def add_all(self, values: list[Value], timestamps: Iterable[int]) -> None:
        held, add, counters, value = self._held, self._add, self._counters, None
        try:
            for value in values:
                if held is None:
                    held = self._create()
                    counters.windows_opened += 1
                held = add(value, held)
                if held is None:
                    counters.windows_closed += 1
        except Exception:
            self.culprit = value
            raise
        self._held = held

    def store(self) -> None:
        self._contents.keep(self._window, self._held)

    def reload(self) -> None:
        self._held = self._contents.held(self._window)


class RunBuffer:
    """Elements that are appended to a list, as one run."""

    __slots__ = ("_contents", "_counters", "_is_empty", "_timestamps", "_values", "_window", "culprit")

    def __init__(self, contents: RunContents, counters: OperatorCounters, state_window: Window) -> None:
        self._contents, self._counters, self._window = contents, counters, state_window
        self._is_empty = contents.is_empty(state_window)
        self._values: list[Value] = []
        self._timestamps: list[int] = []
        self.culprit: Value = None

    def add(self, value: object, timestamp: int) -> None:
        self._values.append(value)
        self._timestamps.append(timestamp)

    def add_all(self, values: list[Value], timestamps: Iterable[int]) -> None:
        self._values += values
        self._timestamps += timestamps

    def store_run(self, run: ColumnRun) -> None:
        """Write elements that are appended, where none were added before."""
        self._counters.windows_opened += self._is_empty
        self._contents.extend(self._window, run)
        self._is_empty = False

    def store(self) -> None:
        if self._values:
            self._counters.windows_opened += self._is_empty
            self._contents.extend(self._window, ElementRun(self._values, self._timestamps))
            self._values, self._timestamps, self._is_empty = [], [], False

    def reload(self) -> None:
        self._is_empty = self._contents.is_empty(self._window)


def buffer_of(contents: Contents, counters: OperatorCounters, state_window: Window) -> Buffer:
    """Return the contents under ``state_window`` of the current key."""
    if isinstance(contents, FoldedContents):
        return FoldedBuffer(contents, counters, state_window)
    if not isinstance(contents, RunContents):
        raise MistakeError("rows are kept in runs")
    return RunBuffer(contents, counters, state_window)
