"""Calendar windows: bounds as DuckDB's calendars have them, days of 23 and 25 hours, midnights and dates that never were."""

from __future__ import annotations

import datetime as dt
import random
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import windowpane as wp
from windowpane.arrays import Integers
from windowpane.engines.common.slicing import CalendarSlices
from windowpane.errors import CalendarRangeError, InvalidSpecError
from windowpane.windowing.times import zone_of
from windowpane.windowing.windows import TimeWindow

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
HOUR = 3_600_000_000
ZONES = [
    "UTC",
    "Europe/Berlin",
    "Europe/London",
    "Europe/Paris",
    "Europe/Lisbon",
    "Europe/Moscow",
    "Europe/Istanbul",
    "Africa/Cairo",
    "Africa/Johannesburg",
    "Africa/Monrovia",
    "America/New_York",
    "America/Chicago",
    "America/Denver",
    "America/Los_Angeles",
    "America/Anchorage",
    "America/St_Johns",
    "America/Halifax",
    "America/Sao_Paulo",
    "America/Santiago",
    "America/Caracas",
    "America/Havana",
    "America/Asuncion",
    "America/Argentina/Buenos_Aires",
    "Asia/Beirut",
    "Asia/Tehran",
    "Asia/Kabul",
    "Asia/Karachi",
    "Asia/Kolkata",
    "Asia/Kathmandu",
    "Asia/Yangon",
    "Asia/Shanghai",
    "Asia/Tokyo",
    "Asia/Pyongyang",
    "Asia/Amman",
    "Australia/Adelaide",
    "Australia/Lord_Howe",
    "Pacific/Apia",
    "Pacific/Kiritimati",
    "Pacific/Chatham",
    "Pacific/Auckland",
]
UNITS = {"day": "1 day", "week": "1 week", "month": "1 month", "year": "1 year"}
"""Quarters are compared with Spark: DuckDB's begin at one o'clock where the offset is not that of the instant truncated."""


def micros(text: str) -> int:
    """Return an instant in UTC."""
    return (dt.datetime.fromisoformat(text).replace(tzinfo=dt.UTC) - EPOCH) // dt.timedelta(microseconds=1)


def window(start: str, end: str) -> TimeWindow:
    return TimeWindow(micros(start), micros(end))


def truncated(zone: str, instants: Integers) -> dict[str, Integers]:
    """Return where the unit that holds each instant begins, by DuckDB's calendars."""
    with duckdb.connect() as connection:
        connection.execute(f"SET TimeZone = '{zone}'")
        connection.register("t", pa.table({"us": instants}))
        units = ", ".join(f"epoch_us(date_trunc('{unit}', make_timestamptz(us))) AS {unit}" for unit in UNITS)
        found = connection.execute(f"SELECT {units} FROM t").fetchnumpy()
        return {unit: np.asarray(begins, np.int64) for unit, begins in found.items()}


def local(instant: int, zone: str) -> dt.datetime:
    return (EPOCH + dt.timedelta(microseconds=instant)).astimezone(zone_of(zone)).replace(tzinfo=None, fold=0)


@pytest.mark.slow_but_one_in(3)
@pytest.mark.parametrize("zone", ZONES)
def test_windows_begin_where_duckdb_truncates(zone: str) -> None:
    """The zone is the seed: 10,000 instants, half of them in the last years, half in any ten years before.

    Where a midnight comes twice, DuckDB takes the later one, Spark and windowpane the earlier.
    """
    draw = random.Random(zone)
    for first in (draw.randrange(1902, 2006), 2006):
        least, end = micros(f"{first}-01-01"), micros(f"{first + 10}-01-01")
        instants = np.array([draw.randrange(least, end) for _ in range(5_000)])
        for unit, expected in truncated(zone, instants).items():
            begins = wp.CalendarWindows.of(UNITS[unit], timezone=zone).slice_starts(instants)
            differs = begins != expected
            for begin, other in {*zip(begins[differs].tolist(), expected[differs].tolist(), strict=True)}:
                assert begin < other, (unit, begin, other)
                assert local(begin, zone) == local(other, zone), (unit, begin, other)
                assert local(begin, zone).time() == dt.time(0), (unit, begin, other)


def test_a_day_has_as_many_hours_as_its_zone_gives_it() -> None:
    days = wp.CalendarWindows.of("1 day", timezone="Europe/Berlin")
    assert days.windows_at(micros("2024-03-31T12:00:00")) == (window("2024-03-30T23:00:00", "2024-03-31T22:00:00"),)
    assert days.windows_at(micros("2024-10-27T12:00:00")) == (window("2024-10-26T22:00:00", "2024-10-27T23:00:00"),)
    half = wp.CalendarWindows.of("1 day", timezone="Australia/Lord_Howe").windows_at(micros("2024-10-05T20:00:00"))
    assert half[0].end - half[0].start == 23.5 * HOUR


def test_a_midnight_that_is_skipped_is_the_instant_of_the_change() -> None:
    days = wp.CalendarWindows.of("1 day", timezone="America/Sao_Paulo")
    assert days.windows_at(micros("2018-11-04T12:00:00")) == (window("2018-11-04T03:00:00", "2018-11-05T02:00:00"),)
    assert days.windows_at(micros("2018-11-04T02:59:59")) == (window("2018-11-03T03:00:00", "2018-11-04T03:00:00"),)


def test_a_date_that_never_was_has_no_window() -> None:
    days = wp.CalendarWindows.of("1 day", timezone="Pacific/Apia")
    assert days.windows_at(micros("2011-12-30T09:59:59")) == (window("2011-12-29T10:00:00", "2011-12-30T10:00:00"),)
    assert days.windows_at(micros("2011-12-30T10:00:00")) == (window("2011-12-30T10:00:00", "2011-12-31T10:00:00"),)
    three = wp.CalendarWindows.of("3 days", timezone="Pacific/Apia", slide="1 day").windows_at(micros("2011-12-30T09:00:00"))
    ends = [each.end for each in three]
    assert len(set(ends)) == len(ends)


def test_times_before_1970_have_the_offsets_of_their_zones() -> None:
    # Berlin kept local mean time, 53 minutes and 28 seconds ahead, until April 1893.
    years = wp.CalendarWindows.of("1 year", timezone="Europe/Berlin")
    assert years.windows_at(micros("1890-06-01"))[0].start == micros("1889-12-31T23:06:32")


def test_multiples_are_counted_from_an_origin() -> None:
    fortnights = wp.CalendarWindows.of("2 weeks", first_day="sunday")
    start = fortnights.windows_at(micros("2024-05-01"))[0].start
    assert dt.datetime.fromtimestamp(start / 1e6, dt.UTC).weekday() == 6
    fiscal = wp.CalendarWindows.of("1 year", origin="2020-04-06")
    assert fiscal.windows_at(micros("2024-04-05")) == (window("2023-04-06", "2024-04-06"),)


def test_windows_slide_by_months_latest_first() -> None:
    windows = wp.CalendarWindows.of("3 months", slide="1 month").windows_at(micros("2024-03-15"))
    assert windows == (
        window("2024-03-01", "2024-06-01"),
        window("2024-02-01", "2024-05-01"),
        window("2024-01-01", "2024-04-01"),
    )


def test_hours_cumulate_to_the_end_of_a_local_day() -> None:
    windows = wp.CalendarWindows.cumulate("1 day", "5 hours", timezone="Europe/Berlin")
    held = windows.windows_at(micros("2024-03-30T23:30:00"))
    lengths = [(each.end - each.start) // HOUR for each in held]
    assert lengths == [5, 10, 15, 20, 23]
    assert windows.windows_at(held[0].end) == held[1:]


@pytest.mark.parametrize(("month", "days"), [("2024-02", 29), ("2023-02", 28), ("2024-03", 31)])
def test_weeks_cumulate_to_the_end_of_a_month(month: str, days: int) -> None:
    windows = wp.CalendarWindows.cumulate("1 month", "7 days", timezone="Europe/Berlin")
    begin = dt.datetime.fromisoformat(f"{month}-01").replace(tzinfo=zone_of("Europe/Berlin"))
    ends = [(begin + dt.timedelta(days=each)).replace(tzinfo=begin.tzinfo) for each in (7, 14, 21, 28, days)]
    first, *rest = (round(each.timestamp() * 1_000_000) for each in (begin, *ends))
    expected = tuple(TimeWindow(first, end) for end in sorted({*rest}))
    assert windows.windows_at(first) == expected
    assert windows.windows_at(expected[1].end) == expected[2:]


def test_days_that_never_were_are_no_step_of_a_month() -> None:
    windows = wp.CalendarWindows.cumulate("1 month", "1 day", timezone="Pacific/Apia").windows_at(micros("2011-12-29T12:00:00"))
    local = [dt.datetime.fromtimestamp(each.end / 1e6, zone_of("Pacific/Apia")).date().isoformat() for each in windows]
    assert local == ["2011-12-31", "2012-01-01"]


def test_quarters_cumulate_to_the_end_of_a_year() -> None:
    years = wp.CalendarWindows.cumulate("1 year", "1 quarter").windows_at(micros("2024-05-01"))
    assert years == (
        window("2024-01-01", "2024-07-01"),
        window("2024-01-01", "2024-10-01"),
        window("2024-01-01", "2025-01-01"),
    )


@pytest.mark.parametrize(
    "windows",
    [
        wp.CalendarWindows.of("1 day", timezone="Pacific/Apia"),
        wp.CalendarWindows.of("3 days", timezone="Pacific/Apia", slide="1 day"),
        wp.CalendarWindows.of("3 months", timezone="America/Sao_Paulo", slide="2 months"),
        wp.CalendarWindows.of("3 days", timezone="Pacific/Apia", slide="2 days"),
        wp.CalendarWindows.of("3 days", timezone="Pacific/Apia", slide="2 days", origin="1970-01-02"),
        wp.CalendarWindows.cumulate("1 day", "1 hour", timezone="Australia/Lord_Howe"),
        wp.CalendarWindows.cumulate("1 year", "1 month", timezone="Asia/Beirut"),
        wp.CalendarWindows.cumulate("1 month", "1 day", timezone="Pacific/Apia"),
        wp.CalendarWindows.cumulate("1 month", "4 days", timezone="Pacific/Apia", origin="2011-03-26"),
    ],
    ids=str,
)
def test_slices_make_up_the_windows_that_the_assigner_gives(windows: wp.CalendarWindows) -> None:
    slices, draw = CalendarSlices(windows), random.Random(str(windows))
    instants = [draw.randrange(micros("2011-12-20"), micros("2012-01-10")) for _ in range(300)]
    starts = slices.starts(np.array(instants, np.int64))
    for instant, start in zip(instants, starts.tolist(), strict=True):
        held = windows.assign_windows({}, instant, CONTEXT)
        assert held
        assert slices.windows_of(start) == held
        for each in held:
            assert each.start <= instant < each.end
            whole = list(slices.between(each.start, each.end))
            at = whole.index(start)
            assert [*slices.between(each.start, start), *slices.between(start, each.end)] == whole
            assert list(slices.between(start, each.end)) == whole[at:]
            assert slices.window_starts(np.array([each.end])).tolist() == [each.start]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: wp.CalendarWindows.of("1 day", timezone="Europe/Atlantis"), "no time zone"),
        (lambda: wp.CalendarWindows.of("1 month 2 hours"), "Mixtures"),
        (lambda: wp.CalendarWindows.of("1 month 2 days"), "Mixtures"),
        (lambda: wp.CalendarWindows.of("24 hours"), "TumblingEventTimeWindows"),
        (lambda: wp.CalendarWindows.of("0 days"), "positive"),
        (lambda: wp.CalendarWindows.of("soon"), "no span"),
        (lambda: wp.CalendarWindows.of("1 month", slide="1 day"), "both be months"),
        (lambda: wp.CalendarWindows.of("1 month", slide="2 months"), "longer than the size"),
        (lambda: wp.CalendarWindows.of("1 month", first_day="sunday"), "whole weeks"),
        (lambda: wp.CalendarWindows.of("1 month", origin="2024-01-31"), "from 1 to 28"),
        (lambda: wp.CalendarWindows.of("1 month", origin="January"), "is a date"),
        (lambda: wp.CalendarWindows.cumulate("1 year", "5 months"), "multiple of the step"),
        (lambda: wp.CalendarWindows.cumulate("1 day", "-1 hour"), "positive"),
    ],
)
def test_what_has_no_calendar_is_refused(make: Any, message: str) -> None:
    with pytest.raises(InvalidSpecError, match=message):
        make()


def test_a_time_beyond_the_calendar_is_refused_by_name() -> None:
    with pytest.raises(CalendarRangeError, match="years 1 to 9999"):
        wp.CalendarWindows.of("1 day").windows_at(wp.MAX - 5)


class _Context:
    current_processing_time = 0
    current_key = None

    def remember(self, name: str, make: Any) -> int:
        return int(make())


CONTEXT = _Context()
