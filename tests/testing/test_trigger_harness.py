"""``TriggerTestHarness``: one trigger alone."""

from __future__ import annotations

from typing import Any

import pytest

from windowpane.errors import WindowTypeError
from windowpane.testing import Firing, TriggerTestHarness
from windowpane.windowing.times import MIN
from windowpane.windowing.triggers import (
    ContinuousEventTimeTrigger,
    CountTrigger,
    EventTimeTrigger,
    ProcessingTimeTrigger,
    Trigger,
    TriggerContext,
    TriggerResult,
)
from windowpane.windowing.windows import GLOBAL_WINDOW, TimeWindow, Window

FIRST, SECOND, BOTH = TimeWindow(0, 2), TimeWindow(2, 4), TimeWindow(0, 4)


class Ticking(Trigger):
    """Registers the next timer whenever one fires, even one that is already due."""

    def on_element(self, element: Any, timestamp: int, window: Window, context: TriggerContext) -> TriggerResult:
        context.register_event_time_timer(0)
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: Window, context: TriggerContext) -> TriggerResult:
        context.register_event_time_timer(time + 1)
        return TriggerResult.FIRE

    def clear(self, window: Window, context: TriggerContext) -> None:
        context.value_state("unused").clear()


def test_windows_are_apart() -> None:
    harness = TriggerTestHarness(CountTrigger.of(2))

    assert harness.process_element("a", FIRST) is TriggerResult.CONTINUE
    assert harness.process_element("b", SECOND) is TriggerResult.CONTINUE
    assert len(harness.state_entries(FIRST)) == len(harness.state_entries(SECOND)) == 1
    assert harness.process_element("c", FIRST) is TriggerResult.FIRE
    assert harness.state_entries(FIRST) == []
    assert [entry.window for entry in harness.state_entries()] == [SECOND]


def test_a_merge_moves_state_and_clears_the_sources() -> None:
    harness = TriggerTestHarness(CountTrigger.of(3))
    harness.process_element("a", FIRST)
    harness.process_element("b", SECOND)

    harness.merge_windows(BOTH, [FIRST, SECOND])

    assert [entry.window for entry in harness.state_entries()] == [BOTH]
    assert harness.process_element("c", BOTH) is TriggerResult.FIRE


def test_event_time_timers_fire_with_the_watermark() -> None:
    harness = TriggerTestHarness(EventTimeTrigger())
    harness.process_element("a", FIRST, timestamp=0)
    harness.process_element("b", SECOND, timestamp=2)

    assert harness.event_time_timers() == [1, 3]
    assert harness.advance_watermark(0) == []
    assert harness.advance_watermark(1) == [Firing(FIRST, 1, TriggerResult.FIRE)]
    assert harness.event_time_timers(FIRST) == []
    assert harness.event_time_timers(SECOND) == [3]


def test_processing_time_timers_fire_with_the_clock() -> None:
    harness = TriggerTestHarness(ProcessingTimeTrigger())
    harness.process_element("a", FIRST)

    assert harness.processing_time_timers(FIRST) == [1]
    assert harness.advance_processing_time(1) == [Firing(FIRST, 1, TriggerResult.FIRE)]
    assert harness.processing_time_timers() == []


def test_a_timer_registered_by_a_callback_waits_for_the_next_advance() -> None:
    harness = TriggerTestHarness(Ticking())
    harness.process_element("a", FIRST)

    assert [firing.time for firing in harness.advance_watermark(10)] == [0]
    assert [firing.time for firing in harness.advance_watermark(10)] == [1]
    assert harness.event_time_timers() == [2]


def test_callbacks_can_be_invoked_as_a_cleanup_timer_does() -> None:
    harness = TriggerTestHarness(EventTimeTrigger())

    assert harness.invoke_on_event_time(1, FIRST) is TriggerResult.FIRE
    assert harness.invoke_on_event_time(21, FIRST) is TriggerResult.CONTINUE
    assert harness.invoke_on_processing_time(1, FIRST) is TriggerResult.CONTINUE


def test_clear_takes_the_timer_back() -> None:
    harness = TriggerTestHarness(EventTimeTrigger())
    harness.process_element("a", FIRST)

    harness.clear(FIRST)

    assert harness.event_time_timers() == []


@pytest.mark.parametrize(("timestamp", "first_fire"), [(7, 10), (0, 5), (-7, 0), (-5, 0), (-12, -5), (-4, 5)])
def test_the_first_continuous_fire_is_rounded_toward_zero(timestamp: int, first_fire: int) -> None:
    """Java's ``timestamp - timestamp % interval``, plus the interval."""
    harness = TriggerTestHarness(ContinuousEventTimeTrigger.of(5))

    harness.process_element("a", TimeWindow(-100, 100), timestamp)

    assert harness.event_time_timers() == [first_fire, 99]


def test_clocks_start_before_everything() -> None:
    harness = TriggerTestHarness(ContinuousEventTimeTrigger.of(5))

    assert harness.process_element("a", TimeWindow(MIN, MIN + 2)) is TriggerResult.CONTINUE
    assert harness.advance_watermark(MIN) == []


def test_a_window_the_trigger_is_not_made_for_is_refused() -> None:
    with pytest.raises(WindowTypeError, match=r"EventTimeTrigger\(\) works on time windows and met GLOBAL"):
        TriggerTestHarness(EventTimeTrigger()).process_element("a", GLOBAL_WINDOW)
