"""Instants that Python cannot hold, and texts of instants that DuckDB reads otherwise than PostgreSQL."""

from __future__ import annotations

import datetime as dt
import io
from collections.abc import Iterator

import pytest
from rich.console import Console

from tests.sql.in_process import spread_session
from windowpane.errors import InvalidTextError, SqlRunError
from windowpane.sql import Session
from windowpane.sql.shell.printing import json_line, print_result

__all__ = ["spread_session"]


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    with Session(":memory:") as opened:
        opened.run("CREATE TABLE texts (x text)")
        yield opened


# As PostgreSQL prints them.
@pytest.mark.parametrize(
    ("sql", "text"),
    [
        ("timestamp 'infinity'", "infinity"),
        ("timestamptz '-infinity'", "-infinity"),
        ("date 'infinity'", "infinity"),
        ("timestamp '9999-12-31' + interval '1 day'", "10000-01-01 00:00:00"),
        ("timestamp '294246-12-31 23:59:59.999999'", "294246-12-31 23:59:59.999999"),
        ("make_date(20240, 1, 26)", "20240-01-26"),
        ("date '0044-03-15 BC'", "0044-03-15 BC"),
        ("timestamp '0044-03-15 10:00 BC'", "0044-03-15 10:00:00 BC"),
        ("timestamptz '0044-03-15 10:00+02 BC'", "0044-03-15 08:00:00+00:00 BC"),
        ("date '0001-01-01' - 1", "0001-12-31 BC"),
        ("ARRAY[timestamp 'infinity', NULL]", "{infinity,NULL}"),
        ("time '24:00:00'", "24:00:00"),
    ],
)
def test_they_are_shown_as_text(session: Session, sql: str, text: str) -> None:
    result = session.query(f"SELECT {sql} AS v")
    assert result.text_rows() == [[text]]
    assert text.strip("{}").split(",")[0] in str(result.rows()[0][0])
    assert result.dicts()[0]["v"] == result.rows()[0][0]
    assert text in json_line(result)
    console = Console(file=io.StringIO(), width=200)
    print_result(result, console)
    assert text in console.file.getvalue()  # type: ignore[attr-defined]
    if "[" not in sql:
        assert session.query(f"SELECT ({sql})::text").rows() == [(text,)]


@pytest.mark.parametrize(
    ("zone", "instant", "text"),
    [
        ("Europe/Zurich", "9999-12-31 23:30:00+00", "10000-01-01 00:30:00+01:00"),
        ("Europe/Zurich", "9999-12-31 22:30:00+00", "9999-12-31 23:30:00+01:00"),
        ("Etc/GMT+5", "0001-01-01 02:00:00+00", "0001-12-31 21:00:00-05:00 BC"),
    ],
)
def test_an_instant_beyond_the_calendar_of_python_is_shown_in_its_zone(zone: str, instant: str, text: str) -> None:
    with Session(":memory:") as session:
        session.run(f"SET TIME ZONE '{zone}'")
        assert session.query(f"SELECT timestamptz '{instant}' AS v").text_rows() == [[text]]
        assert session.query(f"SELECT (timestamptz '{instant}')::text").rows() == [(text,)]


def test_near_ones_are_values_of_python(session: Session) -> None:
    rows = session.query("SELECT timestamp '9999-12-31 23:59:59', date '0001-01-01', time '23:59:59'").rows()
    assert rows == [(dt.datetime(9999, 12, 31, 23, 59, 59), dt.date(1, 1, 1), dt.time(23, 59, 59))]


def test_they_pass_through_views_and_changelogs() -> None:
    with Session(":memory:") as session:
        session.run("CREATE TABLE t (k int, at timestamp, d date, l timestamp[])")
        session.run("CREATE MATERIALIZED VIEW groups AS SELECT at, l, count(*) AS n, max(d) AS d FROM t GROUP BY at, l")
        session.run("CREATE MATERIALIZED VIEW before AS SELECT k, lag(at) OVER (PARTITION BY 1::int ORDER BY at) AS b FROM t")
        session.run(
            "INSERT INTO t VALUES (1, '-infinity', '0044-03-15 BC', '{infinity}'), (2, '0044-03-15 BC', NULL, NULL), "
            "(3, '2024-01-01', NULL, NULL), (4, '12000-01-01', 'infinity', NULL), (5, 'infinity', NULL, NULL); FLUSH"
        )
        befores = [None, "-infinity", "0044-03-15 00:00:00 BC", "2024-01-01 00:00:00", "12000-01-01 00:00:00"]
        assert [row[1] for row in session.query("SELECT * FROM before ORDER BY k").text_rows()] == befores
        session.run("DELETE FROM t WHERE k = 2; FLUSH")
        befores = [None, "-infinity", "2024-01-01 00:00:00", "12000-01-01 00:00:00"]
        assert [row[1] for row in session.query("SELECT * FROM before ORDER BY k").text_rows()] == befores
        assert session.changelog("before").num_rows == 3
        assert session.changelog("groups").num_rows == 1
        rows = session.query("SELECT at, l, d FROM groups ORDER BY at").text_rows()
        assert [row for row in rows if row[0] != "2024-01-01 00:00:00"] == [
            ["-infinity", "{infinity}", "0044-03-15 BC"],
            ["12000-01-01 00:00:00", None, "infinity"],
            ["infinity", None, None],
        ]


def test_windows_that_emit_on_close_hold_them() -> None:
    with Session(":memory:") as session:
        session.run("CREATE TABLE t (k int, at timestamp, WATERMARK FOR at AS at) APPEND ONLY")
        calls = "sum(k) OVER w AS s, lag(at) OVER w AS before"
        over = f"SELECT k, at, {calls} FROM t WINDOW w AS (PARTITION BY k ORDER BY at)"
        session.run(f"CREATE MATERIALIZED VIEW closed AS {over} EMIT ON WINDOW CLOSE")
        session.run("INSERT INTO t VALUES (1, '10000-01-01'), (1, '9999-12-31'), (1, '10000-01-02'); FLUSH")
        assert session.query("SELECT * FROM closed ORDER BY at").text_rows() == [
            ["1", "9999-12-31 00:00:00", "1", None],
            ["1", "10000-01-01 00:00:00", "2", "9999-12-31 00:00:00"],
        ]


# PostgreSQL's results; a timestamp without time zone passes over the zone, as there.
@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("2022-04-08 07:30:00 -07:00", "2022-04-08 14:30:00+00:00"),
        ("2022-04-08 07:30:00+05:30", "2022-04-08 02:00:00+00:00"),
        ("2022-04-08 07:30:00 +0530", "2022-04-08 02:00:00+00:00"),
        ("2022-04-08 07:30 -7", "2022-04-08 14:30:00+00:00"),
        ("2022-04-08T07:30:00Z", "2022-04-08 07:30:00+00:00"),
        ("2022-04-08 07:30:00 z", "2022-04-08 07:30:00+00:00"),
        ("2022-04-08 07:30:00.5 America/New_York", "2022-04-08 11:30:00.5+00:00"),
        ("2022-01-08 07:30:00 america/new_york", "2022-01-08 12:30:00+00:00"),
        ("2022-07-08 07:30:00 PST", "2022-07-08 15:30:00+00:00"),
        ("2022-07-08 07:30:00PDT", "2022-07-08 14:30:00+00:00"),
        ("2022-07-08 07:30:00 BST", "2022-07-08 06:30:00+00:00"),
        ("  2022-07-08 07:30 UTC ", "2022-07-08 07:30:00+00:00"),
        ("0044-03-15 10:00:00 BC", "0044-03-15 10:00:00+00:00 BC"),
        ("2022-07-08 AD", "2022-07-08 00:00:00+00:00"),
    ],
)
def test_offsets_zones_and_eras_are_read(session: Session, text: str, instant: str) -> None:
    session.run(f"DELETE FROM texts; INSERT INTO texts VALUES ('{text}')")
    for value in (f"'{text}'", "x"):
        assert session.query(f"SELECT {value}::timestamptz FROM texts").text_rows() == [[instant]]
        local = session.query(f"SELECT {value}::timestamp, {value}::date FROM texts").text_rows()[0]
        assert local[0] is not None
        assert local[0].split()[0] in text
        assert local[0].split()[0] == str(local[1]).split()[0]
        assert local[0].endswith(" BC") == ("BC" in text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "two",
        "2022-04-08 garbage",
        "2022-04-08 07:30:00 garbage",
        "2022-04-08 07:30:00 PM",
        "2022-04-08 07:30:00 XYZ",
    ],
)
def test_other_texts_are_refused_for_what_they_are(session: Session, text: str) -> None:
    session.run(f"DELETE FROM texts; INSERT INTO texts VALUES ('{text}')")
    for kind in ("timestamptz", "timestamp", "date"):
        for value in (f"'{text}'", "x"):
            with pytest.raises(InvalidTextError, match=f'"{text}"'):
                session.query(f"SELECT {value}::{kind} FROM texts")


def test_a_zone_that_is_not_known_is_named(session: Session) -> None:
    with pytest.raises(SqlRunError, match="Unknown TimeZone 'Foo/Bar'"):
        session.query("SELECT '2022-04-08 07:30:00 Foo/Bar'::timestamptz")


# Counted by PostgreSQL 15, where infinity plus or minus an interval is infinity.
@pytest.mark.parametrize(
    ("frame", "expected"),
    [
        ("ORDER BY {} RANGE BETWEEN INTERVAL '1 day' FOLLOWING AND UNBOUNDED FOLLOWING", [2, 5, 2, 3, 1]),
        ("ORDER BY {} DESC RANGE BETWEEN INTERVAL '1 month' FOLLOWING AND UNBOUNDED FOLLOWING", [4, 1, 2, 1, 5]),
        ("ORDER BY {} RANGE BETWEEN UNBOUNDED PRECEDING AND INTERVAL '1 month' PRECEDING", [4, 1, 2, 1, 5]),
        ("ORDER BY {} RANGE BETWEEN INTERVAL '1 month' PRECEDING AND INTERVAL '1 month' FOLLOWING", [1, 1, 1, 1, 1]),
        ("ORDER BY {} RANGE BETWEEN INTERVAL '2 days' PRECEDING AND CURRENT ROW EXCLUDE CURRENT ROW", [0, 0, 0, 0, 0]),
    ],
)
def test_frames_reach_from_infinity_to_infinity(frame: str, expected: list[int]) -> None:
    with Session(":memory:") as opened:
        opened.run("CREATE TABLE t (id int PRIMARY KEY, g int, d date, ts timestamp)")
        for column in ("d", "ts"):
            query = f"SELECT id, count(*) OVER (PARTITION BY g {frame.format(column)}) AS n FROM t"
            opened.run(f"CREATE MATERIALIZED VIEW by_{column} AS {query}")
        instants = ["'infinity'", "'-infinity'", "'9999-12-31'", "'0001-01-01'", "NULL"]
        rows = ", ".join(f"({number}, 1, {instant}, {instant})" for number, instant in enumerate(instants))
        opened.run(f"INSERT INTO t VALUES {rows}; FLUSH")
        for column in ("d", "ts"):
            assert opened.query(f"SELECT n FROM by_{column} ORDER BY id").rows() == [(n,) for n in expected]


def test_several_changes_of_such_a_row_in_one_batch_change_calls_over_windows(spread_session: Session) -> None:
    spread_session.run("CREATE TABLE t (p int, at timestamptz, d date, x int PRIMARY KEY)")
    lags = "lag(x) OVER (PARTITION BY p ORDER BY at) AS a, lag(x) OVER (PARTITION BY p ORDER BY d) AS b"
    spread_session.run(f"CREATE MATERIALIZED VIEW v AS SELECT p, x, {lags} FROM t")
    spread_session.run("INSERT INTO t VALUES (1, '2024-01-01', '2024-01-01', 1), (1, 'infinity', 'infinity', 2)")
    spread_session.run("INSERT INTO t VALUES (1, '-infinity', '12000-01-01', 3); FLUSH")
    spread_session.run("UPDATE t SET p = 2 WHERE x = 2; UPDATE t SET p = 1 WHERE x = 2; DELETE FROM t WHERE x = 3; FLUSH")
    assert spread_session.query("SELECT * FROM v ORDER BY x").rows() == [(1, 1, None, None), (1, 2, 1, 1)]


def test_the_end_of_a_day_is_not_its_beginning(spread_session: Session) -> None:
    spread_session.run("CREATE TABLE t (p int, at time, x int PRIMARY KEY)")
    spread_session.run("CREATE MATERIALIZED VIEW v AS SELECT x, at, lag(at) OVER (PARTITION BY p ORDER BY x) AS b FROM t")
    spread_session.run("CREATE MATERIALIZED VIEW n AS SELECT x, count(DISTINCT at) OVER (PARTITION BY p ORDER BY x) AS n FROM t")
    spread_session.run("INSERT INTO t VALUES (1, '00:00', 1), (1, '12:00', 2), (1, '24:00', 3); FLUSH")
    assert spread_session.query("SELECT n FROM n ORDER BY x").rows() == [(1,), (2,), (3,)]
    assert spread_session.query("SELECT array_agg(at ORDER BY x) FROM v").text_rows() == [["{00:00:00,12:00:00,24:00:00}"]]

    spread_session.run("UPDATE t SET at = '24:00' WHERE x = 1; FLUSH")
    rows = spread_session.query("SELECT at, b FROM v ORDER BY x").text_rows()
    assert rows == [["24:00:00", None], ["12:00:00", "24:00:00"], ["24:00:00", "12:00:00"]]
