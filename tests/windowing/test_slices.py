"""Slices. Expected values follow from their definition: windows are unions of slices, dropped with their last window."""

from __future__ import annotations

import pytest

from windowpane.errors import InvalidSpecError
from windowpane.windowing.assigners import (
    AssignerContext,
    CumulateEventTimeWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
    WindowAssigner,
)
from windowpane.windowing.slices import CumulativeSlices, HoppingSlices, SliceMerge, Slices, TumblingSlices


class NoContext:
    """The assigners compared here ask nothing."""

    current_processing_time = 0
    current_key = None

    def remember(self, name: str, make: object) -> int:
        raise AssertionError(name)


FAMILIES: list[tuple[Slices, WindowAssigner]] = [
    (TumblingSlices(10, 3), TumblingEventTimeWindows.of(10, 3)),
    (HoppingSlices(30, 10, -4), SlidingEventTimeWindows.of(30, 10, -4)),
    (CumulativeSlices(30, 10, 7), CumulateEventTimeWindows.of(30, 10, 7)),
]
CONTEXT: AssignerContext = NoContext()


def slices_of_window(slices: Slices, end: int) -> set[int]:
    """Return all slices of a window, those folded into an earlier one included."""
    merged = slices.merge(end)
    if isinstance(slices, CumulativeSlices):
        return set(range(slices.window_start(end) + slices.step, end + 1, slices.step))
    return set(merged.slices) | ({merged.result} if merged.result is not None else set())


@pytest.mark.parametrize(("slices", "assigner"), FAMILIES, ids=lambda part: type(part).__name__)
@pytest.mark.parametrize("timestamp", range(-45, 45, 7))
def test_the_windows_of_an_element_are_those_that_hold_its_slice(
    slices: Slices, assigner: WindowAssigner, timestamp: int
) -> None:
    slice_end = slices.slice_end(timestamp)

    for window in assigner.assign_windows({}, timestamp, CONTEXT):
        end = window.max_timestamp + 1
        assert slices.window_start(end) <= timestamp < end
        assert slice_end in slices_of_window(slices, end)


@pytest.mark.parametrize(("slices", "assigner"), FAMILIES, ids=lambda part: type(part).__name__)
def test_a_slice_expires_with_its_last_window(slices: Slices, assigner: WindowAssigner) -> None:
    timestamp = 12
    ends = sorted(window.max_timestamp + 1 for window in assigner.assign_windows({}, timestamp, CONTEXT))
    mine = slices.slice_end(timestamp)
    dropping = [end for end in ends if mine in slices.expired(end)]

    if isinstance(slices, CumulativeSlices):  # a later slice is folded into the first as soon as its window fires
        dropping, ends = dropping[:1], ends[:1] if mine != slices.window_start(ends[0]) + slices.step else ends[-1:]
    assert dropping == ends[-1:]


def test_hopping_windows_combine_shared_slices() -> None:
    slices = HoppingSlices(30, 10)

    assert slices.merge(30) == SliceMerge(None, [30, 20, 10])
    assert slices.next_window(30, is_empty=False) == 40
    assert slices.next_window(30, is_empty=True) is None


def test_cumulating_windows_fold_into_the_first_slice() -> None:
    slices = CumulativeSlices(30, 10)

    assert [slices.merge(end) for end in (10, 20, 30)] == [SliceMerge(10, []), SliceMerge(10, [20]), SliceMerge(10, [30])]
    assert [slices.expired(end) for end in (10, 20, 30)] == [[], [20], [30, 10]]
    assert [slices.next_window(end, is_empty=True) for end in (10, 20, 30)] == [20, 30, None]


def test_a_single_step_expires_at_once() -> None:
    assert CumulativeSlices(10, 10).expired(20) == [20]


@pytest.mark.parametrize(
    ("build", "named"),
    [
        (lambda: TumblingSlices(0), "size is 0"),
        (lambda: TumblingSlices(10, -10), "offset -10"),
        (lambda: HoppingSlices(10, 0), "slide 0"),
        (lambda: HoppingSlices(25, 10), "size is 25 µs, slide 10"),
        (lambda: HoppingSlices(20, 10, 10), "offset 10"),
        (lambda: CumulativeSlices(-5, 1), "max size is -5"),
        (lambda: CumulativeSlices(5, 2), "max size is 5 µs, step 2"),
        (lambda: CumulativeSlices(10, 5, -10), "offset -10"),
    ],
)
def test_parameters_that_give_no_whole_slices_are_refused(build: object, named: str) -> None:
    assert callable(build)
    with pytest.raises(InvalidSpecError, match=named):
        build()
