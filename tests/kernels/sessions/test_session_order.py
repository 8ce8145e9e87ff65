"""The order in which sessions hold elements is that of the merging window set, taken element by element."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from windowpane.kernels.sessions.islands import find_islands
from windowpane.kernels.sessions.live_sessions import holding_order, offsets_of
from windowpane.operators.window.placement import MergingWindowSet
from windowpane.windowing.assigners import EventTimeSessionWindows
from windowpane.windowing.times import MAX, MIN
from windowpane.windowing.windows import TimeWindow

GAP = 5
elements = st.lists(st.tuples(st.integers(0, 2), st.integers(-20, 40)), min_size=1, max_size=14)


def held_by_the_set(rows) -> dict[tuple[int, TimeWindow], list[int]]:
    """Return the elements of each session of each key, by taking one after the other."""
    found, written = dict[Any, list[int]](), list[Any]()
    for key in {key for key, _ in rows}:
        windows, contents = MergingWindowSet(EventTimeSessionWindows(GAP), {}), dict[Any, list[int]]()
        for number, (of, start) in enumerate(rows):
            if of != key:
                continue

            def merge(merged, contents=contents):
                parts = [contents.pop(window, []) for window in (merged.state_window, *merged.merged_state_windows)]
                contents[merged.state_window] = [each for part in parts for each in part]

            window = windows.add(TimeWindow(start, start + GAP), merge)
            contents.setdefault(windows.state_window(window), []).append(number)
        windows.persist(written.append)
        found |= {(key, window): contents[state] for window, state in (written.pop() or {}).items()}
    return found


@settings(max_examples=examples(300), deadline=None)
@given(elements)
def test_elements_stand_as_the_merging_window_set_holds_them(rows):
    keys, starts = (np.array(column, np.int64) for column in zip(*rows, strict=True))
    islands = find_islands(keys, starts, starts + GAP)
    order = holding_order(islands.of, starts, starts + GAP)
    offsets = offsets_of(islands.of, order, np.ones(len(rows), np.int64))
    found: dict[tuple[int, TimeWindow], list[int]] = {}
    for number in order.tolist():
        island = islands.of[number]
        bounds = TimeWindow(int(islands.starts[island]), int(islands.ends[island]))
        members = found.setdefault((int(keys[number]), bounds), [])
        assert offsets[number] == len(members)
        members.append(number)
    assert found == held_by_the_set(rows)


def test_offsets_count_what_each_interval_has():
    islands, order = np.array([1, 0, 1, 1]), np.array([1, 3, 0, 2])
    assert offsets_of(islands, order, np.array([4, 9, 1, 2])).tolist() == [2, 0, 6, 0]


def test_bounds_at_the_ends_of_time_do_not_wrap():
    starts, ends = np.array([MAX - 9, MIN, MIN + 3]), np.array([MAX, MIN + 4, MAX - 9])
    assert holding_order(np.zeros(3, np.int64), starts, ends).tolist() == [1, 0, 2]
