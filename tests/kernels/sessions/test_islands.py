"""Islands equal those of the merging window set's rule, applied interval by interval."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowpane.kernels.sessions.islands import find_islands, sorted_by
from windowpane.windowing.times import MAX, MIN
from windowpane.windowing.windows import TimeWindow, merge_overlapping

interval = st.tuples(st.integers(0, 3), st.integers(-20, 20), st.integers(0, 9))


def columns(rows) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    keys, starts, lengths = (np.array(column, np.int64) for column in zip(*rows, strict=True))
    return keys, starts, starts + lengths


def covers(rows) -> set[tuple[int, TimeWindow]]:
    """Return (key, session) by the pairwise rule of the window vocabulary."""
    found = set()
    for key in {row[0] for row in rows}:
        windows = {TimeWindow(start, start + length) for k, start, length in rows if k == key}
        merged = merge_overlapping(windows)
        alone = windows - {member for _, members in merged for member in members}
        found |= {(key, window) for window in [*alone, *(cover for cover, _ in merged)]}
    return found


@given(st.lists(interval, min_size=1, max_size=12), st.sampled_from([1, 2**20, 2**40]), st.sampled_from([1, 2**30, 2**55]))
def test_islands_are_the_sessions_of_each_key(rows, key_scale, time_scale):
    scaled = [(key * key_scale, start * time_scale, length * time_scale) for key, start, length in rows]
    keys, starts, ends = columns(scaled)
    islands = find_islands(keys, starts, ends)
    bounds = [TimeWindow(*each) for each in zip(islands.starts.tolist(), islands.ends.tolist(), strict=True)]
    assert set(zip(keys[islands.first].tolist(), bounds, strict=True)) == covers(scaled)
    assert (islands.starts[islands.of] <= starts).all()
    assert (islands.ends[islands.of] >= ends).all()
    assert (keys[islands.first[islands.of]] == keys).all()
    assert (starts[islands.first] == islands.starts).all()


@given(st.lists(interval, min_size=1, max_size=12), st.data())
def test_the_members_of_islands_among_some_intervals_are_those_intervals(rows, data):
    islands = find_islands(*columns(rows))
    low = data.draw(st.integers(0, len(rows)))
    high = data.draw(st.integers(low, len(rows)))
    found, segments = islands.members(low, high)
    held = {
        island: {number + low for number in segments.order[start:end].tolist()}
        for island, start, end in zip(found.tolist(), segments.offsets[:-1], segments.offsets[1:], strict=True)
    }
    assert held == {
        island: members
        for island in range(len(islands.starts))
        if (members := {number for number in range(low, high) if islands.of[number] == island})
    }
    assert islands.sizes.tolist() == np.bincount(islands.of).tolist()


def test_touching_intervals_are_one_island_and_a_pause_makes_two():
    islands = find_islands(*columns([(0, 0, 5), (0, 5, 5), (0, 11, 1)]))
    assert islands.of.tolist() == [0, 0, 1]
    assert islands.growths == 1


def test_no_intervals_make_no_islands():
    none = np.zeros(0, np.int64)
    assert len(find_islands(none, none, none).starts) == 0


@pytest.mark.parametrize("major", [[1, 0, 1, 0], [2**62, 0, 2**62, 0]])
@pytest.mark.parametrize("minor", [[3, 2, 1, 0], [MAX, 0, MIN, MIN]])
def test_order_by_sorts_by_both_columns_however_wide_they_are(major, minor):
    order = sorted_by(np.array(major, np.int64), np.array(minor, np.int64)).order.tolist()
    assert [(major[n], minor[n]) for n in order] == sorted(zip(major, minor, strict=True))
