"""Frames: what they say of themselves and what is refused (RisingWave's rows.rs and frame_finder.rs, vectors for both exist)."""

from __future__ import annotations

import datetime as dt
import pickle
from decimal import Decimal

import pytest

from windowpane.errors import InvalidFrameError
from windowpane.windowing.frames import (
    CURRENT_ROW,
    RUNNING_RANGE,
    UNBOUNDED_FOLLOWING,
    UNBOUNDED_PRECEDING,
    WHOLE_PARTITION,
    Bound,
    Exclude,
    Frame,
    following,
    merge_rows_frames,
    preceding,
)
from windowpane.windowing.intervals import Interval


@pytest.mark.parametrize(
    ("start", "end", "reach", "canonical"),
    [
        (preceding(1), CURRENT_ROW, (1, 0), True),
        (CURRENT_ROW, following(1), (0, 1), True),
        (UNBOUNDED_PRECEDING, following(10), (None, 10), True),
        (preceding(10), UNBOUNDED_FOLLOWING, (10, None), True),
        (preceding(1), preceding(10), (10, 0), False),
        (following(10), following(1), (0, 10), False),
    ],
)
def test_reach(start: Bound, end: Bound, reach: tuple[int | None, int | None], canonical: bool) -> None:
    frame = Frame.rows(start, end)

    assert (frame.n_preceding, frame.n_following) == reach
    assert frame.is_canonical is canonical


@pytest.mark.parametrize(
    ("start", "end"),
    [
        (UNBOUNDED_FOLLOWING, following(10)),
        (UNBOUNDED_FOLLOWING, UNBOUNDED_FOLLOWING),
        (preceding(10), UNBOUNDED_PRECEDING),
        (following(1), CURRENT_ROW),
        (following(1), preceding(1)),
        (CURRENT_ROW, preceding(1)),
    ],
)
def test_bounds_that_cannot_be_combined(start: Bound, end: Bound) -> None:
    for build in (Frame.rows, Frame.range_, Frame.groups):
        with pytest.raises(InvalidFrameError, match="frame"):
            build(start, end)


@pytest.mark.parametrize(
    "offset", [-1, Decimal("-0.5"), float("nan"), float("inf"), Decimal("NaN"), Interval(days=-1), Interval(1, -1), True, "1 day"]
)
def test_offsets_that_are_none(offset: object) -> None:
    with pytest.raises(InvalidFrameError, match="offset"):
        preceding(offset)  # type: ignore[arg-type]


@pytest.mark.parametrize("offset", [1.5, Interval(days=1), Decimal(2)])
def test_rows_and_groups_count(offset: float) -> None:
    for build in (Frame.rows, Frame.groups):
        with pytest.raises(InvalidFrameError, match="whole number"):
            build(preceding(offset))


def test_a_gap_belongs_to_sessions() -> None:
    assert str(Frame.session(dt.timedelta(hours=1))) == "SESSION WITH GAP '1 hour'"
    with pytest.raises(InvalidFrameError, match="gap"):
        Frame(RUNNING_RANGE.units, UNBOUNDED_PRECEDING, CURRENT_ROW, gap=1)
    with pytest.raises(InvalidFrameError, match="gap"):
        Frame(Frame.session(1).units, UNBOUNDED_PRECEDING, UNBOUNDED_FOLLOWING)


def test_merged_reach() -> None:
    """RisingWave's test_merge_rows_frames."""
    merged = merge_rows_frames([Frame.rows(preceding(3), preceding(2)), Frame.rows(preceding(1), preceding(4))])

    assert merge_rows_frames([]) == Frame.rows(CURRENT_ROW, CURRENT_ROW)
    assert merged == Frame.rows(preceding(4), CURRENT_ROW)
    assert merge_rows_frames([merged, Frame.rows(following(5), following(2))]) == Frame.rows(preceding(4), following(5))
    assert merge_rows_frames([WHOLE_PARTITION, merged]) == WHOLE_PARTITION


def test_prints_as_sql() -> None:
    frame = Frame.range_(preceding(Interval.of("1 hour")), following(Interval(days=2)), Exclude.TIES)

    assert str(frame) == "RANGE BETWEEN '1 hour' PRECEDING AND '2 days' FOLLOWING EXCLUDE TIES"
    assert repr(preceding(3)) == "preceding(3)"
    assert repr(CURRENT_ROW) == "CURRENT_ROW"
    assert pickle.loads(pickle.dumps(frame)) == frame
    assert frame.excluding(Exclude.GROUP).exclude is Exclude.GROUP


def test_what_needs_one_order_column() -> None:
    assert Frame.range_(preceding(1)).has_range_offset
    assert Frame.session(1).has_range_offset
    assert not RUNNING_RANGE.has_range_offset
    assert not Frame.rows(preceding(1)).has_range_offset
