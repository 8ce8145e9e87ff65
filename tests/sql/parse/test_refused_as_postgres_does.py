"""Statements that PostgreSQL refuses, and that were once taken for something else; the real server refuses each of them, too."""

from __future__ import annotations

import pytest

from windowpane.errors import SqlError
from windowpane.sql import Session

SETUP = """
CREATE TABLE t (a int, b int, c int);
CREATE TABLE u (id int PRIMARY KEY, v int);
INSERT INTO t VALUES (1, 2, 3), (4, 5, 6), (4, 7, NULL);
INSERT INTO u VALUES (1, 2);
"""
REFUSED = [
    # a name that means several columns
    ("SELECT a AS x, b AS x FROM t ORDER BY x", "'x' is ambiguous"),
    ("SELECT * FROM t AS p, t AS q ORDER BY a", "'a' is ambiguous"),
    ("SELECT a AS x, b AS x FROM t GROUP BY x, a, b", "'x' is ambiguous"),
    ("SELECT DISTINCT ON (x) a AS x, b AS x FROM t", "'x' is ambiguous"),
    # a constant that orders or groups nothing
    ("SELECT a FROM t ORDER BY 'a'", "is a constant"),
    ("SELECT a FROM t ORDER BY NULL", "is a constant"),
    ("SELECT a FROM t ORDER BY true", "is a constant"),
    ("SELECT a FROM t ORDER BY -1", "is a constant"),
    ("SELECT 1 FROM t GROUP BY NULL", "is a constant"),
    # two texts beside each other
    ("SELECT 'a' 'b'", "begins on a later line"),
    ("SELECT 'a' /*\n*/ 'b'", "begins on a later line"),
    ("SELECT $$a$$\n'b'", "begins on a later line"),
    ("SELECT 'a'\nE'b'", "begins on a later line"),
    # ties of nothing, a condition that is none, an argument that is missing
    ("SELECT a FROM t FETCH FIRST 1 ROW WITH TIES", "WITH TIES needs an ORDER BY"),
    ("SELECT count(*) FILTER (WHERE 1) FROM t", "FILTER needs a boolean, not integer"),
    ("SELECT count(*) FILTER (WHERE a) OVER () FROM t", "FILTER needs a boolean, not integer"),
    ("SELECT count() FROM t", "count"),
    ("SELECT count() OVER () FROM t", "count"),
    ("SELECT sum(a) RESPECT NULLS OVER (ORDER BY a) FROM t", "RESPECT NULLS goes with"),
    ("SELECT row_number() RESPECT NULLS OVER (ORDER BY a) FROM t", "RESPECT NULLS goes with"),
    ("SELECT percentile_cont(0.5) OVER () FROM t", "WITHIN GROUP"),
    ("SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY a, b) FROM t", "one column"),
    ("SELECT percentile_cont(DISTINCT 0.5) WITHIN GROUP (ORDER BY a) FROM t", "no ORDER BY or DISTINCT"),
    ("SELECT percentile_cont(0.5 ORDER BY b) WITHIN GROUP (ORDER BY a) FROM t", "no ORDER BY or DISTINCT"),
    ("SELECT percentile_disc() WITHIN GROUP (ORDER BY a) FROM t", "one fraction"),
    ("SELECT percentile_cont(0.5, 1) WITHIN GROUP (ORDER BY a) FROM t", "one fraction"),
    ("SELECT mode(1) WITHIN GROUP (ORDER BY a) FROM t", "no argument"),
    # a comma, or parentheses, with nothing beside or inside
    ("SELECT a, FROM t", "a comma stands between"),
    ("SELECT a,, b FROM t", "a comma stands between"),
    ("SELECT abs(1,)", "a comma stands between"),
    ("SELECT a FROM t GROUP BY a,", "a comma stands between"),
    ("SELECT a FROM t ORDER BY a,", "a comma stands between"),
    ("SELECT a FROM t,", "a comma in FROM"),
    ("SELECT 1 IN (1,)", "a comma stands between"),
    ("VALUES (1,)", "a comma stands between"),
    ("VALUES (1),", "a comma stands between"),
    ("SELECT ARRAY[1,]", "a comma stands between"),
    ("SELECT sum(a) OVER (PARTITION BY b, ORDER BY c) FROM t", "a comma stands between"),
    ("SELECT * FROM t AS x(p, q,)", "a comma stands between"),
    ("INSERT INTO t VALUES (1, 2,)", "a comma stands between"),
    ("INSERT INTO t (a) VALUES (1),", "a comma stands between"),
    ("SELECT DISTINCT ON () a FROM t", "DISTINCT ON"),
    ("SELECT 1 IN ()", "IN has no values"),
    ("VALUES ()", "no value"),
    ("INSERT INTO t VALUES ()", "no value"),
    # joins
    ("SELECT * FROM t JOIN u", "needs ON, USING or NATURAL"),
    ("SELECT * FROM t JOIN u USING ()", "needs ON, USING or NATURAL"),
    ("SELECT * FROM t AS x JOIN t AS y USING (a, a)", "USING names 'a' twice"),
    ("SELECT * FROM t CROSS JOIN u ON true", "CROSS JOIN has no ON"),
    ("SELECT * FROM t NATURAL JOIN u ON true", "NATURAL JOIN has no ON"),
    ("SELECT * FROM t NATURAL CROSS JOIN u", "no NATURAL CROSS JOIN"),
    ("SELECT * FROM t OUTER JOIN u ON true", "no OUTER JOIN"),
    ("SELECT * FROM t LEFT INNER JOIN u ON true", "no LEFT INNER JOIN"),
    # windows by name
    ("SELECT a FROM t WINDOW w AS (ORDER BY z)", "no column 'z'"),
    ("SELECT sum(a) OVER (w PARTITION BY b) FROM t WINDOW w AS (ORDER BY a)", "PARTITION BY is that of window"),
    ("SELECT sum(a) OVER (w) FROM t WINDOW w AS (ORDER BY a ROWS CURRENT ROW)", "has a frame"),
    ("SELECT sum(a) OVER v FROM t WINDOW v AS (w), w AS (ORDER BY a)", "no window 'w' before 'v'"),
    ("SELECT sum(a) OVER w FROM t WINDOW w AS (w)", "no window 'w' before 'w'"),
    # clauses out of place
    ("SELECT a FROM t ORDER BY a UNION SELECT b FROM t", "behind the whole UNION"),
    ("SELECT a FROM t LIMIT 1 UNION SELECT b FROM t", "behind the whole UNION"),
    ("WITH x AS (SELECT 1) WITH y AS (SELECT 2) SELECT 1", "one WITH"),
    ("INSERT INTO t (a, a) VALUES (1, 2)", "names column 'a' twice"),
]


@pytest.fixture(scope="module")
def session():
    with Session(":memory:") as opened:
        opened.run(SETUP)
        yield opened


@pytest.mark.parametrize(("statement", "reason"), REFUSED)
def test_a_statement_that_postgres_refuses(session: Session, statement: str, reason: str) -> None:
    with pytest.raises(SqlError) as raised:
        session.run(statement)

    assert reason in str(raised.value)
    assert "mistake of windowpane" not in str(raised.value)


def test_postgres_refuses_each_of_them(postgres_url: str) -> None:
    psycopg = pytest.importorskip("psycopg")
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(SETUP)
        taken = [statement for statement, _ in REFUSED if _takes(connection, statement)]

    assert taken == []


def _takes(connection, statement: str) -> bool:
    import psycopg

    try:
        connection.execute(statement)
    except psycopg.Error:
        return False
    return True


def test_a_generated_column_is_refused_by_name(session: Session) -> None:
    session.run("CREATE TABLE g (id int PRIMARY KEY, twice int AS id * 2)")

    for insert in ("INSERT INTO g (id, twice) VALUES (1, 3)", "INSERT INTO g (twice) SELECT 1"):
        with pytest.raises(SqlError, match="column 'twice' of 'g' is generated"):
            session.run(insert)


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("SELECT a AS x, a AS x FROM t ORDER BY x DESC LIMIT 1", [["4", "4"]]),
        ("SELECT a FROM t ORDER BY a FETCH FIRST 2 ROWS WITH TIES", [["1"], ["4"], ["4"]]),
        ("SELECT count(*) FILTER (WHERE NULL) FROM t", [["0"]]),
        ("SELECT first_value(a) RESPECT NULLS OVER (ORDER BY a) FROM t LIMIT 1", [["1"]]),
        ("SELECT sum(b) OVER (w ORDER BY b) FROM t WINDOW w AS (PARTITION BY a) ORDER BY 1", [["2"], ["5"], ["12"]]),
        ("(SELECT a FROM t ORDER BY a LIMIT 1) UNION ALL (SELECT 9) ORDER BY 1", [["1"], ["9"]]),
        ("SELECT count(*) FROM t JOIN u JOIN t AS y ON u.id = y.a ON true", [["3"]]),
        ("SELECT 'a'\n'b', 'c' -- d\n  -- e\n  'f'", [["ab", "cf"]]),
        ("WITH x AS MATERIALIZED (SELECT 1 AS n) SELECT n FROM x", [["1"]]),
    ],
)
def test_what_stands_beside_them_is_still_taken(session: Session, query: str, rows: list[list[str]]) -> None:
    assert session.query(query).text_rows() == rows
