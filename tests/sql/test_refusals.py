"""What the parser reads and windowpane does not run is refused at its place, never passed over."""

from __future__ import annotations

import pytest

from windowpane.errors import SqlSyntaxError, UnsupportedSqlError
from windowpane.sql import Session


@pytest.fixture(scope="module")
def session():
    with Session(":memory:") as opened:
        opened.run("CREATE TABLE t (id int PRIMARY KEY, v int, at timestamp); CREATE TABLE u (id int PRIMARY KEY, at timestamp)")
        yield opened


@pytest.mark.parametrize(
    ("query", "place", "construct"),
    [
        ("SELECT count(* EXCEPT (v)) FROM t", "line 1, column 24", "EXCEPT behind"),
        ("SELECT v FROM t GROUP BY ALL", "line 1", "GROUP BY ALL"),
        ("SELECT v FROM t TABLESAMPLE BERNOULLI (10)", "line 1, column 40", "TABLESAMPLE"),
        ("SELECT v\nFROM t\nFOR UPDATE", "line 1", "FOR UPDATE"),
        ("SELECT 1 FROM t LEFT SEMI JOIN u ON t.id = u.id", "line 1", "LEFT SEMI JOIN"),
        ("SELECT v FROM t FETCH FIRST 10 PERCENT ROWS ONLY", "line 1", "PERCENT"),
        ("SELECT v FROM t UNION ALL BY NAME SELECT id FROM u", "line 1", "BY NAME"),
    ],
)
def test_parts_that_nobody_reads_are_refused(session: Session, query: str, place: str, construct: str) -> None:
    with pytest.raises(UnsupportedSqlError, match=f"{place}.*{construct}"):
        session.run(query)


@pytest.mark.parametrize(
    ("query", "difference"),
    [
        ("SELECT v FROM t TABLESAMPLE BERNOULLI (10)", "the same ones each time"),
        ("SELECT v FROM t WHERE (id, v) NOT IN (SELECT id, id FROM u)", "keeps a row with NULL"),
        ("SELECT v FROM t EXCEPT ALL SELECT id FROM u", "gives each row once"),
        ("SELECT percentile_disc(0.3) WITHIN GROUP (ORDER BY v DESC) FROM t", "the value beside"),
    ],
)
def test_a_way_out_that_gives_other_rows_says_what_differs(session: Session, query: str, difference: str) -> None:
    with pytest.raises(UnsupportedSqlError, match=difference):
        session.run(query)


@pytest.mark.parametrize(
    "query",
    [
        f"SELECT {'(' * 300}1{')' * 300}",
        f"SELECT {'abs(' * 300}1{')' * 300}",
        f"SELECT {'NOT ' * 900}true",
        f"SELECT id FROM t WHERE v = 0{' OR v = 1' * 2000}",
        f"SELECT 1{' UNION ALL SELECT 1' * 2000}",
        f"CREATE MATERIALIZED VIEW deep AS SELECT v{' + v' * 3000} AS x FROM t",
    ],
)
def test_a_statement_that_is_nested_too_deeply_is_refused_and_the_session_goes_on(session: Session, query: str) -> None:
    with pytest.raises(UnsupportedSqlError, match="line 2, column 3: parts stand inside one another too deeply"):
        session.run(f"SELECT 1;\n  {query}")
    assert session.query("SELECT count(*) FROM t").rows() == [(0,)]


@pytest.mark.parametrize(
    "call",
    ["count(DISTINCT)", "count(DISTINCT *)", "sum(DISTINCT)", "count(DISTINCT) OVER (PARTITION BY id)", "count(ORDER BY id)"],
)
def test_a_call_whose_distinct_or_order_is_about_nothing_is_refused(session: Session, call: str) -> None:
    with pytest.raises(SqlSyntaxError, match="line 1, column 8"):
        session.run(f"SELECT {call} FROM t")
