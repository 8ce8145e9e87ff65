"""Durations and instants."""

from __future__ import annotations

import datetime as dt
import pickle
import zoneinfo
from importlib import resources
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowpane.errors import InvalidDurationError, InvalidSpecError
from windowpane.windowing.times import (
    MAX,
    MIN,
    add_clamped,
    format_instant,
    format_micros,
    to_micros,
    wrap_int64,
    zone_names,
    zone_of,
)


@pytest.mark.parametrize(
    ("duration", "micros"),
    [
        ("10 minutes", 600_000_000),
        ("1 hour 30 minutes", 5_400_000_000),
        ("1.5 hours", 5_400_000_000),
        ("-2 s", -2_000_000),
        ("-1.5 s", -1_500_000),
        ("250 ms", 250_000),
        ("7 us", 7),
        ("INTERVAL '2' DAYS".replace("'", ""), 172_800_000_000),
        ("1 week", 604_800_000_000),
        (dt.timedelta(seconds=1, microseconds=5), 1_000_005),
        (42, 42),
    ],
)
def test_durations_are_text_timedelta_or_microseconds(duration, micros):
    assert to_micros(duration) == micros


@pytest.mark.parametrize("wrong", ["", "ten minutes", "10", "1 month", "1 parsec", "0.0000001 s", True, 1.5, None, MAX + 1])
def test_what_is_no_duration_is_refused_with_the_value(wrong):
    with pytest.raises(InvalidDurationError, match="is not a duration") as refused:
        to_micros(wrong)
    assert repr(wrong) in str(refused.value)


@given(st.integers(-(10**15), 10**15))
def test_a_formatted_duration_reads_back(micros):
    assert to_micros(format_micros(micros)) == micros


def test_instants_are_written_in_utc_and_the_limits_by_name():
    assert format_instant(0) == "1970-01-01T00:00:00Z"
    assert format_instant(-1) == "1969-12-31T23:59:59.999999Z"
    assert (format_instant(MIN), format_instant(MAX)) == ("MIN", "MAX")
    assert format_instant(MAX - 1) == "9223372036854775806 µs"


def test_sums_are_held_at_the_end_of_time_or_wrap_like_javas():
    assert add_clamped(MAX - 1, 5) == MAX
    assert add_clamped(5, 5) == 10
    assert wrap_int64(MAX + 1) == MIN
    assert wrap_int64(-7) == -7


def test_the_rules_of_a_zone_are_those_of_the_package_whatever_the_machine_says(tmp_path: Path) -> None:
    """The machine says that Berlin is Tokyo."""
    rules = resources.files("tzdata").joinpath("zoneinfo", "Asia", "Tokyo").read_bytes()
    (tmp_path / "Europe").mkdir()
    (tmp_path / "Europe" / "Berlin").write_bytes(rules)
    summer = dt.datetime(2024, 7, 1, tzinfo=dt.UTC)
    zoneinfo.reset_tzpath([tmp_path])
    zoneinfo.ZoneInfo.clear_cache()
    try:
        assert summer.astimezone(zoneinfo.ZoneInfo("Europe/Berlin")).utcoffset() == dt.timedelta(hours=9)
        assert summer.astimezone(zone_of("Europe/Berlin")).utcoffset() == dt.timedelta(hours=2)
    finally:
        zoneinfo.reset_tzpath()
        zoneinfo.ZoneInfo.clear_cache()


def test_a_pickled_instant_keeps_its_zone() -> None:
    instant = dt.datetime(2024, 7, 1, tzinfo=zone_of("Europe/Berlin"))
    again = pickle.loads(pickle.dumps(instant))
    assert again == instant
    assert again.tzinfo is instant.tzinfo


@pytest.mark.parametrize("name", ["Mars/Olympus", "", "..", "../tzdata", "/etc/localtime", "Europe", "zone.tab", "a\0b", 7, []])
def test_what_is_no_zone_is_refused_by_name(name: str) -> None:
    with pytest.raises(InvalidSpecError, match="is no time zone of the IANA database"):
        zone_of(name)


def test_every_zone_of_the_package_can_be_read() -> None:
    names = zone_names()
    assert "America/Argentina/ComodRivadavia" in names
    assert all(zone_of(name).key == name for name in names)
