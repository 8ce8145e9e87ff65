"""What triggers know of panes, as values: panes that are alike have one *standing*, and the trigger is called once for all.

A standing is what the window operator keeps of a trigger for one key and window: its state by name, and the pending timers of
both clocks, the cleanup timer among them. The trigger itself runs on it, in the order of the operator's calls. While no clock
advances its answer for a standing and a window is always the same, so it is kept. Standings have numbers, so that the answers for
many panes are a lookup in arrays::

    AfterCount(2), repeated        number   after a row   fires
    no rows yet                    0        1             no
    one row                        1        0             yes

Timers of event time are kept as their distance from the last instant of the window, so that sessions are alike, too, wherever
they lie. Rules of triggers are in no other place than the triggers. Source of the order of calls: ``operators.window.operator``.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from windowpane import pickles
from windowpane.arrays import Integers
from windowpane.arrays.values import Value
from windowpane.engines.common.held_panes import trigger_words
from windowpane.engines.panes.trigger_program import FIRES, IS_CLEARED, IS_DROPPED, IS_LAST, IS_ON_TIME, MAY_BE_EMPTY, PURGES
from windowpane.engines.program import Program
from windowpane.errors import MistakeError
from windowpane.operators.window.endless_timers import MAX_FIRINGS_WITHOUT_END
from windowpane.windowing.panes import NO_PANES, Firing
from windowpane.windowing.spec import WindowSpec
from windowpane.windowing.times import MAX, MIN, wrap_int64
from windowpane.windowing.triggers import (
    ContinuousEventTimeTrigger,
    ContinuousProcessingTimeTrigger,
    CountTrigger,
    DeltaTrigger,
    EndOfStreamTrigger,
    EventTimeTrigger,
    NeverTrigger,
    ProcessingTimeoutTrigger,
    ProcessingTimeTrigger,
    PurgingTrigger,
    Trigger,
)
from windowpane.windowing.triggers.base import Reduce, ReducingState, TriggerResult, ValueState
from windowpane.windowing.triggers.composable import (
    AfterAll,
    AfterAny,
    AfterEach,
    AfterProcessingTime,
    AfterWatermark,
    ComposableTrigger,
    Default,
    Never,
    OrFinally,
    Repeatedly,
)
from windowpane.windowing.triggers.composable.pane_trigger import PaneTrigger, all_flink_triggers
from windowpane.windowing.windows import Window

Shape: TypeAlias = Hashable
"""What of a window the answers of its trigger depend on."""


class Standing(NamedTuple):
    """What is kept of one pane's trigger."""

    values: tuple[tuple[str, Value], ...] = ()  # its state, by name
    event_times: tuple[int, ...] = ()  # pending timers of event time, ascending, as distances from the last instant of the window
    processing_times: tuple[int, ...] = ()  # pending timers of the clock, ascending


class Step(NamedTuple):
    """One timer that a clock made due: its time, and what happens as bits."""

    time: int
    bits: int


class Advance(NamedTuple):
    """What a clock makes of a pane."""

    steps: tuple[Step, ...]  # the steps, in order
    number: int  # the number of the standing after them
    is_endless: bool = False  # whether a periodic trigger would never come to the end of the pane's window, which has none


@dataclass
class _Desk:
    """The standing of a window while a trigger works on it: its values, its timers, and what it announced."""

    end: int

    values: dict[str, Value]
    event_times: set[int]
    processing_times: set[int]
    merged: Sequence[dict[str, Value]] = ()
    firing: Firing | None = None

    @classmethod
    def of(cls, standing: Standing, window: Window) -> _Desk:
        end = window.max_timestamp
        return cls(end, dict(standing.values), {end + time for time in standing.event_times}, set(standing.processing_times))

    def standing(self) -> Standing:
        values, event_times = tuple(sorted(self.values.items())), sorted(time - self.end for time in self.event_times)
        return Standing(values, tuple(event_times), tuple(sorted(self.processing_times)))


class _Value:
    """A value of a trigger, or one that grows by a reduce function."""

    def __init__(self, values: dict[str, Value], name: str, reduce: Reduce | None = None) -> None:
        self._values, self._name, self._reduce = values, name, reduce

    def get(self) -> Value:
        return self._values.get(self._name)

    def update(self, value: object) -> None:
        if value is None:
            self.clear()
        else:
            self._values[self._name] = value

    def add(self, value: object) -> None:
        if self._reduce is None:
            raise MistakeError("it is a reducing state")
        held = self.get()
        self.update(value if held is None else self._reduce(held, value))

    def clear(self) -> None:
        self._values.pop(self._name, None)


@dataclass
class _Context:
    """What a trigger is handed: the clocks of the engine, and the standing on the desk."""

    desk: _Desk
    current_watermark: int
    current_processing_time: int
    prefix: str = ""

    def register_event_time_timer(self, time: int) -> None:
        self.desk.event_times.add(time)

    def register_processing_time_timer(self, time: int) -> None:
        self.desk.processing_times.add(time)

    def delete_event_time_timer(self, time: int) -> None:
        self.desk.event_times.discard(time)

    def delete_processing_time_timer(self, time: int) -> None:
        self.desk.processing_times.discard(time)

    def value_state(self, name: str) -> ValueState:
        return _Value(self.desk.values, self.prefix + name)

    def reducing_state(self, name: str, reduce: Reduce) -> ReducingState:
        return _Value(self.desk.values, self.prefix + name, reduce)

    def merge_reducing_state(self, name: str, reduce: Reduce) -> None:
        target = self.reducing_state(name, reduce)
        for values in self.desk.merged:
            if (value := values.pop(self.prefix + name, None)) is not None:
                target.add(value)

    def announce(self, firing: Firing) -> None:
        self.desk.firing = firing

    def prefixed(self, prefix: str) -> _Context:
        return _Context(self.desk, self.current_watermark, self.current_processing_time, self.prefix + prefix)


@dataclass
class Standings:
    """The standings of one program, and what its trigger answers for them."""

    spec: WindowSpec  # the windowed computation
    _numbers: dict[Standing, int] = field(default_factory=dict)
    _all: list[Standing] = field(default_factory=list)
    _after_row: dict[tuple[Shape, int], tuple[int, int]] = field(default_factory=dict)
    _merged: dict[tuple[Shape, tuple[int, ...]], int] = field(default_factory=dict)
    _clocks: tuple[int, int] = (MIN, MIN)

    def __post_init__(self) -> None:
        self._trigger = self.spec.trigger
        self._finishing = self._trigger if isinstance(self._trigger, PaneTrigger) else None
        self._knows_only_end = knows_only_end(self._trigger)
        self._looks_at_rows = row_reader(self._trigger) is not None
        self.number(Standing())

    @property
    def is_composed(self) -> bool:
        """Whether the trigger is a tree, which shows at the cleanup what it has not shown."""
        return self._finishing is not None

    @property
    def watermark(self) -> int:
        return self._clocks[0]

    def number(self, standing: Standing) -> int:
        """Return the number of a standing; that of panes without rows is 0."""
        try:
            number = self._numbers.setdefault(standing, len(self._all))
        except TypeError:  # it holds a row, which no other standing does
            number = len(self._all)
        if number == len(self._all):
            self._all.append(standing)
        return number

    def of(self, column: pa.ChunkedArray) -> Integers:
        """Return the numbers of standings that ``column`` gave."""
        encoded = column.combine_chunks()
        known = [self.number(Standing(*pickles.loads(each))) for each in encoded.dictionary.to_pylist()]
        numbers: Integers = np.array(known, np.int64)[encoded.indices.to_numpy()]
        return numbers

    def column(self, numbers: Integers) -> pa.DictionaryArray:
        """Return standings as bytes, each once, and a number a row."""
        present, codes = np.unique(numbers, return_inverse=True)
        encoded = [pickles.dumps(tuple(self._all[number])) for number in present.tolist()]
        return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), pa.array(encoded, pa.binary()))

    def first_times(self, numbers: Integers, ends: Integers, event_time: bool) -> Integers:
        """Return when the first timer of each is due, given the last instants of the windows; ``MAX`` for those without one.

        The distance of a timer from the last instant of its window may be no int64, as before 1970 in the global window; the
        sum of both is one, so that distances and sums may overflow.
        """
        present, codes = np.unique(numbers, return_inverse=True)
        standings = (self._all[number] for number in present.tolist())
        timers = [standing.event_times if event_time else standing.processing_times for standing in standings]
        firsts: Integers = np.array([wrap_int64(times[0]) if times else 0 for times in timers], np.int64)[codes]
        has_none = np.array([not times for times in timers], bool)[codes]
        return np.where(has_none, MAX, firsts + ends if event_time else firsts)

    def is_nothing(self, number: int, waits_for_clocks: bool = False) -> bool:
        """Whether a standing of an empty pane has neither state nor timers, but for one that the next row would set again."""
        standing = self._all[number]
        return not standing.values if waits_for_clocks else standing == Standing()

    def in_words(self, numbers: Integers) -> list[str | None]:
        """Return what the trigger knows of each pane, for people; ``None`` for nothing."""
        words = {
            number: trigger_words(self.spec.firing_trigger, dict(self._all[number].values))
            for number in np.unique(numbers).tolist()
        }
        return [words[number] for number in numbers.tolist()]

    def set_clocks(self, watermark: int, now: int) -> None:
        """Set the clocks; kept answers hold for one reading of them."""
        if self._clocks != (watermark, now):
            self._clocks = watermark, now
            self._after_row.clear()
            self._merged.clear()

    # The order of calls is the operator's.

    def after_rows(self, number: int, window: Window, count: int) -> tuple[list[int], list[int]]:
        """Return, for each of so many rows that a window takes one after the other, the standing after it and what happened."""
        numbers, bits = [0] * count, [0] * count
        for at in range(count):
            before = number
            number, happened = self.after_row(before, window)
            if number == before and not happened:  # no further row changes anything
                numbers[at:] = [number] * (count - at)
                break
            numbers[at], bits[at] = number, happened
        return numbers, bits

    def after_row(self, number: int, window: Window, timestamp: int = MIN, element: object = None) -> tuple[int, int]:
        """Return the standing after a row of a window, and what happened; most triggers do not look at the row."""
        if self._looks_at_rows:
            return self._asked(number, window, timestamp, element)
        like: Shape = window
        if self._knows_only_end and self.spec.assigner.is_event_time:
            end = window.max_timestamp
            like = end <= self._clocks[0], self.spec.lateness.cleanup_time(end) == MAX
        known = self._after_row.get((like, number))
        if known is None:
            known = self._asked(number, window, timestamp, element)
            self._after_row[like, number] = known
        return known

    def _asked(self, number: int, window: Window, timestamp: int, element: object) -> tuple[int, int]:
        desk = _Desk.of(self._all[number], window)
        context = _Context(desk, *self._clocks)
        if self._finishing is not None and self._finishing.is_finished(context):
            bits = IS_DROPPED
        else:
            self._trigger.check_window(window)
            bits = _bits(self._trigger.on_element(element, timestamp, window, context), desk.firing)
        self._wait_for_cleanup(desk)
        return self.number(desk.standing()), bits

    def begun(self, window: Window) -> int:
        """Return the standing of a window whose rows another trigger has seen."""
        desk = _Desk(window.max_timestamp, {}, set(), set())
        self._trigger.begin(window, _Context(desk, *self._clocks))
        self._wait_for_cleanup(desk)
        return self.number(desk.standing())

    def kept_for(self, numbers: Integers, lateness_before: int) -> Integers:
        """Return the numbers of standings that waited for the cleanup under another lateness, as they wait now."""
        allowed = self.spec.lateness.allowed
        if allowed == lateness_before or not self.spec.assigner.is_event_time:
            return numbers
        present, codes = np.unique(numbers, return_inverse=True)
        kept = []
        for standing in (self._all[number] for number in present.tolist()):
            others = {time for time in standing.event_times if time != lateness_before or not time}
            kept.append(self.number(standing._replace(event_times=tuple(sorted({*others, allowed})))))
        return np.array(kept, np.int64)[codes]

    def _wait_for_cleanup(self, desk: _Desk) -> None:
        cleanup = self.spec.lateness.cleanup_time(desk.end)
        if cleanup != MAX:
            (desk.event_times if self.spec.assigner.is_event_time else desk.processing_times).add(cleanup)

    def merged(self, numbers: Sequence[int], target: Window) -> int:
        """Return the standing of the window that windows with these standings have become."""
        like: Shape = target
        if self._knows_only_end:
            like = target.max_timestamp <= self._clocks[0]
        key = like, tuple(numbers)
        known = self._merged.get(key)
        if known is None:
            desk = _Desk(target.max_timestamp, {}, set(), set(), [dict(self._all[number].values) for number in numbers])
            self._trigger.on_merge(target, _Context(desk, *self._clocks))
            known = self._merged[key] = self.number(desk.standing())
        return known

    def advanced(self, number: int, window: Window, event_time: bool) -> Advance:
        """Return what a clock, at the time that ``set_clocks`` gave it, does to a pane."""
        desk = _Desk.of(self._all[number], window)
        timers = desk.event_times if event_time else desk.processing_times
        clock, steps = self._clocks[0 if event_time else 1], list[Step]()
        callback = self._trigger.on_event_time if event_time else self._trigger.on_processing_time
        ends_window = event_time == self.spec.assigner.is_event_time
        cleanup = self.spec.lateness.cleanup_time(window.max_timestamp)
        has_no_end = clock == MAX == window.max_timestamp
        while timers and (time := min(timers)) <= clock:
            if has_no_end and len(steps) > MAX_FIRINGS_WITHOUT_END:
                return Advance(tuple(steps), number, is_endless=True)
            timers.discard(time)
            context = _Context(desk, *self._clocks)
            desk.firing = None
            result = callback(time, window, context)
            bits = _bits(result, desk.firing or Firing(is_on_time=event_time and time == window.max_timestamp))
            if ends_window and time == cleanup:
                self._trigger.clear(window, context)
                bits |= IS_CLEARED
                if self._finishing is not None:  # a tree leaves timers that it no longer waits for
                    desk.event_times.clear()
                    desk.processing_times.clear()
            steps.append(Step(time, bits))
        return Advance(tuple(steps), self.number(desk.standing()))


def row_reader(trigger: Trigger) -> Trigger | None:
    """Return the part of a trigger that may look at rows or their times, ``None`` if there is none."""
    if type(trigger) is PaneTrigger:
        return next(filter(None, map(row_reader, all_flink_triggers(trigger.root))), None)
    if isinstance(trigger, PurgingTrigger | ProcessingTimeoutTrigger):
        return row_reader(trigger.inner)
    return None if type(trigger) in _SEE_NO_ROWS else trigger


_SEE_NO_ROWS = (
    ContinuousProcessingTimeTrigger,
    CountTrigger,
    EndOfStreamTrigger,
    EventTimeTrigger,
    NeverTrigger,
    ProcessingTimeTrigger,
)
"""Flink's triggers that look neither at a row nor at its time."""


def standings_refusal(program: Program) -> str | None:
    """Return why the trigger of a program has no standings, ``None`` if it has."""
    spec, reader = program.spec, row_reader(program.spec.trigger)
    if reader is not None and type(reader) not in (ContinuousEventTimeTrigger, DeltaTrigger):
        return f"{type(reader).__name__} is no trigger of windowpane's"
    if not spec.assigner.has_ends and _waits_for_end(spec.trigger):
        return f"{type(spec.firing_trigger).__name__} on global windows is refused when a row comes"
    if program.arrow is not None and isinstance(spec.trigger, PaneTrigger):
        return "a function on Arrow tables has no result of no rows"
    return None


def _waits_for_end(trigger: Trigger) -> bool:
    if isinstance(trigger, PurgingTrigger | ProcessingTimeoutTrigger):
        return _waits_for_end(trigger.inner)
    return type(trigger) in (EventTimeTrigger, ProcessingTimeTrigger)


def knows_only_end(trigger: Trigger) -> bool:
    """Whether a trigger reads nothing of a window but whether its end is reached."""
    if isinstance(trigger, PurgingTrigger):
        return knows_only_end(trigger.inner)
    if type(trigger) is PaneTrigger:
        return all(map(knows_only_end, all_flink_triggers(trigger.root)))
    return type(trigger) in (CountTrigger, EventTimeTrigger)


def waits_for_clocks(spec: WindowSpec) -> bool:
    """Whether a row before the end of its window only makes it wait for a clock, whatever the rows before it were.

    The first row of a pane decides what it waits for, so that rows can be appended to panes that nobody reads. A row behind the
    end may fire its window.
    """
    inner = spec.firing_trigger
    if spec.merges or spec.panes != NO_PANES:
        return False
    if not spec.assigner.has_ends:
        return type(inner) in (EndOfStreamTrigger, NeverTrigger)
    if type(inner) is ContinuousEventTimeTrigger:
        return spec.assigner.is_event_time
    return spec.fires_at_window_end or type(inner) in (ContinuousProcessingTimeTrigger, NeverTrigger)


def fires_by_clocks_alone(spec: WindowSpec) -> bool:
    """Whether a row only makes its window wait for the clocks: then one row does the same as many of its batch.

    So it is where no node is ready for a row, none is finished before the last row, and no row arrives after the window's end.
    """
    trigger = spec.trigger
    if type(trigger) is not PaneTrigger or spec.merges or not spec.assigner.is_event_time or spec.allowed_lateness:
        return False
    if row_reader(trigger) is not None:  # also where it is never called: the engine takes rows one by one for it
        return False
    return not trigger.root.may_finish(0) and _node_fires_by_clocks_alone(trigger.root)


def _node_fires_by_clocks_alone(node: ComposableTrigger) -> bool:
    if isinstance(node, AfterProcessingTime):
        return node.delay > 0
    if isinstance(node, AfterWatermark):  # its late part is called after the end, when no row arrives
        return node.early is None or _node_fires_by_clocks_alone(node.early)
    return type(node) in _FIRE_AS_CHILDREN_DO and all(map(_node_fires_by_clocks_alone, node.children))


_FIRE_AS_CHILDREN_DO = (AfterAll, AfterAny, AfterEach, Default, Never, OrFinally, Repeatedly)
"""Composable triggers that are ready when the end is reached, or when children are."""


def _bits(result: TriggerResult, firing: Firing | None) -> int:
    bits = FIRES * result.is_fire | PURGES * result.is_purge
    if firing is None or not result.is_fire:
        return bits
    return bits | IS_ON_TIME * firing.is_on_time | IS_LAST * firing.is_last | MAY_BE_EMPTY * firing.may_be_empty
