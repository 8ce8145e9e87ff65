"""Placement: from an assigned window to the live window it is part of, and to the window its contents are stored under.

Plain windows are those that were assigned; merging windows are found in the key's merging window set. A session grows with nearly
every element. If its contents were stored under the session's own bounds they would move each time; so each live window is mapped
to a *state window*, the first one it was made from, and contents move only when two sessions that both have contents meet. Source
of the rules: Flink's MergingWindowSet.

Worked example, gap 3: elements at 1 and 5 open ``[1, 4)`` and ``[5, 8)``, each its own state window. An element at 3 opens
``[3, 6)``, which touches both: they become ``[1, 8)``, whose contents stay under ``[1, 4)``; those of ``[5, 8)`` move there.

Layout: one state entry a key, ``{window: state window}``. Who may mutate: ``add`` and ``retire``; ``persist`` writes it only if
it changed. Recovery reads the entry.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol

from windowpane.state.keyed import KeyedState
from windowpane.windowing.assigners import MergingWindowAssigner
from windowpane.windowing.windows import TimeWindow, Window


class Merge(NamedTuple):
    """One merge: ``sources`` became ``target``; the contents of ``merged_state_windows`` move to ``state_window``.

    The newly added window is never among the sources: it has no trigger state or contents yet.
    """

    target: Window
    sources: list[Window]
    state_window: Window
    merged_state_windows: list[Window]


class MergingWindowSet:
    """The live windows of one key.

    Example:
        >>> windows = MergingWindowSet(EventTimeSessionWindows.with_gap(3), {})
        >>> windows.add(TimeWindow(1, 4), on_merge=print)
        TimeWindow(start=1, end=4)
    """

    def __init__(self, assigner: MergingWindowAssigner, mapping: dict[Window, Window]) -> None:
        """Start from ``mapping``, window to state window, as it was persisted."""
        self._assigner = assigner
        self._mapping: dict[Window, Window] = dict(mapping)
        self._persisted = dict(mapping)

    @property
    def mapping(self) -> Mapping[Window, Window]:
        """The live windows and their state windows."""
        return self._mapping

    def state_window(self, window: Window) -> Window | None:
        return self._mapping.get(window)

    def retire(self, window: Window) -> None:
        self._mapping.pop(window, None)

    def add(self, window: Window, on_merge: Callable[[Merge], None]) -> Window:
        """Add a window, merge those that it touches, and return the window the new one is now part of."""
        if window in self._mapping:
            return window
        result, joined = window, False
        for target, members in self._assigner.merge_windows([*self._mapping, window]):
            existing = sorted((member for member in members if member in self._mapping), key=_by_start)
            if window in members:
                result, joined = target, True
            if existing:
                self._merge(target, existing, on_merge)
        if result not in self._mapping and (not joined or result == window):
            self._mapping[window] = window
        return result

    def _merge(self, target: Window, existing: list[Window], on_merge: Callable[[Merge], None]) -> None:
        state_windows = [self._mapping.pop(member) for member in existing]
        self._mapping[target] = state_windows[0]
        if existing != [target]:
            on_merge(Merge(target, existing, state_windows[0], state_windows[1:]))

    def persist(self, write: Callable[[dict[Window, Window] | None], None]) -> None:
        """Write the mapping if it changed since it was read; ``None`` for an empty one."""
        if self._mapping != self._persisted:
            write(dict(self._mapping) or None)
            self._persisted = dict(self._mapping)


def _by_start(window: Window) -> tuple[int, ...]:
    return (window.start, window.end) if isinstance(window, TimeWindow) else (window.max_timestamp,)


MERGING_WINDOW_SET = "merging-window-set"


class Placement(Protocol):
    """Where the windows of the current key live."""

    def enter_key(self) -> None:
        """Begin with the state's current key."""

    def place(self, window: Window) -> Window:
        """Return the live window that an assigned window is part of."""

    def state_window(self, window: Window) -> Window | None:
        """Return the window the contents are stored under, ``None`` if the window is not live."""

    def live(self) -> Mapping[Window, Window] | None:
        """Return the live windows of the key and their state windows, ``None`` where each is its own."""

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

    def live(self) -> None:
        return None

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

    def live(self) -> Mapping[Window, Window]:
        return self._windows.mapping

    def retire(self, window: Window) -> None:
        self._windows.retire(window)

    def leave_key(self) -> None:
        self._windows.persist(lambda mapping: self._state.put(None, MERGING_WINDOW_SET, mapping))
