"""Order values plus offsets."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest

from windowpane.windowing.frames import Offset
from windowpane.windowing.intervals import Interval
from windowpane.windowing.over.types import BEYOND, shifted


@pytest.mark.parametrize(
    ("value", "offset", "forward", "result"),
    [
        (None, 1, True, None),
        (5, 2, True, 7),
        (5, 2, False, 3),
        (0.5, Decimal("0.25"), True, 0.75),
        (Decimal("0.1"), 0.2, True, Decimal("0.3")),
        (Decimal("1.00"), 3, False, Decimal("-2.00")),
        (dt.date(2024, 3, 31), Interval(months=1), False, dt.date(2024, 2, 29)),
        (dt.timedelta(1), Interval(micros=86_400_000_000), True, dt.timedelta(2)),
        (dt.datetime(9999, 12, 31), Interval(days=1), True, BEYOND),
        (dt.timedelta.max, Interval(micros=1), True, BEYOND),
    ],
)
def test_shifted(value: Any, offset: Offset, forward: bool, result: Any) -> None:
    assert shifted(value, offset, forward) == result


def test_beyond_int64_is_still_a_number() -> None:
    assert shifted(2**63 - 1, 1, True) == 2**63
