"""The frame finder against its definition: for every row of the segment it is checked whether it is in the frame."""

from __future__ import annotations

import datetime as dt
import random
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

from tests.examples import seeds
from windowpane.kernels.over.frames import Frames, SortedOrder, find_frames, session_starts, spans
from windowpane.kernels.over.sorting import layout_of
from windowpane.kernels.sorting.order_axis import order_axis
from windowpane.windowing.frames import (
    CURRENT_ROW,
    UNBOUNDED_FOLLOWING,
    UNBOUNDED_PRECEDING,
    Bound,
    Exclude,
    Frame,
    Side,
    Units,
    following,
    preceding,
)
from windowpane.windowing.intervals import Interval
from windowpane.windowing.over.spec import OrderColumn

SEGMENTS = [[1, 1, 2, 5], [3]]
"""Values of the ORDER BY column by segment: rows 0 to 3, with peers 0 and 1, and row 4."""


def ordered(segments: list[list[int]], descending: bool = False) -> SortedOrder:
    starts = np.array([at == 0 for values in segments for at in range(len(values))], np.bool_)
    values = pa.array([value for segment in segments for value in segment], pa.int64())
    offsets = tuple(range(13))
    return SortedOrder(layout_of(starts, [values]), OrderColumn("o", descending, nulls_first=False), order_axis(values, offsets))


def pairs(found: Frames) -> list[tuple[int, int]]:
    return list(zip(found.lo.tolist(), found.hi.tolist(), strict=True))


@pytest.mark.parametrize(
    ("frame", "expected"),
    [
        (Frame.rows(preceding(1), following(1)), [(0, 2), (0, 3), (1, 4), (2, 4), (4, 5)]),
        (Frame.rows(following(1), UNBOUNDED_FOLLOWING), [(1, 4), (2, 4), (3, 4), (4, 4), (5, 5)]),
        (Frame.range_(preceding(1)), [(0, 2), (0, 2), (0, 3), (3, 4), (4, 5)]),
        (Frame.range_(CURRENT_ROW, following(3)), [(0, 3), (0, 3), (2, 4), (3, 4), (4, 5)]),
        (Frame.groups(preceding(1)), [(0, 2), (0, 2), (0, 3), (2, 4), (4, 5)]),
        (Frame.groups(UNBOUNDED_PRECEDING), [(0, 2), (0, 2), (0, 3), (0, 4), (4, 5)]),
        (Frame.session(3), [(0, 3), (0, 3), (0, 3), (3, 4), (4, 5)]),
    ],
    ids=str,
)
def test_a_frame_by_hand(frame: Frame, expected: list[tuple[int, int]]) -> None:
    assert pairs(find_frames(frame, ordered(SEGMENTS))) == expected


def test_a_session_ends_where_the_gap_has_passed_in_full() -> None:
    order = ordered([[1, 3, 6, 10], [10]])
    assert session_starts(Frame.session(3), order).tolist() == [True, False, True, True, True]


def test_rows_beyond_the_ends_of_a_segment_would_belong_to_the_frame() -> None:
    found = find_frames(Frame.rows(preceding(1), following(1)), ordered(SEGMENTS))
    assert found.reaches_first.tolist() == [True, False, False, False, True]
    assert found.reaches_end.tolist() == [False, False, False, True, True]


@pytest.mark.parametrize(
    ("exclude", "expected"),
    [
        (Exclude.NO_OTHERS, [[0, 1, 2], [0, 1, 2, 3], [0, 1, 2, 3], [1, 2, 3], [4]]),
        (Exclude.CURRENT_ROW, [[1, 2], [0, 2, 3], [0, 1, 3], [1, 2], []]),
        (Exclude.GROUP, [[2], [2, 3], [0, 1, 3], [1, 2], []]),
        (Exclude.TIES, [[0, 2], [1, 2, 3], [0, 1, 2, 3], [1, 2, 3], [4]]),
    ],
)
def test_what_exclude_leaves_by_hand(exclude: Exclude, expected: list[list[int]]) -> None:
    order = ordered(SEGMENTS)
    frame = Frame.rows(preceding(2), following(2), exclude)
    left = spans(frame, find_frames(frame, order), order.layout)
    held = [[at for lo, hi in left for at in range(lo[row], hi[row])] for row in range(5)]
    assert held == expected


def is_in(bound: Bound, distance: int, is_start: bool) -> bool:
    """Whether something ``distance`` behind the current row is on the inner side of a bound."""
    if bound.is_unbounded:
        return True
    offset = 0 if bound.side is Side.CURRENT_ROW else bound.offset
    assert isinstance(offset, int)
    steps = offset if bound.side is Side.FOLLOWING else -offset
    return distance >= steps if is_start else distance <= steps


def by_definition(frame: Frame, segments: list[list[int]], descending: bool) -> list[list[int]]:
    held: list[list[int]] = []
    first = 0
    for values in segments:
        groups = [sum(a != b for a, b in pairwise(values[: at + 1])) for at in range(len(values))]
        axis = {
            Units.ROWS: list(range(len(values))),
            Units.RANGE: [-value for value in values] if descending else values,
            Units.GROUPS: groups,
        }[frame.units]
        for here in axis:
            reached = [(at, there - here) for at, there in enumerate(axis)]
            held.append([first + at for at, by in reached if is_in(frame.start, by, True) and is_in(frame.end, by, False)])
        first += len(values)
    return held


@pytest.mark.parametrize("seed", seeds(300))
def test_every_row_within_both_bounds_is_in_the_frame(seed: int) -> None:
    draw = random.Random(seed)
    descending = draw.random() < 0.5
    segments = [sorted(draw.choices(range(9), k=draw.randint(1, 7)), reverse=descending) for _ in range(draw.randint(1, 3))]
    start = draw.choice([UNBOUNDED_PRECEDING, preceding(draw.randint(0, 12)), CURRENT_ROW, following(draw.randint(0, 3))])
    end = draw.choice([preceding(draw.randint(0, 3)), CURRENT_ROW, following(draw.randint(0, 12)), UNBOUNDED_FOLLOWING])
    if start.side.value > end.side.value:
        start, end = UNBOUNDED_PRECEDING, following(1)
    frame = Frame(draw.choice([Units.ROWS, Units.RANGE, Units.GROUPS]), start, end)
    found = pairs(find_frames(frame, ordered(segments, descending)))
    assert [list(range(lo, hi)) for lo, hi in found] == by_definition(frame, segments, descending), (frame, segments)


@pytest.mark.parametrize("seed", seeds(40))
def test_instants_are_moved_as_the_calendar_has_it(seed: int) -> None:
    """Months, then days, then microseconds, as ``Interval`` adds them, on the whole column at once."""
    rng = random.Random(seed)
    instants = [dt.datetime(1600, 1, 31) + dt.timedelta(microseconds=rng.randrange(2**54)) for _ in range(20)]
    instants += [dt.datetime(2024, rng.randint(1, 12), 28, 23, 59, 59) + dt.timedelta(days=rng.randint(0, 3)) for _ in range(20)]
    months, days = rng.choice([0, 1, 11, 25]), rng.choice([0, 1, 40])
    for kind in (pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.date32()):
        values = [value.date() for value in instants] if kind == pa.date32() else instants
        offset = Interval(months, days, 0 if kind == pa.date32() else rng.choice([0, 1, 90_000_000_000]))
        axis = order_axis(pa.array([*values, None], kind), (offset,))
        for forward in (True, False):
            moved = [(offset if forward else -offset).added_to(value) for value in values]
            assert axis.shift(offset, forward)[:-1].tolist() == order_axis(pa.array(moved, kind), ()).points.tolist()
