"""When a row is complete: no row that may still come, behind all others and after the watermark, changes its value."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from windowpane.kernels.over.complete_rows import complete, is_closed_by_watermark, kept_from
from windowpane.kernels.over.rows import SortedRows
from windowpane.kernels.over.window import OverWindow
from windowpane.windowing.frames import CURRENT_ROW, UNBOUNDED_FOLLOWING, UNBOUNDED_PRECEDING, Frame, following, preceding
from windowpane.windowing.over.spec import OrderColumn, OverCall, OverSpec
from windowpane.windowing.times import MAX

COLUMNS = pa.schema([("o", pa.int64()), ("k", pa.int64()), ("v", pa.int64())])
ORDERS = [1, 2, 5, 9]


def of(call: OverCall, values: list[int | None] | None = None) -> tuple[SortedRows, OverWindow]:
    """One partition of four rows, at ``ORDERS``."""
    window = OverWindow(OverSpec((), (OrderColumn("o", nulls_first=False),), ("k",), (call,)), COLUMNS)
    table = pa.table([ORDERS, range(4), values or [1, 2, 3, 4]], schema=COLUMNS)
    return window.rows(table, np.array([True, False, False, False]), np.zeros(1, np.bool_)), window


def median(frame: Frame) -> OverCall:
    return OverCall("median", ("v",), frame)


@pytest.mark.parametrize(
    ("call", "closed", "expected"),
    [
        (median(Frame.rows(preceding(3))), 0, [True, True, True, True]),
        (median(Frame.rows(CURRENT_ROW, following(1))), 100, [True, True, True, False]),
        (median(Frame.rows(CURRENT_ROW, UNBOUNDED_FOLLOWING)), 100, [False, False, False, False]),
        (median(Frame.rows(CURRENT_ROW, UNBOUNDED_FOLLOWING)), MAX, [True, True, True, True]),
        (median(Frame.range_(CURRENT_ROW, following(2))), 9, [True, True, True, False]),
        (median(Frame.range_(CURRENT_ROW, following(2))), 11, [True, True, True, True]),
        (median(Frame.session(3)), 10, [True, True, True, False]),
        (median(Frame.session(3)), 11, [True, True, True, True]),
        (OverCall("lead", ("v",), offset=2), 100, [True, True, False, False]),
        (OverCall("lag", ("v",), offset=2), 0, [True, True, True, True]),
    ],
    ids=str,
)
def test_complete_rows_by_hand(call: OverCall, closed: int, expected: list[bool]) -> None:
    rows, window = of(call)
    assert complete(rows, window.calls, closed).tolist() == expected


def test_a_lead_over_nulls_waits_for_a_value() -> None:
    rows, window = of(OverCall("lead", ("v",), offset=1, ignore_nulls=True), [1, None, 3, None])
    assert complete(rows, window.calls, 100).tolist() == [True, True, False, False]


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (median(Frame.rows(CURRENT_ROW, following(1))), False),
        (median(Frame.range_(CURRENT_ROW, following(1))), True),
        (median(Frame.range_(CURRENT_ROW, UNBOUNDED_FOLLOWING)), False),
        (median(Frame.session(3)), True),
        (OverCall("lead", ("v",), offset=1, ignore_nulls=True), False),
    ],
    ids=str,
)
def test_a_watermark_alone_closes_frames_of_values(call: OverCall, expected: bool) -> None:
    assert is_closed_by_watermark(of(call)[1].calls) is expected


@pytest.mark.parametrize(
    ("call", "pending", "expected"),
    [
        (median(Frame.rows(preceding(2), following(1))), 3, 1),
        (median(Frame.rows(preceding(2), following(1))), 1, 0),
        (median(Frame.rows(CURRENT_ROW, following(1))), 3, 3),
        (median(Frame.range_(preceding(4), following(1))), 3, 2),
        (median(Frame.groups(preceding(2), following(1))), 3, 1),
        (median(Frame.rows(UNBOUNDED_PRECEDING, following(1))), 3, 0),
        (median(Frame.session(3)), 3, 3),
        (median(Frame.session(5)), 2, 0),
        (OverCall("lag", ("v",), offset=1), 3, 2),
    ],
    ids=str,
)
def test_rows_that_later_values_still_need(call: OverCall, pending: int, expected: int) -> None:
    rows, window = of(call)
    assert kept_from(rows, window.calls, np.array([pending])).tolist() == [expected]


def test_a_lag_over_nulls_needs_the_last_values_however_far_back() -> None:
    rows, window = of(OverCall("lag", ("v",), offset=1, ignore_nulls=True), [1, 2, None, None])
    assert kept_from(rows, window.calls, np.array([3])).tolist() == [1]
