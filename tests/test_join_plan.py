"""What ``explain`` says of a join: which watermark, how long rows of each side are held, and what that costs."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest

import windowpane as wp
from windowpane.engines.join.program import JoinSide
from windowpane.engines.program import Upstream
from windowpane.errors import ConditionError
from windowpane.planning.join_programs import compile_join, explain
from windowpane.planning.joins import JoinPlan, JoinRequest
from windowpane.planning.settings import Settings
from windowpane.windowing.joins import ArrivalMatch, AsOfMatch, IntervalMatch, Match, WindowMatch

_STAMP = pa.timestamp("us", "UTC")
_SIDE = JoinSide(("k",), pa.schema([("k", pa.string()), ("until", _STAMP)]), ("k",))
_SECOND = 1_000_000


def explained(match: Match, how: Any = "inner", lateness: int = 0, updates: tuple[str, ...] = ()) -> dict[str, str]:
    """Return the lines of a join, by what they are about."""
    request = JoinRequest((("k", "k"),), match, how=how, updates=updates, settings=Settings(allowed_lateness=lateness))
    plan = JoinPlan(request, ("at", "at"), True, ("10 seconds behind", "1 hour behind"))
    text = explain(plan, compile_join(plan, _SIDE, _SIDE, _STAMP, Upstream.SOURCE), "2")
    return {line[2:17].strip(): line[18:] for line in text.splitlines()[1:]}


@pytest.mark.parametrize(
    ("match", "how", "lateness", "left", "right", "passed"),
    [
        (IntervalMatch(-5 * _SECOND, 10 * _SECOND), "inner", 0, "10 seconds past", "5 seconds past", "the watermark"),
        (IntervalMatch(-5 * _SECOND, -2 * _SECOND), "left", 0, "2 seconds before", "5 seconds past", "the watermark"),
        (IntervalMatch(0, 0), "full", 0, "reached", "reached", "the watermark"),
        (IntervalMatch(3 * _SECOND, 9 * _SECOND), "full", _SECOND, "10 seconds past", "2 seconds before", "less 10 seconds"),
        (IntervalMatch(0, 0, "until"), "left", _SECOND, "1 second past their until", "1 second past", "no watermark"),
        (AsOfMatch(), "left", 0, "reached", "the newest of each key for ever", "the watermark"),
        (AsOfMatch("forward", 4 * _SECOND), "left", 0, "4 seconds past", "for 4 seconds", "less 4 seconds"),
        (ArrivalMatch(), "left", 0, "not at all", "for ever", "no watermark"),
        (WindowMatch(wp.TumblingEventTimeWindows.of("1 hour")), "left", 0, "reached the end", "reached the end", "the watermark"),
    ],
)
def test_how_long_rows_of_each_side_are_held(match: Match, how: str, lateness: int, left: str, right: str, passed: str) -> None:
    lines = explained(match, how, lateness)
    assert left in lines["held left"]
    assert right in lines["held right"]
    assert passed in lines["passed on"]
    if not isinstance(match, ArrivalMatch):
        assert "the smaller one of both sides" in lines["watermark"]
        assert (lines["of left"], lines["of right"]) == ("10 seconds behind", "1 hour behind")


def test_a_condition_without_a_meaning_is_refused_before_rows_come() -> None:
    """A time of a zone is not compared with one of none."""
    condition = wp.left("until") > dt.datetime(2024, 1, 1)
    plan = JoinPlan(JoinRequest((("k", "k"),), AsOfMatch(), condition=condition), ("at", "at"), True)
    with pytest.raises(ConditionError, match="timezone"):
        compile_join(plan, _SIDE, _SIDE, _STAMP, Upstream.SOURCE)


def test_what_a_join_costs() -> None:
    assert "the rows of 16 seconds" in explained(IntervalMatch(-5 * _SECOND, 10 * _SECOND), lateness=_SECOND)["costs"]
    assert "left rows until their until" in explained(IntervalMatch(0, 0, "until"))["costs"]
    assert explained(ArrivalMatch(), "left")["costs"] == "state: one right row a key"
    updating = explained(AsOfMatch(), "left", updates=("k",))
    assert "reads all left rows that wait" in updating["costs"]
    assert "changelog" in updating["passed on"]
    hour = wp.TumblingEventTimeWindows.of("1 hour")
    assert "engine slices" in explained(WindowMatch(hour), lateness=_SECOND)["engine"]
    assert "engine reference" in explained(WindowMatch(wp.EventTimeSessionWindows.with_gap("1 hour")), lateness=_SECOND)["engine"]
