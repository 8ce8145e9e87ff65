"""What the parser reads and windowpane does not run is refused at its place, never passed over."""

from __future__ import annotations

import pytest

from windowpane.errors import SqlNameError, SqlSyntaxError, UnsupportedSqlError
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


@pytest.mark.parametrize(
    ("statement", "way_out"),
    [
        ("CREATE TEMPORARY TABLE w (a int)", "Leave the word out"),
        ("CREATE TEMPORARY VIEW w AS SELECT 1", "Leave the word out"),
        ("CREATE TABLE w LIKE t", "Write the columns"),
        ("CREATE TABLE w (name varchar(50))", "'varchar.50.'.*write varchar"),
        ("CREATE TABLE w (name char(3))", "'char.3.'.*write varchar"),
        ("CREATE TABLE w (name binary(3))", "write bytea"),
        ("CREATE TABLE w (a int, b ROW<x int, y string>)", "declare jsonb"),
        ("CREATE TABLE w (a int, b STRUCT<x INTEGER, y VARCHAR>)", "declare jsonb"),
        ("CREATE TABLE w (b MAP<string, int>)", "declare jsonb"),
        ("CREATE TABLE w (at TIMESTAMP_LTZ(3) METADATA FROM 'timestamp' VIRTUAL)", "METADATA on a column"),
        ("CREATE TABLE w (a int COMMENT 'of it')", "COMMENT on a column"),
        ("CREATE STREAM w (a int)", "CREATE SOURCE is"),
        ("SELECT v, count(*) FROM t GROUP BY v EMIT CHANGES", "line 1, column 38: EMIT CHANGES.*Leave it out"),
        ("CREATE MATERIALIZED VIEW w AS SELECT v FROM t EMIT FINAL", "EMIT FINAL.*EMIT ON WINDOW CLOSE"),
        ("SELECT v, count(*) FROM t WINDOW TUMBLING (SIZE 6 HOURS) GROUP BY v", "TUMBLE"),
        ("SELECT v, count(*) FROM t WINDOW HOPPING (SIZE 6 HOURS, ADVANCE BY 1 HOURS) GROUP BY v", "HOP"),
        ("SELECT v, count(*) FROM t WINDOW SESSION (5 MINUTES) GROUP BY v", "SESSION"),
        ("SUBSCRIBE TO v", "session.changelog"),
        ("BEGIN STATEMENT SET", "leave it out"),
    ],
)
def test_what_other_dialects_declare_is_refused_with_the_way_out(session: Session, statement: str, way_out: str) -> None:
    with pytest.raises(UnsupportedSqlError, match=way_out):
        session.run(statement)


@pytest.mark.parametrize(
    ("call", "instead"),
    [
        ("current_watermark(at)", "SHOW WATERMARKS"),
        ("regexp_extract(v::text, '[0-9]+')", "regexp_match"),
        ("convert_tz('2024-01-01', 'UTC', 'Europe/Rome')", "AT TIME ZONE"),
        ("str_to_map('a:b')", "no maps"),
        ("mz_now()", "now"),
        ("list_agg(v)", "array_agg"),
        ("latest_by_offset(v)", "arg_max"),
    ],
)
def test_functions_of_other_dialects_are_refused_with_ours(session: Session, call: str, instead: str) -> None:
    with pytest.raises(SqlNameError, match=instead):
        session.run(f"SELECT {call} FROM t")


def test_words_of_those_refusals_are_names_elsewhere() -> None:
    with Session() as session:
        session.run("CREATE TABLE emit (changes int, at int); INSERT INTO emit VALUES (1, 2)")
        assert session.query("SELECT changes.at FROM emit changes").rows() == [(2,)]
        assert session.query("SELECT sum(at) OVER tumbling FROM emit WINDOW tumbling AS (PARTITION BY changes)").rows() == [(2,)]
