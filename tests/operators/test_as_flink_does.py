"""Rules of Flink's window operator that its own unit tests leave out: read from its source, or seen in runs of it."""

from __future__ import annotations

import operator
from dataclasses import dataclass

import pytest

import windowpane as wp
from windowpane.errors import EndlessTimerError, EvictionTimeError, NonMergingTriggerError
from windowpane.operators.window import endless_timers
from windowpane.testing import WindowTestHarness
from windowpane.windowing.functions import AggregateFunction, ProcessWindowFunction, WindowFunctionSpec
from windowpane.windowing.spec import WindowSpec
from windowpane.windowing.times import MAX, MIN
from windowpane.windowing.triggers import Trigger, TriggerResult

ALL = WindowFunctionSpec.apply(lambda key, window, elements: [list(elements)])
SUM = WindowFunctionSpec.reduce(operator.add)


def values(harness: WindowTestHarness) -> list[object]:
    return [record.value for record in harness.take_output()]


def restarted(harness: WindowTestHarness, spec: WindowSpec) -> WindowTestHarness:
    again = WindowTestHarness.restore(harness.snapshot(), spec)
    again.restore_clocks(harness.watermark, harness.processing_time)
    return again


class TestContinuousProcessingTime:
    """At the end of the window it fires, and leaves the fire time as it is: elements to come wait for nothing."""

    SPEC = WindowSpec(wp.TumblingEventTimeWindows.of(10), SUM, wp.ContinuousProcessingTimeTrigger(4), allowed_lateness=50)

    @pytest.mark.parametrize("restarts", [False, True])
    def test_a_window_fires_no_more_once_the_clock_is_past_its_end(self, restarts: bool) -> None:
        harness, shown = WindowTestHarness(self.SPEC), []
        harness.set_processing_time(3)
        for clock in (4, 9, 13, 17):
            harness.process_element(1, 1, "k")
            harness.set_processing_time(clock)
            shown.append(values(harness))
            harness = restarted(harness, self.SPEC) if restarts else harness
        assert shown == [[1], [2, 2], [], []], "at 4; at 8 and 9, the end; never again"

    def test_a_late_source_fires_once(self) -> None:
        harness = WindowTestHarness(self.SPEC)
        harness.set_processing_time(1_000)
        for clock in (1_000, 1_001, 1_002):
            harness.process_element(1, 1, "k")
            harness.set_processing_time(clock)
        assert values(harness) == [1]


@dataclass(frozen=True)
class Again(Trigger):
    """Registers a timer at a distance from the one it is called for."""

    distance: int
    times: int = MAX

    def on_element(self, element, timestamp, window, context):
        context.register_processing_time_timer(context.current_processing_time + 1)
        return TriggerResult.CONTINUE

    def on_processing_time(self, time, window, context):
        count = context.reducing_state("count", operator.add)
        count.add(1)
        if count.get() < self.times:
            context.register_processing_time_timer(time + self.distance)
        return TriggerResult.CONTINUE

    def clear(self, window, context):
        pass


class TestEndlessTimers:
    @pytest.mark.parametrize("distance", [0, -1, -7])
    def test_timers_that_have_passed_again_and_again_are_stopped(self, distance: int) -> None:
        harness = WindowTestHarness(wp.GlobalWindows.create(), Again(distance))
        harness.process_element(1, key="k")
        with pytest.raises(EndlessTimerError, match="key 'k' in GLOBAL"):
            harness.set_processing_time(10)

    def test_some_timers_that_have_passed_are_not(self) -> None:
        harness = WindowTestHarness(wp.GlobalWindows.create(), Again(-1, times=2_000))
        harness.process_element(1, key="k")
        harness.set_processing_time(10)
        assert len(harness.processing_time_timers) == 0

    @pytest.mark.parametrize("keys", [1, 300])
    def test_what_advances_goes_on(self, keys: int, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(endless_timers, "MAX_FIRINGS_WITHOUT_END", 100)
        monkeypatch.setattr(endless_timers, "MAX_REPEATS", 100)
        harness = WindowTestHarness(wp.GlobalWindows.create(), wp.ContinuousProcessingTimeTrigger(1), function=SUM)
        for key in range(keys):
            harness.process_element(1, key=key)
        harness.set_processing_time(300 // keys * 2)
        assert len(values(harness)) == 300 // keys * 2 * keys

    def test_many_keys_each_with_a_timer_reach_the_end_of_the_stream(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(endless_timers, "MAX_FIRINGS_WITHOUT_END", 100)
        harness = WindowTestHarness(wp.GlobalWindows.create(), AtTime(), function=SUM)
        for key in range(300):
            harness.process_element(1, key, key)
        harness.process_watermark(MAX)
        assert len(values(harness)) == 300


@dataclass(frozen=True)
class AtTime(Trigger):
    """Fires when the watermark reaches the time of each element."""

    def on_element(self, element, timestamp, window, context):
        context.register_event_time_timer(timestamp)
        return TriggerResult.CONTINUE

    def on_event_time(self, time, window, context):
        return TriggerResult.FIRE

    def clear(self, window, context):
        pass


@pytest.mark.parametrize("evictor", [wp.CountEvictor.of(1, True), wp.TimeEvictor.of(1, True)], ids=repr)
class TestRefinementsWithAnEvictorThatComesAfter:
    def test_the_last_one_sees_what_the_others_have_left(self, evictor) -> None:
        spec = WindowSpec(wp.TumblingEventTimeWindows.of(10), ALL, wp.EventTimeTrigger(), evictor, 50, refine="last")
        harness = WindowTestHarness(spec)
        for time in (1, 2):
            harness.process_element(time, time, "k")
        harness.process_watermark(20)
        for time in (3, 4, 5):
            harness.process_element(time, time, "k")
        harness.finish_batch()
        assert values(harness) == [[1, 2], [4, 5]]

    def test_also_where_sessions_merge_meanwhile(self, evictor) -> None:
        spec = WindowSpec(wp.EventTimeSessionWindows.with_gap(3), ALL, wp.EventTimeTrigger(), evictor, 50, refine="last")
        shown = []
        for refine in ("last", "each"):
            harness = WindowTestHarness(WindowSpec(spec.assigner, ALL, spec.trigger, evictor, 50, refine=refine))
            for time in (1, 2, 8, 9):
                harness.process_element(time, time, "k")
            harness.process_watermark(20)
            values(harness)
            for time in (3, 10, 5):
                harness.process_element(time, time, "k")
            harness.finish_batch()
            shown.append(values(harness)[-1])
        assert shown[0] == shown[1]


def test_a_purging_trigger_shows_each_late_element_before_an_evictor_takes_it() -> None:
    trigger, evictor = wp.PurgingTrigger.of(wp.EventTimeTrigger()), wp.CountEvictor.of(1)
    spec = WindowSpec(wp.TumblingEventTimeWindows.of(10), ALL, trigger, evictor, 50, refine="last")
    harness = WindowTestHarness(spec)
    harness.process_watermark(20)
    for time in (3, 4):
        harness.process_element(time, time, "k")
    harness.finish_batch()
    assert values(harness) == [[3], [4]]


def cancelling(left: int, right: int) -> int | None:
    return left + right or None


@dataclass(frozen=True)
class AtLeastTwo(AggregateFunction):
    """The sum of at least two elements, ``None`` of fewer."""

    def create_accumulator(self):
        return ()

    def add(self, value, accumulator):
        return (*accumulator, value)

    def get_result(self, accumulator):
        return sum(accumulator) if len(accumulator) > 1 else None

    def merge(self, left, right):
        return left + right


class Given(ProcessWindowFunction):
    def process(self, key, context, elements):
        return [("given", *elements)]


class TestNullResults:
    def test_a_reduce_that_returns_null_clears_its_state(self) -> None:
        harness = WindowTestHarness(
            wp.TumblingEventTimeWindows.of(10), wp.CountTrigger.of(1), function=WindowFunctionSpec.reduce(cancelling)
        )
        for value in (5, -5, 3, 4):
            harness.process_element(value, 1, "k")
        assert values(harness) == [5, 3, 7], "nothing fires for -5, and 3 is the first again"
        assert (harness.counters.windows_opened, harness.counters.windows_closed) == (2, 1)

    def test_an_aggregate_without_a_result_does_not_fire_and_goes_on(self) -> None:
        function = WindowFunctionSpec.aggregate(AtLeastTwo(), Given())
        harness = WindowTestHarness(wp.TumblingEventTimeWindows.of(10), wp.CountTrigger.of(1), function=function)
        for value in (5, 6):
            harness.process_element(value, 1, "k")
        assert values(harness) == [("given", 11)]

    def test_with_an_evictor_the_function_is_given_null(self) -> None:
        for function in (WindowFunctionSpec.aggregate(AtLeastTwo(), Given()), WindowFunctionSpec.reduce(cancelling, Given())):
            harness = WindowTestHarness(
                wp.TumblingEventTimeWindows.of(10), wp.CountTrigger.of(1), wp.CountEvictor.of(0), function=function
            )
            harness.process_element(5, 1, "k")
            assert values(harness) == [("given", None)]

    def test_sessions_that_cancel_each_other_are_empty(self) -> None:
        harness = WindowTestHarness(wp.EventTimeSessionWindows.with_gap(3), function=WindowFunctionSpec.reduce(cancelling))
        for value, time in ((5, 1), (-5, 5), (7, 3)):
            harness.process_element(value, time, "k")
        harness.process_watermark(50)
        assert values(harness) == [7]


def test_three_sessions_merge_the_later_ones_first() -> None:
    class Nested(AtLeastTwo):
        def get_result(self, accumulator):
            return accumulator

        def merge(self, left, right):
            return (left, right)

    class Wide(wp.EventTimeSessionWindows):
        """Elements under 100 open sessions of 3, another one a session that meets all."""

        def assign_windows(self, element, timestamp, context):
            return [wp.TimeWindow(0, 50)] if element == "all" else super().assign_windows(element, timestamp, context)

    harness = WindowTestHarness(Wide.with_gap(3), function=WindowFunctionSpec.aggregate(Nested()))
    for element, time in (("a", 1), ("b", 11), ("c", 21), ("all", 0)):
        harness.process_element(element, time, "k")
    harness.process_watermark(60)
    assert values(harness) == [(("a",), (("b",), ("c",)), "all")]


class Mergeable(AtTime):
    """Says that it can merge, and not how."""

    def can_merge(self):
        return True


@pytest.mark.parametrize("trigger", [Mergeable(), wp.PurgingTrigger.of(Mergeable())], ids=repr)
def test_a_trigger_that_does_not_say_how_to_merge_is_refused(trigger) -> None:
    with pytest.raises(NonMergingTriggerError, match="on_merge"):
        WindowTestHarness(wp.EventTimeSessionWindows.with_gap(3), trigger, function=SUM)


@pytest.mark.parametrize(
    ("times", "outcome"),
    [((None, 1, None), [1, 2, 3]), ((1, None), "a later one has none"), ((MIN + 3, MIN + 4), "ends of int64")],
    ids=repr,
)
def test_time_evictors_compare_times_or_refuse(times, outcome) -> None:
    harness = WindowTestHarness(wp.GlobalWindows.create(), wp.CountTrigger.of(len(times)), wp.TimeEvictor.of(5), function=ALL)

    def run() -> list[object]:
        for number, time in enumerate(times, 1):
            harness.process_element(number, time, "k")
        return values(harness)

    if isinstance(outcome, list):
        assert run() == [outcome]
    else:
        with pytest.raises(EvictionTimeError, match=outcome):
            run()


@pytest.mark.parametrize(
    ("trigger", "second"),
    [
        (wp.PurgingTrigger.of(wp.ProcessingTimeoutTrigger.of(wp.CountTrigger.of(3), 10)), ["c", "d", "e"]),
        (wp.ProcessingTimeoutTrigger.of(wp.PurgingTrigger.of(wp.CountTrigger.of(3)), 10), ["a", "b", "c", "d", "e"]),
    ],
)
def test_a_timeout_purges_where_the_purging_trigger_is_around_it(trigger: Trigger, second: list[str]) -> None:
    """Flink asks what the inner trigger answers to the timer, and a count answers nothing that could be made to purge."""
    harness = WindowTestHarness(wp.GlobalWindows.create(), trigger)
    for element in "ab":
        harness.process_element(element, 1, "k")
    harness.set_processing_time(20)
    for element in "cde":
        harness.process_element(element, 2, "k")
    assert [record.value for record in harness.output] == [["a", "b"], second]
