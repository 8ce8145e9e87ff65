"""``WindowTestHarness``: what a user of windowpane tests with, and every refusal an operator can come to."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from windowpane.aggregates import count
from windowpane.errors import (
    EndlessTimerError,
    InvalidDurationError,
    InvalidSessionGapError,
    InvalidSpecError,
    MergeBehindWatermarkError,
    MissingTimestampError,
    NonMergingTriggerError,
    PerWindowStateError,
    TimestampOverflowError,
    UndeclaredSideOutputError,
    UnencodableKeyError,
    UnknownStateFormatError,
    UserFunctionError,
    WindowTypeError,
)
from windowpane.testing import LateRecord, OutputRecord, StateEntry, WatermarkRecord, WindowTestHarness
from windowpane.windowing.assigners import (
    EventTimeSessionWindows,
    GlobalWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
    WindowAssigner,
)
from windowpane.windowing.evictors import CountEvictor, Evictor
from windowpane.windowing.functions import ProcessContext, ProcessWindowFunction, RichFunction, WindowFunctionSpec
from windowpane.windowing.outputs import OutputTag
from windowpane.windowing.spec import WindowSpec
from windowpane.windowing.times import MAX, MIN
from windowpane.windowing.triggers import (
    ContinuousEventTimeTrigger,
    CountTrigger,
    DeltaTrigger,
    EventTimeTrigger,
    PurgingTrigger,
    Trigger,
    TriggerContext,
    TriggerResult,
)
from windowpane.windowing.triggers.composable import AfterCount, AfterProcessingTime, AfterWatermark, EarlyAndFinal, Repeatedly
from windowpane.windowing.watermarks import Watermarks
from windowpane.windowing.windows import GLOBAL_WINDOW, TimeWindow, Window

SUM = WindowFunctionSpec.reduce(operator.add)
LARGE = OutputTag("large")


@dataclass(frozen=True)
class FireOnMarker(Trigger):
    """A user's trigger: fires on a marker, keeps how often, and once more an hour after the first."""

    def on_element(self, element: Any, timestamp: int, window: Window, context: TriggerContext) -> TriggerResult:
        if element != "marker":
            return TriggerResult.CONTINUE
        count = context.reducing_state("markers", operator.add)
        if count.get() is None:
            context.register_event_time_timer(timestamp + 60)
        count.add(1)
        return TriggerResult.FIRE

    def on_event_time(self, time: int, window: Window, context: TriggerContext) -> TriggerResult:
        return TriggerResult.FIRE_AND_PURGE if time < window.max_timestamp else TriggerResult.CONTINUE

    def clear(self, window: Window, context: TriggerContext) -> None:
        context.reducing_state("markers", operator.add).clear()


@dataclass(frozen=True)
class Calling(ProcessWindowFunction):
    """A process function made of a plain one."""

    function: Callable[[Any, ProcessContext, Sequence[Any]], Iterable[Any]]

    def process(self, key: Any, context: ProcessContext, elements: Sequence[Any]) -> Iterable[Any]:
        return self.function(key, context, elements)


def calling(function: Callable[[Any, ProcessContext, Sequence[Any]], Iterable[Any]]) -> WindowFunctionSpec:
    return WindowFunctionSpec.full(Calling(function))


def values(harness: WindowTestHarness) -> list[Any]:
    return [record.value for record in harness.take_output()]


class TestWorkedExample:
    """Session gap 3, elements at 1, 5, 3: as the merging window set's docstring tells it."""

    def harness(self) -> WindowTestHarness:
        return WindowTestHarness(EventTimeSessionWindows.with_gap(3))

    def test_two_sessions_become_one(self) -> None:
        harness = self.harness()
        harness.process_element("a", 1, key="k")
        harness.process_element("b", 5, key="k")

        assert harness.window_contents("k", TimeWindow(1, 4)) == ["a"]
        assert harness.window_contents("k", TimeWindow(5, 8)) == ["b"]

        harness.process_element("c", 3, key="k")

        assert harness.window_contents("k", TimeWindow(1, 8)) == ["a", "b", "c"]
        assert harness.window_contents("k", TimeWindow(1, 4)) == []
        assert harness.window_contents("k", TimeWindow(5, 8)) == []
        assert harness.counters.merges == 1

    def test_contents_stay_under_the_first_window(self) -> None:
        harness = self.harness()
        for timestamp in (1, 5, 3):
            harness.process_element(timestamp, timestamp, key="k")

        assert harness.state_window("k", TimeWindow(1, 8)) == TimeWindow(1, 4)
        assert [entry.window for entry in harness.state_entries()] == [None, TimeWindow(1, 4)]

    def test_the_session_fires_once_and_leaves_nothing(self) -> None:
        harness = self.harness()
        for timestamp in (1, 5, 3):
            harness.process_element(timestamp, timestamp, key="k")
        harness.process_watermark(6)

        assert harness.output == []

        harness.process_watermark(7)

        assert harness.take_output() == [OutputRecord("k", TimeWindow(1, 8), [1, 5, 3], 7)]
        assert harness.state_entries() == []
        assert harness.event_time_timers == []


class TestCustomTrigger:
    def harness(self) -> WindowTestHarness:
        return WindowTestHarness(TumblingEventTimeWindows.of(100), FireOnMarker())

    def test_it_fires_on_its_condition(self) -> None:
        harness = self.harness()
        harness.process_element("x", 1, key="k")

        assert harness.output == []

        harness.process_element("marker", 2, key="k")

        assert values(harness) == [["x", "marker"]]

    def test_its_timer_fires_and_purges(self) -> None:
        harness = self.harness()
        harness.process_element("marker", 2, key="k")
        harness.take_output()

        assert [timer.time for timer in harness.event_time_timers] == [62, 99]

        harness.process_watermark(62)

        assert values(harness) == [["marker"]]
        assert harness.window_contents("k", TimeWindow(0, 100)) == []
        assert [timer.time for timer in harness.event_time_timers] == [99]

    def test_its_state_is_cleared_with_the_window(self) -> None:
        harness = self.harness()
        harness.process_element("marker", 2, key="k")

        assert StateEntry("k", TimeWindow(0, 100), "trigger/markers") in harness.state_entries()

        harness.process_watermark(99)

        assert harness.state_entries() == []
        assert harness.event_time_timers == []

    def test_keys_are_apart(self) -> None:
        harness = self.harness()
        harness.process_element("x", 1, key="a")
        harness.process_element("marker", 1, key="b")

        assert harness.take_output() == [OutputRecord("b", TimeWindow(0, 100), ["marker"], 99)]


class TestOutput:
    def test_results_come_before_their_watermark(self) -> None:
        harness = WindowTestHarness(TumblingEventTimeWindows.of(10), function=SUM)
        harness.process_element(1, 3)
        harness.process_watermark(9)

        assert harness.take_emitted() == [OutputRecord(None, TimeWindow(0, 10), 1, 9), WatermarkRecord(9)]
        assert harness.emitted == []

    def test_a_watermark_does_not_go_back(self) -> None:
        harness = WindowTestHarness(TumblingEventTimeWindows.of(10))
        harness.process_watermark(9)
        harness.process_watermark(5)

        assert harness.watermark == 9
        assert harness.emitted == [WatermarkRecord(9)]

    def test_take_output_leaves_the_rest(self) -> None:
        harness = WindowTestHarness(TumblingEventTimeWindows.of(10), function=SUM)
        harness.process_element(1, 3)
        harness.process_watermark(9)

        assert values(harness) == [1]
        assert values(harness) == []
        assert harness.emitted == [WatermarkRecord(9)]

    def test_processing_time_fires_windows_of_the_clock(self) -> None:
        harness = WindowTestHarness(TumblingProcessingTimeWindows.of(10), function=SUM)
        harness.process_element(1, key="k")
        harness.set_processing_time(5)
        harness.process_element(2, key="k")

        assert [timer.time for timer in harness.processing_time_timers] == [9]

        harness.set_processing_time(9)

        assert harness.take_output() == [OutputRecord("k", TimeWindow(0, 10), 3, 9)]
        assert harness.processing_time == 9

    def test_an_incremental_function_keeps_its_result(self) -> None:
        harness = WindowTestHarness(TumblingEventTimeWindows.of(10), function=SUM)
        harness.process_element(1, 3, key="k")
        harness.process_element(2, 4, key="k")

        assert harness.window_contents("k", TimeWindow(0, 10)) == [3]

    def test_late_refinements_of_a_batch_can_be_one(self) -> None:
        spec = WindowSpec(TumblingEventTimeWindows.of(10), SUM, EventTimeTrigger(), None, 20, refine="last")
        harness = WindowTestHarness(spec)
        harness.process_element(1, 3)
        harness.process_watermark(9)
        harness.process_element(2, 4)
        harness.process_element(4, 5)

        assert values(harness) == [1]

        harness.finish_batch()

        assert values(harness) == [7]

    def test_the_parts_of_a_spec_are_not_given_twice(self) -> None:
        spec = WindowSpec(TumblingEventTimeWindows.of(10), SUM, EventTimeTrigger())

        with pytest.raises(InvalidSpecError, match=r"CountTrigger\(max_count=1\).*A WindowSpec is complete"):
            WindowTestHarness(spec, CountTrigger(1))


class TestLateElements:
    def test_an_element_no_window_accepts_is_dropped(self) -> None:
        harness = WindowTestHarness(TumblingEventTimeWindows.of(10))
        harness.process_watermark(9)
        harness.process_element("late", 3, key="k")

        assert harness.late == [LateRecord("k", "late", 3, (TimeWindow(0, 10),), True)]
        assert harness.counters.late_dropped == 1

    def test_an_element_that_missed_some_windows_is_reported_and_kept(self) -> None:
        harness = WindowTestHarness(SlidingEventTimeWindows.of(10, 5))
        harness.process_watermark(9)
        harness.process_element("partly", 7, key="k")

        assert harness.late == [LateRecord("k", "partly", 7, (TimeWindow(0, 10),), False)]
        assert (harness.counters.late_elements, harness.counters.late_dropped) == (1, 0)
        assert harness.window_contents("k", TimeWindow(5, 15)) == ["partly"]

    def test_allowed_lateness_keeps_a_window_to_the_instant(self) -> None:
        """Max timestamp 1 and lateness 20: kept at watermark 20, dropped at 21 (Flink)."""
        harness = WindowTestHarness(TumblingEventTimeWindows.of(2), allowed_lateness=20)
        harness.process_watermark(20)
        harness.process_element("kept", 0)

        assert (values(harness), harness.late) == ([["kept"]], [])

        harness.process_watermark(21)
        harness.process_element("dropped", 0)

        assert (values(harness), [record.value for record in harness.late]) == ([], ["dropped"])


class TestSideOutputs:
    def split(self, key: Any, context: ProcessContext, elements: Sequence[Any]) -> Iterable[Any]:
        for element in elements:
            if element > 10:
                context.output(LARGE, element)
            else:
                yield element

    def test_what_a_function_writes_beside_its_results(self) -> None:
        harness = WindowTestHarness(TumblingEventTimeWindows.of(10), function=calling(self.split), side_outputs=[LARGE])
        for value in (5, 50, 6):
            harness.process_element(value, 1, key="k")
        harness.process_watermark(9)

        assert values(harness) == [5, 6]
        (record,) = harness.side_output(LARGE)
        assert (record.key, record.window, record.value, record.timestamp) == ("k", TimeWindow(0, 10), 50, 9)
        assert harness.side_output("large") == [record]

    def test_a_tag_nobody_declared_is_refused_when_it_is_written(self) -> None:
        small = [OutputTag("small")]
        harness = WindowTestHarness(TumblingEventTimeWindows.of(10), function=calling(self.split), side_outputs=small)
        harness.process_element(50, 1, key="k")

        with pytest.raises(UndeclaredSideOutputError, match=r"'large' is not declared; declared are \['small'\]"):
            harness.process_watermark(9)

    def test_a_tag_nobody_declared_is_refused_when_it_is_read(self) -> None:
        harness = WindowTestHarness(TumblingEventTimeWindows.of(10), side_outputs=[LARGE])

        with pytest.raises(UndeclaredSideOutputError, match=r"'smal' is not declared; declared are \['large'\]"):
            harness.side_output("smal")


class TestSnapshots:
    def test_a_restored_harness_goes_on(self) -> None:
        parts: dict[str, Any] = {"trigger": PurgingTrigger.of(CountTrigger.of(3)), "function": SUM}
        harness = WindowTestHarness(GlobalWindows.create(), **parts)
        harness.process_element(1, key="k")
        harness.process_element(2, key="k")

        restored = WindowTestHarness.restore(harness.snapshot(), GlobalWindows.create(), **parts)
        restored.process_element(4, key="k")

        assert restored.take_output() == [OutputRecord("k", GLOBAL_WINDOW, 7, MAX)]
        assert harness.output == []

    def test_sessions_merge_across_a_restart(self) -> None:
        sessions = EventTimeSessionWindows.with_gap(3)
        harness = WindowTestHarness(sessions)
        harness.process_element(1, 1, key="k")
        harness.process_element(5, 5, key="k")

        restored = WindowTestHarness.restore(harness.snapshot(), sessions)
        restored.process_element(3, 3, key="k")
        restored.process_watermark(7)

        assert restored.take_output() == [OutputRecord("k", TimeWindow(1, 8), [1, 5, 3], 7)]

    def test_timers_come_back_and_clocks_do_not(self) -> None:
        harness = WindowTestHarness(TumblingEventTimeWindows.of(10), allowed_lateness=100)
        harness.process_element("a", 3, key="k")
        harness.process_watermark(5)
        harness.set_processing_time(5)

        restored = WindowTestHarness.restore(harness.snapshot(), TumblingEventTimeWindows.of(10), allowed_lateness=100)

        assert (restored.watermark, restored.processing_time) == (MIN, 0)
        assert restored.emitted == []
        assert restored.counters.elements == 0
        assert [timer.time for timer in restored.event_time_timers] == [9, 109]

        restored.restore_clocks(50, 60)

        assert (restored.watermark, restored.processing_time) == (50, 60)
        assert restored.output == []

    def test_a_snapshot_is_not_touched_by_what_follows(self) -> None:
        harness = WindowTestHarness(TumblingEventTimeWindows.of(10), function=SUM)
        harness.process_element(1, 3)
        snapshot = harness.snapshot()
        harness.process_watermark(9)

        for _ in range(2):
            restored = WindowTestHarness.restore(snapshot, TumblingEventTimeWindows.of(10), function=SUM)
            restored.process_watermark(9)
            assert values(restored) == [1]

    def test_other_bytes_are_refused(self) -> None:
        with pytest.raises(UnknownStateFormatError, match="harness-snapshot"):
            WindowTestHarness.restore(b"something else", TumblingEventTimeWindows.of(10))


class Shrinking(EventTimeSessionWindows):
    """Sessions whose merge ends before it should."""

    def merge_windows(self, windows: Iterable[Any]) -> list[tuple[Window, list[Window]]]:
        groups = super().merge_windows(windows)
        return [(TimeWindow(2, 4), members) for _, members in groups]


@dataclass(frozen=True)
class Raising(Trigger):
    """A trigger with a mistake in one of its methods."""

    where: str

    def _answer(self, where: str) -> TriggerResult:
        if where == self.where:
            raise ZeroDivisionError("the trigger's mistake")
        return TriggerResult.CONTINUE

    def on_element(self, element: Any, timestamp: int, window: Window, context: TriggerContext) -> TriggerResult:
        return self._answer("on_element")

    def on_event_time(self, time: int, window: Window, context: TriggerContext) -> TriggerResult:
        return self._answer("on_event_time")

    def clear(self, window: Window, context: TriggerContext) -> None:
        self._answer("clear")


class RaisingEvictor(Evictor):
    """An evictor with a mistake."""

    def evict_before(self, elements: Any, size: int, window: Window, context: Any) -> Any:
        raise ZeroDivisionError("the evictor's mistake")


class RaisingAssigner(WindowAssigner):
    """An assigner with a mistake."""

    def assign_windows(self, element: Any, timestamp: int, context: Any) -> Sequence[Window]:
        raise ZeroDivisionError("the assigner's mistake")

    def default_trigger(self) -> Trigger:
        return EventTimeTrigger()


class RichSum(RichFunction):
    """A reduce function with a life cycle."""

    def __call__(self, left: int, right: int) -> int:
        return left + right


def divide_by_zero(*arguments: Any) -> Any:
    raise ZeroDivisionError("the function's mistake")


class TestRefusedWhenBuilt:
    def test_a_trigger_that_cannot_merge_on_sessions(self) -> None:
        trigger = DeltaTrigger.of(1, lambda old, new: new - old)

        with pytest.raises(NonMergingTriggerError, match=r"EventTimeSessionWindows\(gap=3\) merges.*DeltaTrigger"):
            WindowTestHarness(EventTimeSessionWindows.with_gap(3), trigger)

    def test_negative_lateness(self) -> None:
        with pytest.raises(InvalidSpecError, match="lateness cannot be negative, but is -1 µs"):
            WindowTestHarness(TumblingEventTimeWindows.of(10), allowed_lateness=-1)

    def test_lateness_that_is_no_duration(self) -> None:
        with pytest.raises(InvalidDurationError, match=r"'soon' is not a duration"):
            WindowTestHarness(TumblingEventTimeWindows.of(10), allowed_lateness="soon")

    def test_a_rich_reduce(self) -> None:
        with pytest.raises(InvalidSpecError, match="reduce can not be a RichFunction"):
            WindowTestHarness(TumblingEventTimeWindows.of(10), function=WindowFunctionSpec.reduce(RichSum()))

    def test_a_fold_that_cannot_merge_on_sessions(self) -> None:
        fold = WindowFunctionSpec.fold(list, lambda rows, row: [*rows, row])

        with pytest.raises(InvalidSpecError, match="a fold cannot be merged"):
            WindowTestHarness(EventTimeSessionWindows.with_gap(3), function=fold)


class TestRefusedWhenRun:
    def test_an_element_without_a_timestamp(self) -> None:
        harness = WindowTestHarness(TumblingEventTimeWindows.of(10))

        with pytest.raises(MissingTimestampError, match=r"element 'x' of key 'k' has no timestamp.*Tumbling"):
            harness.process_element("x", key="k")

    def test_a_window_beyond_int64(self) -> None:
        harness = WindowTestHarness(TumblingEventTimeWindows.of(10))

        with pytest.raises(TimestampOverflowError, match=rf"element at {MAX - 3} µs"):
            harness.process_element("x", MAX - 3, key="k")

    def test_a_dynamic_gap_that_is_not_positive(self) -> None:
        harness = WindowTestHarness(EventTimeSessionWindows.with_dynamic_gap(lambda element: -element))

        with pytest.raises(InvalidSessionGapError, match=r"gap of element 7 is -7.*with_dynamic_gap"):
            harness.process_element(7, 1, key="k")

    def test_a_dynamic_gap_that_is_no_duration(self) -> None:
        harness = WindowTestHarness(EventTimeSessionWindows.with_dynamic_gap(lambda element: "soon"))

        with pytest.raises(InvalidDurationError, match="'soon' is not a duration"):
            harness.process_element(7, 1, key="k")

    def test_a_time_trigger_on_the_global_window(self) -> None:
        harness = WindowTestHarness(GlobalWindows.create(), EventTimeTrigger())

        with pytest.raises(WindowTypeError, match=r"EventTimeTrigger\(\) works on time windows and met GLOBAL"):
            harness.process_element("x", 1, key="k")

    def test_a_merge_that_ends_behind_the_watermark(self) -> None:
        harness = WindowTestHarness(Shrinking.with_gap(3))
        harness.process_element("a", 2, key="k")
        harness.process_watermark(3)

        with pytest.raises(MergeBehindWatermarkError, match=r"key 'k' gave \[.*00:00:00\.000002Z, .*\).*watermark 3 "):
            harness.process_element("b", 4, key="k")

    def test_per_window_state_on_sessions(self) -> None:
        function = calling(lambda key, context, elements: [context.window_state("count").get()])
        harness = WindowTestHarness(EventTimeSessionWindows.with_gap(3), function=function)
        harness.process_element("a", 1, key="k")

        with pytest.raises(PerWindowStateError, match=r"asked for in \[.*\) of key 'k'.*global_state"):
            harness.process_watermark(3)

    def test_a_trigger_that_never_ends(self) -> None:
        harness = WindowTestHarness(GlobalWindows.create(), ContinuousEventTimeTrigger.of(1_000))
        harness.process_element("a", 1, key="k")

        with pytest.raises(EndlessTimerError, match=r"ContinuousEventTimeTrigger.*key 'k' in GLOBAL"):
            harness.process_watermark(MAX)

    def test_a_key_that_cannot_be_encoded(self) -> None:
        harness = WindowTestHarness(TumblingEventTimeWindows.of(10))

        with pytest.raises(UnencodableKeyError, match="cannot use <object"):
            harness.process_element("x", 1, key=object())

    @pytest.mark.parametrize(
        ("parts", "named"),
        [
            ({"assigner": RaisingAssigner()}, "RaisingAssigner.* assigner's mistake"),
            ({"trigger": Raising("on_element")}, r"Raising\(where='on_element'\).* trigger's mistake"),
            ({"trigger": Raising("on_event_time")}, r"Raising\(where='on_event_time'\).* trigger's mistake"),
            ({"trigger": Raising("clear")}, r"Raising\(where='clear'\).* trigger's mistake"),
            ({"evictor": RaisingEvictor()}, "evictor's mistake"),
            ({"function": WindowFunctionSpec.reduce(divide_by_zero)}, "ReduceAggregate.* function's mistake"),
            ({"function": WindowFunctionSpec.apply(divide_by_zero)}, "apply\\(divide_by_zero\\).* function's mistake"),
        ],
        ids=["assigner", "on_element", "on_event_time", "clear", "evictor", "reduce", "apply"],
    )
    def test_what_a_user_wrote_raises(self, parts: dict[str, Any], named: str) -> None:
        harness = WindowTestHarness(**{"assigner": TumblingEventTimeWindows.of(10), **parts})
        window = "None" if "assigner" in parts else r"\[1970.*\)"

        def run() -> None:
            harness.process_element(1, 1, key="k")
            harness.process_element(2, 2, key="k")
            harness.process_watermark(9)

        with pytest.raises(UserFunctionError, match=rf"(?s){named}.*key 'k', window {window}") as raised:
            run()

        assert isinstance(raised.value.__cause__, ZeroDivisionError)

    def test_the_snapshot_stays_usable_after_the_cause_is_gone(self) -> None:
        harness = WindowTestHarness(TumblingEventTimeWindows.of(10), function=SUM)
        harness.process_element(1, 1, key="k")
        snapshot = harness.snapshot()
        with pytest.raises(MissingTimestampError):
            harness.process_element(2, key="k")
        with pytest.raises(UserFunctionError):
            harness.process_element("text", 2, key="k")

        restored = WindowTestHarness.restore(snapshot, TumblingEventTimeWindows.of(10), function=SUM)
        restored.process_element(3, 2, key="k")
        restored.process_watermark(9)

        assert restored.take_output() == [OutputRecord("k", TimeWindow(0, 10), 4, 9)]


def test_a_strategy_moves_the_watermark_at_the_end_of_a_batch_and_by_the_clock() -> None:
    strategy = Watermarks.bounded(2).per_source("s").not_behind_now(50)
    harness = WindowTestHarness(TumblingEventTimeWindows.of(10), watermarks=strategy)
    fast, slow = {"s": "fast"}, {"s": "slow"}
    harness.process_element(slow, 1)
    harness.process_element(fast, 30)
    harness.finish_batch()
    harness.process_element(slow, 8)
    harness.process_element(slow, 13)
    assert (harness.watermark, harness.output, harness.late) == (-2, [], [])

    harness.finish_batch()

    assert harness.watermark == 10
    assert values(harness) == [[slow, slow]]
    harness.set_processing_time(100)
    assert harness.watermark == 49
    assert values(harness) == [[slow], [fast]]


def test_each_key_may_have_a_watermark_of_its_own() -> None:
    harness = WindowTestHarness(TumblingEventTimeWindows.of(10), watermarks=Watermarks.monotonous().per_key())
    for key, time in (("a", 3), ("b", 2), ("a", 12)):
        harness.process_element(time, time, key=key)
    harness.finish_batch()
    assert harness.take_output() == [OutputRecord("a", TimeWindow(0, 10), [3], 9)]

    harness.process_element(4, 4, key="b")
    harness.process_element(5, 5, key="a")
    assert [(record.key, record.value) for record in harness.late] == [("a", 5)]
    with pytest.raises(InvalidSpecError, match="only its elements move"):
        harness.process_watermark(100)


def test_a_strategy_goes_on_from_a_snapshot() -> None:
    strategy = Watermarks.monotonous().per_source("s")
    harness = WindowTestHarness(TumblingEventTimeWindows.of(10), watermarks=strategy)
    harness.process_element({"s": "slow"}, 1)
    harness.process_element({"s": "fast"}, 30)

    restored = WindowTestHarness.restore(harness.snapshot(), TumblingEventTimeWindows.of(10), watermarks=strategy)
    restored.process_element({"s": "fast"}, 31)
    restored.finish_batch()

    assert restored.watermark == 0
    restored.process_element({"s": "slow"}, 12)
    restored.finish_batch()
    assert values(restored) == [[{"s": "slow"}]]


def test_an_evictor_leaves_the_youngest() -> None:
    harness = WindowTestHarness(TumblingEventTimeWindows.of(10), evictor=CountEvictor.of(2), function=SUM)
    for value in (1, 2, 4):
        harness.process_element(value, value, key="k")

    assert harness.window_contents("k", TimeWindow(0, 10)) == [1, 2, 4]

    harness.process_watermark(9)

    assert values(harness) == [6]


def test_a_harness_refuses_built_in_aggregates_with_the_way_out():
    with pytest.raises(InvalidSpecError, match="takes a WindowFunctionSpec"):
        WindowTestHarness(TumblingEventTimeWindows.of("1 second"), function=count())  # type: ignore[arg-type]


MINUTE = 60_000_000


def test_a_composable_trigger_runs_as_in_beams_leader_board() -> None:
    """Elements, clocks and sums are those of Beam's LeaderBoardTest, testTeamScoresSpeculative, for the blue team."""
    trigger = AfterWatermark(early=AfterProcessingTime("5 minutes"), late=AfterProcessingTime("10 minutes"))
    parts = {"allowed_lateness": "1 hour", "accumulation": "accumulating", "function": SUM}
    harness = WindowTestHarness(TumblingEventTimeWindows.of("20 minutes"), trigger, **parts)  # type: ignore[arg-type]
    for time, clock, scores in ((3_000_000, 10, [3, 2]), (22_000_000, 32, [3]), (2 * MINUTE, 32, [2])):
        for score in scores:
            harness.process_element(score, time, key="blue")
        harness.set_processing_time(clock * MINUTE)
    harness.process_watermark(20 * MINUTE)
    panes = [(record.value, record.pane.timing.name if record.pane else None) for record in harness.output]
    assert panes == [(5, "EARLY"), (8, "EARLY"), (10, "ON_TIME")]


def test_a_composable_trigger_that_fires_again_needs_an_accumulation_mode() -> None:
    with pytest.raises(InvalidSpecError, match="can fire more than once"):
        WindowTestHarness(TumblingEventTimeWindows.of(10), Repeatedly(AfterCount(2)))
    WindowTestHarness(TumblingEventTimeWindows.of(10), EarlyAndFinal(count=2))


def test_a_window_spec_takes_the_trigger_that_runs() -> None:
    with pytest.raises(InvalidSpecError, match="is no Trigger"):
        WindowSpec(TumblingEventTimeWindows.of(10), SUM, AfterWatermark())  # type: ignore[arg-type]
