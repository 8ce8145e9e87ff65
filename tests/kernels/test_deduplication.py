"""First rows and runs by hand; on random rows they are compared in tests/engines/test_deduplication.py."""

from __future__ import annotations

import numpy as np
import pytest

from verify.sizes import given_sizes
from windowpane.kernels.deduplication import WORTH_A_ROUND, distance, first_rows, runs

NONE = np.zeros(0, np.int64)


@pytest.mark.parametrize("part", [1, 32])
def test_first_rows_of_keys(part: int) -> None:
    codes, times = np.array([1, 2, 1, 1, 1, 2, 1]), np.array([50, 50, 59, 60, 41, 60, 40])
    with given_sizes({WORTH_A_ROUND: part}):
        assert first_rows(codes, times, NONE, NONE, 10).tolist() == [True, True, False, True, False, True, True]
        held = first_rows(codes, times, np.array([1, 3]), np.array([51, 60]), 10)
    assert held.tolist() == [False, True, False, False, True, True, False]
    assert first_rows(NONE, NONE, NONE, NONE, 10).tolist() == []


def test_times_at_both_ends_of_int64_are_far_apart() -> None:
    ends = np.array([-(1 << 63), (1 << 63) - 1])
    assert distance(ends, ends[::-1].copy()).tolist() == [(1 << 64) - 1] * 2
    assert first_rows(np.array([1, 1]), ends, NONE, NONE, 10).tolist() == [True, True]


def test_runs_of_spans() -> None:
    codes = np.array([1, 1, 1, 2, 1, 1])
    starts, ends = np.array([100, 0, 25, 0, 5, 39]), np.array([100, 30, 26, 9, 5, 39])
    # key 1: 0 to 30 holds 25 and 5, and 39 is 9 from 30; 100 stands alone
    assert runs(codes, starts, ends, 10).of.tolist() == [1, 0, 0, 2, 0, 0]
    assert runs(codes, starts, ends, 9).of.tolist() == [2, 0, 0, 3, 0, 1]


def test_runs_at_the_ends_of_int64() -> None:
    least, most = -(1 << 63), (1 << 63) - 1
    starts = np.array([least, least + 9, most - 5, most])
    assert runs(np.zeros(4, np.int64), starts, starts, 10).of.tolist() == [0, 0, 1, 1]
    assert runs(np.zeros(4, np.int64), starts, starts, 6).of.tolist() == [0, 1, 2, 2]
    assert runs(np.zeros(4, np.int64), starts, starts, 5).of.tolist() == [0, 1, 2, 3]
