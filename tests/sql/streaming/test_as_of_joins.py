"""ASOF joins equal DuckDB's on the final tables after every flush, and are emitted once on window close."""

from __future__ import annotations

import random

import pytest

from tests.examples import first
from tests.sql.against_duckdb import check
from windowpane.errors import SqlTypeError, UnsupportedSqlError
from windowpane.sql import Session

DECLARED = (
    "CREATE TABLE l (id int PRIMARY KEY, k int, ts timestamp, v int)",
    "CREATE TABLE r (id int PRIMARY KEY, k bigint, ts timestamp, name varchar, n int)",
)
QUERIES = [
    f"SELECT l.id AS lid, l.k AS lk, l.ts AS ts, l.v AS v, r.id AS rid, r.ts AS rts, name, n FROM l ASOF {kind} r ON {condition}"
    for kind in ("JOIN", "LEFT JOIN")
    for condition in (
        "l.k = r.k AND l.ts >= r.ts",
        "r.ts < l.ts AND r.k = l.k",
        "l.k = r.k AND l.ts <= r.ts",
        "l.k = r.k AND l.ts < r.ts",
        "l.k = r.k AND l.v = r.n AND l.ts >= r.ts + INTERVAL '2 seconds'",
    )
]
TWICE = (
    "SELECT lid, name, n, count(*) AS c FROM (SELECT l.id AS lid, o.id AS oid, r.name AS name, r.n AS n FROM l "
    "JOIN l AS o ON l.k = o.k ASOF LEFT JOIN r ON l.k = r.k AND o.ts >= r.ts) AS q GROUP BY lid, name, n"
)


def _change(rng: random.Random) -> list[str]:
    table, number = rng.choice("lr"), rng.randrange(14)
    # Of right rows of one key and time DuckDB takes any: each has a time of its own, which left rows may have, too.
    at = f"'2024-01-01 00:00:{number:02}'" if table == "r" else rng.choice(["NULL", f"'2024-01-01 00:00:{rng.randrange(16):02}'"])
    k, v = rng.choice(["NULL", "1", "1", "2"]), rng.choice(["NULL", "0", "1"])
    name = rng.choice(["NULL", "'a'", "'b'"])
    row = f"{number}, {k}, {at}, {v}" if table == "l" else f"{number}, {k}, {at}, {name}, {v}"
    if rng.random() < 0.7:
        return [f"DELETE FROM {table} WHERE id = {number}", f"INSERT INTO {table} VALUES ({row})"]
    if rng.random() < 0.5:
        return [f"UPDATE {table} SET k = {k} WHERE id % 4 = {number % 4}"]
    return [f"DELETE FROM {table} WHERE id {rng.choice(['=', '>'])} {number}"]


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_the_nearest_rows_through_random_changes(seed: int) -> None:
    rng = random.Random(seed)
    rounds = [[each for _ in range(rng.choice([1, 1, 2, 6])) for each in _change(rng)] for _ in range(first(3) or 6)]
    check([*QUERIES, TWICE], DECLARED, rounds)


LATE_AND_LATER = """
    CREATE TABLE l (k int, at timestamp, v int, WATERMARK FOR at AS at - INTERVAL '5 seconds') APPEND ONLY;
    CREATE TABLE r (k int, at timestamp, p int, WATERMARK FOR at AS at - INTERVAL '5 seconds') APPEND ONLY;
    CREATE MATERIALIZED VIEW latest AS SELECT l.v AS v, l.at AS at, p FROM l ASOF LEFT JOIN r ON l.k = r.k AND l.at >= r.at
        EMIT ON WINDOW CLOSE;
    CREATE MATERIALIZED VIEW before AS SELECT l.v AS v, p FROM l ASOF JOIN r ON l.k = r.k AND l.at > r.at EMIT ON WINDOW CLOSE;
"""


def test_rows_come_out_once_when_both_watermarks_have_passed() -> None:
    with Session(":memory:") as session:
        session.run(LATE_AND_LATER)
        session.run("""
            INSERT INTO l VALUES (1, '2024-01-01 00:00:10', 1), (2, '2024-01-01 00:00:10', 2), (NULL, '2024-01-01 00:00:10', 3),
                (1, '2024-01-01 00:00:20', 4), (1, '2024-01-01 00:01:00', 5);
            INSERT INTO r VALUES (1, '2024-01-01 00:00:05', 100); FLUSH
        """)
        assert session.query("SELECT * FROM latest").table.num_rows == 0
        session.run("""
            INSERT INTO r VALUES (1, '2024-01-01 00:00:10', 150), (1, '2024-01-01 00:00:10', 160),
                (1, '2024-01-01 00:00:15', 200), (NULL, '2024-01-01 00:00:01', 300), (1, '2024-01-01 00:00:30', 400);
            FLUSH
        """)
        assert session.query("SELECT v, p FROM latest ORDER BY v").rows() == [(1, 160), (2, None), (3, None), (4, 200)]
        assert session.query("SELECT v, p FROM before ORDER BY v").rows() == [(1, 100), (4, 200)]
        # A late price changes no emitted row; the next row finds the newest.
        session.run("INSERT INTO r VALUES (1, '2024-01-01 00:00:12', 999), (1, '2024-01-01 00:02:00', 500); FLUSH")
        session.run("INSERT INTO l VALUES (1, '2024-01-01 00:02:00', 6); FLUSH")
        assert session.query("SELECT v, p FROM latest ORDER BY v").rows() == [(1, 160), (2, None), (3, None), (4, 200), (5, 400)]


VERSIONED = """
    CREATE TABLE l (k int, at timestamp, v int, WATERMARK FOR at AS at - INTERVAL '5 seconds') APPEND ONLY;
    CREATE TABLE r (k int, since timestamp, p int, WATERMARK FOR since AS since - INTERVAL '5 seconds') APPEND ONLY;
    CREATE MATERIALIZED VIEW kept AS SELECT v, w.p AS p FROM l LEFT JOIN r FOR SYSTEM_TIME AS OF l.at AS w ON l.k = w.k;
    CREATE MATERIALIZED VIEW found AS SELECT v, p FROM l JOIN r FOR SYSTEM_TIME AS OF l.at ON l.k = r.k;
    CREATE MATERIALIZED VIEW before AS
        SELECT v, p FROM l JOIN r FOR SYSTEM_TIME AS OF l.at - INTERVAL '6 seconds' ON l.k = r.k;
    CREATE MATERIALIZED VIEW once AS SELECT at, v, p FROM l LEFT JOIN r FOR SYSTEM_TIME AS OF l.at ON l.k = r.k
        EMIT ON WINDOW CLOSE;
"""


def test_the_version_that_was_valid_at_a_time_of_the_left_side() -> None:
    with Session(":memory:") as session:
        session.run(VERSIONED)
        session.run("""
            INSERT INTO l VALUES (1, '2024-01-01 00:00:10', 1), (2, '2024-01-01 00:00:10', 2), (NULL, '2024-01-01 00:00:10', 3);
            INSERT INTO r VALUES (1, '2024-01-01 00:00:04', 40), (1, '2024-01-01 00:00:11', 110); FLUSH
        """)
        views = ("kept", "found", "before")
        shown = [sorted(session.query(f"SELECT v, p FROM {view}").rows()) for view in views]
        assert shown == [[(1, 40), (2, None), (3, None)], [(1, 40)], [(1, 40)]]
        # A version of a time in between corrects what stands, as Flink's temporal join would have it.
        session.run("INSERT INTO r VALUES (1, '2024-01-01 00:00:10', 100); FLUSH")
        shown = [sorted(session.query(f"SELECT v, p FROM {view}").rows()) for view in views]
        assert shown == [[(1, 100), (2, None), (3, None)], [(1, 100)], [(1, 40)]]
        assert session.query("SELECT v, p FROM once").rows() == []
        session.run(
            "INSERT INTO l VALUES (9, '2024-01-01 00:01:00', 4); INSERT INTO r VALUES (9, '2024-01-01 00:01:00', 0); FLUSH"
        )
        assert sorted(session.query("SELECT v, p FROM once").rows()) == [(1, 100), (2, None), (3, None)]


def test_the_condition_of_a_match_stands_before_on_too() -> None:
    with Session(":memory:") as session:
        session.run(LATE_AND_LATER)
        session.run(
            "INSERT INTO l VALUES (1, '2024-01-01 00:00:10', 1); INSERT INTO r VALUES (1, '2024-01-01 00:00:09', 5); FLUSH"
        )
        query = "SELECT v, p FROM l ASOF LEFT JOIN r MATCH_CONDITION (l.at >= r.at) ON l.k = r.k"
        assert session.query(query).rows() == [(1, 5)]


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("SELECT 1 FROM l JOIN v FOR SYSTEM_TIME AS OF l.at ON l.k = v.k", "A table with a PRIMARY KEY keeps the newest"),
        ("SELECT 1 FROM l JOIN r FOR SYSTEM_TIME AS OF TIMESTAMP '2024-01-01' ON l.k = r.k", "AS OF a constant"),
        ("SELECT 1 FROM l JOIN r FOR SYSTEM_TIME AS OF l.at ON l.k = r.k AND r.p > 1", "r.p > 1 in the condition"),
        ("SELECT 1 FROM l RIGHT JOIN r FOR SYSTEM_TIME AS OF l.at ON l.k = r.k", "JOIN and LEFT JOIN with ON are"),
        ("SELECT 1 FROM l JOIN n FOR SYSTEM_TIME AS OF l.at ON l.k = n.k", "each version a row, with one WATERMARK"),
    ],
)
def test_versions_that_are_not_there_are_refused(query: str, words: str) -> None:
    with Session(":memory:") as session:
        session.run(VERSIONED)
        session.run("CREATE TABLE v (k int PRIMARY KEY, since timestamp, WATERMARK FOR since AS since)")
        session.run("CREATE TABLE n (k int, since timestamp) APPEND ONLY")
        with pytest.raises(UnsupportedSqlError, match=words):
            session.run(query)


@pytest.mark.parametrize(
    ("join", "error", "words"),
    [
        ("ASOF JOIN r ON l.k = r.k", UnsupportedSqlError, "with 0 inequalities"),
        ("ASOF JOIN r ON l.ts >= r.ts AND l.id > r.id", UnsupportedSqlError, "with 2 inequalities"),
        ("ASOF JOIN r ON l.k = r.k AND l.ts >= r.ts AND r.n > 1", UnsupportedSqlError, "r.n > 1 in the condition"),
        ("ASOF JOIN r ON l.k = r.k AND l.ts >= r.name", SqlTypeError, "no common type"),
        ("ASOF RIGHT JOIN r ON l.k = r.k AND l.ts >= r.ts", UnsupportedSqlError, "ASOF RIGHT JOIN"),
        ("ASOF JOIN r USING (k)", UnsupportedSqlError, "ASOF JOIN with USING"),
        ("ASOF JOIN r MATCH_CONDITION (l.ts >= r.ts) USING (k)", UnsupportedSqlError, "ASOF JOIN with USING"),
        ("ASOF JOIN r FOR SYSTEM_TIME AS OF l.ts ON l.ts >= r.ts", UnsupportedSqlError, "with FOR SYSTEM_TIME"),
    ],
)
def test_other_conditions_are_refused(join: str, error: type[Exception], words: str) -> None:
    with Session(":memory:") as session:
        session.run("; ".join(DECLARED))
        with pytest.raises(error, match=words):
            session.run(f"SELECT l.id FROM l {join}")


GROUPS = """
    CREATE TABLE l (id int PRIMARY KEY, k int, at timestamp);
    CREATE TABLE r (id int PRIMARY KEY, k int, g int, at timestamp, v int);
    CREATE MATERIALIZED VIEW sums AS SELECT k, g, at, sum(v) AS total FROM r GROUP BY k, g, at;
    CREATE MATERIALIZED VIEW of_query AS SELECT id, g, total FROM l
        ASOF LEFT JOIN (SELECT k, g, at, sum(v) AS total FROM r GROUP BY k, g, at) AS q
        ON l.k = q.k AND l.at >= q.at;
    CREATE MATERIALIZED VIEW of_view AS SELECT id, g, total FROM l ASOF LEFT JOIN sums ON l.k = sums.k AND l.at >= sums.at;
"""


@pytest.mark.parametrize("view", ["of_query", "of_view"])
def test_of_right_rows_of_one_time_the_smallest_key_counts_and_null_is_the_largest(view: str) -> None:
    with Session(":memory:") as session:
        session.run(GROUPS)
        session.run("""
            INSERT INTO l VALUES (1, 1, '2024-01-01 00:00:10'), (2, 1, '2024-01-01 00:00:20');
            INSERT INTO r VALUES (1, 1, NULL, '2024-01-01 00:00:05', 1), (2, 1, 7, '2024-01-01 00:00:05', 2),
                (3, 1, -2147483648, '2024-01-01 00:00:05', 4), (4, 1, NULL, '2024-01-01 00:00:15', 8); FLUSH
        """)
        assert session.query(f"SELECT * FROM {view} ORDER BY id").rows() == [(1, -2147483648, 4), (2, None, 8)]
        session.run("DELETE FROM r WHERE id = 3; FLUSH")
        assert session.query(f"SELECT * FROM {view} ORDER BY id").rows() == [(1, 7, 2), (2, None, 8)]


def test_without_an_equality_all_rows_of_a_view_meet() -> None:
    with Session(":memory:") as session:
        session.run("CREATE TABLE l (id int PRIMARY KEY, at timestamp); CREATE TABLE r (id int PRIMARY KEY, at timestamp)")
        query = "SELECT l.id AS id, r.id AS found FROM l ASOF LEFT JOIN r ON l.at >= r.at"
        session.run(f"CREATE MATERIALIZED VIEW v AS {query}")
        session.run("INSERT INTO l VALUES (1, '2024-01-02'), (2, '2024-01-01'); INSERT INTO r VALUES (8, '2024-01-03'); FLUSH")
        assert session.query("SELECT * FROM v ORDER BY 1").rows() == [(1, None), (2, None)]
        session.run("INSERT INTO r VALUES (7, '2024-01-01 12:00:00'); FLUSH")
        assert session.query("SELECT * FROM v ORDER BY 1").rows() == [(1, 7), (2, None)]


def test_a_chain_on_window_close_is_refused_and_its_way_out_is_right() -> None:
    """Each row of ``a`` with the version of its channel and of its person at its time; values by hand."""
    tables = """
    CREATE TABLE a (id int, at timestamp, c text, p text, WATERMARK FOR at AS at) APPEND ONLY;
    CREATE TABLE channels (k text, channel text, since timestamp, WATERMARK FOR since AS since) APPEND ONLY;
    CREATE TABLE people (k text, name text, since timestamp, WATERMARK FOR since AS since) APPEND ONLY
    """
    channels = "LEFT JOIN channels FOR SYSTEM_TIME AS OF t.at AS c ON t.c = c.k"
    people = "LEFT JOIN people FOR SYSTEM_TIME AS OF t.at AS p ON t.p = p.k"
    with Session() as session:
        session.run(tables)
        with pytest.raises(UnsupportedSqlError, match=r"another join AS OF.*read that without EMIT ON WINDOW CLOSE"):
            session.run(
                f"CREATE MATERIALIZED VIEW both AS SELECT id, channel, name FROM a AS t {channels} {people} EMIT ON WINDOW CLOSE"
            )
        session.run(f"CREATE MATERIALIZED VIEW lower AS SELECT t.*, channel FROM a AS t {channels} EMIT ON WINDOW CLOSE")
        with pytest.raises(UnsupportedSqlError, match="has no watermark any more"):
            session.run(
                f"CREATE MATERIALIZED VIEW upper AS SELECT id, channel, name FROM lower AS t {people} EMIT ON WINDOW CLOSE"
            )
        session.run(f"CREATE MATERIALIZED VIEW upper AS SELECT id, channel, name FROM lower AS t {people}")
        session.run(f"CREATE MATERIALIZED VIEW both AS SELECT id, channel, name FROM a AS t {channels} {people}")
        session.run(
            "INSERT INTO people VALUES ('p', 'Ann', '2024-01-01 10:01'), ('p', 'Bea', '2024-01-01 10:20');"
            "INSERT INTO channels VALUES ('x', 'web', '2024-01-01 10:00'), ('x', 'app', '2024-01-01 10:05'),"
            " ('z', 'end', '2024-01-01 10:30');"
            "INSERT INTO a VALUES (3, '2024-01-01 10:00:30', 'x', 'p'), (1, '2024-01-01 10:02', 'x', 'p'),"
            " (2, '2024-01-01 10:20', 'x', 'p'), (4, '2024-01-01 10:31', 'z', 'p'); FLUSH"
        )
        expected = [(1, "web", "Ann"), (2, "app", "Bea"), (3, "web", None), (4, "end", "Bea")]
        assert sorted(session.query("SELECT * FROM both").rows()) == expected
        assert sorted(session.query("SELECT * FROM upper").rows()) == expected[:3]
