"""The fluent API of OVER windows before it meets a DataFrame: steps are values, calls print, and refuse what makes no sense."""

from __future__ import annotations

import datetime as dt
import sys
from types import SimpleNamespace
from typing import Any, cast

import pytest

import windowpane as wp
from windowpane.errors import InvalidFrameError, InvalidSpecError
from windowpane.over import OverStream
from windowpane.windowing.expressions import calls_in
from windowpane.windowing.frames import (
    CURRENT_ROW,
    UNBOUNDED_FOLLOWING,
    UNBOUNDED_PRECEDING,
    Exclude,
    Frame,
    following,
    preceding,
)
from windowpane.windowing.intervals import Interval

UNREAD: Any = SimpleNamespace(isStreaming=False)
"""A DataFrame that no step of a program looks into."""


@pytest.fixture
def begun() -> OverStream:
    return wp.over(UNREAD, event_time="t", key="id")


def test_each_step_is_a_new_value(begun):
    further = begun.partition_by("a", "b").order_by("t")
    assert (begun.partition, begun.order) == ((), ())
    assert (further.partition, further.order) == (("a", "b"), ("t",))
    assert begun.partition_by(["a", "b"]).order_by("t") == further
    selection = further.select(n=wp.row_number())
    assert selection.allowed_lateness("1 minute")._settings.allowed_lateness == 60_000_000
    assert selection._settings.allowed_lateness == 0


@pytest.mark.parametrize("key", [None, (), 3, ("a", object())])
def test_a_key_is_needed(key):
    with pytest.raises(InvalidSpecError, match="key="):
        wp.over(UNREAD, key=key)


@pytest.mark.parametrize(
    ("call", "frame"),
    [
        (wp.sum("x").rows(-10, -1), Frame.rows(preceding(10), preceding(1))),
        (wp.sum("x").rows(), Frame.rows(UNBOUNDED_PRECEDING, CURRENT_ROW)),
        (wp.sum("x").rows(None, None), Frame.rows(UNBOUNDED_PRECEDING, UNBOUNDED_FOLLOWING)),
        (wp.sum("x").rows(-sys.maxsize, sys.maxsize), Frame.rows(UNBOUNDED_PRECEDING, UNBOUNDED_FOLLOWING)),
        (wp.first_value("x").groups(-1, 2), Frame.groups(preceding(1), following(2))),
        (wp.max("x").range("-1 hour", 0), Frame.range_(preceding(Interval.of("1 hour")), CURRENT_ROW)),
        (wp.max("x").range(dt.timedelta(hours=-1), 0), Frame.range_(preceding(Interval.of("1 hour")), CURRENT_ROW)),
        (wp.max("x").range("-1 month -2 days", "0 s"), Frame.range_(preceding(Interval(1, 2)), CURRENT_ROW)),
        (wp.max("x").range(-1.5, 2), Frame.range_(preceding(1.5), following(2))),
        (wp.count().session("10 minutes"), Frame.session(Interval.of("10 minutes"))),
    ],
)
def test_frames_are_written_as_signed_offsets(call, frame):
    assert call.frame == frame


def test_an_exclusion_waits_for_the_frame():
    assert wp.sum("x").exclude("current row").exclusion is Exclude.CURRENT_ROW
    assert wp.sum("x").exclude("ties").rows(-3, 3).exclusion is Exclude.TIES


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (lambda: wp.sum("x").rows(1, -1), "ends before it starts"),
        (lambda: wp.sum("x").rows(-1.5), "whole number"),
        (lambda: wp.sum("x").range("-1 month 2 days"), "both directions"),
        (lambda: wp.sum("x").range(cast("Any", [1])), "no bound"),
        (lambda: wp.sum("x").exclude("neighbours"), "'current row'"),
    ],
)
def test_bounds_that_mean_nothing_are_refused(write, message):
    with pytest.raises(InvalidFrameError, match=message):
        write()


def test_calls_and_expressions_print_as_they_are_written():
    assert repr(wp.lag("price", 2, default=0)) == "lag('price', 2, 0)"
    assert repr(wp.col("price") - wp.lag("price")) == "(col('price') - lag('price', 1))"
    framed = wp.count("x").rows(-3).exclude("group").filter("ok").over(partition_by="k")
    assert repr(framed) == (
        "count('x').filter(col('ok')).rows(3 PRECEDING, CURRENT ROW).exclude('group').over(partition_by=('k',))"
    )
    assert repr(~(1 - wp.max("x") > 2) | wp.lag("y").is_null()) == "(~((1 - max('x')) > 2) | (lag('y', 1) is null))"


def test_aggregates_stay_values_and_also_compute():
    assert wp.sum("x") == wp.sum("x")
    assert wp.sum("x") != wp.sum("y")
    assert len({wp.sum("x"), wp.sum("x")}) == 1
    calls = list(calls_in(wp.sum("x") / wp.count() + wp.lag("x")))
    assert [repr(call) for call in calls] == ["sum('x')", "count()", "lag('x', 1)"]


def test_equal_calls_are_one_computation():
    assert wp.sum("x").as_call().identity == wp.sum("x").over().identity
    assert wp.lag("x").identity == wp.lag(wp.col("x")).identity
    assert wp.lag("x").identity != wp.lag("x", 2).identity
    assert wp.lag(wp.col("x") + 1).identity == wp.lag(wp.col("x") + 1).identity
    assert wp.lag("x", default=1).identity != wp.lag("x", default=True).identity


@pytest.mark.parametrize(
    ("select", "message"),
    [
        (lambda begun: begun.select("*"), "no OVER call"),
        (lambda begun: begun.select(n="x"), r"wp\.col"),
        (lambda begun: begun.select(n=3), r"F\.lit"),
        (lambda begun: begun.select(wp.row_number()), "alias"),
        (lambda begun: begun.select("n", n=wp.row_number()), "two columns of the name n"),
        (lambda begun: begun.select(n=wp.lag(wp.sum("x"))), "inside another"),
        (lambda begun: begun.select(n=wp.lag(cast("Any", 3))), "lit"),
        (lambda begun: begun.select(n=wp.lag("x", True)), "offset"),
        (lambda begun: begun.select(n=wp.row_number()).emit_on_update(on_inconsistent="ignore"), "'warn'"),
    ],
)
def test_what_select_cannot_take_is_refused(begun, select, message):
    with pytest.raises(InvalidSpecError, match=message):
        select(begun)


def test_an_expression_has_no_truth_of_its_own():
    with pytest.raises(InvalidSpecError, match="computed by Spark"):
        bool(wp.lag("x") > 3)
