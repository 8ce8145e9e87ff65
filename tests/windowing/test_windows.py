"""Windows as values: their bounds as datetimes."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from windowpane import MAX, TimeWindow
from windowpane.errors import InvalidSpecError, UnrepresentableValueError


def test_bounds_as_datetimes_of_utc_to_the_microsecond() -> None:
    window = TimeWindow(-1, 1_388_534_400_000_001)
    assert window.start_time == datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)
    assert window.end_time == datetime(2014, 1, 1, 0, 0, 0, 1, tzinfo=UTC)
    assert window.end_time.tzinfo is UTC


def test_a_bound_that_python_has_no_datetime_for_is_named() -> None:
    with pytest.raises(UnrepresentableValueError, match=rf"holds the bound {MAX} µs, which Python cannot represent"):
        TimeWindow(0, MAX).end_time  # noqa: B018


def test_bounds_in_a_time_zone_follow_its_clocks() -> None:
    day = TimeWindow(1_711_839_600_000_000, 1_711_922_400_000_000)  # 2024-03-31 in Berlin has 23 hours
    start, end = day.bounds("Europe/Berlin")
    assert (start.isoformat(), end.isoformat()) == ("2024-03-31T00:00:00+01:00", "2024-04-01T00:00:00+02:00")
    assert (start, end) == (day.start_time, day.end_time)


def test_a_time_zone_that_there_is_not_is_named() -> None:
    with pytest.raises(InvalidSpecError, match="'Berlin' is no time zone"):
        TimeWindow(0, 1).bounds("Berlin")
