"""Rolling windows: which times they take, when rows leave them, and which specs are refused."""

from __future__ import annotations

import pytest

from windowpane.aggregates import count, count_distinct
from windowpane.errors import EdgeError, TileMismatchError, UnboundedStateError
from windowpane.windowing.aggregates import Aggregate
from windowpane.windowing.rolling import RollingCall, RollingEmit, RollingSpec, RollingWindow, default_hop
from windowpane.windowing.times import to_micros

DAY = to_micros("1 day")


def test_an_exact_window_is_open_at_its_start() -> None:
    window = RollingWindow(60, 5, is_exact=True)
    assert window.start(100) == 41
    assert window.leaving(41) == 101


def test_a_hop_edge_goes_down_to_the_start_of_its_tile() -> None:
    window = RollingWindow(60, 5, is_exact=False)
    assert [window.start(instant) for instant in (99, 100, 103, 104)] == [40, 40, 40, 45]
    assert {window.leaving(time) for time in range(40, 45)} == {104}


@pytest.mark.parametrize("instant", [-1, 4, 99, 104])
def test_before_a_tick_of_the_hop_both_edges_are_one(instant: int) -> None:
    starts = {RollingWindow(60, 5, is_exact).start(instant) for is_exact in (True, False)}
    assert starts == {instant - 59}


@pytest.mark.parametrize("is_exact", [True, False])
def test_a_row_leaves_when_the_start_passes_it(is_exact: bool) -> None:
    window = RollingWindow(20, 5, is_exact)
    for time in range(-12, 12):
        taken = [instant for instant in range(-40, 60) if window.start(instant) <= time <= instant]
        assert max(taken) + 1 == window.leaving(time)


def test_ticks_are_the_microsecond_before_a_multiple_of_the_step() -> None:
    spec = RollingSpec((RollingCall("n", count(), RollingWindow(20, 5, True)),), 5)
    assert [spec.tick_from(instant) for instant in (-1, 0, 4, 5)] == [-1, 4, 4, 9]
    assert [spec.last_tick(watermark) for watermark in (3, 4, 8, 9)] == [-1, 4, 4, 9]


def test_the_horizon_is_a_window_and_a_hop_behind_the_watermark() -> None:
    windows = [RollingWindow(20, 5, True), RollingWindow(60, 5, False)]
    spec = RollingSpec(tuple(RollingCall(f"n{window.length}", count(), window) for window in windows), 5)
    assert spec.horizon(100) == 35


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("corrects", [True, False])
@pytest.mark.parametrize("step", [5, 15])
def test_rows_are_kept_until_they_are_forgotten(exact: bool, corrects: bool, step: int) -> None:
    windows = [RollingWindow(20, 5, True), RollingWindow(60, 10, exact)]
    calls = tuple(RollingCall(f"n{window.length}", count(), window) for window in windows)
    spec = RollingSpec(calls, step, RollingEmit.TICK, corrects=corrects)
    for watermark in range(-40, 40):
        kept = [time for time in range(-400, 60) if spec.forgotten(time) > watermark]
        assert kept[0] == spec.kept_from(watermark)
        assert len(kept) == 60 - kept[0]


def test_where_each_row_comes_out_rows_are_kept_for_the_windows_of_late_ones() -> None:
    """The oldest row that is not dropped lies a reach behind the watermark, less 1, and sees rows of a length before it."""
    windows = [RollingWindow(20, 5, True), RollingWindow(60, 10, True)]
    spec = RollingSpec(tuple(RollingCall(f"n{window.length}", count(), window) for window in windows), 5, RollingEmit.EACH)
    for watermark in range(40):
        oldest = spec.horizon(watermark) + 1
        assert spec.kept_from(watermark) <= oldest - 59
        assert spec.forgotten(oldest - 59) > watermark
        assert spec.kept_from(watermark) == min(time for time in range(-400, 60) if spec.forgotten(time) > watermark)


def test_levels_are_tiles_that_only_longer_windows_see() -> None:
    exact, hour, day = RollingWindow(20, 5, True), RollingWindow(120, 10, False), RollingWindow(600, 60, False)
    spec = RollingSpec(tuple(RollingCall(f"n{window.length}", count(), window) for window in (day, exact, hour)), 5)
    assert spec.grain == 1
    assert spec.levels == ((60, (exact, hour)), (10, (exact,)))
    assert RollingSpec(spec.calls, 5, RollingEmit.TICK).grain == 5
    assert {spec.forgotten(time) for time in range(60, 120)} == {119 + 660}


def test_hops_are_those_of_chronon() -> None:
    hops = [default_hop(to_micros(length)) for length in ("1 hour", "11 hours", "12 hours", "11 days", "12 days", "30 days")]
    assert hops == [to_micros(hop) for hop in ("5 minutes", "5 minutes", "1 hour", "1 hour", "1 day", "1 day")]


@pytest.mark.parametrize(
    ("length", "hop", "nearest"), [(61, 5, "60 microseconds and 65"), (3, 5, "are 5 microseconds"), (0, 5, "longer than nothing")]
)
def test_a_window_is_a_number_of_tiles(length: int, hop: int, nearest: str) -> None:
    with pytest.raises(TileMismatchError, match=nearest):
        RollingWindow(length, hop, True)


def test_a_step_is_a_number_of_tiles() -> None:
    with pytest.raises(TileMismatchError, match="a step of 7 microseconds"):
        RollingSpec((RollingCall("n", count(), RollingWindow(20, 5, True)),), 7)


@pytest.mark.parametrize(("aggregate", "refused"), [(count_distinct("shop"), True), (count(), False)])
def test_values_are_not_kept_for_more_than_a_day_unasked(aggregate: Aggregate, refused: bool) -> None:
    calls = (RollingCall("n", aggregate, RollingWindow(2 * DAY, DAY, True)),)
    if refused:
        with pytest.raises(UnboundedStateError, match="approx_count_distinct"):
            RollingSpec(calls, DAY)
    assert RollingSpec(calls, DAY, keeps_unbounded_state=True).reach == 3 * DAY


def test_each_row_has_its_own_window() -> None:
    with pytest.raises(EdgeError, match="emit"):
        RollingSpec((RollingCall("n", count(), RollingWindow(20, 5, False)),), 5, RollingEmit.EACH)
