"""TUMBLE, HOP and CUMULATE by the calendar of a time zone; the oracle of local dates is DuckDB's ICU."""

from __future__ import annotations

import datetime as dt
from random import Random

import duckdb
import pyarrow as pa
import pytest

import windowpane as wp
from windowpane.errors import SqlTypeError
from windowpane.sql import Session

ZONES = (
    "Europe/Berlin",
    "America/Sao_Paulo",
    "Asia/Beirut",
    "Australia/Lord_Howe",
    "Asia/Kathmandu",
    "America/Havana",
    "Pacific/Apia",
)
ROWS = 400


@pytest.fixture
def session():
    with Session(":memory:") as opened:
        opened.run("CREATE TABLE t (id int, at timestamptz, WATERMARK FOR at AS at) APPEND ONLY")
        yield opened


def bounds(session: Session, call: str) -> list[tuple[str, str]]:
    """Return the windows of all rows in UTC, to the minute."""
    cut = "to_char({} AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI')"
    rows = session.query(f"SELECT {cut.format('window_start')}, {cut.format('window_end')} FROM {call} ORDER BY 1, 2").rows()
    return [(str(start), str(end)) for start, end in rows]


@pytest.mark.parametrize(
    ("at", "call", "expected"),
    [
        # A month with the change to summer time, days of 23 and 25 hours, a quarter, a week from Sunday, a year from April.
        (
            "2024-03-15 12:00Z",
            "TUMBLE(t, at, INTERVAL '1 month', timezone => 'Europe/Berlin')",
            [("2024-02-29 23:00", "2024-03-31 22:00")],
        ),
        (
            "2024-03-31 12:00Z",
            "TUMBLE(t, at, INTERVAL '1 day', timezone => 'Europe/Berlin')",
            [("2024-03-30 23:00", "2024-03-31 22:00")],
        ),
        (
            "2024-10-27 12:00Z",
            "TABLE(TUMBLE(DATA => TABLE t, TIMECOL => DESCRIPTOR(at), SIZE => INTERVAL '1' DAY, TIMEZONE => 'europe/berlin'))",
            [("2024-10-26 22:00", "2024-10-27 23:00")],
        ),
        (
            "2024-05-15 12:00Z",
            "TUMBLE(t, at, INTERVAL '3 months', timezone => 'Asia/Kolkata')",
            [("2024-03-31 18:30", "2024-06-30 18:30")],
        ),
        (
            "2024-05-15 12:00Z",
            "TUMBLE(t, at, INTERVAL '7 days', timezone => 'UTC', first_day => 'Sunday')",
            [("2024-05-12 00:00", "2024-05-19 00:00")],
        ),
        (
            "2024-02-15 12:00Z",
            "TUMBLE(t, at, INTERVAL '1 year', timezone => 'Europe/London', origin => DATE '2000-04-01')",
            [("2023-03-31 23:00", "2024-03-31 23:00")],
        ),
        # Midnight that did not exist, a day that did not, a time before 1970, by local mean time.
        (
            "2018-11-04 12:00Z",
            "TUMBLE(t, at, INTERVAL '1 day', timezone => 'America/Sao_Paulo')",
            [("2018-11-04 03:00", "2018-11-05 02:00")],
        ),
        (
            "2011-12-30 09:00Z",
            "TUMBLE(t, at, INTERVAL '1 day', timezone => 'Pacific/Apia')",
            [("2011-12-29 10:00", "2011-12-30 10:00")],
        ),
        (
            "1969-07-20 20:17Z",
            "TUMBLE(t, at, INTERVAL '1 month', timezone => 'America/New_York')",
            [("1969-07-01 04:00", "1969-08-01 04:00")],
        ),
        # Two months by one, a quarter so far by months, a day so far on one of 23 hours and one of 25.
        (
            "2024-03-15 12:00Z",
            "HOP(t, at, INTERVAL '1 month', INTERVAL '2 months', timezone => 'Europe/Berlin')",
            [("2024-01-31 23:00", "2024-03-31 22:00"), ("2024-02-29 23:00", "2024-04-30 22:00")],
        ),
        (
            "2024-04-15 12:00Z",
            "CUMULATE(t, at, INTERVAL '1 month', INTERVAL '3 months', timezone => 'UTC')",
            [("2024-04-01 00:00", f"2024-0{month}-01 00:00") for month in (5, 6, 7)],
        ),
        (
            "2024-03-31 12:00Z",
            "CUMULATE(t, at, INTERVAL '8 hours', INTERVAL '1 day', timezone => 'Europe/Berlin')",
            [("2024-03-30 23:00", "2024-03-31 15:00"), ("2024-03-30 23:00", "2024-03-31 22:00")],
        ),
        (
            "2024-10-27 12:00Z",
            "CUMULATE(t, at, INTERVAL '12 hours', INTERVAL '1 day', timezone => 'Europe/Berlin')",
            [("2024-10-26 22:00", "2024-10-27 22:00"), ("2024-10-26 22:00", "2024-10-27 23:00")],
        ),
    ],
)
def test_windows_of_one_row(session: Session, at: str, call: str, expected: list[tuple[str, str]]) -> None:
    session.run(f"INSERT INTO t VALUES (1, '{at}'), (2, NULL); FLUSH")
    found = bounds(session, call)
    assert [each for each in found if each != ("None", "None")] == expected


@pytest.mark.slow_but_one_in(3)
@pytest.mark.parametrize("zone", ZONES)
def test_bounds_are_the_first_instants_of_local_dates(session: Session, zone: str) -> None:
    """DuckDB's ICU says the local date of an instant: a bound is in the period, and a microsecond before it another one is.

    Rules of years to come differ from release to release.
    """
    random = Random(f"calendar {zone}")
    begin, end = (int(dt.datetime(year, 1, 1, tzinfo=dt.UTC).timestamp()) for year in (1972, 2025))
    values = [f"({number}, to_timestamp({random.randrange(begin, end)}))" for number in range(ROWS)]
    session.run(f"INSERT INTO t SELECT * FROM (VALUES {', '.join(values)}) AS v(id, at); FLUSH")
    connection = duckdb.connect()
    for unit, size in (("day", "1 day"), ("month", "1 month"), ("quarter", "3 months"), ("year", "1 year")):
        query = f"SELECT at, window_start AS s, window_end AS e FROM TUMBLE(t, at, INTERVAL '{size}', timezone => '{zone}')"
        rows = session.query(query).rows()
        columns = [pa.array(each, pa.timestamp("us", "UTC")) for each in zip(*rows, strict=True)]
        connection.register("found", pa.table(columns, names=["x", "s", "e"]))
        local = f"date_trunc('{unit}', timezone('{zone}', {{}})::date)"
        x, s, e = (local.format(each) for each in ("x", "s", "e"))
        before_s, before_e = (local.format(f"{each} - to_microseconds(1)") for each in ("s", "e"))
        right = f"x >= s AND x < e AND {x} = {s} AND {before_s} < {s} AND {x} = {before_e} AND {e} > {x}"
        assert connection.execute(f"SELECT count(*), count_if({right}) FROM found").fetchall() == [(ROWS, ROWS)], (zone, unit)


@pytest.mark.parametrize("zone", ["America/Sao_Paulo", "Pacific/Apia"])
def test_overlapping_windows_are_those_of_the_assigner(session: Session, zone: str) -> None:
    """Where two windows end at the same instant, since the last date of one never was, one of them is there."""
    first = dt.datetime(2011, 12, 20, 5, tzinfo=dt.UTC)
    instants = [first + dt.timedelta(hours=7 * number) for number in range(60)]
    rows = ", ".join(f"({number}, '{each.isoformat()}')" for number, each in enumerate(instants))
    session.run(f"INSERT INTO t VALUES {rows}; FLUSH")
    for call, windows in (
        ("HOP(t, at, INTERVAL '1 day', INTERVAL '3 days'", wp.CalendarWindows.of("3 days", zone, slide="1 day")),
        ("HOP(t, at, INTERVAL '1 month', INTERVAL '1 year'", wp.CalendarWindows.of("1 year", zone, slide="1 month")),
        ("CUMULATE(t, at, INTERVAL '1 day', INTERVAL '7 days'", wp.CalendarWindows.cumulate("7 days", "1 day", zone)),
        ("CUMULATE(t, at, INTERVAL '1 day', INTERVAL '1 month'", wp.CalendarWindows.cumulate("1 month", "1 day", zone)),
        ("CUMULATE(t, at, INTERVAL '5 days', INTERVAL '1 month'", wp.CalendarWindows.cumulate("1 month", "5 days", zone)),
        ("CUMULATE(t, at, INTERVAL '5 hours', INTERVAL '1 day'", wp.CalendarWindows.cumulate("1 day", "5 hours", zone)),
    ):
        query = f"SELECT id, window_start, window_end FROM {call}, timezone => '{zone}')"
        expected = [
            (number, window.start, window.end)
            for number, each in enumerate(instants)
            for window in windows.windows_at(round(each.timestamp()) * 1_000_000)
        ]
        found = [(number, _micros(start), _micros(end)) for number, start, end in session.query(query).rows()]
        assert sorted(found) == sorted(expected), call


def _micros(instant: dt.datetime) -> int:
    return round(instant.timestamp() * 1_000_000)


def test_a_month_comes_out_when_it_ends_in_its_zone(session: Session) -> None:
    session.run(
        "CREATE MATERIALIZED VIEW w AS SELECT window_start, count(*) AS n "
        "FROM TUMBLE(t, at, INTERVAL '1 month', timezone => 'Europe/Berlin') GROUP BY window_start EMIT ON WINDOW CLOSE"
    )
    session.run("INSERT INTO t VALUES (1, '2024-03-10 00:00Z'), (2, '2024-03-31 21:59:59Z'); FLUSH")
    assert session.query("SELECT n FROM w").rows() == []
    session.run("INSERT INTO t VALUES (3, '2024-03-31 22:00Z'); FLUSH")
    assert session.query("SELECT n FROM w").rows() == [(2,)]
    session.run(
        "CREATE MATERIALIZED VIEW h AS SELECT window_end, count(*) AS n "
        "FROM CUMULATE(t, at, INTERVAL '12 hours', INTERVAL '1 day', timezone => 'Europe/Berlin') "
        "GROUP BY window_start, window_end EMIT ON WINDOW CLOSE; INSERT INTO t VALUES (4, '2024-04-01 10:00Z'); FLUSH"
    )
    assert session.query("SELECT n FROM h ORDER BY window_end").rows() == [(1,), (1,), (1,), (1,)]


def test_a_view_keeps_the_zone_of_its_session(session: Session) -> None:
    session.run("INSERT INTO t VALUES (1, '2024-03-31 22:30Z'); SET timezone = 'Europe/Berlin'")
    query = "SELECT window_start AT TIME ZONE 'UTC' AS s FROM TUMBLE(t, at, INTERVAL '1 month')"
    session.run(f"CREATE MATERIALIZED VIEW w AS {query}")
    session.run("SET timezone = 'UTC'; FLUSH")
    assert [row[0] for row in session.query("SELECT s::text FROM w").rows()] == ["2024-03-31 22:00:00"]


def test_months_of_local_times_need_no_zone(session: Session) -> None:
    session.run("CREATE TABLE l (at timestamp); INSERT INTO l VALUES ('2024-02-29 23:59:59'); FLUSH")
    query = "SELECT window_start::text, window_end::text FROM TUMBLE(l, at, INTERVAL '1 month')"
    assert session.query(query).rows() == [("2024-02-01 00:00:00", "2024-03-01 00:00:00")]
    grouped = "SELECT TUMBLE_START(at, INTERVAL '1' MONTH)::text, count(*) FROM l GROUP BY TUMBLE(at, INTERVAL '1' MONTH)"
    assert session.query(grouped).rows() == [("2024-02-01 00:00:00", 1)]


def test_a_hop_of_three_months_every_two() -> None:
    """Windows begin in January, March, May, ... of 1970 and on; values by hand."""
    with Session(":memory:") as session:
        session.run("CREATE TABLE m (id int, at timestamp, WATERMARK FOR at AS at) APPEND ONLY")
        call = "HOP(m, at, INTERVAL '2 months', INTERVAL '3 months')"
        session.run(f"CREATE MATERIALIZED VIEW v AS SELECT id, window_start::date::text, window_end::date::text FROM {call}")
        closed = f"SELECT window_start::date::text AS s, count(*) AS n FROM {call} GROUP BY window_start, window_end"
        session.run(f"CREATE MATERIALIZED VIEW c AS {closed} EMIT ON WINDOW CLOSE")
        session.run("INSERT INTO m VALUES (1, '2024-02-10'), (2, '2024-03-10'); FLUSH")
        once, twice = (1, "2024-01-01", "2024-04-01"), [(2, "2024-01-01", "2024-04-01"), (2, "2024-03-01", "2024-06-01")]
        assert session.query("SELECT * FROM v ORDER BY 1, 2").rows() == [once, *twice]
        assert session.query("SELECT * FROM c").rows() == []
        session.run("INSERT INTO m VALUES (3, '2024-04-01'); FLUSH")
        assert session.query("SELECT * FROM c").rows() == [("2024-01-01", 2)]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("TUMBLE(t, at, INTERVAL '1 month', timezone => 'Europe/Nowhere')", "'Europe/Nowhere' is no time zone"),
        ("TUMBLE(t, at, INTERVAL '1 month 2 days', timezone => 'UTC')", "a positive number of months"),
        ("TUMBLE(t, at, INTERVAL '1 hour', timezone => 'UTC')", "for hours take"),
        ("TUMBLE(t, at, INTERVAL '1 month', INTERVAL '1 day')", "no offset: say origin"),
        ("TUMBLE(t, at, INTERVAL '1 month', timezone => 'UTC', first_day => 'sunday')", "for sizes of whole weeks"),
        ("CUMULATE(t, at, INTERVAL '2 months', INTERVAL '3 months')", "must be a multiple of the step"),
        ("TUMBLE(t, at, INTERVAL '1 day', timezone => 7)", "timezone is a text"),
        ("TUMBLE(l, at, INTERVAL '1 month', timezone => 'UTC')", "is a local time already"),
    ],
)
def test_what_is_no_calendar_is_refused(session: Session, call: str, words: str) -> None:
    session.run("CREATE TABLE l (at timestamp)")
    with pytest.raises(SqlTypeError, match=words):
        session.query(f"SELECT * FROM {call}")
