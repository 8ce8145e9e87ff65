"""SESSION(..., CLOSE WHEN condition): sessions that a row ends, in queries, and in views batch by batch."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest

from tests.examples import seeds
from windowpane.errors import SqlError
from windowpane.sql import Session

SESSIONS = (
    "SELECT k, window_start AS f, window_end AS u, count(*) AS n, sum(v) AS s FROM "
    "SESSION(TABLE doings PARTITION BY k, DESCRIPTOR(at), INTERVAL '30 minutes', CLOSE WHEN v = 0) "
    "GROUP BY k, window_start, window_end"
)


@pytest.fixture
def session() -> Iterator[Session]:
    with Session(":memory:") as opened:
        opened.run("CREATE TABLE doings (k text, at timestamp, v int)")
        yield opened


def insert(session: Session, *rows: tuple[str, int, int]) -> None:
    """Insert rows of a key, a minute and a value."""
    values = ", ".join(f"('{k}', TIMESTAMP '2024-01-01 08:00' + INTERVAL '{minute} minutes', {v})" for k, minute, v in rows)
    session.run(f"INSERT INTO doings VALUES {values}; FLUSH")


def shown(session: Session, query: str) -> list[tuple[str, str, str, int, int]]:
    """Return key, first and last bound without the day, and the aggregates."""
    rows = [[str(cell) for cell in row] for row in session.query(query).text_rows()]
    return sorted((k, first[11:], last[11:], int(n), int(total)) for k, first, last, n, total in rows)


BY_HAND = [
    ("a", "08:00:00", "08:20:00.000001", 3, 6),
    ("a", "08:21:00", "08:51:00", 1, 2),
    ("a", "08:51:00", "09:01:00.000001", 2, 3),
    ("b", "08:00:00", "08:30:00", 1, 7),
]


def test_a_query_and_a_view_have_the_sessions_by_hand(session: Session) -> None:
    insert(session, ("a", 0, 1), ("a", 5, 5), ("a", 20, 0), ("a", 21, 2), ("a", 51, 3), ("a", 61, 0), ("b", 0, 7))
    assert shown(session, SESSIONS) == BY_HAND
    session.run(f"CREATE MATERIALIZED VIEW sessions AS {SESSIONS}")
    assert shown(session, "SELECT * FROM sessions") == BY_HAND
    insert(session, ("a", 3, 0), ("b", 0, 0))  # rows in disorder split a session, and close one
    split = [("a", "08:00:00", "08:03:00.000001", 2, 1), ("a", "08:05:00", "08:20:00.000001", 2, 5)]
    closed = [("b", "08:00:00", "08:00:00.000001", 2, 7)]
    assert shown(session, "SELECT * FROM sessions") == [*split, *BY_HAND[1:3], *closed]


def test_every_row_of_the_instant_of_a_closing_row_is_of_its_session(session: Session) -> None:
    insert(session, ("a", 0, 1), ("a", 9, 0), ("a", 9, 4), ("a", 10, 2))
    assert shown(session, SESSIONS) == [("a", "08:00:00", "08:09:00.000001", 3, 5), ("a", "08:10:00", "08:40:00", 1, 2)]


def test_it_is_written_behind_the_gap_too(session: Session) -> None:
    insert(session, ("a", 0, 1), ("a", 5, 0), ("a", 6, 2))
    query = (
        "SELECT k, window_start, window_end, count(*), sum(v) FROM SESSION(TABLE doings PARTITION BY k, DESCRIPTOR(at), "
        "INTERVAL '30 minutes' CLOSE WHEN (v = 0 OR v IN (7, 8))) GROUP BY k, window_start, window_end"
    )
    assert shown(session, query) == [("a", "08:00:00", "08:05:00.000001", 2, 1), ("a", "08:06:00", "08:36:00", 1, 2)]


def test_on_window_close_a_session_comes_when_the_watermark_passes_its_closing_row(session: Session) -> None:
    session.run(
        "CREATE TABLE clicks (k text, at timestamp, v int, WATERMARK FOR at AS at - INTERVAL '5 minutes') APPEND ONLY;"
        f"CREATE MATERIALIZED VIEW closed AS {SESSIONS.replace('doings', 'clicks')} EMIT ON WINDOW CLOSE"
    )
    for minutes, expected in (((0, 10), 1), ((15,), 1), ((17,), 2), ((46,), 2), ((60,), 2), ((66,), 3)):
        values = ", ".join(f"('a', TIMESTAMP '2024-01-01 08:00' + INTERVAL '{each} minutes', {each % 10})" for each in minutes)
        session.run(f"INSERT INTO clicks VALUES {values}; FLUSH")
        assert len(session.query("SELECT * FROM closed").rows()) == expected, minutes
    assert shown(session, "SELECT * FROM closed") == [
        ("a", "08:00:00", "08:00:00.000001", 1, 0),
        ("a", "08:10:00", "08:10:00.000001", 1, 0),
        ("a", "08:15:00", "09:00:00.000001", 4, 18),
    ]


def test_a_row_below_the_watermark_is_late_also_where_windows_judge_late_rows(session: Session) -> None:
    query = SESSIONS.replace("doings", "clicks")
    session.run(
        "SET late_rows = 'open_windows';"
        "CREATE TABLE clicks (k text, at timestamp, v int, WATERMARK FOR at AS at - INTERVAL '5 minutes') APPEND ONLY;"
        f"CREATE MATERIALIZED VIEW closed AS {query} EMIT ON WINDOW CLOSE"
    )
    for minute, v in ((0, 1), (10, 0), (20, 1), (12, 5), (17, 5), (90, 1)):  # 12 comes under the watermark 15
        session.run(f"INSERT INTO clicks VALUES ('a', TIMESTAMP '2024-01-01 08:00' + INTERVAL '{minute} minutes', {v}); FLUSH")
    expected = [("a", "08:00:00", "08:10:00.000001", 2, 1), ("a", "08:17:00", "08:50:00", 2, 6)]
    assert shown(session, "SELECT * FROM closed") == expected
    assert shown(session, query)[:2] == expected


def test_what_is_no_condition_is_refused(session: Session) -> None:
    with pytest.raises(SqlError, match="CLOSE WHEN takes a condition, true or false, and this is integer"):
        session.query(SESSIONS.replace("v = 0", "v"))


@pytest.mark.parametrize("seed", seeds(12))
def test_a_view_has_what_its_query_returns_after_random_changes(session: Session, seed: int) -> None:
    draw = Random(seed)
    session.run(f"CREATE MATERIALIZED VIEW sessions AS {SESSIONS}")
    for _ in range(6):
        rows = [(draw.choice("ab"), draw.randint(0, 150), draw.randint(0, 4)) for _ in range(draw.randint(1, 8))]
        insert(session, *rows)
        if draw.random() < 0.5:
            session.run(f"DELETE FROM doings WHERE extract(minute FROM at) < {draw.randint(0, 20)} AND v < 3; FLUSH")
        assert shown(session, "SELECT * FROM sessions") == shown(session, SESSIONS)
