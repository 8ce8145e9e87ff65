"""Composable triggers where the vectors do not go: Flink's triggers inside them, refusals, sliding and global windows."""

from __future__ import annotations

from typing import Any

import pytest

import windowpane as wp
from windowpane.errors import InvalidSpecError
from windowpane.testing import WindowTestHarness
from windowpane.testing.harness import ListElements
from windowpane.testing.records import FinishedRecord
from windowpane.testing.trigger_harness import TriggerTestHarness
from windowpane.windowing.spec import PaneSettings, WindowSpec
from windowpane.windowing.triggers.composable.pane_trigger import PaneTrigger
from windowpane.windowing.windows import TimeWindow

WRONG: Any = "often"


def harness(assigner: wp.WindowAssigner, trigger: Any, lateness: int = 0, **settings: Any) -> WindowTestHarness:
    panes = PaneSettings(**{"accumulation": "discarding", "shows_info": True, "allows_unsafe_triggers": True, **settings})
    runs = panes.trigger(trigger, assigner, None, lateness)
    function = settings.pop("function", wp.WindowFunctionSpec.full(ListElements()))
    return WindowTestHarness(WindowSpec(assigner, function, runs, None, lateness, panes=panes.options))


def fired(bench: WindowTestHarness) -> list[tuple[Any, int, str]]:
    return [(record.value, record.pane.index, record.pane.timing.value) for record in bench.take_output() if record.pane]


def test_a_trigger_of_flinks_fires_inside_a_tree_where_it_answers_fire() -> None:
    trigger = wp.OrFinally(wp.ContinuousEventTimeTrigger.of(4), wp.AfterCount(4))
    bench = harness(wp.TumblingEventTimeWindows.of(20), trigger)
    bench.process_element(1, 1, "k")
    bench.process_watermark(5)
    assert fired(bench) == [([1], 0, "EARLY")]
    for value in (6, 7):
        bench.process_element(value, value, "k")
    assert fired(bench) == []
    bench.process_element(9, 9, "k")
    assert fired(bench) == [([6, 7, 9], 1, "EARLY")]
    bench.process_element(10, 10, "k")
    assert [record for record in bench.emitted if isinstance(record, FinishedRecord)] == [
        FinishedRecord("k", 10, 10, (TimeWindow(0, 20),))
    ]
    bench.process_watermark(19)
    assert bench.state_entries() == []
    assert bench.event_time_timers == []


def test_the_state_of_a_tree_is_read_once_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    held, reads = PaneTrigger._held, list[Any]()

    def counted(trigger: PaneTrigger, context: Any) -> Any:
        reads.append(held(trigger, context))
        return reads[-1]

    monkeypatch.setattr(PaneTrigger, "_held", counted)
    alone = TriggerTestHarness(PaneTrigger(wp.OrFinally(wp.ContinuousEventTimeTrigger.of(4), wp.AfterCount(4))))
    for value in (1, 2):
        alone.process_element(value, TimeWindow(0, 20), value)
    assert [each is None for each in reads] == [True, False]


def test_a_trigger_of_flinks_that_is_cleared_leaves_the_timers_of_the_end_and_of_the_cleanup() -> None:
    """A continuous trigger waits for the end of its window, too; a window has one timer for a time, whoever registered it."""
    hourly = wp.ContinuousEventTimeTrigger.of(20)
    early = wp.Repeatedly(wp.OrFinally(hourly, wp.AfterProcessingTime(5)))
    bench = harness(wp.TumblingEventTimeWindows.of(20), wp.AfterWatermark(early=early), accumulation="accumulating")
    bench.process_element(1, 1, "k")
    bench.set_processing_time(5)  # the delay is over: the early part begins anew
    assert fired(bench) == [([1], 0, "EARLY")]
    bench.process_watermark(19)
    assert fired(bench) == [([1], 1, "ON_TIME")]
    assert (bench.state_entries(), bench.event_time_timers) == ([], [])


def test_a_watermark_far_behind_the_end_still_evaluates_the_end() -> None:
    """The timer of 8 makes the tree enter its late phase, where the early part is cleared; 9 is the window's end."""
    trigger = wp.AfterWatermark(early=wp.Repeatedly(wp.ContinuousEventTimeTrigger.of(8)), late=wp.Always())
    bench = harness(wp.TumblingEventTimeWindows.of(10), trigger, lateness=100, accumulation="accumulating")
    bench.process_element(1, 1, "k")
    bench.process_watermark(50)
    assert fired(bench) == [([1], 0, "LATE"), ([1], 1, "LATE")]  # the second is that of the window's end, though no row is new
    bench.process_watermark(109)
    assert (bench.state_entries(), bench.event_time_timers) == ([], [])


def test_a_trigger_of_flinks_that_is_cleared_leaves_the_delays_of_the_tree() -> None:
    waits = wp.AfterEach(wp.OrFinally(wp.ContinuousProcessingTimeTrigger.of(8), wp.AfterCount(2)), wp.Never())
    bench = harness(wp.TumblingEventTimeWindows.of(20), wp.OrFinally(waits, wp.AfterProcessingTime(8)))
    bench.process_element(1, 1, "k")  # both wait for 8
    bench.process_element(2, 2, "k")  # the first part is finished
    bench.process_element(3, 3, "k")
    assert fired(bench) == [([1, 2], 0, "EARLY")]
    bench.set_processing_time(8)
    assert fired(bench) == [([3], 1, "EARLY")]


def test_a_row_of_sliding_windows_is_dropped_only_where_they_are_finished() -> None:
    bench = harness(wp.SlidingEventTimeWindows.of(10, 5), wp.AfterCount(2))
    for value in (6, 7, 2):  # [0, 10) is finished by 6 and 7, [-5, 5) takes 2
        bench.process_element(value, value, "k")
    assert bench.counters.dropped_by_finished_trigger == 1
    assert bench.counters.late_dropped == 0
    bench.process_watermark(4)
    assert fired(bench)[-1] == ([2], 0, "ON_TIME")


def test_a_global_window_ends_with_time() -> None:
    bench = harness(wp.GlobalWindows.create(), wp.Repeatedly(wp.AfterCount(2)))
    for value in range(3):
        bench.process_element(value, value, "k")
    assert fired(bench) == [([0, 1], 0, "EARLY")]
    bench.process_watermark(wp.MAX)
    assert fired(bench) == [([2], 1, "ON_TIME")]


def test_an_empty_pane_gives_the_result_of_no_rows() -> None:
    panes = PaneSettings("discarding", shows_info=True)
    assigner = wp.TumblingEventTimeWindows.of(10)
    function = wp.WindowFunctionSpec.fold(int, lambda held, value: held + value)
    trigger = panes.trigger(wp.AfterWatermark(early=wp.AfterCount(1)), assigner, None, 0)
    bench = WindowTestHarness(WindowSpec(assigner, function, trigger, panes=panes.options))
    bench.process_element(5, 1, "k")
    bench.process_watermark(9)
    assert fired(bench) == [(5, 0, "EARLY"), (0, 1, "ON_TIME")]


def test_flinks_own_triggers_number_their_panes() -> None:
    bench = harness(wp.TumblingEventTimeWindows.of(10), wp.EventTimeTrigger(), 5, accumulation="accumulating")
    bench.process_element(1, 1, "k")
    bench.process_watermark(9)
    bench.process_element(2, 2, "k")
    assert fired(bench) == [([1], 0, "ON_TIME"), ([1, 2], 1, "LATE")]
    bench.process_watermark(14)
    assert bench.state_entries() == []


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: wp.AfterCount(0), "from 1 on"),
        (lambda: wp.AfterProcessingTime(-1), "not negative"),
        (lambda: wp.AfterAny(), "given none"),
        (lambda: wp.AfterAny(wp.Repeatedly(wp.AfterCount(1)), wp.AfterCount(2)), "OrFinally"),
        (lambda: wp.OrFinally(wp.AfterCount(1), wp.Default()), "OrFinally"),
        (lambda: wp.Repeatedly(wp.PurgingTrigger.of(wp.CountTrigger.of(2))), "accumulation"),
        (lambda: wp.Repeatedly(wp.NeverTrigger()), "Never"),
        (lambda: wp.Repeatedly(WRONG), "no trigger"),
        (lambda: PaneSettings(WRONG), "accumulation must be one of"),
        (lambda: harness(wp.TumblingProcessingTimeWindows.of(10), wp.Default()), "windows of the clock"),
        (
            lambda: PaneSettings(closing_behavior="fire_always").trigger(wp.EventTimeTrigger(), wp.GlobalWindows(), None, 0),
            "composable",
        ),
        (
            lambda: PaneSettings("discarding").trigger(
                wp.Default(), wp.TumblingEventTimeWindows.of(10), wp.CountEvictor.of(1), 0
            ),
            "CountEvictor",
        ),
    ],
)
def test_what_cannot_work_is_refused(make: Any, message: str) -> None:
    with pytest.raises(InvalidSpecError, match=message):
        make()


def test_each_batch_fires_once_for_the_windows_it_changed() -> None:
    bench = harness(wp.EventTimeSessionWindows.with_gap(5), wp.EachBatch(), 50, accumulation="retracting")

    def batch(*times: int) -> list[tuple[str | None, Any]]:
        for time in times:
            bench.process_element(time, time, "k")
        bench.finish_batch()
        return [(record.change, record.value) for record in bench.take_output()]

    assert batch(1, 2, 20) == [("insert", [1, 2]), ("insert", [20])]
    assert batch(21) == [("delete", [20]), ("insert", [20, 21])]  # the session has other bounds now
    bench.process_watermark(30)
    assert bench.take_output() == []
    assert batch(6, 11, 16) == [("delete", [1, 2]), ("delete", [20, 21]), ("insert", [1, 2, 6, 11, 20, 21, 16])]
    bench.process_watermark(100)
    assert bench.state_entries() == []


def test_each_batch_with_an_evictor_evicts_once_a_batch() -> None:
    runs = wp.WindowSpec(
        wp.TumblingEventTimeWindows.of(10),
        wp.WindowFunctionSpec.full(ListElements()),
        wp.EachBatch(),
        wp.CountEvictor.of(2, True),
    )
    bench = WindowTestHarness(runs)
    for time in (1, 2, 3):
        bench.process_element(time, time, "k")
    bench.finish_batch()
    assert [record.value for record in bench.take_output()] == [[1, 2, 3]]
    bench.process_element(4, 4, "k")
    bench.finish_batch()
    assert [record.value for record in bench.take_output()] == [[2, 3, 4]]


def test_what_fires_once_at_the_end_is_the_event_time_trigger() -> None:
    tumbling = wp.TumblingEventTimeWindows.of(10)
    assert PaneSettings().trigger(wp.AfterWatermark(), tumbling, None, 0) == wp.EventTimeTrigger()
    assert PaneSettings("discarding").trigger(wp.Default(), tumbling, None, 0) == wp.EventTimeTrigger()
    assert PaneSettings("discarding").trigger(wp.Default(), tumbling, None, 1) != wp.EventTimeTrigger()


def test_the_node_that_finishes_is_named() -> None:
    trigger = wp.OrFinally(wp.Repeatedly(wp.AfterCount(2)), wp.AfterProcessingTime(5))
    with pytest.raises(InvalidSpecError, match=r"finished once AfterProcessingTime\(delay=5\) is"):
        PaneSettings("discarding").trigger(trigger, wp.TumblingEventTimeWindows.of(10), None, 0)


def test_early_and_final_fires_by_count_or_delay_at_the_end_and_for_late_rows() -> None:
    bench = harness(wp.TumblingEventTimeWindows.of(20), wp.EarlyAndFinal(2, "1 second"), 100, accumulation="accumulating")
    for value in (1, 2, 3):
        bench.process_element(value, value, "k")
    assert fired(bench) == [([1, 2], 0, "EARLY")]
    bench.set_processing_time(5_000_000)
    assert fired(bench) == [([1, 2, 3], 1, "EARLY")]
    bench.process_watermark(19)
    bench.process_element(4, 4, "k")
    assert fired(bench) == [([1, 2, 3], 2, "ON_TIME"), ([1, 2, 3, 4], 3, "LATE")]


def test_early_and_final_needs_to_know_when_it_is_early() -> None:
    with pytest.raises(InvalidSpecError, match=r"EarlyAndFinal\(count=100\)"):
        wp.EarlyAndFinal()


def test_a_timer_of_the_tree_is_none_of_a_flink_trigger_in_it() -> None:
    """A timeout fires at each of its own timers, whatever they are for: the delay of another part is not one."""
    waits = wp.ProcessingTimeoutTrigger.of(wp.CountTrigger.of(10), 100)
    until = wp.AfterAll(wp.AfterCount(3), wp.AfterProcessingTime(5))
    bench = harness(wp.TumblingEventTimeWindows.of(20), wp.OrFinally(waits, until), lateness=50)
    bench.process_element(1, 1, "k")
    bench.set_processing_time(5)  # the delay is over, the count of its part is not reached
    assert fired(bench) == []
    bench.process_watermark(19)  # the end of the window, which the tree waits for, too
    assert fired(bench) == []
    bench.set_processing_time(100)
    assert fired(bench) == [([1], 0, "LATE")]


def test_a_flink_trigger_in_a_tree_is_not_called_at_the_cleanup_of_its_window() -> None:
    """There the tree releases the rest, as the last pane; alone, a timeout fires at the timer of the cleanup, too."""
    waits = wp.Repeatedly(wp.ProcessingTimeoutTrigger.of(wp.CountTrigger.of(10), 100))
    bench = harness(wp.TumblingEventTimeWindows.of(20), waits, lateness=50, closing_behavior="fire_always")
    bench.process_element(1, 1, "k")
    bench.process_watermark(69)
    assert [(record.value, record.pane.is_last) for record in bench.take_output() if record.pane] == [([1], True)]
    assert (bench.state_entries(), bench.event_time_timers, bench.processing_time_timers) == ([], [], [])


def test_a_flink_trigger_that_takes_its_timer_back_leaves_that_of_another_part_for_the_same_time() -> None:
    """The timeout begins anew with each row; the delay of the other part began at the first row, and waits for 10, too."""
    waits = wp.ProcessingTimeoutTrigger.of(wp.CountTrigger.of(10), 10, reset_timer_on_new_record=True)
    bench = harness(wp.TumblingEventTimeWindows.of(20), wp.OrFinally(waits, wp.AfterProcessingTime(10)))
    bench.process_element(1, 1, "k")
    bench.set_processing_time(5)
    bench.process_element(2, 2, "k")
    bench.set_processing_time(10)
    assert fired(bench) == [([1, 2], 0, "EARLY")]


def test_a_timer_of_the_end_that_a_merge_sets_anew_is_no_second_end_of_the_window() -> None:
    """A late row extends a session whose end is over: the continuous trigger waits for that instant again, and no row is new."""
    trigger = wp.AfterEach(wp.ContinuousEventTimeTrigger.of(9), wp.AfterWatermark())
    bench = harness(wp.EventTimeSessionWindows.with_gap(4), trigger, lateness=20)
    bench.process_element(0, 0, "k")
    bench.process_watermark(18)
    assert fired(bench) == [([0], 0, "ON_TIME")]
    bench.process_element(-3, -3, "k")
    assert fired(bench) == [([-3], 0, "LATE")]
    bench.process_watermark(22)
    assert fired(bench) == []
    bench.process_watermark(23)
    assert (bench.state_entries(), bench.event_time_timers) == ([], [])
