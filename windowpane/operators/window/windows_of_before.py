"""Windows that another program has opened: what the operator does with them, once, before the first element or clock.

Their contents stay. Under another trigger they begin anew: what the old one knew is dropped with its timers, windows that hold
nothing are forgotten, and the new trigger waits for the clocks as it would behind elements that it has not counted. Under another
lateness their cleanup is due at another time, and those that are over already are forgotten.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from windowpane.arrays.values import Value
from windowpane.errors import present
from windowpane.operators.window.contents import CONTENTS, Contents
from windowpane.operators.window.contexts import TRIGGER_PREFIX, OperatorTriggerContext
from windowpane.operators.window.placement import Placement
from windowpane.operators.window.timer_service import TimerService
from windowpane.state.keyed import KeyedState
from windowpane.windowing.lateness import Lateness
from windowpane.windowing.triggers import Trigger
from windowpane.windowing.triggers.composable.pane_trigger import PaneTrigger
from windowpane.windowing.windows import Window


class WindowsOfBefore(ABC):
    """The part of the operator that takes them over."""

    timers: TimerService
    _state: KeyedState
    _trigger: Trigger
    _trigger_context: OperatorTriggerContext
    _contents: Contents
    _placement: Placement
    _lateness: Lateness

    @abstractmethod
    def _enter(self, key: object, key_bytes: bytes | None) -> None:
        """Begin with a key."""

    @abstractmethod
    def _clear(self, window: Window, state_window: Window) -> None:
        """Forget a window of the current key."""

    @abstractmethod
    def _register_cleanup(self, window: Window) -> None:
        """Wait for the end of a window."""

    def begin_anew(self) -> None:
        """Begin with windows whose rows another trigger has seen: those that hold nothing are forgotten, the others wait."""
        keys = dict[bytes, tuple[Value, set[Window]]]()
        for key, window, name in list(self._state.slots()):
            self._state.set_current_key(key)
            _, held = keys.setdefault(self._state.current_key_bytes, (key, set()))
            if window is not None and name == CONTENTS:
                held.add(window)
            elif window is not None and name.startswith(TRIGGER_PREFIX):
                self._state.remove(window, name)
        self.timers.forget_all()
        for key_bytes, (key, held) in keys.items():
            self._enter(key, key_bytes)
            live = self._placement.live()
            for window, state_window in ({each: each for each in held} if live is None else dict(live)).items():
                if self._contents.is_empty(state_window) or self._is_over(window):
                    self._clear(window, state_window)
                else:
                    self._trigger.begin(window, self._trigger_context.at(window))
                    self._register_cleanup(window)
            self._placement.leave_key()

    def keep_calls(self, numbers: Sequence[int]) -> None:
        """Keep of the accumulators of several aggregates these, in this order."""
        for key, window, name in list(self._state.slots()):
            if name == CONTENTS:
                self._state.set_current_key(key)
                (accumulators,) = self._state.get(window, name)
                self._state.put(window, name, ([accumulators[number] for number in numbers],))

    def keep_for(self, before: Lateness) -> None:
        """Let windows that waited for their cleanup under another lateness wait as they do now; those that are over go.

        One of a composable trigger may still show what it holds, as its cleanup comes.
        """
        for timer in [each for each in self.timers.event_time if before.is_event_time]:
            window = present(timer.window, "only windows have timers here")
            if timer.time != before.cleanup_time(window.max_timestamp):
                continue
            self._enter(timer.key, timer.key_bytes)
            if before.allowed:
                self.timers.delete_event_time(timer.time, timer.key_bytes, window)
            if not isinstance(self._trigger, PaneTrigger) and self._is_over(window):
                self._clear(window, present(self._placement.state_window(window), "it waits"))
                self._placement.leave_key()
            else:
                self._register_cleanup(window)

    def _is_over(self, window: Window) -> bool:
        return self._lateness.is_event_time and self._lateness.is_over(window.max_timestamp, self.timers.watermark)
