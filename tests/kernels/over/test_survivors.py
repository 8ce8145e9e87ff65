"""What the columnar eviction keeps is what Flink's evictors, element by element, keep."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import windowpane as wp
from tests.examples import examples
from verify.sizes import given_sizes
from windowpane.errors import EvictionTimeError
from windowpane.kernels import eviction as survivors
from windowpane.kernels.eviction import NEVER, Firings, LastSurvive, YoungSurvive
from windowpane.kernels.grouping.grouped_fold import GroupedFold
from windowpane.windowing.evictors import CountEvictor, TimeEvictor, TimestampedValue
from windowpane.windowing.times import MIN
from windowpane.windowing.windows import GLOBAL_WINDOW

FOLD: Any = GroupedFold.of([("n", wp.count(), ()), ("s", wp.sum("v"), ("v",))], pa.schema([("v", pa.int64())]))
RULES = st.one_of(
    st.integers(1, 6).map(lambda n: (CountEvictor(n), LastSurvive(n))),
    st.integers(1, 9).map(lambda span: (TimeEvictor(span), YoungSurvive(span, MIN))),
)


@st.composite
def lists(draw: st.DrawFn) -> list[tuple[list[int], list[int]]]:
    """Draw lists: the times of the elements, and where there are firings (the last element is one).

    Only a list whose first element has no time may have others without one: what else there is, time evictors refuse.
    """
    time = st.integers(-20, 20)
    timed, untimed = st.lists(time, min_size=1, max_size=12), st.lists(st.one_of(time, st.just(MIN)), max_size=11)
    drawn = []
    for times in draw(st.lists(timed | untimed.map(lambda times: [MIN, *times]), min_size=1, max_size=5)):
        places = draw(st.sets(st.integers(0, len(times) - 1)))
        drawn.append((times, sorted(places | {len(times) - 1})))
    return drawn


def one_by_one(evictor, times: list[int], firings: list[int], after: bool = False) -> tuple[list[list[int]], list[int]]:
    """Return the numbers each firing sees, and those kept after the last one."""
    held: list[TimestampedValue] = []
    seen = []
    for number, time in enumerate(times):
        held.append(TimestampedValue(number, time))
        if number in firings:
            left = list(evictor.evict_before(held, len(held), GLOBAL_WINDOW, None))
            seen.append([element.value for element in (held if after else left)])
            held = left
    return seen, [element.value for element in held]


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("block", [1, survivors.BLOCK.usual])
@settings(max_examples=examples(40), deadline=None)
@given(rule=RULES, drawn=lists())
def test_firings_see_what_evictors_leave(block, after, rule, drawn):
    evictor, columnar = rule
    offsets = np.cumsum([0, *[len(times) for times, _ in drawn]]).tolist()
    firings = [(start, start + place) for start, (_, places) in zip(offsets, drawn, strict=False) for place in places]
    times = np.array([time for times, _ in drawn for time in times])
    expected = [one_by_one(evictor, times, places, after) for times, places in drawn]
    with given_sizes({survivors.BLOCK: block}):
        rows = pa.table({"v": np.arange(len(times))})
        if after:
            pairs = zip([(NEVER, NEVER), *firings], firings, strict=False)
            previous = np.array([before[1] if before[0] == this[0] else NEVER for before, this in pairs])
            partials = columnar.fold_before_eviction(FOLD, rows, times, _firings(firings), previous)
        else:
            partials = columnar.fold(FOLD, rows, times, _firings(firings))
        ends = [(start, start + len(each) - 1) for start, (each, _) in zip(offsets, drawn, strict=False)]
        kept = np.flatnonzero(columnar.kept(times, _firings(ends))).tolist()
    sums = [sum(seen) + start * len(seen) for start, (each, _) in zip(offsets, expected, strict=False) for seen in each]
    counts = [len(seen) for each, _ in expected for seen in each]
    assert [column.to_pylist() for column in FOLD.finish(partials)] == [counts, sums]
    assert kept == [start + number for start, (_, last) in zip(offsets, expected, strict=False) for number in last]


def _firings(pairs: list[tuple[int, int]]) -> Firings:
    return Firings(np.array([first for first, _ in pairs]), np.array([last for _, last in pairs]))


@pytest.mark.parametrize("times", [[0, MIN], [0, 5, MIN, 9], [MIN + 1], [MIN + 2, MIN + 1]], ids=repr)
def test_times_that_cannot_be_compared_are_refused_as_by_the_evictor(times):
    evictor, rule, last = TimeEvictor(3), YoungSurvive(3, MIN), _firings([(0, len(times) - 1)])
    with pytest.raises(EvictionTimeError) as expected:
        one_by_one(evictor, times, [len(times) - 1])
    for fold in (
        lambda: rule.fold(FOLD, pa.table({"v": times}), np.array(times), last),
        lambda: rule.kept(np.array(times), last),
    ):
        with pytest.raises(EvictionTimeError) as got:
            fold()
        assert str(got.value) == str(expected.value)
    assert len(rule.kept(np.array(times), last, fires=False)) == len(times), "as long as nothing fires, nothing is refused"


@pytest.mark.parametrize("rule", [LastSurvive(3), YoungSurvive(3, MIN)])
def test_no_firing_is_no_row(rule):
    none = Firings(np.zeros(0, np.int64), np.zeros(0, np.int64))
    assert rule.fold(FOLD, pa.table({"v": [1, 2]}), np.array([1, 2]), none).num_rows == 0
    assert not rule.kept(np.array([1, 2]), none).any()
