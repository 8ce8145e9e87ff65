"""What one window of a key holds while the elements of a batch are added to it: state is read and written once, not each time.

Invariant: between ``reload`` and ``store`` nobody else reads or writes the contents of the window.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from windowpane.errors import MistakeError
from windowpane.operators.window.contents import Contents, ElementRun, FoldedContents, ListedContents
from windowpane.operators.window.operator import OperatorCounters
from windowpane.state.column_runs import ColumnRun
from windowpane.windowing.windows import Window


class Holding(Protocol):
    """The contents of one window of the current key.

    ``culprit`` is the element at which a function raised.
    """

    culprit: Any

    def add(self, value: Any, timestamp: int) -> None:
        """Add an element."""

    def add_all(self, values: list[Any], timestamps: Iterable[int]) -> None:
        """Add elements, in order."""

    def store(self) -> None:
        """Write what was added."""

    def reload(self) -> None:
        """Begin anew with what state holds."""


class FoldedHolding:
    """An accumulator."""

    __slots__ = ("_add", "_contents", "_counters", "_create", "_held", "_window", "culprit")

    def __init__(self, contents: FoldedContents, counters: OperatorCounters, state_window: Window) -> None:
        """Hold the contents under ``state_window``, and count in ``counters``."""
        self._contents, self._counters, self._window = contents, counters, state_window
        self._add, self._create = contents.function.add, contents.function.create_accumulator
        self._held: Any = contents.held(state_window)
        self.culprit: Any = None

    def add(self, value: Any, timestamp: int) -> None:
        """Fold the element in; a function that returns ``None`` leaves the window empty."""
        held = self._held
        if held is None:
            held = self._create()
            self._counters.windows_opened += 1
        held = self._held = self._add(value, held)
        if held is None:
            self._counters.windows_closed += 1

    def add_all(self, values: list[Any], timestamps: Iterable[int]) -> None:
        """Fold elements in."""
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
        """Write the accumulator."""
        self._contents.keep(self._window, self._held)

    def reload(self) -> None:
        """Read the accumulator."""
        self._held = self._contents.held(self._window)


class ListedHolding:
    """Elements that are appended to a list, as one run."""

    __slots__ = ("_contents", "_counters", "_is_empty", "_timestamps", "_values", "_window", "culprit")

    def __init__(self, contents: ListedContents, counters: OperatorCounters, state_window: Window) -> None:
        """Append to the contents under ``state_window``, and count in ``counters``."""
        self._contents, self._counters, self._window = contents, counters, state_window
        self._is_empty = contents.is_empty(state_window)
        self._values: list[Any] = []
        self._timestamps: list[int] = []
        self.culprit: Any = None

    def add(self, value: Any, timestamp: int) -> None:
        """Append the element."""
        self._values.append(value)
        self._timestamps.append(timestamp)

    def add_all(self, values: list[Any], timestamps: Iterable[int]) -> None:
        """Append elements."""
        self._values += values
        self._timestamps += timestamps

    def store_run(self, run: ColumnRun) -> None:
        """Write elements that are appended, where none were added before."""
        self._counters.windows_opened += self._is_empty
        self._contents.extend(self._window, run)
        self._is_empty = False

    def store(self) -> None:
        """Write what was appended."""
        if self._values:
            self._counters.windows_opened += self._is_empty
            self._contents.extend(self._window, ElementRun(self._values, self._timestamps))
            self._values, self._timestamps, self._is_empty = [], [], False

    def reload(self) -> None:
        """Read whether the window is empty."""
        self._is_empty = self._contents.is_empty(self._window)


def holding(contents: Contents, counters: OperatorCounters, state_window: Window) -> Holding:
    """Return the contents under ``state_window`` of the current key."""
    if isinstance(contents, FoldedContents):
        return FoldedHolding(contents, counters, state_window)
    if not isinstance(contents, ListedContents):
        raise MistakeError("rows are listed")
    return ListedHolding(contents, counters, state_window)
