"""Lateness, by Flink's rules: ``cleanupTime`` is held inside a long, ``isElementLate`` overflows as a long does."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowpane.windowing.lateness import Lateness, horizon
from windowpane.windowing.times import MAX, MIN

INSTANTS = st.one_of(st.integers(MIN, MAX), st.sampled_from([MIN, MIN + 1, -1, 0, 1, MAX - 1, MAX]))
ALLOWED = st.one_of(st.integers(0, MAX), st.sampled_from([0, 1, MAX]))


def java_long(value: int) -> int:
    """Java's two's complement sum."""
    return int.from_bytes((value & (2**64 - 1)).to_bytes(8, "big"), "big", signed=True)


@pytest.mark.parametrize(
    ("max_timestamp", "allowed", "cleanup"),
    [
        (99, 0, 99),
        (99, 5, 104),
        (MAX - 5, 5, MAX),
        (MAX - 5, 6, MAX),  # Flink: a sum below the max timestamp has overflowed, and is Long.MAX_VALUE
        (MAX, MAX, MAX),
        (MIN, MAX, -1),
    ],
)
def test_the_cleanup_time_is_held_inside_int64(max_timestamp: int, allowed: int, cleanup: int) -> None:
    rule = Lateness(allowed, is_event_time=True)
    assert rule.cleanup_time(max_timestamp) == cleanup
    assert rule.cleanup_times(np.array([max_timestamp])).tolist() == [cleanup]


@pytest.mark.parametrize(
    ("timestamp", "allowed", "watermark", "behind"),
    [
        (95, 5, 100, True),
        (96, 5, 100, False),
        (MAX - 4, 5, 0, True),  # the sum wraps to the least long
        (MAX - 5, 5, MAX - 1, False),
        (MIN, 0, MIN, True),  # an element without a time, before any watermark
    ],
)
def test_an_element_is_late_by_a_sum_that_overflows(timestamp: int, allowed: int, watermark: int, behind: bool) -> None:
    rule = Lateness(allowed, is_event_time=True)
    assert rule.is_behind(timestamp, watermark) is behind
    assert rule.are_behind(np.array([timestamp]), watermark).tolist() == [behind]


def test_a_window_is_over_when_the_watermark_is_at_its_cleanup_time() -> None:
    rule = Lateness(5, is_event_time=True)
    assert [rule.is_late(99, watermark) for watermark in (103, 104, 105)] == [False, True, True]


def test_the_clock_of_the_machine_ends_windows_without_lateness_and_nothing_is_late() -> None:
    rule = Lateness(5, is_event_time=False)
    assert rule.cleanup_time(99) == 99
    assert rule.cleanup_times(np.array([99])).tolist() == [99]
    assert [rule.is_over(99, clock) for clock in (98, 99)] == [False, True]
    assert not rule.is_late(99, MAX)
    assert not rule.is_behind(MIN, MAX)
    assert rule.are_behind(np.array([MIN]), MAX).tolist() == [False]


@given(instant=INSTANTS, allowed=ALLOWED, watermark=INSTANTS)
def test_arrays_and_single_times_have_the_rules_of_java(instant: int, allowed: int, watermark: int) -> None:
    rule = Lateness(allowed, is_event_time=True)
    total = java_long(instant + allowed)
    assert rule.cleanup_time(instant) == (total if total >= instant else MAX)
    assert rule.cleanup_times(np.array([instant])).tolist() == [rule.cleanup_time(instant)]
    assert rule.is_behind(instant, watermark) == (total <= watermark)
    assert rule.are_behind(np.array([instant]), watermark).tolist() == [rule.is_behind(instant, watermark)]


def test_the_horizon_is_behind_the_watermark_but_not_before_there_is_one_or_after_the_end() -> None:
    assert [horizon(watermark, 5) for watermark in (MIN, MIN + 3, 100, MAX)] == [MIN, MIN, 95, MAX]
