"""Evictors, by the rules of Flink's CountEvictor, TimeEvictor and DeltaEvictor."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from windowpane.windowing.evictors import CountEvictor, DeltaEvictor, Evictor, TimeEvictor, TimestampedValue
from windowpane.windowing.times import MIN
from windowpane.windowing.windows import GLOBAL_WINDOW

CLOCKS = SimpleNamespace(current_watermark=0, current_processing_time=0)


def before(evictor, elements):
    return [e.value for e in evictor.evict_before(elements, len(elements), GLOBAL_WINDOW, CLOCKS)]


def after(evictor, elements):
    return [e.value for e in evictor.evict_after(elements, len(elements), GLOBAL_WINDOW, CLOCKS)]


def elements(*pairs):
    return [TimestampedValue(value, time) for value, time in pairs]


@pytest.mark.parametrize(("keep", "left"), [(2, [2, 3]), (3, [1, 2, 3]), (9, [1, 2, 3]), (0, []), (-1, [])])
def test_count_keeps_the_last_by_arrival(keep, left):
    window = elements((1, 30), (2, 10), (3, 20))
    assert before(CountEvictor.of(keep), window) == left
    assert after(CountEvictor.of(keep), window) == [1, 2, 3]
    assert after(CountEvictor.of(keep, do_evict_after=True), window) == left
    assert before(CountEvictor.of(keep, do_evict_after=True), window) == [1, 2, 3]


def test_time_removes_what_is_as_old_as_the_cutoff():
    assert before(TimeEvictor.of(10), elements(("at cutoff", 10), ("newest", 20), ("inside", 11))) == ["newest", "inside"]


def test_time_leaves_elements_without_timestamps_alone():
    assert before(TimeEvictor.of(10), elements(("a", MIN), ("b", MIN))) == ["a", "b"]
    assert before(TimeEvictor.of(10), []) == []


def test_delta_removes_at_the_threshold_against_the_last_element():
    evictor = DeltaEvictor.of(5, lambda old, last: last - old)
    assert before(evictor, elements((5, 0), (6, 0), (20, 0), (10, 0))) == [6, 20, 10]


def test_an_evictor_of_ones_own_overrides_what_it_needs():
    class OnlyEven(Evictor):
        def evict_before(self, elements, size, window, context):
            return [e for e in elements if e.value % 2 == 0]

    assert before(OnlyEven(), elements((1, 0), (2, 0))) == [2]
    assert after(OnlyEven(), elements((1, 0), (2, 0))) == [1, 2]
