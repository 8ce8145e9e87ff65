"""Pairs by range, and the join of what windows hold: against the product of all rows, filtered."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

import windowpane as wp
from tests.examples import seeds
from windowpane.kernels.joined_windows import BOTH, LEFT, RIGHT, JoinedWindows
from windowpane.kernels.ranges import Places, Ranges, moved
from windowpane.sizes import replacing_sizes
from windowpane.windowing.times import MAX, MIN


@pytest.mark.parametrize("seed", seeds(20))
def test_pairs_are_those_of_the_product(seed):
    chance = random.Random(seed)
    left = [(chance.randrange(-1, 3), chance.randrange(10)) for _ in range(chance.randrange(12))]
    right = [(chance.randrange(-1, 3), chance.randrange(10)) for _ in range(chance.randrange(12))]
    expected = {
        (i, j) for i, (code, time) in enumerate(left) for j, (k, t) in enumerate(right) if code == k >= 0 and -2 <= t - time <= 3
    }
    codes, times = (np.array([row[i] for row in left], np.int64) for i in (0, 1))
    places = Places.of(*(np.array([row[i] for row in right], np.int64) for i in (0, 1)))
    with replacing_sizes(lambda size: min(size.usual, 3)):
        found = [
            pair
            for a, b in Ranges.of(codes, times - 2, times + 3, places).pairs()
            for pair in zip(a.tolist(), b.tolist(), strict=True)
        ]
    assert (len(found), set(found)) == (len(expected), expected)


def test_places_count_the_rows_before():
    places = Places.of(np.array([1, 0, 1, 1]), np.array([5, 9, 5, 7]))
    assert places.order.tolist() == [1, 0, 2, 3]
    assert places.before(np.array([1, 1, 0]), np.array([5, 5, 100]), or_at=True).tolist() == [3, 3, 1]
    assert places.before(np.array([1, 1]), np.array([5, 6]), or_at=False).tolist() == [1, 3]
    assert places.first(np.array([0, 1, 2])).tolist() == [0, 1, 4]


def test_times_are_moved_within_64_bits():
    times = np.array([MIN, 0, MAX], np.int64)
    assert moved(times, 5).tolist() == [MIN + 5, 5, MAX]
    assert moved(times, -5).tolist() == [MIN, -5, MAX - 5]


ROWS = pa.table(
    {
        "k": ["a", "a", "a", "b", None, None],
        "window_end": [10, 10, 20, 10, 10, 10],
        "side": pa.array([LEFT, RIGHT, RIGHT, LEFT, LEFT, RIGHT], pa.int8()),
        "left.v": [1, None, None, 2, 3, None],
        "right.v": [None, 4, 5, None, None, 6],
    }
)


@pytest.mark.parametrize(
    ("how", "options", "expected"),
    [
        ("inner", {}, [(BOTH, 1, 4)]),
        ("inner", {"null_safe": True}, [(BOTH, 1, 4), (BOTH, 3, 6)]),
        ("inner", {"condition": wp.right("v") > 4}, []),
        ("left", {}, [(BOTH, 1, 4), (LEFT, 2, None), (LEFT, 3, None)]),
        ("full", {}, [(BOTH, 1, 4), (LEFT, 2, None), (LEFT, 3, None), (RIGHT, None, 5), (RIGHT, None, 6)]),
        ("semi", {}, [(LEFT, 1, None)]),
        ("anti", {"condition": wp.right("v") > 4}, [(LEFT, 1, None), (LEFT, 2, None), (LEFT, 3, None)]),
    ],
)
def test_rows_of_one_key_and_window_are_joined(how, options, expected):
    names = (("v", "left.v"),), (("v", "right.v"),)
    joined = JoinedWindows(how, ("k",), ("k", "window_end"), "side", *names, ("left.v", "right.v"), **options)(ROWS)
    rows = zip(*(joined[name].to_pylist() for name in ("side", "left.v", "right.v")), strict=True)
    assert sorted(rows, key=repr) == sorted(expected, key=repr)
