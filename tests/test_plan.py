"""Plans: checked when built, described the same in every process, resolved against types."""

from __future__ import annotations

import dataclasses

import pyarrow as pa
import pytest

import windowpane as wp
from windowpane.engines.changes import Verdict, Way, changes
from windowpane.errors import InvalidSpecError, NonMergingTriggerError
from windowpane.planning.description.values import read
from windowpane.planning.settings import Settings
from windowpane.planning.window_programs import InputTypes, compile_program, explain
from windowpane.planning.windows import FunctionPlan, WindowPlan, describe, unfired_text, warn_of_unfired_rows
from windowpane.testing import WindowTestHarness
from windowpane.windowing.functions import WindowFunctionSpec
from windowpane.windowing.spec import DEFAULT_PANES, PaneSettings

COUNT = FunctionPlan("aggregate", aggregates=(("n", wp.count()), ("s", wp.sum("v"))))
TIMESTAMP = pa.timestamp("us", tz="UTC")
COLUMNS = pa.schema([("k", pa.string()), ("v", pa.int32()), ("t", TIMESTAMP)])
WHY = ["watermark", "late_by", "watermark_delay", "led_by"]
TYPES = InputTypes(COLUMNS, pa.schema([("k", pa.string())]), ("k",), TIMESTAMP, {"n": (), "s": ("v",)})
HOURLY = wp.TumblingEventTimeWindows.of("1 hour")


def plan(**changes) -> WindowPlan:
    return WindowPlan(**Settings.among({"keys": ("k",), "assigner": HOURLY, "function": COUNT, "event_time": "t", **changes}))


def a_gap(row):
    return row["v"]


def test_equal_plans_compare_and_print_equal():
    assert plan() == plan()
    assert repr(plan()) == repr(plan())
    assert plan() != plan(allowed_lateness=1)


def test_a_description_names_functions_and_not_their_addresses():
    sessions = wp.EventTimeSessionWindows.with_dynamic_gap(a_gap)
    assert describe(sessions) == f"EventTimeSessionWindows(gap={__name__}.a_gap)"
    assert describe(wp.PurgingTrigger.of(wp.CountTrigger.of(3))) == "PurgingTrigger(inner=CountTrigger(max_count=3))"
    assert "0x" not in describe(wp.DeltaTrigger.of(1.0, lambda old, new: new - old))


def test_a_program_has_the_types_of_its_input_and_a_row_only_what_the_function_needs():
    program = compile_program(plan(), TYPES, row_columns=())
    assert program.values == ("v",)
    assert program.main == pa.schema([("n", pa.int64()), ("s", pa.int64())])
    assert program.description["keys"] == [{"name": "k", "type": "string"}]
    assert program.description["resolved"]["values"] == [{"name": "v", "type": "int32"}]


@pytest.mark.parametrize(
    "part",
    [
        {"assigner": wp.EventTimeSessionWindows.with_dynamic_gap(a_gap)},
        {"trigger": wp.PurgingTrigger.of(wp.DeltaTrigger.of(1.0, lambda old, new: 0.0))},
        {"evictor": wp.DeltaEvictor.of(1.0, lambda old, last: 0.0)},
    ],
)
def test_a_part_that_reads_rows_sees_them_whole_beside_built_in_aggregates(part):
    assert compile_program(plan(**part), TYPES, ("k", "v", "t")).values == ("k", "v", "t")


def test_a_gap_is_one_column_of_rows_beside_arguments_and_state_of_elements_keeps_its_columns():
    by_column = plan(assigner=wp.EventTimeSessionWindows.with_dynamic_gap("k"))
    fixed = plan(assigner=wp.EventTimeSessionWindows.with_gap(7))
    programs = [compile_program(each, TYPES, ("k", "v", "t")) for each in (fixed, by_column)]
    assert programs[1].values == ("v", "k")
    (change,) = changes(programs[0].description, programs[1].description)
    assert (change.part, change.outcome.verdict) == ("assigner", Verdict.SAFE)
    evicting = [dataclasses.replace(each, evictor=wp.CountEvictor.of(2)) for each in (fixed, by_column)]
    was, now = (compile_program(each, TYPES, ("k", "v", "t")).description for each in evicting)
    (change,) = changes(was, now)
    assert (change.part, change.outcome.verdict) == ("assigner", Verdict.REFUSED)
    assert read(now["assigner"]) == by_column.assigner


def test_the_code_of_functions_may_change_under_a_checkpoint():
    def broken(a, b):
        raise ZeroDivisionError

    def mended(a, b):
        return a

    programs = [
        compile_program(plan(function=FunctionPlan("reduce", WindowFunctionSpec.reduce(each))), TYPES, ("k", "v", "t"))
        for each in (broken, mended)
    ]
    (change,) = changes(programs[0].description, programs[1].description)
    assert (change.part, change.outcome.verdict, change.outcome.way) == ("code", Verdict.SAFE, Way.AS_IS)


def test_late_rows_carry_the_input_and_what_they_missed():
    program = compile_program(plan(late_tag=wp.OutputTag("late")), TYPES, row_columns=("k", "v", "t"))
    assert program.late_output == 1
    assert program.side_outputs[0].schema.names == ["k", "v", "t", "windows_missed", "dropped", *WHY]


def test_a_reduced_row_loses_its_keys_to_the_key_columns():
    reduced = FunctionPlan("reduce", WindowFunctionSpec.reduce(lambda a, b: a))
    assert compile_program(plan(function=reduced), TYPES, ("k", "v", "t")).main.names == ["v", "t"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"allowed_lateness": -1}, "cannot be negative"),
        ({"late_tag": wp.OutputTag("main")}, "'main'"),
        ({"late_tag": wp.OutputTag("a"), "side_tags": (wp.OutputTag("a", "x int"),)}, "differ"),
        ({"side_tags": (wp.OutputTag("a"),)}, "needs a schema"),
        ({"refine": "sometimes"}, "refine must be"),
    ],
)
def test_what_cannot_work_is_refused_when_the_plan_is_built(changes, message):
    with pytest.raises(InvalidSpecError, match=message):
        plan(**changes)


def test_sessions_need_a_trigger_and_a_fold_that_merge():
    sessions = wp.EventTimeSessionWindows.with_gap("1 minute")
    with pytest.raises(NonMergingTriggerError, match="DeltaTrigger"):
        plan(assigner=sessions, trigger=wp.DeltaTrigger.of(1.0, lambda old, new: 0.0))
    fold = FunctionPlan("fold", WindowFunctionSpec.fold(int, lambda held, row: held), schema="x int")
    with pytest.raises(InvalidSpecError, match="merge=function"):
        plan(assigner=sessions, function=fold)


def test_a_rich_reduce_is_refused():
    class Rich(wp.RichFunction):
        def __call__(self, left, right):
            return left

    with pytest.raises(InvalidSpecError, match="RichFunction"):
        WindowFunctionSpec.reduce(Rich())


@pytest.mark.parametrize("name", ["k", "window_start", "window_end"])
def test_an_aggregate_named_as_a_key_or_a_bound_is_refused(name):
    counted = plan(function=FunctionPlan("aggregate", aggregates=((name, wp.count()),)))
    types = dataclasses.replace(TYPES, argument_columns={name: ()})
    with pytest.raises(InvalidSpecError, match=f"aggregate was given {name}=.*give the aggregate another name"):
        compile_program(counted, types, ("k", "v", "t"))


class Best(wp.ProcessWindowFunction):
    def process(self, key, context, elements):
        return elements


def test_explain_names_the_process_function_behind_aggregates():
    processed = plan(function=FunctionPlan("aggregate", aggregates=(("n", wp.count()),), process=Best()))
    assert "n = count(); process Best" in processed.explain({}, "1 bucket")


def test_explain_says_what_runs_and_why():
    late = plan(late_tag=wp.OutputTag("late"), allowed_lateness=60_000_000)
    program = compile_program(late, TYPES, ("k", "v", "t"))
    text = explain(late, program, "3 buckets, 3 cores")
    for part in (
        "TumblingEventTimeWindows",
        "EventTimeTrigger() (default)",
        "1 minute",
        "side output late",
        "slices",
        "3 buckets, 3 cores",
    ):
        assert part in text
    assert "on: rows fold before the shuffle, those that may be late come whole" in text
    unforeseen = dataclasses.replace(late, foresees_watermark=False)
    text = explain(unforeseen, compile_program(unforeseen, TYPES, ("k", "v", "t")), "3 buckets, 3 cores")
    assert "off: late rows are an output, and needed whole: no task knows a bound of the watermark" in text


@pytest.mark.parametrize(
    ("trigger", "loses"),
    [
        (wp.ContinuousProcessingTimeTrigger.of(5), True),
        (wp.PurgingTrigger.of(wp.ContinuousProcessingTimeTrigger.of(5)), True),
        (wp.ProcessingTimeTrigger(), True),
        (wp.CountTrigger.of(3), True),
        (wp.DeltaTrigger.of(1.0, lambda old, new: 0.0), True),
        (wp.EndOfStreamTrigger(), True),
        (wp.NeverTrigger(), True),
        (wp.EventTimeTrigger(), False),
        (wp.ContinuousEventTimeTrigger.of(5), False),
        (wp.ProcessingTimeoutTrigger.of(wp.CountTrigger.of(3), "1 hour"), False),
        (wp.EachBatch(), False),
        (wp.AfterWatermark(early=wp.AfterCount(3)), False),
        (wp.Repeatedly(wp.AfterProcessingTime(5)), False),
    ],
    ids=lambda value: str(value).partition(" at 0x")[0],
)
def test_explain_says_which_triggers_drop_rows_with_their_window(trigger, loses):
    """As Flink's triggers do: they have no answer to the cleanup of the window, or another one than FIRE."""
    composed = PaneSettings("accumulating") if isinstance(trigger, wp.ComposableTrigger) else DEFAULT_PANES
    written = dataclasses.replace(plan(trigger=wp.EventTimeTrigger()), trigger=trigger, panes=composed)
    assert ("unfired rows" in written.explain({}, "1 bucket")) == loses
    harness = WindowTestHarness(wp.TumblingEventTimeWindows.of(10), written.effective_trigger)
    harness.process_element({"v": 1}, timestamp=1, key="a")
    harness.finish_batch()
    harness.process_watermark(9)
    assert (not harness.output) == loses
    assert harness.state_entries() == []


@pytest.mark.parametrize("accumulation", ["retracting", "accumulating", "discarding"])
def test_months_that_late_rows_correct_do_not_need_the_row_engine(accumulation):
    months = wp.CalendarWindows.of("1 month", "Europe/Berlin")
    billed = plan(assigner=months, panes=PaneSettings(accumulation, shows_info=True), allowed_lateness=3 * 86_400_000_000)
    assert compile_program(billed, TYPES, ()).engine == "panes"


def test_windows_of_the_clock_and_co_grouped_ones_lose_rows_likewise(caplog):
    by_clock = wp.TumblingProcessingTimeWindows.of(10)
    assert unfired_text(wp.CountTrigger.of(3), by_clock)
    assert unfired_text(wp.EventTimeTrigger(), by_clock)
    assert not unfired_text(wp.ContinuousProcessingTimeTrigger.of(5), by_clock)
    assert not unfired_text(wp.CountTrigger.of(3), wp.GlobalWindows.create())
    warn_of_unfired_rows(wp.CountTrigger.of(3), unfired_text(wp.CountTrigger.of(3), HOURLY))
    assert "CountTrigger(max_count=3): rows since its last firing are dropped" in caplog.text
    assert "AfterWatermark(early=...)" in caplog.text


def test_the_planner_takes_the_row_engine_where_no_other_is_exact_and_says_why():
    counted = plan(trigger=wp.CountTrigger.of(3), evictor=wp.DeltaEvictor.of(2.0, lambda old, last: 0.0))
    program = compile_program(counted, TYPES, ())
    assert program.engine == "row"
    assert "CountTrigger" in program.engine_reason
    assert compile_program(plan(), TYPES, ()).engine == "slices"
    assert compile_program(plan(engine="row"), TYPES, ()).engine == "row"


@pytest.mark.parametrize("engine", ["slices", "quick"])
def test_an_engine_that_cannot_run_the_program_is_refused(engine):
    with pytest.raises(InvalidSpecError, match=engine):
        compile_program(plan(trigger=wp.CountTrigger.of(3), engine=engine), TYPES, ())


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, False),
        ({"assigner": wp.TumblingProcessingTimeWindows.of("1 s")}, True),
        ({"assigner": wp.GlobalWindows.create()}, False),
        ({"trigger": wp.ContinuousProcessingTimeTrigger.of("1 s")}, True),
        ({"trigger": wp.PurgingTrigger.of(wp.ProcessingTimeTrigger.create())}, True),
        ({"trigger": wp.PurgingTrigger.of(wp.CountTrigger.of(1))}, False),
    ],
)
def test_a_program_waits_for_the_clock_only_if_a_part_of_it_does(changes, expected):
    assert plan(**changes).uses_processing_time is expected


class Forever(wp.WindowAssigner):
    """An assigner of a user's own, whose window has no end."""

    is_event_time, has_ends = False, False

    def assign_windows(self, element, timestamp, context):
        return wp.GlobalWindows.create().assign_windows(element, timestamp, context)

    def default_trigger(self):
        return wp.CountTrigger.of(2)


def test_windows_of_a_users_own_that_never_end_wait_for_no_clock():
    assert not plan(assigner=Forever()).uses_processing_time
    assert unfired_text(wp.CountTrigger.of(3), Forever()) == ""
    assert unfired_text(wp.CountTrigger.of(3), HOURLY) != ""
