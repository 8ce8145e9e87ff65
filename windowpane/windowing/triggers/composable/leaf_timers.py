"""Which timers of a window are those of Flink's triggers in its tree: each of these is called at the timers that it registered.

State of a window, beside that of the tree: for each of Flink's triggers that waits its path, its timers of event time as
distances from the window's last instant, and those of the clock. Invariant: it is kept from the first row on. A window whose
tree has state without it is from a checkpoint of an earlier version: there each trigger is called at every timer, as it was.
"""

from __future__ import annotations

from windowpane.windowing.triggers.base import TriggerContext

_TIMERS = "leaf-timers"
_Kept = tuple[tuple[str, tuple[int, ...], tuple[int, ...]], ...]


class LeafTimers:
    """The timers of Flink's triggers in the tree of one window, by the paths of the triggers.

    Attributes:
        are_new: whether the tree of the window had no state when they were read.
    """

    def __init__(self, context: TriggerContext, last_instant: int, has_tree: bool) -> None:
        """Read them; ``has_tree`` says whether the tree of the window has state."""
        self.are_new = not has_tree
        self._state = context.value_state(_TIMERS)
        self._end = last_instant
        kept: _Kept | None = self._state.get()
        self._is_known = kept is not None or not has_tree
        self._of = {path: (set(events), set(clocks)) for path, events, clocks in kept or ()}

    def begin(self) -> None:
        """Note that no trigger waits, for a window that is new."""
        self._is_known, self._of = True, {}
        self._write()

    def belongs_to(self, path: str, time: int, event_time: bool) -> bool:
        """Return whether a timer is one of those that the trigger at a path waits for."""
        return not self._is_known or self._key(time, event_time) in self._times(path, event_time)

    def is_awaited(self, time: int, event_time: bool) -> bool:
        """Return whether any of the triggers is known to wait for a timer."""
        return any(self._key(time, event_time) in self._times(path, event_time) for path in self._of)

    def add(self, path: str, time: int, event_time: bool) -> None:
        """Note that the trigger at a path waits for a timer."""
        if self._is_known and not self.belongs_to(path, time, event_time):
            self._of.setdefault(path, (set(), set()))
            self._times(path, event_time).add(self._key(time, event_time))
            self._write()

    def discard(self, path: str, time: int, event_time: bool) -> None:
        """Note that the trigger at a path no longer waits for a timer."""
        key, times = self._key(time, event_time), self._times(path, event_time)
        if key in times:
            times.discard(key)
            self._write()

    def fire(self, time: int, event_time: bool) -> None:
        """Note that nobody waits for a timer any more."""
        if self.is_awaited(time, event_time):
            for path in self._of:
                self._times(path, event_time).discard(self._key(time, event_time))
            self._write()

    def forget(self, path: str) -> None:
        """Note that the trigger at a path waits for nothing."""
        if self._of.pop(path, None) is not None:
            self._write()

    def clear(self) -> None:
        """Drop the state."""
        self._state.clear()

    def _times(self, path: str, event_time: bool) -> set[int]:
        events, clocks = self._of.get(path, (set(), set()))
        return events if event_time else clocks

    def _key(self, time: int, event_time: bool) -> int:
        return time - self._end if event_time else time

    def _write(self) -> None:
        waiting = sorted((path, tuple(sorted(events)), tuple(sorted(clocks))) for path, (events, clocks) in self._of.items())
        self._state.update(tuple(each for each in waiting if each[1] or each[2]))
