"""ALTER ... RENAME TO: names change, rows, state and what reads them stay, across a restart too."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from tests.sql.watched_keys import Watch
from windowpane.errors import SqlNameError, StaleViewError, UnsupportedSqlError
from windowpane.sql import Session
from windowpane.sql.catalog.renaming import without_secrets

_SCRIPT = """
CREATE TABLE t (at timestamp, k int, v int, WATERMARK FOR at AS at - INTERVAL '1 minute') APPEND ONLY;
CREATE VIEW p AS WITH t AS (SELECT k, v FROM t) SELECT t.k, v FROM t;
CREATE MATERIALIZED VIEW steps AS SELECT t.k, v - lag(v) OVER (PARTITION BY t.k ORDER BY at) AS d FROM public.t;
CREATE MATERIALIZED VIEW sums AS SELECT k, sum(v) AS s FROM p GROUP BY k;
CREATE MATERIALIZED VIEW hours AS
    SELECT window_start, count(*) AS n FROM TUMBLE(t, at, INTERVAL '1 hour') GROUP BY window_start EMIT ON WINDOW CLOSE;
CREATE MATERIALIZED VIEW pairs AS SELECT one.v AS a, "T".s AS b FROM t AS one JOIN sums AS "T" ON one.k = "T".k;
CREATE INDEX i ON t (k);
INSERT INTO t VALUES ('2024-01-01 10:00', 1, 5), ('2024-01-01 10:30', 1, 7); FLUSH;
INSERT INTO t VALUES ('2024-01-01 10:40', 2, 1);
"""
_MORE = "INSERT INTO {table} VALUES ('2024-01-01 10:45', 1, 100), ('2024-01-01 11:10', 1, 8); FLUSH"
_VIEWS = ("steps", "sums", "hours", "pairs")


def _contents(session: Session, renamed: dict[str, str]) -> dict[str, list[str]]:
    return {name: sorted(map(str, session.query(f"SELECT * FROM {renamed.get(name, name)}").rows())) for name in _VIEWS}


@pytest.mark.parametrize("restarts", [False, True])
def test_what_is_renamed_goes_on(tmp_path: Path, every_key_is_unique: Watch, restarts: bool) -> None:
    with Session(":memory:") as session:
        session.run(_SCRIPT)
        session.run(_MORE.format(table="t"))
        expected = _contents(session, {})
    assert len(expected["pairs"]) == 5
    store = str(tmp_path / "views.duckdb")
    with Session(store) as session:
        session.run(_SCRIPT)
        session.run('ALTER TABLE t RENAME TO "My Table"; ALTER MATERIALIZED VIEW sums RENAME TO totals; ALTER VIEW p RENAME TO q')
        every_key_is_unique.renamed("sums", "totals")
        session.run("ALTER INDEX i RENAME TO j; CREATE TABLE t (other int)")
        if not restarts:
            session.run(_MORE.format(table='"My Table"'))
            assert _contents(session, {"sums": "totals"}) == expected
    with Session(store) as session:
        if restarts:
            session.run(_MORE.format(table='"My Table"'))
        assert _contents(session, {"sums": "totals"}) == expected
        assert session.query("SHOW VIEWS").rows() == [("q",)]
        assert session.query("SHOW INDEXES").rows() == [("j",)]
        assert session.query("SHOW TABLES").rows() == [("My Table",), ("t",)]
        assert 'FROM "My Table" AS t' in str(session.query("SHOW CREATE VIEW q").rows())


def test_a_sink_with_a_query_is_renamed_with_what_waits_for_it(tmp_path: Path, every_key_is_unique: Watch) -> None:
    target = tmp_path / "out.duckdb"
    store = str(tmp_path / "views.duckdb")
    options = f"connector = 'duckdb', path = '{target}', table = 'out'"
    with Session(store) as session:
        session.run("CREATE TABLE t (k int PRIMARY KEY, v int); CREATE MATERIALIZED VIEW m AS SELECT * FROM t")
        session.run(f"CREATE SINK s AS SELECT k, sum(v) AS v FROM t GROUP BY k WITH ({options}); INSERT INTO t VALUES (1, 1)")
        session.run("CREATE SINK b FROM m WITH (connector = 'blackhole')")
        session.run("ALTER SINK s RENAME TO s2; ALTER TABLE t RENAME TO t2; ALTER MATERIALIZED VIEW m RENAME TO m2")
        every_key_is_unique.renamed("query of sink s", "query of sink s2")
        every_key_is_unique.renamed("m", "m2")
        session.run("FLUSH")
        assert session.query("SHOW SINKS").rows() == [("s2",), ("b",)]
    with Session(store) as session:
        session.run("INSERT INTO t2 VALUES (1, 5), (2, 2); FLUSH; DROP SINK s2; DROP SINK b; DROP MATERIALIZED VIEW m2")
        assert session.relations() == ["t2"]
    import duckdb

    with duckdb.connect(str(target)) as out:
        assert out.sql("SELECT k, v FROM out ORDER BY k").fetchall() == [(1, 5), (2, 2)]


def test_renames_that_are_refused() -> None:
    with Session(":memory:") as session:
        session.run("CREATE TABLE t (at timestamp, v int); CREATE TABLE u (v int)")
        session.run("CREATE MATERIALIZED VIEW m AS SELECT t.v FROM TUMBLE(t, at, INTERVAL '1 hour')")
        for statement, error, words in (
            ("ALTER TABLE t RENAME TO u", SqlNameError, "there is a table 'u' already"),
            ("ALTER TABLE x RENAME TO y", SqlNameError, "there is no table 'x'"),
            ("ALTER VIEW t RENAME TO y", SqlNameError, "it is a table"),
            ("ALTER TABLE t RENAME TO y", UnsupportedSqlError, "would mean something else"),
            ("ALTER TABLE t ADD COLUMN w int", UnsupportedSqlError, "ALTER TABLE ADD COLUMN is not supported. RENAME TO is"),
        ):
            with pytest.raises(error, match=words):
                session.run(statement)
        session.run("INSERT INTO t VALUES ('2024-01-01', 2); FLUSH")
        assert sorted(session.query("SELECT v FROM m").rows()) == [(2,)]


def test_a_plain_view_that_a_view_reads_is_not_dropped(tmp_path: Path) -> None:
    store = str(tmp_path / "views.duckdb")
    with Session(store) as session:
        session.run("CREATE TABLE t (v int); CREATE VIEW p AS SELECT v FROM t; CREATE MATERIALIZED VIEW m AS SELECT v FROM p")
        with pytest.raises(UnsupportedSqlError, match="'m' reads 'p'"):
            session.run("DROP VIEW p")
    with Session(store) as session:
        session.run("DROP VIEW p CASCADE")
        assert session.relations() == ["t"]


def test_what_is_known_of_bad_values_goes_with_a_rename(every_key_is_unique: Watch) -> None:
    with Session(":memory:") as session:
        session.run("CREATE TABLE t (x text); CREATE MATERIALIZED VIEW m AS SELECT x::int AS n FROM t")
        session.run("SET streaming_expr_strict_mode = true; CREATE MATERIALIZED VIEW strict AS SELECT x::int AS n FROM t")
        session.run("ALTER MATERIALIZED VIEW m RENAME TO m2; ALTER MATERIALIZED VIEW strict RENAME TO strict2")
        with pytest.raises(StaleViewError, match="strict2"):
            session.run("INSERT INTO t VALUES ('two'); FLUSH")
        with pytest.raises(UnsupportedSqlError, match="'strict2' is behind"):
            session.run("ALTER TABLE t RENAME TO u")
        session.run("DROP MATERIALIZED VIEW strict2; ALTER MATERIALIZED VIEW m2 RENAME TO m3")
        assert [row[:3] for row in session.query("SHOW ERRORS").text_rows()] == [["m3", "CAST(x AS INTEGER)", "two"]]


def test_a_sink_whose_query_is_behind_is_not_renamed(tmp_path: Path) -> None:
    """The rows that wait for it wait under its name."""
    sink = f"connector = 'duckdb', path = '{tmp_path / 'sink.duckdb'}', table = 'o'"
    with Session(":memory:") as session:
        session.run("CREATE TABLE t (k int PRIMARY KEY, v int); SET streaming_expr_strict_mode = true")
        session.run(f"CREATE SINK s AS SELECT k, 100 / v AS q FROM t WITH ({sink})")
        with pytest.raises(StaleViewError, match="sink s"):
            session.run("INSERT INTO t VALUES (1, 0), (2, 20); FLUSH")
        with pytest.raises(UnsupportedSqlError, match="'sink s' is behind"):
            session.run("ALTER SINK s RENAME TO s2")
        session.run("UPDATE t SET v = 1 WHERE k = 1; FLUSH; ALTER SINK s RENAME TO s2")
    with duckdb.connect(str(tmp_path / "sink.duckdb")) as written:
        assert written.sql("SELECT k, q FROM o ORDER BY k").fetchall() == [(1, 100), (2, 5)]


def test_what_was_made_in_another_zone_is_renamed(every_key_is_unique: Watch) -> None:
    """Days always rise in UTC alone: where the view was made, not where the statement runs."""
    recent = "CREATE MATERIALIZED VIEW recent AS SELECT k FROM t WHERE at > now() - INTERVAL '10000 days'"
    with Session(":memory:") as session:
        session.run(f"CREATE TABLE t (k int, at timestamptz); {recent}; SET TIME ZONE 'Asia/Tokyo'")
        session.run("ALTER TABLE t RENAME TO u; INSERT INTO u VALUES (1, '2024-01-01 10:00+00'); FLUSH")
        assert session.query("SELECT k FROM recent").rows() == [(1,)]


@pytest.mark.parametrize(
    "query",
    [
        "WITH w AS (SELECT * FROM a) SELECT x.k FROM w AS x JOIN w AS y ON x.k = y.k + 1",
        "SELECT (SELECT max(k) FROM a) AS c, count(*) AS n FROM b GROUP BY 1",
        "SELECT CASE (SELECT max(k) FROM a) WHEN 3 THEN 2 WHEN 2 THEN k END AS c FROM b",
        "SELECT k FROM b WHERE EXISTS (SELECT 1 FROM a WHERE a.k = b.k) OR k IN (SELECT k - 1 FROM a)",
        "SELECT k FROM b WHERE NOT (b.k IN (SELECT a.k FROM a) AND b.k > 0)",
    ],
)
def test_a_place_that_is_read_twice_is_renamed_once(query: str) -> None:
    with Session(":memory:") as session:
        session.run(
            "CREATE TABLE a (k int); CREATE TABLE b (k int); INSERT INTO a VALUES (1), (2); INSERT INTO b VALUES (1), (3)"
        )
        session.run(f"CREATE MATERIALIZED VIEW v AS {query}; FLUSH")
        before = sorted(session.query("SELECT * FROM v").rows())
        session.run("ALTER TABLE a RENAME TO z; INSERT INTO z VALUES (2), (3); DELETE FROM z WHERE k < 2; FLUSH")
        expected = sorted(session.query(query.replace("FROM a", "FROM z AS a")).rows())
        assert sorted(session.query("SELECT * FROM v").rows()) == expected != before


def test_a_definition_is_shown_without_secrets() -> None:
    text = (
        "CREATE SOURCE s (key int) WITH (connector = 'kafka', properties.sasl.password = 'hunter2', primary_key = 'k', "
        "\"s3.secret.key\"='hunter2', url = 'postgresql://me:hunter2@host/db', path = 's3://me:hunter2@b/x?secret_key=hunter2') "
        "FORMAT PLAIN ENCODE AVRO (schema.registry.password = 'hunter2', schema.registry = 'https://me:hunter2@r:81')"
    )
    assert without_secrets(text) == (
        "CREATE SOURCE s (key int) WITH (connector = 'kafka', properties.sasl.password = '...', primary_key = 'k', "
        "\"s3.secret.key\"='...', url = 'postgresql://me:...@host/db', path = 's3://b/x') "
        "FORMAT PLAIN ENCODE AVRO (schema.registry.password = '...', schema.registry = 'https://me:...@r:81')"
    )
    assert without_secrets("SELECT a = 'x://y:z@w', password FROM t") == "SELECT a = 'x://y:...@w', password FROM t"


@pytest.mark.parametrize(("name", "other"), [("a", "a/0"), ("a/0", "a"), ("pending", "a"), ("outbox", 'a"b'), ("a%2F0", "a/0")])
def test_each_view_keeps_its_own_state_under_any_names(every_key_is_unique: Watch, name: str, other: str) -> None:
    first, second, renamed = (f'"{each}"' for each in (name, other.replace('"', '""'), 'z "" %/1'))
    with Session(":memory:") as session:
        session.run("CREATE TABLE t (id int PRIMARY KEY, g int)")
        for view in (first, second):
            session.run(f"CREATE MATERIALIZED VIEW {view} AS SELECT g, count(*) AS n, max(id) AS most FROM t GROUP BY g")
        session.run("INSERT INTO t VALUES (1, 1), (2, 1), (3, 2); FLUSH")
        session.run(f"ALTER MATERIALIZED VIEW {first} RENAME TO {renamed}")
        every_key_is_unique.renamed(name, 'z " %/1')
        session.run("DELETE FROM t WHERE id = 2; INSERT INTO t VALUES (4, 2); FLUSH")
        for view in (renamed, second):
            assert session.query(f"SELECT * FROM {view} ORDER BY g").rows() == [(1, 1, 1), (2, 2, 4)]
        session.run(f"DROP MATERIALIZED VIEW {renamed}; DELETE FROM t WHERE id = 4; FLUSH")
        assert session.query(f"SELECT * FROM {second} ORDER BY g").rows() == [(1, 1, 1), (2, 1, 3)]
