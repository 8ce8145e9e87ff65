"""Joins FOR SYSTEM_TIME AS OF PROCTIME(): a row meets the table as it is when it is inserted, and its result stays."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.sql.in_process import spread_session
from windowpane.errors import UnsupportedSqlError
from windowpane.sql import Session

__all__ = ["spread_session"]

DECLARED = "CREATE TABLE l (k int, n int) APPEND ONLY; CREATE TABLE v (k bigint PRIMARY KEY, name varchar)"
VIEWS = """
    CREATE MATERIALIZED VIEW named AS SELECT n, name FROM l LEFT JOIN v FOR SYSTEM_TIME AS OF PROCTIME() ON l.k = v.k;
    CREATE MATERIALIZED VIEW found AS
        SELECT n, w.name AS name FROM l JOIN v FOR SYSTEM_TIME AS OF PROCTIME() AS w ON l.k = w.k AND n % 3 > 0
        WHERE w.name <> 'b';
    CREATE MATERIALIZED VIEW counted AS
        SELECT name, count(*) AS c FROM l JOIN v FOR SYSTEM_TIME AS OF PROCTIME() ON l.k = v.k GROUP BY name;
"""


class Expected:
    """What the views hold: each row with what the table said in the flush in which it was inserted, the table's changes first."""

    def __init__(self) -> None:
        self.table: dict[int, str] = {}
        self.rows: list[tuple[int | None, int, str | None]] = []

    def compare(self, session: Session) -> None:
        named = [(n, name) for _, n, name in self.rows]
        found = [(n, name) for n, name in named if name is not None and n % 3 > 0 and name != "b"]
        names = [name for _, name in named if name is not None]
        assert sorted(session.query("SELECT * FROM named").rows()) == sorted(named, key=lambda row: row[0])
        assert sorted(session.query("SELECT * FROM found").rows()) == sorted(found)
        assert sorted(session.query("SELECT * FROM counted").rows()) == sorted((name, names.count(name)) for name in set(names))


def _round(rng: random.Random, expected: Expected) -> list[str]:
    keys, statements = range(5), []
    inserted: list[tuple[int | None, int]] = []
    for _ in range(rng.randrange(3)):
        key, name = rng.choice(keys), rng.choice("abc")
        if rng.random() < 0.3:
            expected.table.pop(key, None)
            statements.append(f"DELETE FROM v WHERE k = {key}")
        else:
            expected.table[key] = name
            statements.append(f"DELETE FROM v WHERE k = {key}; INSERT INTO v VALUES ({key}, '{name}')")
    for _ in range(rng.randrange(4)):
        key, number = rng.choice([None, *keys]), len(expected.rows) + len(inserted)
        inserted.append((key, number))
        row = f"({'NULL' if key is None else key}, {number})"
        statements.insert(rng.randrange(len(statements) + 1), f"INSERT INTO l VALUES {row}")
    expected.rows += [(key, number, None if key is None else expected.table.get(key)) for key, number in inserted]
    return [*statements, "FLUSH"]


def _rounds(session: Session, rng: random.Random, expected: Expected) -> None:
    for _ in range(8):
        for statement in _round(rng, expected):
            session.run(statement)
        expected.compare(session)


@pytest.mark.slow_but("0")
@pytest.mark.parametrize("seed", range(3))
def test_rows_meet_what_is_there_over_a_restart(seed: int, tmp_path: Path) -> None:
    store, rng, expected = str(tmp_path / "store.duckdb"), random.Random(seed), Expected()
    with Session(store=store) as session:
        session.run(DECLARED)
        for statement in _round(rng, expected):
            session.run(statement)
        # The first rows of a view meet the table as it is then.
        expected.rows = [(key, n, None if key is None else expected.table.get(key)) for key, n, _ in expected.rows]
        session.run(VIEWS)
        _rounds(session, rng, expected)
    with Session(store=store) as session:
        expected.compare(session)
        _rounds(session, rng, expected)


def test_rows_that_are_spread_over_buckets_meet_what_is_there(spread_session: Session) -> None:
    expected = Expected()
    spread_session.run(f"{DECLARED}; {VIEWS}")
    _rounds(spread_session, random.Random(7), expected)


@pytest.mark.parametrize("source", ["l", "(SELECT * FROM l) AS l", "seen AS l"])
def test_a_column_declared_as_proctime_is_the_time_of_arrival_as_in_flink(source: str) -> None:
    with Session(":memory:") as session:
        session.run(
            "CREATE TABLE l (k int, n int, at AS PROCTIME()) APPEND ONLY; CREATE TABLE v (k int PRIMARY KEY, name text);"
            "CREATE VIEW seen AS SELECT k, n, at FROM l;"
            f"CREATE MATERIALIZED VIEW named AS SELECT n, name FROM {source} LEFT JOIN v FOR SYSTEM_TIME AS OF l.at ON l.k = v.k;"
            "INSERT INTO v VALUES (1, 'a'); INSERT INTO l VALUES (1, 1); FLUSH;"
            "UPDATE v SET name = 'b' WHERE k = 1; INSERT INTO l VALUES (1, 2), (2, 3); FLUSH"
        )
        assert session.query("SELECT * FROM named ORDER BY n").rows() == [(1, "a"), (2, "b"), (3, None)]


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("SELECT 1 FROM v FOR SYSTEM_TIME AS OF PROCTIME()", "line 1, column .*here is not supported"),
        ("SELECT 1 FROM v JOIN l FOR SYSTEM_TIME AS OF PROCTIME() ON l.k = v.k", "must be APPEND ONLY"),
        ("SELECT 1 FROM l RIGHT JOIN v FOR SYSTEM_TIME AS OF PROCTIME() ON l.k = v.k", "JOIN and LEFT JOIN with ON are"),
        ("SELECT 1 FROM l JOIN v FOR SYSTEM_TIME AS OF '2024-01-01' ON l.k = v.k", "write FOR SYSTEM_TIME AS OF PROCTIME"),
        ("SELECT 1 FROM l JOIN v FOR SYSTEM_TIME BETWEEN 1 AND 2 ON l.k = v.k", "FOR SYSTEM_TIME AS OF is"),
    ],
)
def test_what_it_is_not_for_is_refused(query: str, words: str) -> None:
    with Session(":memory:") as session:
        session.run(DECLARED)
        with pytest.raises(UnsupportedSqlError, match=words):
            session.run(query)
