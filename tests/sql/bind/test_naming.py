"""Names that clash with hidden columns, or in case, are refused by name; everything else works under any name."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from windowpane.errors import SqlNameError, SqlSyntaxError
from windowpane.sql import Session


@pytest.fixture(scope="module")
def with_table() -> Iterator[Session]:
    """A session with one table, for statements that are refused."""
    with Session(":memory:") as session:
        session.run("CREATE TABLE t (a int)")
        yield session


HIDDEN = ("_row_id", "_key_0", "_change_type", "windowpane_w", "windowpane_n", "_ROW_ID")


@pytest.mark.parametrize("name", HIDDEN)
@pytest.mark.parametrize(
    "statement",
    [
        'CREATE TABLE x (a int, "{}" int)',
        'CREATE TABLE x AS SELECT 1 AS "{}"',
        'CREATE MATERIALIZED VIEW x AS SELECT a AS "{}" FROM t',
    ],
)
def test_a_name_of_windowpanes_own_is_refused(with_table: Session, name: str, statement: str) -> None:
    with pytest.raises(SqlNameError, match=f"column '{name}' of 'x': the name is windowpane's own"):
        with_table.run(statement.format(name))
    assert with_table.relations() == ["t"]


@pytest.mark.parametrize("name", ["ctid", "tableoid", "xmin", "cmin", "xmax", "cmax"])
@pytest.mark.parametrize(
    "statement",
    [
        'CREATE TABLE x (a int, "{}" int)',
        "CREATE TABLE x (a int, {} int)",
        "CREATE MATERIALIZED VIEW x AS SELECT 1 AS {}",
        "CREATE MATERIALIZED VIEW x ({}) AS SELECT 1",
    ],
)
def test_a_system_column_of_postgresql_is_refused(with_table: Session, name: str, statement: str) -> None:
    with pytest.raises(SqlNameError, match=f"column '{name}' of 'x' conflicts with a system column name"):
        with_table.run(statement.format(name))
    with_table.run(f'CREATE TABLE x ("{name.title()}" int); DROP TABLE x')


@pytest.mark.parametrize("name", HIDDEN)
def test_in_a_query_it_is_a_name_like_others(name: str) -> None:
    with Session(":memory:") as session:
        session.run("CREATE TABLE t (a int); INSERT INTO t VALUES (1), (2); FLUSH")
        query = f'SELECT "{name}" + 1 FROM (SELECT a AS "{name}" FROM t) AS q ORDER BY "{name}"'
        assert session.query(query).rows() == [(2,), (3,)]
        session.run(f'CREATE VIEW v AS SELECT a AS "{name}", count(*) AS n FROM t GROUP BY a')
        session.run(f'CREATE MATERIALIZED VIEW mv AS SELECT "{name}" AS b, n FROM v')
        assert session.query("SELECT b, n FROM mv ORDER BY b").rows() == [(1, 1), (2, 1)]


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ('CREATE TABLE x ("A" int, a int)', "'a' of 'x' differs from 'A' only in case"),
        ("CREATE TABLE x AS SELECT 1 AS a, 2 AS a", "'a' of 'x' stands there twice"),
        ('CREATE MATERIALIZED VIEW x AS SELECT 1 AS "A", 2 AS a', "'a' of 'x' differs from 'A' only in case"),
        ('CREATE TABLE "T" (a int)', "'T' differs from 't', which is there, only in case"),
        ('CREATE TABLE "" (a int)', "a name is empty"),
        ('CREATE VIEW "query of sink x" AS SELECT 1 AS a', "'query of sink x' is windowpane's own"),
        ('ALTER TABLE t RENAME TO "replacement of t"', "'replacement of t' is windowpane's own"),
        ('CREATE TABLE x ("" int)', "a name is empty"),
    ],
)
def test_names_that_the_store_cannot_tell_apart_are_refused(statement: str, words: str) -> None:
    with Session(":memory:") as session:
        session.run("CREATE TABLE t (a int)")
        with pytest.raises(SqlNameError, match=words):
            session.run(statement)
        assert session.relations() == ["t"]


def test_odd_names_work() -> None:
    with Session(":memory:") as session:
        session.run('CREATE TABLE "order by" ("select" int, "a ""b" text, "größe #1" int)')
        session.run('CREATE MATERIALIZED VIEW "m/v" AS SELECT "a ""b", sum("select") AS "größe #1" FROM "order by" GROUP BY 1')
        session.run("""INSERT INTO "order by" VALUES (1, 'x', 2), (3, 'x', 4); FLUSH""")
        assert session.query('SELECT * FROM "m/v"').dicts() == [{'a "b': "x", "größe #1": 4}]


def test_select_needs_something_to_select() -> None:
    with Session(":memory:") as session:
        session.run("CREATE TABLE t (a int)")
        with pytest.raises(SqlSyntaxError, match="SELECT needs something to select"):
            session.query("SELECT FROM t")
