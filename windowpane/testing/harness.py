"""A window operator on a test bench: feed elements and clocks, read everything it does. No Spark.

The harness owns the state, the timers and the log of what was emitted. A snapshot holds state and timers only: as in Flink, a
restored operator has no watermark (``MIN``), the processing time 0 and counters at zero, and its log is empty. Source of the
idea: Flink's OneInputStreamOperatorTestHarness.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Self

from windowpane import pickles
from windowpane.arrays.values import Value
from windowpane.errors import InvalidSpecError
from windowpane.inspect.holders import Holder
from windowpane.operators.window.contents import CONTENTS
from windowpane.operators.window.operator import OperatorCounters, WindowOperator
from windowpane.operators.window.placement import MERGING_WINDOW_SET
from windowpane.operators.window.timer_service import KeyTimerService, TimerService
from windowpane.state.codec import frame, unframe
from windowpane.state.entries import MemoryEntries
from windowpane.state.keyed import KeyedState
from windowpane.state.timers import KeyTimerQueue, Timer, TimerQueue
from windowpane.testing.holding import held_by_windows
from windowpane.testing.records import (
    ClockRecord,
    ElementRecord,
    Emitted,
    LateRecord,
    OutputRecord,
    RecordingCollector,
    SideRecord,
    WatermarkRecord,
    require_declared,
)
from windowpane.testing.timeline import Timeline
from windowpane.windowing.assigners import WindowAssigner
from windowpane.windowing.evictors import Evictor
from windowpane.windowing.functions import ProcessContext, ProcessWindowFunction, WindowFunctionSpec
from windowpane.windowing.outputs import OutputTag
from windowpane.windowing.panes import AccumulationMode
from windowpane.windowing.spec import PaneSettings, WindowSpec
from windowpane.windowing.times import MIN, Duration, to_micros
from windowpane.windowing.triggers import Trigger
from windowpane.windowing.triggers.composable import ComposableTrigger, EarlyAndFinal
from windowpane.windowing.watermarks import WatermarkGenerator, Watermarks
from windowpane.windowing.windows import Window

SNAPSHOT = "harness-snapshot"


class StateEntry(NamedTuple):
    """One value or list that is not empty: contents, trigger or function state, or a key's merging window set."""

    key: Value
    window: Window | None
    name: str


class ListElements(ProcessWindowFunction):
    """Emits the elements of a firing window as one list: what a test of a trigger or an assigner wants to see."""

    def process(self, key: Value, context: ProcessContext, elements: Sequence[Value]) -> Iterable[Value]:
        """Emit one list a firing."""
        return [list(elements)]


class WindowTestHarness:
    """Runs one windowed computation, element by element.

    Times are integers of microseconds. The watermark starts at ``MIN``, the processing time at 0.

    Args:
        assigner: a window assigner, or a whole ``WindowSpec`` (then leave the other parts out).
        trigger: the trigger, one of Flink's, your own, or a composable one, whose results carry their ``pane``; the assigner's
            default where none is given.
        evictor: the evictor, if any.
        allowed_lateness: how long windows are kept behind the watermark: a duration, integers are microseconds.
        function: what a firing window is turned into; where none is given, one list of the window's elements.
        side_outputs: the declared side outputs; ``None`` accepts every tag.
        watermarks: how the watermark is made of elements and the clock, whenever a batch ends (``finish_batch``) or the clock is
            set; elements are dicts where the strategy reads columns. ``None`` leaves it to ``process_watermark``.
        accumulation: what a pane shows, as ``.accumulation(mode)`` of a program says it; a composable trigger that fires more
            than once needs it.

    Raises:
        InvalidSpecError: parts that do not fit together, as everywhere in windowpane.

    Example:
        >>> class FireOnMarker(Trigger):
        ...     def on_element(self, element, timestamp, window, context):
        ...         return TriggerResult.FIRE if element["marker"] else TriggerResult.CONTINUE
        ...     def clear(self, window, context): pass
        >>> harness = WindowTestHarness(TumblingEventTimeWindows.of(10), FireOnMarker())
        >>> harness.process_element({"marker": False}, timestamp=1, key="JFK")
        >>> harness.process_element({"marker": True}, timestamp=2, key="JFK")
        >>> [record.value for record in harness.take_output()]
        [[{'marker': False}, {'marker': True}]]
        >>> harness.process_watermark(9)
        >>> harness.output, harness.state_entries()
        ([], [])
    """

    def __init__(
        self,
        assigner: WindowAssigner | WindowSpec,
        trigger: Trigger | ComposableTrigger | None = None,
        evictor: Evictor | None = None,
        allowed_lateness: Duration = 0,
        function: WindowFunctionSpec | None = None,
        side_outputs: Sequence[OutputTag] | None = None,
        watermarks: Watermarks | None = None,
        accumulation: AccumulationMode | None = None,
    ) -> None:
        """Build the operator over empty state."""
        if function is not None and not isinstance(function, WindowFunctionSpec):
            raise InvalidSpecError(
                f"function={function!r}: a harness runs one row at a time and takes a WindowFunctionSpec, such as "
                "wp.WindowFunctionSpec.apply(...) or .aggregate(...); built-in aggregates have types, which only a DataFrame has."
            )
        if isinstance(assigner, WindowSpec):
            _reject_parts_beside_spec(trigger, evictor, allowed_lateness, function, accumulation)
            self.spec = assigner
        else:
            lateness, panes = to_micros(allowed_lateness), _panes(trigger, accumulation)
            self.spec = WindowSpec(
                assigner,
                function or WindowFunctionSpec.full(ListElements()),
                panes.trigger(trigger or assigner.default_trigger(), assigner, evictor, lateness),
                evictor,
                lateness,
                panes=panes.options,
            )
        self._declared = None if side_outputs is None else [tag.name for tag in side_outputs]
        self._strategy = None if watermarks is None else Watermarks.of(watermarks)
        makes_one = self._strategy is not None and not self._strategy.of_each_key
        self._generator = WatermarkGenerator(self._strategy) if self._strategy is not None and makes_one else None
        self._build({}, {}, {})

    def _build(self, keyed: dict[bytes, bytes], event: dict[bytes, bytes], processing: dict[bytes, bytes]) -> None:
        self._entries = (MemoryEntries(keyed), MemoryEntries(event), MemoryEntries(processing))
        self._state = KeyedState(self._entries[0])
        self._timers = self._timer_service(TimerQueue(self._entries[2]))
        self._timers.restore_clocks(MIN, 0)
        self._collector = RecordingCollector(self._declared)
        self.operator = WindowOperator(self.spec, self._state, self._timers, self._collector)

    def _timer_service(self, by_clock: TimerQueue) -> TimerService:
        if self._strategy is None or not self._strategy.of_each_key:
            return TimerService(TimerQueue(self._entries[1]), by_clock)
        return KeyTimerService(self._state, KeyTimerQueue(self._entries[1]), by_clock, self._strategy.delay)

    # What goes in.

    def process_element(self, value: Value, timestamp: int | None = None, key: Value = None) -> None:
        """Feed one element; without a ``timestamp`` it has none, without a ``key`` it is that of ``window_all``.

        Raises:
            WindowpaneError: whatever the operator refuses; the state is then as the failed element left it.
        """
        at = MIN if timestamp is None else timestamp
        self._collector.history.append(ElementRecord(key, value, at))
        self.operator.process_element(key, value, at)
        if self._generator is not None:
            self._generator.on_event(value, at)

    def process_watermark(self, watermark: int) -> None:
        """Move the watermark: what is due fires, then the watermark is passed on. One that goes back is ignored.

        Raises:
            InvalidSpecError: each key has a watermark of its own.
        """
        if self._strategy is not None and self._strategy.of_each_key:
            raise InvalidSpecError(f"{self._strategy!r} gives each key a watermark of its own, which only its elements move.")
        if watermark < self._timers.watermark:
            return
        passed = WatermarkRecord(watermark)
        self._collector.history.append(passed)
        self.operator.advance_watermark(watermark)
        self._collector.log.append(passed)

    def set_processing_time(self, time: int) -> None:
        """Set the clock: what is due fires."""
        self._collector.history.append(ClockRecord(time))
        self.operator.advance_processing_time(time)
        self._make_watermark()

    def finish_batch(self) -> None:
        """End a micro-batch: with ``refine="last"`` the refinements held back fire now, then the strategy moves the watermark."""
        self.operator.finish_batch()
        self._make_watermark()

    def _make_watermark(self) -> None:
        if self._generator is None:
            return
        made = self._generator.on_periodic_emit(self.processing_time)
        if made > self.watermark:
            self.process_watermark(made)

    def restore_clocks(self, watermark: int, processing_time: int) -> None:
        """Set both clocks without firing, as an engine does that keeps the watermark across restarts."""
        self._timers.restore_clocks(watermark, processing_time)

    # Results.

    @property
    def emitted(self) -> list[Emitted]:
        """Everything emitted and not taken yet, in order: results, side outputs, late elements, watermarks."""
        return list(self._collector.log)

    @property
    def output(self) -> list[OutputRecord]:
        """The results not taken yet."""
        return [record for record in self._collector.log if isinstance(record, OutputRecord)]

    @property
    def late(self) -> list[LateRecord]:
        """The elements that missed windows and were not taken yet."""
        return [record for record in self._collector.log if isinstance(record, LateRecord)]

    def side_output(self, tag: OutputTag | str) -> list[SideRecord]:
        """Return what was written to a side output and not taken yet.

        Raises:
            UndeclaredSideOutputError: side outputs were declared and this is none of them.
        """
        name = tag if isinstance(tag, str) else tag.name
        require_declared(name, self._declared)
        records = [record for record in self._collector.log if isinstance(record, SideRecord)]
        return [record for record in records if record.tag.name == name]

    def take_output(self) -> list[OutputRecord]:
        """Return the results and forget them; side outputs, late elements and watermarks stay."""
        taken = self.output
        self._collector.log = [record for record in self._collector.log if not isinstance(record, OutputRecord)]
        return taken

    def take_emitted(self) -> list[Emitted]:
        """Return everything emitted, in order, and forget it."""
        taken, self._collector.log = self._collector.log, []
        return taken

    def timeline(self) -> Timeline:
        """Return a picture of what has happened: elements, windows, the watermark, firings and late elements, as SVG.

        A notebook shows it by itself; ``save`` writes it elsewhere.

        Example:
            >>> harness.timeline().save("windows.svg")
        """
        return Timeline(self._collector.history)

    # What is inside.

    @property
    def watermark(self) -> int:
        """The watermark; where each key has its own, that of the key used last."""
        return self._timers.watermark

    @property
    def processing_time(self) -> int:
        """The processing time."""
        return self._timers.processing_time

    @property
    def counters(self) -> OperatorCounters:
        """What has happened since the harness was built or restored."""
        return self.operator.counters

    @property
    def event_time_timers(self) -> list[Timer]:
        """The event-time timers, earliest first; those of cleanup are among them."""
        return list(self._timers.event_time)

    @property
    def processing_time_timers(self) -> list[Timer]:
        """The processing-time timers, earliest first."""
        return list(self._timers.processing_time_queue)

    def state_entries(self) -> list[StateEntry]:
        """Return what is kept, by key, window and name: ``[]`` is what a window should leave behind."""
        return [StateEntry(*slot) for slot in self._state.slots()]

    def window_contents(self, key: Value, window: Window) -> list[Value]:
        """Return the elements kept for a window, or the one result of an incremental function; ``[]`` for none."""
        state_window = self.state_window(key, window) if self.spec.merges else window
        if state_window is None:
            return []
        self._state.set_current_key(key)
        accumulate = self.spec.function.accumulate
        if accumulate is not None and self.spec.evictor is None:
            return [accumulate.get_result(held) for held in self._state.get(state_window, CONTENTS) or ()]
        return [element.value for element in self._state.get_list(state_window, CONTENTS)]

    def state_window(self, key: Value, window: Window) -> Window | None:
        """Return the window under which a live merging window keeps its contents, ``None`` if it is not live."""
        self._state.set_current_key(key)
        mapping: dict[Window, Window] = self._state.get(None, MERGING_WINDOW_SET) or {}
        return mapping.get(window)

    def holder(self) -> Holder:
        """Return what it holds now, for ``wp.inspect(harness)``; results that a firing would give are shown as texts.

        Raises:
            InvalidSpecError: the keys have values of several types, for which a table has no column.
        """
        self._state.flush()
        known = None if self._generator is None else self._generator.state
        clocks = (self.watermark, self.processing_time)
        return held_by_windows(self.spec, self._entries, clocks, self._collector.history, self._strategy, known)

    # Failure and recovery.

    def snapshot(self) -> bytes:
        """End the batch and return state and timers."""
        self.finish_batch()
        self._state.flush()
        kept: list[Value] = [entries.copy() for entries in self._entries]
        kept += [] if self._generator is None else [self._generator.state]
        body = pickles.dumps(kept)
        return frame(SNAPSHOT, body)

    @classmethod
    def restore(cls, snapshot: bytes, *args: Value, **parts: Value) -> Self:
        """Return a harness over the state of ``snapshot``; all other arguments are those of the constructor.

        The watermark is ``MIN``, the processing time 0, and counters and log are empty. A strategy continues with what it
        knew, and with its watermark.

        Raises:
            UnknownStateFormatError: the bytes are no snapshot of a harness.

        Example:
            >>> harness = WindowTestHarness.restore(harness.snapshot(), TumblingEventTimeWindows.of(10))
        """
        harness = cls(*args, **parts)
        keyed, event, processing, *known = pickles.loads(unframe(SNAPSHOT, snapshot))
        harness._build(keyed, event, processing)
        if harness._generator is not None and known:
            (before,) = known
            harness._generator = WatermarkGenerator(harness._generator.strategy, before, run=f"after {before.run}")
            harness._timers.restore_clocks(before.watermark, 0)
        return harness


def _panes(trigger: Trigger | ComposableTrigger | None, accumulation: AccumulationMode | None) -> PaneSettings:
    if accumulation is None and isinstance(trigger, EarlyAndFinal):
        accumulation = "accumulating"
    return PaneSettings(accumulation, shows_info=isinstance(trigger, ComposableTrigger))


def _reject_parts_beside_spec(*parts: object) -> None:
    given = [part for part in parts if part]
    if given:
        raise InvalidSpecError(
            f"WindowTestHarness was given a WindowSpec and {given!r} beside it. A WindowSpec is complete: put the parts into it, "
            "or give an assigner in its place."
        )
