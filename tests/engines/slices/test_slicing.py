"""Slices name the windows that the assigners assign, up to both ends of time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import windowpane as wp
from tests.examples import examples
from windowpane.engines.common.slicing import SharedSlices
from windowpane.errors import TimestampOverflowError
from windowpane.windowing.times import MAX, MIN
from windowpane.windowing.windows import TimeWindow

sizes = st.integers(1, 90)
instants = st.one_of(st.integers(MIN + 1, MIN + 300), st.integers(-300, 300), st.integers(MAX - 300, MAX))


@dataclass(frozen=True)
class Context:
    """Clock and key of an element."""

    current_key: Any = None
    current_processing_time: int = 0

    def remember(self, name: str, make: Callable[[], int]) -> int:
        """Return what is made: nothing here is staggered."""
        return make()


@st.composite
def assigners(draw: st.DrawFn) -> wp.WindowAssigner:
    """Return an assigner of windows of fixed size."""
    size, slide, part = draw(sizes), draw(sizes), draw(st.integers(-100, 100))
    kinds: list[wp.WindowAssigner] = [
        wp.TumblingEventTimeWindows(size, part % size),
        wp.TumblingEventTimeWindows(size, -(part % size)),
        wp.SlidingEventTimeWindows(size, slide, part % slide),
        wp.SlidingEventTimeWindows(size, slide, -(part % slide)),
        wp.CumulateEventTimeWindows(3 * size, size, -(part % size)),
    ]
    return kinds[draw(st.integers(0, len(kinds) - 1))]


@settings(max_examples=examples(400), deadline=None)
@given(assigners(), instants)
def test_the_windows_of_a_slice_are_those_of_its_elements(assigner: wp.WindowAssigner, instant: int) -> None:
    assert assigned_by_slices(assigner, instant) == assigned(assigner, instant)


def assigned(assigner: wp.WindowAssigner, instant: int) -> list[TimeWindow] | None:
    try:
        windows = assigner.assign_windows({}, instant, Context())
    except TimestampOverflowError:
        return None
    return sorted(window for window in windows if isinstance(window, TimeWindow))


def assigned_by_slices(assigner: wp.WindowAssigner, instant: int) -> list[TimeWindow] | None:
    slices, times = SharedSlices.of(assigner), np.array([instant])
    assert slices is not None
    try:
        starts = slices.starts(times)
    except TimestampOverflowError:
        return None
    return sorted(slices.windows_of(int(starts[0]))) if slices.covers(times, starts)[0] else []
