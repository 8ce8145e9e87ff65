"""Calendar intervals: text, arithmetic by months then days then microseconds, daylight saving."""

from __future__ import annotations

import datetime as dt
import pickle
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowpane.errors import InvalidDurationError, InvalidIntervalError
from windowpane.windowing.intervals import Interval

NEW_YORK = ZoneInfo("America/New_York")


@pytest.mark.parametrize(
    ("text", "interval"),
    [
        ("1 month 2 days 3 seconds", Interval(1, 2, 3_000_000)),
        ("1 year 1 mon", Interval(13)),
        ("2 weeks", Interval(days=14)),
        ("24 hours", Interval(micros=86_400_000_000)),
        ("1 day 01:30:00.5", Interval(days=1, micros=5_400_500_000)),
        ("-00:00:01", Interval(micros=-1_000_000)),
        ("INTERVAL '3 months'", Interval(months=3)),
        ("2 centuries", Interval(months=2400)),
        ("1.5 hours", Interval(micros=5_400_000_000)),
        ("3 min", Interval(micros=180_000_000)),
    ],
)
def test_text(text: str, interval: Interval) -> None:
    assert Interval.of(text) == interval


@pytest.mark.parametrize("text", ["", "1", "1 fortnight", "1.5 months", "0.5 days", "1 month and a day"])
def test_text_nobody_understands(text: str) -> None:
    with pytest.raises(InvalidDurationError):
        Interval.of(text)


def test_other_spans() -> None:
    assert Interval.of(dt.timedelta(days=1)) == Interval(micros=86_400_000_000)
    assert Interval.of(7) == Interval(micros=7)
    assert Interval.of(Interval(1)) == Interval(1)


@given(st.builds(Interval, st.integers(-100, 100), st.integers(-100, 100), st.integers(-(10**12), 10**12)))
def test_prints_what_it_reads(interval: Interval) -> None:
    assert Interval.of(str(interval)) == interval
    assert pickle.loads(pickle.dumps(interval)) == interval


def test_months_then_days_then_micros() -> None:
    """RisingWave: 2024-01-28 00:30 + 1 month 2 days 3 seconds is 2024-03-01 00:30:03, minus it is 2023-12-26 minus 3 s."""
    span = Interval.of("1 month 2 days 3 seconds")

    assert span.added_to(dt.datetime(2024, 1, 28, 0, 30)) == dt.datetime(2024, 3, 1, 0, 30, 3)
    assert (-span).added_to(dt.datetime(2024, 1, 26, 15, 47)) == dt.datetime(2023, 12, 24, 15, 46, 57)


def test_a_day_that_the_month_lacks_is_its_last() -> None:
    assert Interval(months=1).added_to(dt.date(2024, 1, 31)) == dt.date(2024, 2, 29)
    assert Interval(months=-1).added_to(dt.date(2023, 3, 31)) == dt.date(2023, 2, 28)
    assert Interval(months=12).added_to(dt.date(2024, 2, 29)) == dt.date(2025, 2, 28)


def test_a_day_across_daylight_saving_is_a_wall_clock_day() -> None:
    before = dt.datetime(2024, 3, 9, 12, tzinfo=NEW_YORK)

    assert Interval(days=1).added_to(before) == dt.datetime(2024, 3, 10, 12, tzinfo=NEW_YORK)
    assert Interval.of("24 hours").added_to(before) == dt.datetime(2024, 3, 10, 13, tzinfo=NEW_YORK)


def test_a_zone_of_pytz_is_asked_for_its_offset() -> None:
    zone = pytest.importorskip("pytz").timezone("America/New_York")
    before = dt.datetime(2024, 3, 9, 17, tzinfo=dt.UTC).astimezone(zone)

    assert Interval(days=1).added_to(before) == dt.datetime(2024, 3, 10, 12, tzinfo=NEW_YORK).astimezone(dt.UTC)
    assert Interval(months=4).added_to(before) == dt.datetime(2024, 7, 9, 12, tzinfo=NEW_YORK).astimezone(dt.UTC)


def test_a_wall_clock_that_is_skipped_goes_on() -> None:
    landed = Interval(days=1).added_to(dt.datetime(2024, 3, 9, 2, 30, tzinfo=NEW_YORK))

    assert landed.astimezone(dt.UTC) == dt.datetime(2024, 3, 10, 7, 30, tzinfo=dt.UTC)


@pytest.mark.parametrize(
    ("interval", "instant"),
    [
        (Interval(months=12 * 9000), dt.datetime(2024, 1, 1)),
        (Interval(days=-(10**6)), dt.datetime(2024, 1, 1)),
        (Interval(micros=1), dt.date(2024, 1, 1)),
    ],
)
def test_beyond_the_calendar(interval: Interval, instant: dt.date) -> None:
    with pytest.raises(InvalidIntervalError, match="2024-01-01"):
        interval.added_to(instant)


def test_what_an_interval_knows() -> None:
    assert Interval().is_zero
    assert not Interval(days=1).is_fixed
    assert Interval(months=1, micros=-1).is_negative
    assert -Interval(1, 2, 3) == Interval(-1, -2, -3)
