"""Placement: from an assigned window to the live window it is part of, and to the window its contents are stored under.

Two ways, one interface, so that the operator has one loop: plain windows are those that were assigned; merging windows are
found in the key's merging window set.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from windowpane.operators.window.merging_window_set import Merge, MergingWindowSet
from windowpane.state.keyed import KeyedState
from windowpane.windowing.assigners import MergingWindowAssigner
from windowpane.windowing.windows import Window

MERGING_WINDOW_SET = "merging-window-set"


class Placement(Protocol):
    """Where the windows of the current key live."""

    def enter_key(self) -> None:
        """Begin with the state's current key."""

    def place(self, window: Window) -> Window:
        """Return the live window that an assigned window is part of."""

    def state_window(self, window: Window) -> Window | None:
        """Return the window the contents are stored under, ``None`` if the window is not live."""

    def retire(self, window: Window) -> None:
        """Forget a window."""

    def leave_key(self) -> None:
        """Write what changed for the current key."""


class PlainPlacement:
    """Windows that never merge: each is its own."""

    def enter_key(self) -> None:
        """Nothing to read."""

    def place(self, window: Window) -> Window:
        return window

    def state_window(self, window: Window) -> Window | None:
        return window

    def retire(self, window: Window) -> None:
        """Nothing to forget."""

    def leave_key(self) -> None:
        """Nothing to write."""


class MergingPlacement:
    """Windows that merge, one merging window set a key."""

    def __init__(self, assigner: MergingWindowAssigner, state: KeyedState, on_merge: Callable[[Merge], None]) -> None:
        self._assigner = assigner
        self._state = state
        self._on_merge = on_merge
        self._windows = MergingWindowSet(assigner, {})

    def enter_key(self) -> None:
        self._windows = MergingWindowSet(self._assigner, self._state.get(None, MERGING_WINDOW_SET) or {})

    def place(self, window: Window) -> Window:
        return self._windows.add(window, self._on_merge)

    def state_window(self, window: Window) -> Window | None:
        return self._windows.state_window(window)

    def retire(self, window: Window) -> None:
        self._windows.retire(window)

    def leave_key(self) -> None:
        self._windows.persist(lambda mapping: self._state.put(None, MERGING_WINDOW_SET, mapping))
