"""Subqueries in expressions, tied to the query around them or not: kept up to date and asked, they give what DuckDB gives."""

from __future__ import annotations

import pytest

from tests.examples import some
from tests.sql.against_duckdb import check
from windowpane.errors import SqlNameError, UnsupportedSqlError
from windowpane.sql import Session

TABLES = ("CREATE TABLE o (id int PRIMARY KEY, k int, v int)", "CREATE TABLE i (id int PRIMARY KEY, k int, v int)")
ROUNDS = (
    (
        "INSERT INTO o VALUES (1, 1, 10), (2, 1, 20), (3, 2, 30), (4, NULL, 40), (5, 9, 50)",
        "INSERT INTO i VALUES (1, 1, 10), (2, 1, 11), (3, 2, 7)",
    ),
    ("INSERT INTO i VALUES (4, NULL, 5), (5, 2, NULL), (6, 9, 50)",),
    ("DELETE FROM i WHERE id IN (1, 4)", "UPDATE o SET k = 2 WHERE id = 1", "INSERT INTO o VALUES (6, 3, NULL)"),
    ("DELETE FROM i WHERE TRUE",),
)


QUERIES = [
    "SELECT * FROM o WHERE EXISTS (SELECT 1 FROM i WHERE i.k = o.k)",
    "SELECT * FROM o WHERE NOT EXISTS (SELECT * FROM i WHERE i.k = o.k AND i.v < o.v)",
    "SELECT id FROM o WHERE NOT EXISTS (SELECT 1 FROM i WHERE i.v > 40)",
    "SELECT id FROM o WHERE k IN (SELECT k FROM i) AND NOT (v IN (SELECT v FROM i WHERE v IS NOT NULL))",
    "SELECT id FROM o WHERE k NOT IN (SELECT k FROM i)",
    "SELECT id FROM o WHERE v NOT IN (SELECT v FROM i WHERE i.k = o.k)",
    "SELECT id FROM o WHERE (k, v) IN (SELECT k, v FROM i)",
    "SELECT id FROM o WHERE v = ANY (SELECT v FROM i WHERE i.k = o.k)",
    "SELECT id, EXISTS (SELECT 1 FROM i WHERE i.k = o.k) AS e, EXISTS (SELECT 1 FROM i) AS f FROM o",
    "SELECT id FROM o WHERE EXISTS (SELECT 1 FROM i WHERE i.k = o.k) OR v > 45",
    "SELECT id, (SELECT count(*) FROM i WHERE i.k = o.k) AS c, (SELECT max(v) FROM i WHERE i.k = o.k) AS m FROM o",
    "SELECT id, (SELECT coalesce(sum(v), -1) + count(*) FROM i WHERE i.k = o.k) AS x FROM o",
    "SELECT id FROM o WHERE v = (SELECT min(v) FROM o AS p WHERE p.k = o.k)",
    "SELECT id, (SELECT v FROM i WHERE i.id = o.id) AS x FROM o",
    "SELECT id, (SELECT v FROM i WHERE i.k = o.k ORDER BY id DESC LIMIT 1) AS x FROM o",
    "SELECT id, v IN (SELECT v FROM i) AS a, v NOT IN (SELECT v FROM i WHERE i.k = o.k) AS b FROM o",
    "SELECT id FROM o WHERE k IN (SELECT k FROM i) OR v > 45",
    "SELECT k FROM o GROUP BY k HAVING sum(v) IN (SELECT v * 2 + 10 FROM i) OR k = 9",
    "SELECT k, sum(v) AS s, (SELECT max(v) FROM i WHERE i.k = o.k) AS m FROM o GROUP BY k",
    "SELECT k, sum(v) AS s FROM o GROUP BY k HAVING sum(v) > (SELECT sum(v) FROM i)",
    "SELECT o.id, x.m, x.c FROM o, LATERAL (SELECT max(v) AS m, count(*) AS c FROM i WHERE i.k = o.k) AS x",
    "SELECT o.id, x.v FROM o, LATERAL (SELECT v FROM i WHERE i.k = o.k ORDER BY v, id LIMIT 2) AS x",
    "SELECT o.id, x.w FROM o LEFT JOIN LATERAL (SELECT v FROM i WHERE i.k = o.k) AS x(w) ON TRUE",
    "SELECT id, ARRAY(SELECT v FROM i WHERE i.k = o.k ORDER BY v DESC NULLS LAST, i.id) AS a FROM o",
    "SELECT id, ARRAY(SELECT DISTINCT i.k FROM i ORDER BY 1) AS a FROM o WHERE 2 = ANY(ARRAY(SELECT i.k FROM i))",
    "SELECT id, (SELECT count(*) FROM i WHERE i.k = o.k AND i.v < o.v) AS c FROM o",
    "SELECT id, (SELECT coalesce(max(i.v), -1) FROM i WHERE i.k = o.k AND i.v BETWEEN o.v - 10 AND o.v + 10) AS m FROM o",
    "SELECT id, (SELECT v FROM i WHERE i.k = o.k AND i.v <= o.v ORDER BY v DESC, id LIMIT 1) AS x FROM o",
    "SELECT id, (SELECT i.v FROM i WHERE i.id = o.id AND i.v <> o.v) AS x FROM o",
    "SELECT id, EXISTS (SELECT 1 FROM i WHERE i.k = o.k AND o.v < i.v) AS e FROM o",
    "SELECT id, v NOT IN (SELECT v FROM i WHERE i.k = o.k AND i.id <> o.id) AS b FROM o",
    "SELECT id, ARRAY(SELECT v FROM i WHERE i.k = o.k AND i.v > o.v ORDER BY v, id) AS a FROM o",
    "SELECT id FROM o WHERE 1 > (SELECT count(*) FROM i WHERE i.k = o.k AND i.v < o.v AND i.id > o.id)",
    "SELECT o.id, x.v FROM o LEFT JOIN LATERAL (SELECT v FROM i WHERE i.k = o.k AND i.v > o.v ORDER BY v, id LIMIT 2) x ON TRUE",
    "SELECT o.id, x.s FROM o, LATERAL (SELECT sum(v) AS s FROM i WHERE i.k = o.k AND i.v >= o.v) AS x",
    "SELECT ARRAY(SELECT id FROM i ORDER BY v DESC NULLS LAST, id LIMIT 2) a, ARRAY(SELECT sum(v) FROM i GROUP BY k ORDER BY 1)",
]


def test_subqueries_in_expressions() -> None:
    check(some(QUERIES, 2), TABLES, ROUNDS)


@pytest.mark.parametrize(
    ("query", "error", "message"),
    [
        ("SELECT (SELECT v FROM i WHERE i.k = o.k) FROM o", UnsupportedSqlError, "line 1, column 16.*several rows"),
        ("SELECT (SELECT max(i.v) + o.v FROM i) FROM o", UnsupportedSqlError, "line 1, column 27: o.v of the query around"),
        ("SELECT (SELECT count(*) FROM i WHERE i.v < o.v OR o.v IS NULL) FROM o", UnsupportedSqlError, "tied by anything but a"),
        (
            "CREATE MATERIALIZED VIEW m AS SELECT (SELECT count(*) FROM i WHERE i.v < o.v) FROM o",
            UnsupportedSqlError,
            "without an equality",
        ),
        ("SELECT id FROM o WHERE v IN (SELECT count(*) FROM i WHERE i.k = o.k)", UnsupportedSqlError, "compare it with ="),
        ("SELECT id FROM o WHERE v > 1 OR (k, v) IN (SELECT k, v FROM i)", UnsupportedSqlError, "IN of several columns"),
        ("SELECT k, (SELECT max(v) FROM i WHERE i.v = o.v) FROM o GROUP BY k", SqlNameError, "columns of GROUP BY only"),
        ("SELECT id FROM o WHERE v > ALL (SELECT v FROM i)", UnsupportedSqlError, "ALL"),
    ],
)
def test_a_subquery_that_is_refused(query: str, error: type[Exception], message: str) -> None:
    with Session(":memory:") as session:
        session.run("; ".join(TABLES))
        with pytest.raises(error, match=message):
            session.run(query)


WINDOWED = "(SELECT * FROM TABLE(TUMBLE(TABLE {}, DESCRIPTOR(row_time), INTERVAL '5' MINUTES)))"


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("l.num IN (SELECT num FROM {r} r WHERE l.window_start = r.window_start AND l.window_end = r.window_end)", ["L3"]),
        ("EXISTS (SELECT * FROM {r} r WHERE l.num = r.num AND l.window_start = r.window_start)", ["L3"]),
        ("l.num NOT IN (SELECT num FROM {r} r WHERE l.window_start = r.window_start)", ["L1", "L2"]),
        ("NOT EXISTS (SELECT * FROM {r} r WHERE l.num = r.num AND l.window_start = r.window_start)", ["L1", "L2"]),
    ],
)
def test_semi_and_anti_joins_of_windows_as_flink_documents_them(condition: str, expected: list[str]) -> None:
    """The tables and rows are those of Flink's page on window joins."""
    with Session(":memory:") as session:
        session.run(
            "CREATE TABLE lhs (row_time timestamp, num int, id text); CREATE TABLE rhs (row_time timestamp, num int, id text)"
        )
        where = condition.format(r=WINDOWED.format("rhs"))
        session.run(f"CREATE MATERIALIZED VIEW mv AS SELECT id FROM {WINDOWED.format('lhs')} l WHERE {where}")
        session.run(
            "INSERT INTO lhs VALUES ('2020-04-15 12:02', 1, 'L1'), ('2020-04-15 12:06', 2, 'L2'), ('2020-04-15 12:03', 3, 'L3');"
            "INSERT INTO rhs VALUES ('2020-04-15 12:01', 2, 'R2'), ('2020-04-15 12:04', 3, 'R3'), ('2020-04-15 12:05', 4, 'R4');"
            "FLUSH"
        )
        assert sorted(row[0] for row in session.query("SELECT id FROM mv").rows()) == expected
