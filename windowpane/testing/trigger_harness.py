"""One trigger alone on a test bench: call it, and read its answers, timers and state. No windows are kept.

Advancing a clock fires each timer that was due *before* the advance once: one that a callback registers waits for the next
advance, even if it is due. Both clocks start at ``MIN``. Source of the rules: Flink's TriggerTestHarness.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from windowpane.arrays.values import Value
from windowpane.operators.window.contexts import OperatorTriggerContext
from windowpane.operators.window.timer_service import TimerService
from windowpane.state.entries import MemoryEntries
from windowpane.state.keyed import KeyedState
from windowpane.state.timers import Timer, TimerQueue
from windowpane.testing.harness import StateEntry
from windowpane.windowing.times import MIN
from windowpane.windowing.triggers import Trigger, TriggerContext, TriggerResult
from windowpane.windowing.windows import Window

Callback = Callable[[int, Window, TriggerContext], TriggerResult]


class Firing(NamedTuple):
    """What a trigger answered to a timer."""

    window: Window
    time: int
    result: TriggerResult


class TriggerTestHarness:
    """Runs one trigger, for one key.

    Args:
        trigger: the trigger under test.

    Example:
        >>> harness = TriggerTestHarness(CountTrigger.of(2))
        >>> harness.process_element("a", TimeWindow(0, 10)), harness.process_element("b", TimeWindow(0, 10))
        (<TriggerResult.CONTINUE: (False, False)>, <TriggerResult.FIRE: (True, False)>)
        >>> harness.state_entries()
        []
    """

    def __init__(self, trigger: Trigger) -> None:
        """Start with no state, no timers, and both clocks at ``MIN``."""
        self.trigger = trigger
        self._state = KeyedState(MemoryEntries())
        self._timers = TimerService(TimerQueue(MemoryEntries()), TimerQueue(MemoryEntries()))
        self._context = OperatorTriggerContext(self._state, self._timers)

    def process_element(self, value: Value, window: Window, timestamp: int | None = None) -> TriggerResult:
        """Return the trigger's answer to an element added to ``window``."""
        self.trigger.check_window(window)
        at = MIN if timestamp is None else timestamp
        return self.trigger.on_element(value, at, window, self._context.at(window))

    def advance_watermark(self, watermark: int) -> list[Firing]:
        """Move the watermark and return the trigger's answers to the timers that are due."""
        self._timers.watermark = watermark
        return self._fire(self._timers.event_time, watermark, self.trigger.on_event_time)

    def advance_processing_time(self, time: int) -> list[Firing]:
        """Move the clock and return the trigger's answers to the timers that are due."""
        self._timers.processing_time = time
        return self._fire(self._timers.processing_time_queue, time, self.trigger.on_processing_time)

    def _fire(self, queue: TimerQueue, now: int, callback: Callback) -> list[Firing]:
        due: list[Timer] = []
        while (timer := queue.poll(now)) is not None:
            due.append(timer)
        firings = []
        for time, _, window, _ in due:
            assert window is not None
            firings.append(Firing(window, time, callback(time, window, self._context.at(window))))
        return firings

    def invoke_on_event_time(self, time: int, window: Window) -> TriggerResult:
        """Call ``on_event_time`` as a cleanup timer does: whether or not the trigger registered one."""
        return self.trigger.on_event_time(time, window, self._context.at(window))

    def invoke_on_processing_time(self, time: int, window: Window) -> TriggerResult:
        """Call ``on_processing_time`` as a cleanup timer does."""
        return self.trigger.on_processing_time(time, window, self._context.at(window))

    def merge_windows(self, target: Window, sources: Sequence[Window]) -> None:
        """Merge ``sources`` into ``target``: ``on_merge`` for the target, then ``clear`` for each source."""
        self.trigger.on_merge(target, self._context.at(target, list(sources)))
        for source in sources:
            self.clear(source)

    def clear(self, window: Window) -> None:
        """Call ``clear`` for a window."""
        self.trigger.clear(window, self._context.at(window))

    def event_time_timers(self, window: Window | None = None) -> list[int]:
        """Return the times of the event-time timers, of one window or of all."""
        return _times(self._timers.event_time, window)

    def processing_time_timers(self, window: Window | None = None) -> list[int]:
        """Return the times of the processing-time timers, of one window or of all."""
        return _times(self._timers.processing_time_queue, window)

    def state_entries(self, window: Window | None = None) -> list[StateEntry]:
        """Return the state the trigger keeps, of one window or of all."""
        entries = [StateEntry(*slot) for slot in self._state.slots()]
        return [entry for entry in entries if window is None or entry.window == window]


def _times(queue: TimerQueue, window: Window | None) -> list[int]:
    return [timer.time for timer in queue if window is None or timer.window == window]
