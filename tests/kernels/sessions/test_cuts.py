"""Where rows are cut into sessions: every case by hand, and random rows against one row at a time."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import numpy as np
import pytest

from windowpane.kernels.sessions.cuts import Limit, cuts

GAP = 10


def found(
    times: Sequence[int],
    breaks: Sequence[int] = (0,),
    closes: Sequence[int] = (),
    limits: Sequence[tuple[Sequence[int], int]] = (),
    duration: int | None = None,
) -> list[tuple[int, int, bool]]:
    """Return first and last row of each session, and whether that row closes it; of breaks and closes the places are given."""
    at, chosen, closing = np.array(times, np.int64), np.zeros(len(times), bool), np.zeros(len(times), bool)
    chosen[list(breaks)], closing[list(closes)] = True, True
    sums = [Limit(np.array(weights, np.int64), most) for weights, most in limits]
    cut = cuts(chosen, at, at + GAP, closing, sums, duration)
    return list(zip(cut.firsts.tolist(), cut.lasts.tolist(), cut.are_closed.tolist(), strict=True))


def test_no_rows_have_no_session() -> None:
    assert found([], breaks=()) == []


@pytest.mark.parametrize(
    ("times", "options", "sessions"),
    [
        ([0, 9, 18], {}, [(0, 2, False)]),
        ([0, 10, 19], {}, [(0, 0, False), (1, 2, False)]),  # a row a whole gap later opens another
        ([0, 5, 0, 5], {"breaks": (0, 2)}, [(0, 1, False), (2, 3, False)]),
        ([0, 1, 2, 3], {"closes": (1,)}, [(0, 1, True), (2, 3, False)]),
        ([0, 1, 2], {"closes": (0, 1, 2)}, [(0, 0, True), (1, 1, True), (2, 2, True)]),
        ([0, 0, 0, 1], {"closes": (1,)}, [(0, 1, True), (2, 3, False)]),  # of one instant the next row opens another
        ([0, 1, 2, 3, 4], {"limits": [([1] * 5, 2)]}, [(0, 1, True), (2, 3, True), (4, 4, False)]),
        ([0, 1, 2, 3], {"limits": [([0, 7, 2, 5], 7)]}, [(0, 1, True), (2, 3, True)]),
        ([0, 1, 2, 3], {"limits": [([9, 0, 0, 9], 5)]}, [(0, 0, True), (1, 3, True)]),
        ([0, 1, 2, 3], {"limits": [([1] * 4, 3), ([5] * 4, 10)]}, [(0, 1, True), (2, 3, True)]),  # whichever is first
        ([0, 5, 12, 15], {"duration": 12}, [(0, 1, False), (2, 3, False)]),  # a row so much later opens another
        ([0, 5, 3, 5], {"breaks": (0, 2), "duration": 4}, [(0, 0, False), (1, 1, False), (2, 3, False)]),
        ([0, 1, 2, 30], {"closes": (2,), "duration": 100}, [(0, 2, True), (3, 3, False)]),
    ],
)
def test_by_hand(times: list[int], options: dict[str, object], sessions: list[tuple[int, int, bool]]) -> None:
    assert found(times, **options) == sessions  # type: ignore[arg-type]


def test_a_sum_beyond_64_bits_is_reached_where_it_is() -> None:
    most = (1 << 62) + 1
    assert found([0, 1, 2, 3], limits=[([1 << 62, 1, 1 << 62, 1], most)]) == [(0, 1, True), (2, 3, True)]


@pytest.mark.parametrize("seed", range(200))
def test_random_rows_are_cut_as_one_row_after_the_other(seed: int) -> None:
    draw = Random(seed)
    rows = draw.randint(1, 40)
    breaks = [0, *(at for at in range(1, rows) if draw.random() < 0.1)]
    times: list[int] = []
    for at in range(rows):
        times.append(draw.randint(0, 5) if at in breaks else times[-1] + draw.choice((0, 1, 3, 8, 10, 11)))
    closes = [at for at in range(rows) if draw.random() < 0.15]
    weights = [draw.choice((0, 0, 1, 2, 9)) for _ in range(rows)]
    most, count, duration = draw.choice((3, 6, 40)), draw.choice((2, 5, 50)), draw.choice((None, 6, 25))
    sessions, first = [], 0
    for at in range(rows):
        if at > first and (
            at in breaks or times[at] - times[at - 1] >= GAP or (duration is not None and times[at] - times[first] >= duration)
        ):
            sessions.append((first, at - 1, False))
            first = at
        if at in closes or sum(weights[first : at + 1]) >= most or at - first + 1 >= count:
            sessions.append((first, at, True))
            first = at + 1
    if first < rows:
        sessions.append((first, rows - 1, False))
    limits = [(weights, most), ([1] * rows, count)]
    assert found(times, breaks, closes, limits, duration) == sessions, f"seed {seed}"
