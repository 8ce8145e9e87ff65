"""Which timers of a window are those of Flink's triggers in its tree: each of these is called at the timers that it registered.

State of a window, beside that of the tree: for each of Flink's triggers that waits its path, its timers of event time as
distances from the window's last instant, and those of the clock.
"""

from __future__ import annotations

from windowpane.windowing.triggers.base import TriggerContext

_TIMERS = "leaf-timers"
_Written = tuple[tuple[str, tuple[int, ...], tuple[int, ...]], ...]


class LeafTimers:
    """The timers of Flink's triggers in the tree of one window, by the paths of the triggers."""

    def __init__(self, context: TriggerContext, last_instant: int) -> None:
        self._state = context.value_state(_TIMERS)
        self._end = last_instant
        written: _Written | None = self._state.get()
        self._of = {path: (set(events), set(clocks)) for path, events, clocks in written or ()}

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
        self._state.update(tuple(each for each in waiting if each[1] or each[2]))
