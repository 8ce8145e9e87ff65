"""Plans of OVER windows: split into stages as RisingWave's planner does, checked, explained, resolved against types."""

from __future__ import annotations

import pyarrow as pa
import pytest

import windowpane as wp
from windowpane.engines.over.program import Emit
from windowpane.engines.program import Upstream
from windowpane.errors import InvalidSpecError
from windowpane.planning.over import OverPlan, WindowedCall, resolved_frame
from windowpane.planning.over_programs import compile_stages
from windowpane.planning.settings import Settings
from windowpane.windowing.frames import (
    CURRENT_ROW,
    RUNNING_RANGE,
    RUNNING_ROWS,
    UNBOUNDED_FOLLOWING,
    WHOLE_PARTITION,
    Exclude,
    Frame,
    following,
    preceding,
)
from windowpane.windowing.intervals import Interval
from windowpane.windowing.over.spec import OrderColumn, OverCall

T = OrderColumn("t", nulls_first=True)
HOUR = 3_600_000_000
COLUMNS = pa.schema(
    [("id", pa.int64()), ("a", pa.string()), ("b", pa.string()), ("x", pa.int32()), ("t", pa.timestamp("us", "UTC"))]
)
NUMBER = OverCall("row_number")


def framed(frame: Frame) -> OverCall:
    return OverCall.of(wp.sum("x"), frame)


def plan(*windows, mode=Emit.UPDATE, **settings) -> OverPlan:
    """Return a plan of calls given as (partition columns, call) or (partition columns, call, order columns)."""
    calls = [
        WindowedCall(f"c{number}", tuple(partition), order[0] if order else (T,), call)
        for number, (partition, call, *order) in enumerate(windows)
    ]
    given = {"event_time": "t", "has_watermark": True, **settings}
    return OverPlan(tuple(calls), ("id",), mode, **Settings.among(given))


def windows_of(planned: OverPlan) -> list[tuple[str, tuple[str, ...]]]:
    return [("".join(stage.spec.partition_by), stage.names) for stage in planned.stages]


def test_calls_over_one_window_are_one_stage_in_the_order_of_first_calls():
    planned = plan((["a"], NUMBER), (["b"], NUMBER), (["a"], framed(RUNNING_ROWS)))
    assert windows_of(planned) == [("a", ("c0", "c2")), ("b", ("c1",))]


def test_a_stage_knows_rows_by_the_partitions_of_the_stages_before():
    keys = [stage.spec.key for stage in plan((["a"], NUMBER), (["b"], NUMBER), ([], NUMBER)).stages]
    assert keys == [("id",), ("id", "a"), ("id", "a", "b")]


def test_on_close_a_stage_stays_behind_by_what_stages_before_hold_back():
    ahead = framed(Frame.range_(CURRENT_ROW, following(Interval(micros=HOUR))))
    planned = plan((["a"], OverCall("lead", ("x",))), (["b"], ahead), ([], NUMBER), mode=Emit.CLOSE, allowed_lateness=5)
    assert [("".join(s.spec.partition_by), s.behind) for s in planned.stages] == [("b", 0), ("", HOUR + 5), ("a", HOUR + 5)]
    assert planned.held_back is None
    assert "passed on       no watermark: lead(x, 1)" in planned.explain([("e", "r")] * 3, "2 buckets")
    assert plan((["b"], ahead), mode=Emit.CLOSE).held_back == HOUR
    assert plan((["b"], framed(RUNNING_RANGE)), mode=Emit.CLOSE, allowed_lateness=7).held_back == 7


def test_on_update_the_watermark_is_passed_on_where_rows_only_look_back():
    back, ahead = framed(RUNNING_RANGE), OverCall("lead", ("x",))
    assert plan((["a"], back), (["b"], NUMBER)).held_back == 0
    assert plan((["a"], back), retain=HOUR).held_back == HOUR
    assert plan((["a", "t"], ahead, (OrderColumn("x", nulls_first=True),))).held_back == 0
    assert plan((["a"], ahead)).held_back is None
    assert plan((["a"], back), (["b"], ahead)).held_back is None
    assert plan((["a"], back, (OrderColumn("t", True, nulls_first=False),))).held_back is None
    assert plan((["a"], back, ())).held_back is None
    assert plan((["a"], back), append_only=False).held_back is None
    assert plan((["a"], back), append_only=False, is_bounded=True).held_back == 0


def test_on_close_two_stages_cannot_wait_for_rows():
    lead = OverCall("lead", ("x",))
    with pytest.raises(InvalidSpecError, match="none of them can follow another"):
        plan((["a"], lead), (["b"], lead), mode=Emit.CLOSE)
    with pytest.raises(InvalidSpecError, match="none of them can follow another"):
        plan((["a"], framed(Frame.session(Interval(micros=HOUR)))), (["b"], lead), mode=Emit.CLOSE)


@pytest.mark.parametrize(
    ("window", "settings", "message"),
    [
        ((["a"], framed(Frame.rows(CURRENT_ROW, UNBOUNDED_FOLLOWING))), {}, "UNBOUNDED FOLLOWING"),
        ((["a"], OverCall("percent_rank")), {}, "whole partition"),
        ((["a"], NUMBER, (OrderColumn("x", nulls_first=True),)), {}, "watermark is on t"),
        ((["a"], NUMBER, (T, OrderColumn("x", nulls_first=True))), {}, "nothing else"),
        ((["a"], NUMBER, (OrderColumn("t", True, nulls_first=False),)), {}, "ascending"),
        ((["a"], NUMBER), {"event_time": None}, "no column"),
    ],
)
def test_what_never_closes_is_refused_with_the_reason(window, settings, message):
    with pytest.raises(InvalidSpecError, match=message):
        plan(window, mode=Emit.CLOSE, **settings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"retain": -1}, "negative"),
        ({"retain": 1, "event_time": None}, "event time"),
        ({"allowed_lateness": -1}, "negative"),
        ({"late_tag": wp.OutputTag("late"), "append_only": False}, "no row is ever late"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(settings, message):
    with pytest.raises(InvalidSpecError, match=message):
        plan((["a"], NUMBER), **settings)


def test_default_frames_are_those_of_spark_or_of_risingwave():
    assert resolved_frame(True, None, None, ordered=True, rows_default=False) == RUNNING_RANGE
    assert resolved_frame(True, None, None, ordered=True, rows_default=True) == RUNNING_ROWS
    assert resolved_frame(True, None, None, ordered=False, rows_default=True) == WHOLE_PARTITION
    assert resolved_frame(False, None, None, ordered=True, rows_default=True) is None
    excluded = resolved_frame(True, None, Exclude.GROUP, ordered=True, rows_default=False)
    assert excluded == RUNNING_RANGE.excluding(Exclude.GROUP)
    with pytest.raises(InvalidSpecError, match="this function has none"):
        resolved_frame(False, None, Exclude.TIES, ordered=True, rows_default=False)


def test_programs_carry_the_results_of_the_stages_before():
    planned = plan((["a"], framed(RUNNING_ROWS)), (["b"], NUMBER))
    first, second = compile_stages(planned, COLUMNS, Upstream.SOURCE)
    assert first.outputs == pa.schema([("c0", pa.int64())])
    assert second.columns == pa.schema([*COLUMNS, *first.outputs])
    assert (first.append_only, second.append_only) == (True, False)
    assert (first.upstream, second.upstream) == (Upstream.SOURCE, Upstream.WINDOW)


def test_a_description_tells_one_window_from_another():
    def described(call: OverCall) -> dict[str, object]:
        return dict(compile_stages(plan((["a"], call)), COLUMNS, Upstream.SOURCE)[0].description)

    before, after = described(framed(RUNNING_ROWS)), described(framed(Frame.rows(preceding(3))))
    assert {part for part in before if before[part] != after[part]} == {"calls"}
    assert before == described(framed(RUNNING_ROWS))


def test_explain_says_what_runs_and_what_it_costs():
    planned = plan(([], NUMBER), (["a"], framed(RUNNING_RANGE)))
    text = planned.explain([("fast", "because"), ("slow", "alas")], "2 buckets, 4 cores")
    assert "buckets         2 buckets, 4 cores" in text
    for part in (
        "changelog",
        "one bucket",
        "row_number()",
        "RANGE BETWEEN",
        "fast: because",
        "slow: alas",
        "t ASC NULLS FIRST, id",
    ):
        assert part in text
