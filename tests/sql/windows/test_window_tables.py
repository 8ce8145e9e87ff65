"""Window table functions, in RisingWave's and Flink's spelling, and EMIT ON WINDOW CLOSE over them."""

from __future__ import annotations

from pathlib import Path

import pytest

from windowpane.errors import SqlTypeError, UnsupportedSqlError
from windowpane.sql import Session

CLOCK = "substring({}::text FROM 12 FOR 5)"
BOUNDS = f"{CLOCK.format('window_start')} AS s, {CLOCK.format('window_end')} AS e"


@pytest.fixture
def session():
    with Session(":memory:") as opened:
        opened.run("CREATE TABLE t (id int, at timestamp, who int, WATERMARK FOR at AS at - INTERVAL '5 minutes') APPEND ONLY")
        yield opened


def insert(session: Session, *rows: tuple[int, str, int]) -> None:
    values = [f"({i}, '2024-01-01 {at}', {who})" for i, at, who in rows]
    session.run(f"INSERT INTO t VALUES {', '.join(values)}; FLUSH")


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("tumble(t, at, INTERVAL '10 minutes')", [(1, "10:00", "10:10")]),
        ("TABLE(TUMBLE(TABLE t, DESCRIPTOR(at), INTERVAL '10' MINUTES))", [(1, "10:00", "10:10")]),
        ("TABLE(TUMBLE(DATA => TABLE t, TIMECOL => DESCRIPTOR(at), SIZE => INTERVAL '10' MINUTES))", [(1, "10:00", "10:10")]),
        ("tumble(t, at, INTERVAL '10 minutes', INTERVAL '5 minutes')", [(1, "10:05", "10:15")]),
        ("hop(t, at, INTERVAL '5 minutes', INTERVAL '10 minutes')", [(1, "10:00", "10:10"), (1, "10:05", "10:15")]),
        (
            "hop(t, at, INTERVAL '5 minutes', INTERVAL '10 minutes', INTERVAL '2 minutes')",
            [(1, "10:02", "10:12"), (1, "10:07", "10:17")],
        ),
        ("cumulate(t, at, INTERVAL '5 minutes', INTERVAL '15 minutes')", [(1, "10:00", "10:10"), (1, "10:00", "10:15")]),
        ("session(t PARTITION BY (who), DESCRIPTOR(at), INTERVAL '10 minutes')", [(1, "10:07", "10:17")]),
        ("TABLE(SESSION(TABLE t PARTITION BY who, id, DESCRIPTOR(at), INTERVAL '10' MINUTES))", [(1, "10:07", "10:17")]),
        (
            "TABLE(SESSION(DATA => TABLE t PARTITION BY who, id, TIMECOL => DESCRIPTOR(at), GAP => INTERVAL '10' MINUTES))",
            [(1, "10:07", "10:17")],
        ),
        (
            "TABLE(CUMULATE(DATA => TABLE t, TIMECOL => DESCRIPTOR(at), STEP => INTERVAL '5' MINUTES, "
            "SIZE => INTERVAL '15' MINUTES))",
            [(1, "10:00", "10:10"), (1, "10:00", "10:15")],
        ),
    ],
)
def test_windows_of_one_row(session: Session, call: str, expected: list[tuple[int, str, str]]) -> None:
    session.run(f"CREATE MATERIALIZED VIEW w AS SELECT id, {BOUNDS} FROM {call}")
    insert(session, (1, "10:07", 1))
    assert sorted(session.query("SELECT * FROM w").rows()) == expected
    assert sorted(session.query(f"SELECT id, {BOUNDS} FROM {call}").rows()) == expected


def test_sessions_grow_and_merge(session: Session) -> None:
    session.run(
        f"CREATE MATERIALIZED VIEW w AS SELECT id, {BOUNDS} FROM session(t PARTITION BY (who), DESCRIPTOR(at), '10 minutes')"
    )
    insert(session, (1, "10:00", 1), (2, "10:15", 1), (3, "10:15", 2))
    assert sorted(session.query("SELECT * FROM w").rows()) == [
        (1, "10:00", "10:10"),
        (2, "10:15", "10:25"),
        (3, "10:15", "10:25"),
    ]
    # 10:10 is the watermark: this row is in time, less than a gap from the second session and exactly one from the first.
    insert(session, (4, "10:10", 1))
    assert sorted(session.query("SELECT id, s FROM w").rows()) == [(1, "10:00"), (2, "10:00"), (3, "10:15"), (4, "10:00")]


def test_rows_one_gap_apart_are_one_session_as_in_flink(session: Session) -> None:
    """Flink merges windows that touch. A SESSION frame of OVER, which is RisingWave's, begins a new one there."""
    query = f"SELECT id, {BOUNDS} FROM session(t PARTITION BY (who), DESCRIPTOR(at), INTERVAL '10 minutes')"
    frame = "SELECT id, count(*) OVER (PARTITION BY who ORDER BY at SESSION WITH GAP '10 minutes') AS n FROM t"
    session.run(f"CREATE MATERIALIZED VIEW w AS {query}; CREATE MATERIALIZED VIEW f AS {frame} EMIT ON WINDOW CLOSE")
    insert(session, (1, "10:00", 1), (2, "10:10", 1), (3, "10:20:00.000001", 1), (4, "10:40", 1), (5, "11:00", 2))
    expected = [(1, "10:00", "10:20"), (2, "10:00", "10:20"), (3, "10:20", "10:30"), (4, "10:40", "10:50"), (5, "11:00", "11:10")]
    assert sorted(session.query("SELECT * FROM w").rows()) == expected == sorted(session.query(query).rows())
    assert sorted(session.query("SELECT * FROM f").rows()) == [(1, 1), (2, 1), (3, 1)]


def test_each_step_of_cumulate_comes_out_when_it_ends(session: Session) -> None:
    session.run(
        "CREATE MATERIALIZED VIEW w AS SELECT substring(window_end::text FROM 12 FOR 5) AS e, sum(id) AS n "
        "FROM cumulate(t, at, INTERVAL '10 minutes', INTERVAL '1 hour') GROUP BY window_start, window_end EMIT ON WINDOW CLOSE"
    )
    insert(session, (1, "10:01", 1), (2, "10:24:59.999999", 1))  # the watermark is a microsecond before 10:20
    assert session.query("SELECT * FROM w ORDER BY e").rows() == [("10:10", 1)]
    insert(session, (3, "10:25", 1))
    assert session.query("SELECT * FROM w ORDER BY e").rows() == [("10:10", 1), ("10:20", 1)]
    insert(session, (4, "11:06", 1))
    steps = [("10:10", 1), ("10:20", 1), ("10:30", 6), ("10:40", 6), ("10:50", 6), ("11:00", 6)]
    assert session.query("SELECT * FROM w ORDER BY e").rows() == steps


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("INSERT INTO mirror SELECT id FROM plain", "which is a sink"),
        ("INSERT INTO copied SELECT id FROM t", "the stream 't'"),
        ("INSERT INTO copied SELECT id FROM over_t", "the stream 't'"),
        ("INSERT INTO copied SELECT max(id) FROM TABLE(TUMBLE(TABLE plain, DESCRIPTOR(at), INTERVAL '1' HOUR))", "Flink's"),
    ],
)
def test_an_insert_that_is_a_pipeline_in_flink_is_refused(session: Session, statement: str, words: str) -> None:
    session.run(
        "CREATE TABLE plain (id int, at timestamp); CREATE TABLE copied (id int); CREATE VIEW over_t AS SELECT * FROM t;"
        "CREATE SINK mirror AS SELECT id FROM plain WITH (connector = 'blackhole')"
    )
    with pytest.raises(UnsupportedSqlError, match=f"{words}.*CREATE MATERIALIZED VIEW"):
        session.run(statement)
    session.run("INSERT INTO plain VALUES (1, NULL); INSERT INTO copied SELECT id FROM plain")
    assert session.query("SELECT * FROM copied").rows() == [(1,)]


def test_a_relation_named_data_is_read(session: Session) -> None:
    session.run(
        "CREATE VIEW v AS SELECT * FROM TABLE(TUMBLE(DATA => TABLE t, TIMECOL => DESCRIPTOR(at), SIZE => INTERVAL '1' DAY))"
    )
    with pytest.raises(UnsupportedSqlError, match="'v' reads 't'"):
        session.run("DROP TABLE t")


def test_groups_come_out_once_when_their_window_closes(session: Session) -> None:
    session.run(
        "CREATE MATERIALIZED VIEW w AS SELECT window_start, count(*) AS n FROM tumble(t, at, INTERVAL '1 hour') "
        "GROUP BY window_start EMIT ON WINDOW CLOSE"
    )
    insert(session, (1, "10:10", 1), (2, "10:59", 1), (3, "11:04", 1))
    assert session.query("SELECT n FROM w").rows() == []
    insert(session, (4, "11:05", 1))
    assert session.query("SELECT n FROM w").rows() == [(2,)]
    # Both are below the watermark of 11:00.
    insert(session, (5, "10:58", 1), (6, "10:59", 2))
    assert session.query("SELECT n FROM w").rows() == [(2,)]
    assert session.query("SELECT count(*) FROM t").rows() == [(4,)]


def test_what_has_come_out_does_not_come_again_where_rows_can_change(tmp_path: Path) -> None:
    path = str(tmp_path / "changing.duckdb")
    with Session(path) as session:
        session.run(
            "CREATE TABLE c (id int PRIMARY KEY, at timestamp, v int, WATERMARK FOR at AS at);"
            "CREATE MATERIALIZED VIEW w AS SELECT window_start, sum(v) AS s FROM tumble(c, at, INTERVAL '1 hour') "
            "GROUP BY window_start EMIT ON WINDOW CLOSE;"
            "INSERT INTO c VALUES (1, '2024-01-01 00:10', 1), (2, '2024-01-01 00:20', 2), (3, '2024-01-01 01:30', 4); FLUSH"
        )
    with Session(path) as session:
        session.run("DELETE FROM c WHERE id = 1; FLUSH; UPDATE c SET v = 9 WHERE id >= 2; FLUSH")
        assert session.query("SELECT s FROM w").text_rows() == [["3"]]
        session.run("INSERT INTO c VALUES (4, '2024-01-01 02:00', 1); FLUSH")
        assert session.query("SELECT s FROM w ORDER BY window_start").text_rows() == [["3"], ["9"]]


def test_a_view_on_a_view_that_emits_on_close(session: Session) -> None:
    session.run(
        "CREATE MATERIALIZED VIEW quarters AS SELECT window_start, count(*) AS n FROM tumble(t, at, INTERVAL '15 minutes') "
        "GROUP BY window_start EMIT ON WINDOW CLOSE;"
        "CREATE MATERIALIZED VIEW hours AS SELECT tumble_start(window_start, INTERVAL '1 hour') AS hour, sum(n) AS n "
        "FROM quarters GROUP BY tumble_start(window_start, INTERVAL '1 hour') EMIT ON WINDOW CLOSE"
    )
    insert(session, (1, "10:10", 1), (2, "10:20", 1), (3, "11:00", 1), (4, "11:40", 1))
    assert session.query("SELECT n FROM quarters ORDER BY window_start").rows() == [(1,), (1,), (1,)]
    assert session.query("SELECT n FROM hours").text_rows() == [["2"]]


def test_a_top_n_comes_out_once_when_its_window_closes(session: Session) -> None:
    numbered = (
        "SELECT *, row_number() OVER (PARTITION BY window_start ORDER BY who DESC) AS n FROM tumble(t, at, INTERVAL '1 hour')"
    )
    session.run(f"CREATE MATERIALIZED VIEW w AS SELECT id FROM ({numbered}) WHERE n = 1 EMIT ON WINDOW CLOSE")
    insert(session, (1, "10:10", 1), (2, "10:20", 3), (3, "11:00", 9), (4, "11:10", 1))
    assert session.query("SELECT id FROM w").rows() == [(2,)]


@pytest.mark.parametrize(
    ("query", "error", "words"),
    [
        ("SELECT * FROM cumulate(t, at, INTERVAL '7 minutes', INTERVAL '10 minutes')", SqlTypeError, "multiple of the step"),
        ("SELECT * FROM tumble(t, at, INTERVAL '0')", SqlTypeError, "greater than zero"),
        ("SELECT * FROM tumble(t, at, INTERVAL '1 month 1 day')", SqlTypeError, "Mixtures have no calendar"),
        ("SELECT * FROM tumble(t, id, INTERVAL '1 hour')", SqlTypeError, "not by integer"),
        ("SELECT who, count(*) FROM t GROUP BY who EMIT ON WINDOW CLOSE", UnsupportedSqlError, "without a watermark column"),
        ("SELECT lag(id) OVER (ORDER BY at) FROM t EMIT ON WINDOW CLOSE", UnsupportedSqlError, "without PARTITION BY"),
        ("SELECT lag(id) OVER (PARTITION BY who ORDER BY id) FROM t EMIT ON WINDOW CLOSE", UnsupportedSqlError, "no watermark"),
        ("SELECT lag(id) OVER (PARTITION BY who ORDER BY at DESC) FROM t EMIT ON WINDOW CLOSE", UnsupportedSqlError, "ascending"),
        ("SELECT row_number() OVER (ORDER BY at) FROM t", UnsupportedSqlError, "PARTITION BY 1::int"),
        ("SELECT count(*) OVER (PARTITION BY who ORDER BY at SESSION WITH GAP '1 hour') FROM t", UnsupportedSqlError, "SESSION"),
    ],
)
def test_what_no_view_can_be_made_from(session: Session, query: str, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        session.run(f"CREATE MATERIALIZED VIEW w AS {query}")
    assert session.query("SHOW MATERIALIZED VIEWS").rows() == []
