"""``now()`` and ``PROCTIME()`` in views: temporal filters, whose rows leave and enter as the clock moves."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from tests.examples import first
from tests.sql.in_process import spread_session
from windowpane.errors import UnsupportedSqlError
from windowpane.sql import Session

__all__ = ["spread_session"]

CONDITIONS = (
    "at > now() - INTERVAL '1 hour'",
    "at >= now() - INTERVAL '1 hour' AND v > 2",
    "at < now() - INTERVAL '10 minutes'",
    "at <= now()",
    "now() - INTERVAL '30 minutes' < at",
    "at BETWEEN now() - INTERVAL '1 hour' AND now()",
    "at > now() - INTERVAL '20 minutes' OR v = 1",
    "(at > now() AND v < 3) OR (at < now() - INTERVAL '1 hour' AND v > 3)",
    "date_trunc('hour', at) = date_trunc('hour', now())",
    "at + INTERVAL '1 hour' > now()::timestamp",
    "at::date = current_date",
    "at > now() - INTERVAL '1 month'",
    "at < now() - INTERVAL '1 month 1 hour'",
)


class Hand:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = datetime(2024, 3, 29, 10, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


def opened(path: str, clock: Hand) -> Session:
    return Session(path, clock=clock)


@pytest.mark.slow_but("0")
@pytest.mark.parametrize("seed", range(4))
def test_views_show_what_their_query_does_at_the_time_of_each_flush(seed: int, tmp_path: Path) -> None:
    """A SELECT looks at the whole table; a view only the rows since its last flush, also in a session opened anew."""
    rng, clock, path = random.Random(seed), Hand(), str(tmp_path / "clock.duckdb")
    views = {f"w{index}": f"SELECT id, at, v FROM t WHERE {condition}" for index, condition in enumerate(CONDITIONS)}
    views["of_groups"] = "SELECT v, count(*) AS n, max(at) AS last FROM t WHERE at > now() - INTERVAL '1 hour' GROUP BY v"
    views["of_totals"] = "SELECT v, max(at) AS last FROM t GROUP BY v HAVING max(at) > now() - INTERVAL '1 hour'"
    views["of_a_join"] = "SELECT t.id, u.v FROM t, u WHERE t.v = u.v AND t.at > now() - INTERVAL '40 minutes'"
    session = opened(path, clock)
    session.run("CREATE TABLE t (id int PRIMARY KEY, at timestamp, v int); CREATE TABLE u (v int); INSERT INTO u VALUES (1), (2)")
    for name, query in views.items():
        session.run(f"CREATE MATERIALIZED VIEW {name} AS {query}")
    for step in range(first(3) or 6):
        clock.now += timedelta(minutes=rng.choice([0, 7, 25, 90]), days=rng.choice([0, 0, 0, 1]))
        for _ in range(rng.randint(0, 4)):
            identity, minutes = rng.randint(1, 12), rng.choice([-80, -60, -30, -10, -1, 0, 1, 30, -43_200, -44_640, -44_700])
            at = "NULL" if rng.random() < 0.1 else f"timestamp '{(clock.now + timedelta(minutes=minutes)):%Y-%m-%d %H:%M}'"
            session.run(
                f"DELETE FROM t WHERE id = {identity}"
                if rng.random() < 0.2
                else f"INSERT INTO t VALUES ({identity}, {at}, {rng.randint(0, 5)})"
            )
        session.run("FLUSH")
        for name, query in views.items():
            assert sorted(map(str, session.query(f"SELECT * FROM {name}").rows())) == sorted(
                map(str, session.query(query).rows())
            ), (name, step, clock.now)
        if step == 2:
            session.close()
            session = opened(path, clock)
    session.close()


def test_a_clock_in_a_zone_where_clocks_go_back(tmp_path: Path) -> None:
    """An hour before now is an hour that has passed, whatever the clocks of the zone do; days there are refused."""
    zone, clock, path = ZoneInfo("America/New_York"), Hand(), str(tmp_path / "zone.duckdb")
    clock.now = datetime(2024, 11, 3, 4, 30, tzinfo=UTC)  # at 6:00 UTC clocks go back from 2:00 to 1:00
    times = [datetime(2024, 11, 3, hour, 40) for hour in (0, 2, 3, 5)]
    instants = [time.replace(tzinfo=zone).astimezone(UTC) for time in times]
    session = opened(path, clock)
    session.run("SET TIME ZONE 'America/New_York'; CREATE TABLE t (id int, at timestamp)")
    session.run("CREATE MATERIALIZED VIEW recent AS SELECT id FROM t WHERE at <= now() AND at > now() - INTERVAL '150 minutes'")
    with pytest.raises(UnsupportedSqlError, match="America/New_York use hours in place of days"):
        session.run("CREATE MATERIALIZED VIEW w AS SELECT id FROM t WHERE at > now() - INTERVAL '1 day'")
    for index, time in enumerate(times):
        session.run(f"INSERT INTO t VALUES ({index}, '{time}')")
    for _ in range(20):
        clock.now += timedelta(minutes=30)
        session.run("FLUSH")
        expected = [index for index, at in enumerate(instants) if clock.now - timedelta(minutes=150) < at <= clock.now]
        assert sorted(row[0] for row in session.query("SELECT id FROM recent").rows()) == expected
        session.close()
        session = opened(path, clock)
    session.close()


def test_what_the_clock_has_settled_is_not_kept(tmp_path: Path) -> None:
    clock = Hand()
    with Session(clock=clock) as session:
        session.run(
            "CREATE TABLE t (at timestamp) APPEND ONLY;"
            "CREATE MATERIALIZED VIEW recent AS SELECT * FROM t WHERE at > now() - INTERVAL '1 hour';"
            "CREATE MATERIALIZED VIEW late AS SELECT * FROM t WHERE at < now() - INTERVAL '1 hour'"
        )
        for _ in range(5):
            session.run("INSERT INTO t SELECT now()::timestamp - n * INTERVAL '1 second' FROM generate_series(0, 1799) AS g(n)")
            session.run("FLUSH")
            clock.now += timedelta(minutes=30)
        session.run("FLUSH")
        states = [f'windowpane_state."{view}/1/0"' for view in ("recent", "late")]
        # Rows of the last hour can still leave the one and enter the other; one row is on the edge.
        assert [session._storage.value(f"SELECT count(*) FROM {table}") for table in states] == [1801, 1801]
        assert session.query("SELECT count(*) FROM recent").rows() == [(1800,)]
        assert session.query("SELECT count(*) FROM late").rows() == [(7199,)]


def test_a_clock_that_goes_back_does_not_bring_rows_back(tmp_path: Path) -> None:
    clock, path = Hand(), str(tmp_path / "back.duckdb")
    with opened(path, clock) as session:
        session.run("CREATE TABLE t (at timestamp); CREATE MATERIALIZED VIEW w AS SELECT * FROM t WHERE at > now()")
        session.run("INSERT INTO t VALUES (now()::timestamp + INTERVAL '1 minute'); FLUSH")
        assert session.query("SELECT count(*) FROM w").rows() == [(1,)]
        clock.now += timedelta(minutes=2)
        session.run("FLUSH")
    clock.now -= timedelta(minutes=2)
    with opened(path, clock) as session:
        session.run("FLUSH")
        assert session.query("SELECT count(*) FROM w").rows() == [(0,)]


@pytest.mark.parametrize("keeps", ["", " APPEND ONLY"])
def test_proctime_is_when_a_row_was_taken_in(keeps: str, tmp_path: Path) -> None:
    clock, path = Hand(), str(tmp_path / "proctime.duckdb")
    counted = (
        "SELECT to_char(window_start, 'HH24:MI') AS s, count(*) AS n FROM TABLE(TUMBLE(TABLE stamped, DESCRIPTOR(taken), "
        "INTERVAL '30' MINUTE)) GROUP BY window_start"
    )
    grouped = (
        "SELECT to_char(TUMBLE_START(PROCTIME(), INTERVAL '30' MINUTE), 'HH24:MI') AS s, count(*) AS n FROM t "
        "GROUP BY TUMBLE(PROCTIME(), INTERVAL '30' MINUTE)"
    )
    with opened(path, clock) as session:
        session.run(
            f"CREATE TABLE t (id int){keeps}; CREATE VIEW stamped AS SELECT id, PROCTIME() AS taken FROM t;"
            f"CREATE MATERIALIZED VIEW counted AS {counted}; CREATE MATERIALIZED VIEW grouped AS {grouped}"
        )
        session.run("INSERT INTO t VALUES (1), (2); FLUSH")
    clock.now += timedelta(minutes=45)
    with opened(path, clock) as session:
        session.run("INSERT INTO t VALUES (3); FLUSH")
        expected = [("10:00", 2), ("10:30", 1)]
        if not keeps:
            session.run("DELETE FROM t WHERE id = 1; FLUSH")
            expected[0] = ("10:00", 1)
        assert sorted(session.query("SELECT * FROM counted").rows()) == expected
        assert sorted(session.query("SELECT * FROM grouped").rows()) == expected
        assert session.query("SELECT PROCTIME() = now()").rows() == [(True,)]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT now() FROM t",
        "SELECT * FROM t WHERE now() - at < INTERVAL '1 hour'",
        "SELECT * FROM t WHERE NOT (at > now())",
        "SELECT * FROM t WHERE at <> now()",
        "SELECT * FROM t WHERE date_part('hour', at) = date_part('hour', now())",
        "SELECT at, count(*), PROCTIME() FROM t GROUP BY at",
        "SELECT * FROM tumble(t, now(), INTERVAL '1 hour')",
    ],
)
def test_what_says_no_moment_to_leave_or_enter_is_refused(query: str) -> None:
    with Session() as session:
        session.run("CREATE TABLE t (at timestamp)")
        with pytest.raises(UnsupportedSqlError, match=r"now\(\)|PROCTIME|clock"):
            session.run(f"CREATE MATERIALIZED VIEW w AS {query}")


@pytest.mark.parametrize(
    "view",
    [
        "SELECT * FROM t WHERE at > now() - INTERVAL '1 hour'",
        "SELECT PROCTIME() FROM t",
        "SELECT window_start, count(*) FROM tumble(t, at, INTERVAL '1 hour') GROUP BY window_start EMIT ON WINDOW CLOSE",
    ],
)
def test_what_a_view_in_stages_cannot_remember_is_refused(spread_session: Session, view: str) -> None:
    spread_session.run("CREATE TABLE t (at timestamp, WATERMARK FOR at AS at)")
    with pytest.raises(UnsupportedSqlError, match="on Spark"):
        spread_session.run(f"CREATE MATERIALIZED VIEW w AS {view}")
