"""The frame of OVER windows that name none: RisingWave's ROWS, said where it differs from PostgreSQL's RANGE, and RANGE if set.

The values of RANGE are those of PostgreSQL 16 for the same statements; those of ROWS are counted by hand.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from windowpane.errors import SqlTypeError
from windowpane.sql import Session

ROWS_THAT_TIE = "INSERT INTO t VALUES (1, 1, 1), (2, 1, 2), (3, 1, 2), (4, 2, 5)"
RUNNING = "SELECT id, sum(v) OVER (PARTITION BY k ORDER BY v) AS s FROM t"
OF_ROWS = [["1", "1"], ["2", "3"], ["3", "5"], ["4", "5"]]
OF_RANGE = [["1", "1"], ["2", "5"], ["3", "5"], ["4", "5"]]


@pytest.fixture
def session() -> Iterator[Session]:
    with Session(":memory:") as opened:
        opened.run(f"CREATE TABLE t (id int PRIMARY KEY, k int, v int); {ROWS_THAT_TIE}")
        yield opened


def rows(session: Session, query: str) -> list[list[str | None]]:
    return session.query(f"{query} ORDER BY id").text_rows()


def test_a_query_has_the_frame_that_is_set(session: Session) -> None:
    assert rows(session, RUNNING) == OF_ROWS
    session.run("SET default_frame = 'range'")
    assert rows(session, RUNNING) == OF_RANGE
    assert session.query("SHOW default_frame").text_rows() == [["range"]]
    last = "SELECT id, last_value(id) OVER (ORDER BY k) AS s FROM t WHERE id < 4"
    assert [row[1] for row in rows(session, last)] == ["3", "3", "3"]


def test_postgres_has_the_values_of_range(session: Session, postgres_url: str) -> None:
    psycopg = pytest.importorskip("psycopg")
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f"CREATE TABLE t (id int PRIMARY KEY, k int, v int); {ROWS_THAT_TIE}")
        theirs = connection.execute(f"{RUNNING} ORDER BY id").fetchall()

    assert [[str(cell) for cell in row] for row in theirs] == OF_RANGE


def test_a_view_keeps_the_frame_that_it_was_made_with(tmp_path: Path) -> None:
    path = str(tmp_path / "store.duckdb")
    with Session(path) as session:
        session.run("CREATE TABLE t (id int PRIMARY KEY, k int, v int); SET default_frame = 'range'")
        session.run(f"CREATE MATERIALIZED VIEW by_range AS {RUNNING}; CREATE VIEW plain AS {RUNNING}; SET default_frame = 'rows'")
        session.run(f"CREATE MATERIALIZED VIEW by_rows AS {RUNNING}; CREATE MATERIALIZED VIEW of_plain AS SELECT * FROM plain")
    with Session(path) as session:
        session.run(f"{ROWS_THAT_TIE}; FLUSH; ALTER MATERIALIZED VIEW by_range RENAME TO renamed")
        assert rows(session, "SELECT * FROM renamed") == OF_RANGE
    with Session(path) as session:
        session.run("UPDATE t SET v = 2 WHERE id = 1; UPDATE t SET v = 1 WHERE id = 1; FLUSH")
        found = {name: rows(session, f"SELECT * FROM {name}") for name in ("renamed", "plain", "of_plain", "by_rows")}
    assert found == {"renamed": OF_RANGE, "plain": OF_RANGE, "of_plain": OF_RANGE, "by_rows": OF_ROWS}


def test_a_notice_once_a_session_where_rows_tie(session: Session) -> None:
    quiet = [
        "SELECT sum(v) OVER (ORDER BY id) FROM t",
        "SELECT sum(v) OVER (PARTITION BY v ORDER BY k) FROM t WHERE id < 3",
        "SELECT row_number() OVER (ORDER BY v) FROM t",
        "SELECT sum(v) OVER (ORDER BY v ROWS UNBOUNDED PRECEDING) FROM t",
        "SELECT sum(v) OVER (PARTITION BY k) FROM t",
    ]
    assert [session.query(query).notice for query in quiet] == [""] * len(quiet)

    notice = session.query(RUNNING).notice
    assert "RANGE" in notice
    assert "SET default_frame = 'range'" in notice
    assert session.query(RUNNING).notice == ""


def test_a_view_and_a_streamed_query_tell_it_too() -> None:
    table = "CREATE TABLE t (id int, k int, v int)"
    with Session() as session:
        assert "SET default_frame" in session.run(f"{table}; CREATE MATERIALIZED VIEW m AS {RUNNING}")[-1].notice
    with Session() as session:
        session.run(f"{table}; INSERT INTO t VALUES (1, 1, 1), (2, 1, 1)")
        assert "SET default_frame" in list(session.stream(RUNNING))[-1].notice
    with Session() as session:
        session.run(f"{table}; INSERT INTO t VALUES (1, 1, 1), (2, 1, 1); SET default_frame = 'range'")
        assert session.query(RUNNING).notice == ""


def test_explain_names_the_default(session: Session) -> None:
    def last_line(query: str) -> str:
        return str(session.query(f"EXPLAIN {query}").text_rows()[-1][0])

    assert "RisingWave" in last_line(RUNNING)
    assert "SET default_frame = 'range'" in last_line(f"CREATE MATERIALIZED VIEW m AS {RUNNING}")
    assert "Scan" in last_line("SELECT row_number() OVER (ORDER BY v) FROM t")
    session.run("SET default_frame = 'range'")
    assert "PostgreSQL's" in last_line(RUNNING)


def test_another_word_is_refused(session: Session) -> None:
    with pytest.raises(SqlTypeError, match="'groups' is not known"):
        session.run("SET default_frame = 'groups'")


@pytest.mark.spark
def test_a_view_on_spark_has_it_too(spark) -> None:
    with Session(spark) as session:
        session.run("CREATE TABLE t (id int PRIMARY KEY, k int, v int); SET default_frame = 'range'")
        session.run(f"CREATE MATERIALIZED VIEW m AS {RUNNING}; SET default_frame = 'rows'; {ROWS_THAT_TIE}; FLUSH")
        assert rows(session, "SELECT * FROM m") == OF_RANGE
