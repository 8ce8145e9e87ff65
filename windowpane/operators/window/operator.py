"""The window operator: Flink's, one element at a time, for merging and plain windows, with and without an evictor.

The order of things for an element: assign -> merge -> skip late windows -> add to the contents -> trigger -> emit if it fires
-> drop the contents if it purges -> register the cleanup timer. For a timer: trigger -> emit -> purge -> and at the cleanup
time, clear everything. What differs between the kinds of windows lives in ``placement`` and ``contents``; this file is the one
driver loop. Source of the rules: Flink's WindowOperator and EvictingWindowOperator.

State, by (key, window, name): contents under the *state window*; trigger and function state under the window itself; the
merging window set and global function state under the key alone. Timers by (time, key, window). Only this operator mutates
them, under the current key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeVar

from windowpane.arrays.values import Value, copied
from windowpane.errors import MergeBehindWatermarkError, UserFunctionError, WindowpaneError, present
from windowpane.operators.window.contents import Contents, contents_for
from windowpane.operators.window.contexts import OperatorProcessContext, OperatorTriggerContext, UserCode
from windowpane.operators.window.endless_timers import EndlessTimerGuard
from windowpane.operators.window.pane_output import PaneOutput
from windowpane.operators.window.placement import Merge, MergingPlacement, Placement, PlainPlacement
from windowpane.operators.window.timer_service import TimerService
from windowpane.operators.window.windows_of_before import WindowsOfBefore
from windowpane.state.keyed import KeyedState
from windowpane.state.timers import Timer
from windowpane.windowing.assigners import MergingWindowAssigner
from windowpane.windowing.functions import PassThrough, RichFunction
from windowpane.windowing.outputs import OutputTag
from windowpane.windowing.panes import NO_PANES, Firing, Pane
from windowpane.windowing.spec import WindowSpec
from windowpane.windowing.times import MAX, MIN
from windowpane.windowing.triggers import TriggerResult
from windowpane.windowing.triggers.base import checked_result
from windowpane.windowing.triggers.composable.pane_trigger import PaneTrigger
from windowpane.windowing.windows import Window

OPERATOR_STATE = "operator/"

T = TypeVar("T")


class Collector(Protocol):
    """Takes what the operator emits. Timestamps are microseconds."""

    def emit(self, key: object, window: Window, value: object, pane: Pane | None = None, change: str | None = None) -> None:
        """Take a result of ``window``; its timestamp is the window's max timestamp.

        Where panes are asked for, ``pane`` is the one it is from; where panes take rows back, ``change`` is the kind of change.
        """

    def side_output(self, tag: OutputTag, key: object, window: Window, value: object) -> None:
        """Take what a function wrote to a side output."""

    def late(self, key: object, value: object, timestamp: int, missed: Sequence[Window], dropped: bool) -> None:
        """Take an element that missed windows; ``dropped`` if no window accepted it."""

    def finished(self, key: object, value: object, timestamp: int, windows: Sequence[Window]) -> None:
        """Take an element of ``windows`` whose trigger is finished."""


@dataclass
class OperatorCounters:
    """What has happened since the operator was made."""

    elements: int = 0
    late_elements: int = 0
    """Elements that missed at least one window."""
    late_dropped: int = 0
    """Elements that no window accepted (Flink's numLateRecordsDropped, side output or not)."""
    dropped_by_finished_trigger: int = 0
    """Elements of a window whose trigger is finished, once for each such window."""
    firings: int = 0
    merges: int = 0
    windows_opened: int = 0
    """Windows that were empty and hold something now."""
    windows_closed: int = 0
    """Windows that held something and are empty now."""


class WindowOperator(WindowsOfBefore):
    """Runs one ``WindowSpec`` over keyed elements and advancing clocks.

    Example:
        >>> operator = WindowOperator(spec, state, timers, collector)
        >>> operator.process_element("JFK", {"delay": 3}, timestamp=5)
        >>> operator.advance_watermark(10)
    """

    def __init__(self, spec: WindowSpec, state: KeyedState, timers: TimerService, collector: Collector) -> None:
        self.spec = spec
        self.counters = OperatorCounters()
        self.timers = timers
        self._assigner = spec.assigner
        self._lateness = spec.lateness
        self._trigger = spec.trigger
        self._state = state
        self._collector = collector
        self._trigger_context = OperatorTriggerContext(state, timers)
        self._process_context = OperatorProcessContext(state, timers, spec.merges, self._emit_side_output)
        self._contents = contents_for(spec, state, self._process_context)
        self._placement: Placement = PlainPlacement()
        if isinstance(spec.assigner, MergingWindowAssigner):
            self._placement = MergingPlacement(spec.assigner, state, self._on_merge)
        self._pane_trigger = spec.trigger if isinstance(spec.trigger, PaneTrigger) else None
        self._panes = PaneOutput(state, spec.panes.retracts) if spec.panes != NO_PANES else None
        self._refinements: dict[tuple[bytes, Window], tuple[Value, TriggerResult]] = {}
        self._element: tuple[Value] | None = None
        self._in_assigner, self._in_trigger = UserCode(spec.assigner, state), UserCode(spec.trigger, state)
        self._in_accumulator, self._in_process = UserCode(spec.function.accumulate, state), UserCode(spec.function.process, state)
        self._in_evictor = UserCode(spec.evictor, state)
        self._in_firing = self._in_accumulator if spec.evictor is None else self._in_evictor
        self._clockwork = EndlessTimerGuard(spec.trigger)
        if isinstance(spec.function.process, RichFunction):
            spec.function.process.open()

    # What an assigner may read: the operator is its context.

    @property
    def current_processing_time(self) -> int:
        return self.timers.processing_time

    @property
    def current_watermark(self) -> int:
        return self.timers.watermark

    @property
    def current_key(self) -> Value:
        return self._state.current_key

    def remember(self, name: str, make: Callable[[], int]) -> int:
        """Return the number kept under ``name`` for this instance, made by ``make`` at the first call."""
        key, key_bytes = self._state.current_key, self._state.current_key_bytes
        self._state.set_current_key(None)
        kept = self._state.get(None, OPERATOR_STATE + name)
        if kept is None:
            kept = make()
            self._state.put(None, OPERATOR_STATE + name, kept)
        self._state.set_current_key(key, key_bytes)
        return int(kept)

    # The driver loop.

    def process_element(self, key: object, value: object, timestamp: int = MIN, key_bytes: bytes | None = None) -> None:
        """Take one element.

        Args:
            key: its key; ``None`` for all elements where windows are not keyed.
            value: the element, for Spark a row as a dict.
            timestamp: its event time in microseconds, ``MIN`` if it has none.
            key_bytes: the encoded key, where the caller has it already.

        Raises:
            UserFunctionError: an assigner, trigger, evictor or function raised.
            MissingTimestampError, TimestampOverflowError, MergeBehindWatermarkError, PerWindowStateError: as they say.
        """
        self._enter(key, key_bytes)
        self.counters.elements += 1
        self._element = (value,)
        self._guarded(lambda: self._process(key, value, timestamp))
        self.timers.take_note(timestamp)

    def _process(self, key: object, value: object, timestamp: int) -> None:
        missed: list[Window] = []
        finished: list[Window] = []
        accepted = False
        with self._in_assigner.of(None):
            windows = list(self._assigner.assign_windows(value, timestamp, self))
        for assigned in windows:
            with self._in_assigner.of(assigned):
                window = self._placement.place(assigned)
            if self._lateness.is_late(window.max_timestamp, self.timers.watermark):
                self._placement.retire(window)
                missed.append(window)
                continue
            accepted = True
            if self._is_finished(window):
                finished.append(window)
            else:
                self._add(value, timestamp, window)
        self._report_late(key, value, timestamp, missed, accepted)
        if finished:
            self.counters.dropped_by_finished_trigger += len(finished)
            self._collector.finished(key, value, timestamp, finished)
        self._placement.leave_key()

    def _is_finished(self, window: Window) -> bool:
        """Return whether the trigger of a window takes no more elements. A session still grows."""
        if self._pane_trigger is None or not self._pane_trigger.is_finished(self._trigger_context.at(window)):
            return False
        self._register_cleanup(window)
        return True

    def _add(self, value: object, timestamp: int, window: Window) -> None:
        state_window = present(self._placement.state_window(window), "a window that was just placed is not late")
        self._evict_held_back(window, state_window)
        with self._in_trigger.of(window):
            self._trigger.check_window(window)
        with self._in_accumulator.of(window):
            self.counters.windows_opened += self._contents.add(state_window, value, timestamp)
            self.counters.windows_closed += self._contents.is_empty(state_window)
        with self._in_trigger.of(window):
            result = self._trigger.on_element(value, timestamp, window, self._trigger_context.at(window))
            checked_result(self._trigger, result, window)
        if result.is_fire and self._holds_back(window):
            self._refinements[self._state.current_key_bytes, window] = (self._state.current_key, result)
        else:
            self._act(result, window, state_window)
        self._register_cleanup(window)

    def _holds_back(self, window: Window) -> bool:
        """Return whether a firing of a window waits for the end of the batch."""
        is_refinement = self.spec.coalesces_refinements and window.max_timestamp <= self.timers.watermark
        return is_refinement or self.spec.fires_each_batch

    def _act(self, result: TriggerResult, window: Window, state_window: Window, at_end: bool = False) -> None:
        if result.is_fire:
            firing = self._trigger_context.announced() or Firing(is_on_time=at_end)
            with self._in_firing.of(window):
                if firing.may_be_empty and self._contents.is_empty(state_window):
                    self._emit(window, firing, self._contents.of_nothing())
                    fired = True
                else:
                    fired = self._contents.fire(state_window, window, partial(self._emit, window, firing))
            self.counters.firings += fired
            self.counters.windows_closed += fired and self.spec.evictor is not None and self._contents.is_empty(state_window)
        if result.is_purge:
            self._clear_contents(state_window)

    def _emit(self, window: Window, firing: Firing, elements: Sequence[Value]) -> None:
        """Call the function, which may change in place what it is given and what it has emitted: neither is what state holds."""
        key, process = self._state.current_key, self.spec.function.process
        with self._in_process.of(window):
            seen = elements if isinstance(process, PassThrough) else list(map(copied, elements))
            rows = map(copied, _rows(process.process(key, self._process_context.at(window), seen)))
            if self._panes is None:
                for row in rows:
                    self._collector.emit(key, window, row)
                return
            is_end_reached = window.max_timestamp <= self.timers.watermark
            for entry in self._panes.rows(window, list(rows), firing, is_end_reached):
                self._collector.emit(key, entry.window, entry.value, entry.pane, entry.change)

    def _emit_side_output(self, tag: OutputTag, window: Window, value: object) -> None:
        self._collector.side_output(tag, self._state.current_key, window, copied(value))

    def _evict_held_back(self, window: Window, state_window: Window) -> None:
        """Evict the elements that a refinement which is held back would have evicted by now, where a later one sees the rest."""
        spec = self.spec
        if (
            spec.evicts_after
            and not spec.purges
            and not spec.fires_each_batch
            and (self._state.current_key_bytes, window) in self._refinements
        ):
            with self._in_evictor.of(window):
                self._contents.evict(state_window, window)
            self.counters.windows_closed += self._contents.is_empty(state_window)

    def finish_batch(self) -> None:
        """Fire the refinements that were held back, then move the clocks of keys that have their own.

        Where ``refine`` is ``"last"``, one refinement fires for each window late rows touched.
        """
        pending, self._refinements = self._refinements, {}
        for (key_bytes, window), (key, result) in pending.items():
            self._enter(key, key_bytes)
            self._element = None
            self._guarded(lambda window=window, result=result: self._refine(window, result))  # type: ignore[misc]
        for clock in self.timers.clocks_to_move():
            self._enter(clock.key, clock.key_bytes)
            self.advance_watermark(clock.watermark)

    @property
    def contents(self) -> Contents:
        """The contents of the windows of the current key."""
        return self._contents

    def look(self, key: object, key_bytes: bytes, window: Window) -> list[Value]:
        """Return the rows that a firing of a live window would give now; what it changes is not to be kept."""
        rows: list[Value] = []

        def take(elements: Sequence[Value]) -> None:
            with self._in_process.of(window):
                rows.extend(_rows(self.spec.function.process.process(key, self._process_context.at(window), elements)))

        self._enter(key, key_bytes)
        state_window = self._placement.state_window(window)
        if state_window is not None:
            with self._in_firing.of(window):
                self._contents.fire(state_window, window, take)
        return rows

    def live_windows(self, key: object, key_bytes: bytes) -> Mapping[Window, Window] | None:
        """Return the live windows of a key with those that their contents are stored under, ``None`` where these are the same."""
        self._enter(key, key_bytes)
        return self._placement.live()

    def _refine(self, window: Window, result: TriggerResult) -> None:
        state_window = self._placement.state_window(window)
        if state_window is not None:
            self._act(result, window, state_window)
        self._placement.leave_key()

    # Clocks and timers.

    def advance_watermark(self, watermark: int) -> None:
        self._clockwork.restart(watermark)
        self.timers.advance_watermark(watermark, lambda timer: self._on_timer(timer, event_time=True))

    def advance_processing_time(self, time: int) -> None:
        self._clockwork.restart(time)
        self.timers.advance_processing_time(time, lambda timer: self._on_timer(timer, event_time=False))

    def _on_timer(self, timer: Timer, event_time: bool) -> None:
        window = present(timer.window, "only windows have timers here")
        self._clockwork.check(timer)
        self._element = None
        self._enter(timer.key, timer.key_bytes)
        self._guarded(lambda: self._fire_timer(timer.time, window, event_time))

    def _fire_timer(self, time: int, window: Window, event_time: bool) -> None:
        state_window = self._placement.state_window(window)
        if state_window is None:
            return  # a leftover timer of a retired session
        callback = self._trigger.on_event_time if event_time else self._trigger.on_processing_time
        with self._in_trigger.of(window):
            result = checked_result(self._trigger, callback(time, window, self._trigger_context.at(window)), window)
        self._act(result, window, state_window, at_end=event_time and time == window.max_timestamp)
        if event_time == self._assigner.is_event_time and time == self._lateness.cleanup_time(window.max_timestamp):
            self._clear(window, state_window)
        self._placement.leave_key()

    # Late elements, merges, cleanup.

    def _report_late(self, key: object, value: object, timestamp: int, missed: list[Window], accepted: bool) -> None:
        dropped = not accepted and self._lateness.is_behind(timestamp, self.timers.watermark)
        if not missed and not dropped:
            return
        self.counters.late_elements += 1
        self.counters.late_dropped += dropped
        self._collector.late(key, value, timestamp, missed, dropped)

    def _on_merge(self, merge: Merge) -> None:
        self._check_merge(merge.target)
        self.counters.merges += 1
        with self._in_trigger.of(merge.target):
            self._trigger.on_merge(merge.target, self._trigger_context.at(merge.target, merge.sources))
        if self._panes is not None:
            self._panes.merge(merge.target, merge.sources)
        state_windows = (merge.state_window, *merge.merged_state_windows)
        for source, state_window in zip(merge.sources, state_windows, strict=True):
            self._evict_held_back(source, state_window)
            with self._in_trigger.of(source):
                self._trigger.clear(source, self._trigger_context.at(source))
            self._delete_cleanup(source)
            self._refinements.pop((self._state.current_key_bytes, source), None)
        if merge.merged_state_windows:
            with self._in_accumulator.of(merge.target):
                self.counters.windows_closed += self._contents.merge(merge.state_window, merge.merged_state_windows)

    def _check_merge(self, target: Window) -> None:
        """Refuse a merged window that is over already."""
        key, end = self._state.current_key, target.max_timestamp
        if self._lateness.is_behind(end, self.timers.watermark):
            raise MergeBehindWatermarkError(key, target, self.spec.allowed_lateness, "watermark", self.timers.watermark)
        if not self._assigner.is_event_time and end <= self.timers.processing_time:
            raise MergeBehindWatermarkError(key, target, 0, "processing time", self.timers.processing_time)

    def _register_cleanup(self, window: Window) -> None:
        time = self._lateness.cleanup_time(window.max_timestamp)
        if time == MAX:
            return
        register = self.timers.register_event_time if self._assigner.is_event_time else self.timers.register_processing_time
        register(time, self._state.current_key_bytes, window)

    def _delete_cleanup(self, window: Window) -> None:
        time = self._lateness.cleanup_time(window.max_timestamp)
        delete = self.timers.delete_event_time if self._assigner.is_event_time else self.timers.delete_processing_time
        delete(time, self._state.current_key_bytes, window)

    def _clear_contents(self, state_window: Window) -> None:
        self.counters.windows_closed += self._contents.clear(state_window)

    def _clear(self, window: Window, state_window: Window) -> None:
        self._clear_contents(state_window)
        with self._in_trigger.of(window):
            self._trigger.clear(window, self._trigger_context.at(window))
        if self._panes is not None:
            self._panes.clear(window)
        with self._in_process.of(window):
            self.spec.function.process.clear(self._process_context.at(window))
        self._placement.retire(window)

    # Entering a key, and saying where an error happened.

    def _enter(self, key: object, key_bytes: bytes | None) -> None:
        self._state.set_current_key(key, key_bytes)
        self.timers.enter_key()
        self._placement.enter_key()

    def _guarded(self, work: Callable[[], T]) -> T:
        try:
            return work()
        except UserFunctionError as error:
            raise error.located(**self._where()) from error.__cause__
        except WindowpaneError as error:
            raise error.located(key=self._state.current_key, **self._where()) from error.__cause__

    def _where(self) -> dict[str, object]:
        return {} if self._element is None else {"element": self._element[0]}


def _rows(returned: Iterable[Value] | None) -> Iterable[Value]:
    """Return the rows that a function returned, none for ``None``; of a single row, its columns would be taken for rows."""
    if isinstance(returned, Mapping) or hasattr(returned, "asDict"):
        raise TypeError(f"it returned the row {returned!r}, where rows are expected: yield the row, or return [row]")
    return returned or ()
