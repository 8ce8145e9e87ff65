"""Sessions whose store is a PostgreSQL server: every view is a table there, which holds what the view holds."""

from __future__ import annotations

import datetime as dt
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.sql.embedded.test_random_sql import Script
from windowpane.cli import app
from windowpane.errors import (
    ChangedViewSchemaError,
    InvalidSpecError,
    MisplacedStateError,
    SqlNameError,
    StoreError,
    UnexpectedError,
)
from windowpane.sql import Session
from windowpane.sql.embedded.outbox import Outbox
from windowpane.stores import PostgresStore, PostgresViews

ROOT = Path(__file__).parents[3]
SUMS = "CREATE TABLE t (k int, v int); CREATE MATERIALIZED VIEW sums AS SELECT k, sum(v) AS s FROM t GROUP BY k;"


@pytest.fixture(autouse=True)
def every_key_is_unique() -> None:
    """Not watched: older copies of files come back here, behind the back of what watches."""


@pytest.fixture
def there(postgres_url: str) -> Iterator[PostgresStore]:
    """A connection beside that of the session."""
    store = PostgresStore(postgres_url)
    yield store
    store.close()


@pytest.fixture
def open_session(postgres_url: str, tmp_path: Path) -> Callable[[], Session]:
    return lambda: Session(store=postgres_url, state=str(tmp_path / "state.duckdb"))


def change(store: PostgresStore, statement: str) -> None:
    with store.transaction():
        store.run(statement)


def watch(store: PostgresStore, *tables: str) -> None:
    """Write down every change of a row, with its transaction."""
    change(store, "CREATE TABLE seen (line text, during xid8)")
    note = "INSERT INTO seen VALUES (TG_OP || ' ' || TG_TABLE_NAME, pg_current_xact_id()); RETURN NULL;"
    change(store, f"CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {note} END $$")
    for table in tables:
        change(store, f"CREATE TRIGGER n AFTER INSERT OR UPDATE OR DELETE ON {table} FOR EACH ROW EXECUTE FUNCTION note()")


def crash(*_: object) -> None:
    raise RuntimeError("crash")


def sums(store: PostgresStore) -> list[tuple]:
    return sorted(store.read("SELECT k, s FROM sums"))


def test_a_table_follows_its_view_through_a_restart(open_session, there) -> None:
    with open_session() as session:
        session.run(SUMS)
        assert sums(there) == []
        session.run("INSERT INTO t VALUES (1, 2), (2, 3), (3, 4); FLUSH; DELETE FROM t WHERE k = 2; INSERT INTO t VALUES (1, 5)")
        assert sums(there) == [(1, 2), (2, 3), (3, 4)]
    with open_session() as session:
        session.run("FLUSH")
        assert sums(there) == [(1, 7), (3, 4)]
        assert sorted(session.query("SELECT * FROM sums").rows()) == [(1, 7), (3, 4)]


def test_a_view_begins_with_the_rows_there_are_and_views_on_views_follow(open_session, there) -> None:
    with open_session() as session:
        session.run("CREATE TABLE t (k int, v int); INSERT INTO t VALUES (1, 2), (1, 3), (2, 1)")
        session.run("CREATE MATERIALIZED VIEW sums AS SELECT k, sum(v) AS s FROM t GROUP BY k")
        session.run("CREATE MATERIALIZED VIEW best AS SELECT max(s) AS s FROM sums; CREATE VIEW plain AS SELECT * FROM sums")
        assert (sums(there), there.read("SELECT s FROM best")) == ([(1, 5), (2, 1)], [(5,)])
        watch(there, "sums", "best")
        session.run("INSERT INTO t VALUES (2, 9); FLUSH")
        assert (sums(there), there.read("SELECT s FROM best")) == ([(1, 5), (2, 10)], [(10,)])
        assert sorted(there.read("SELECT line FROM seen")) == [("UPDATE best",), ("UPDATE sums",)]
        assert there.read("SELECT count(DISTINCT during) FROM seen") == [(1,)]


def test_values_keep(open_session, there) -> None:
    with open_session() as session:
        session.run(
            "CREATE TABLE t (k int PRIMARY KEY, flag boolean, n numeric, x double precision, txt text, raw bytea, d date, "
            "h time, ts timestamp, tz timestamptz, i interval, j jsonb, a int[], words text[], days interval[])"
        )
        session.run("CREATE MATERIALIZED VIEW copy AS SELECT * FROM t")
        session.run(
            """INSERT INTO t VALUES (1, true, 12345678901234567890.25, 0.1, 'tab\t "quoted" \\ NULL', '\\x00ff',
            '2024-02-29', '12:30:15.25', '12024-02-29 12:30:15.123456', '2024-01-01 10:00+02',
            interval '14 months -3 days 1.5 seconds', '{"b": [1, null],  "a": "x"}',
            ARRAY[1, NULL, 3], ARRAY['a,b', '"', NULL, 'NULL'], ARRAY[interval '1 day']),
            (2, NULL, NULL, 'NaN', NULL, NULL, NULL, NULL, 'infinity', NULL, NULL, NULL, NULL, NULL, NULL); FLUSH"""
        )
    assert there.read("SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = 'copy'::regclass "
                      "AND attnum > 0 ORDER BY attnum") == [
        ("k", "integer"), ("flag", "boolean"), ("n", "numeric(38,10)"), ("x", "double precision"), ("txt", "text"),
        ("raw", "bytea"), ("d", "date"), ("h", "time without time zone"), ("ts", "timestamp without time zone"),
        ("tz", "timestamp with time zone"), ("i", "interval"), ("j", "jsonb"), ("a", "integer[]"), ("words", "text[]"),
        ("days", "interval[]"),
    ]  # fmt: skip
    row = there.read("SELECT flag, n, x, txt, raw, d, h, ts::text, tz, i::text, j, a, words, days::text FROM copy WHERE k = 1")[0]
    assert row == (
        True,
        Decimal("12345678901234567890.25"),
        0.1,
        'tab\t "quoted" \\ NULL',
        b"\x00\xff",
        dt.date(2024, 2, 29),
        dt.time(12, 30, 15, 250_000),
        "12024-02-29 12:30:15.123456",
        dt.datetime(2024, 1, 1, 8, tzinfo=dt.UTC),
        "1 year 2 mons -3 days +00:00:01.5",
        {"a": "x", "b": [1, None]},
        [1, None, 3],
        ["a,b", '"', None, "NULL"],
        '{"1 day"}',
    )
    assert there.read(
        "SELECT x::text, ts::text, num_nulls(flag, n, txt, raw, d, h, tz, i, j, a, words, days) FROM copy WHERE k = 2"
    ) == [("NaN", "infinity", 12)]


@pytest.mark.parametrize("moment", [(PostgresViews, "apply_all"), (Outbox, "delivered")], ids=["before", "after"])
def test_a_crash_around_the_commit_in_postgresql_repeats_nothing_and_loses_nothing(
    open_session, there, monkeypatch, moment: tuple[Any, str]
) -> None:
    with open_session() as session:
        session.run(f"{SUMS} INSERT INTO t VALUES (1, 2), (2, 3); FLUSH; INSERT INTO t VALUES (1, 5); DELETE FROM t WHERE k = 2")
        with monkeypatch.context() as crashing:
            crashing.setattr(*moment, crash)
            with pytest.raises(UnexpectedError, match="crash"):
                session.run("FLUSH")
    watch(there, "sums")
    with open_session() as session:
        assert sums(there) == [(1, 7)]
        changed = [] if moment[1] == "delivered" else [("DELETE sums",), ("UPDATE sums",)]
        assert sorted(there.read("SELECT line FROM seen")) == changed
        session.run("INSERT INTO t VALUES (1, 1); FLUSH")
        assert sums(there) == [(1, 8)]


def test_a_server_that_is_away_is_caught_up_with(open_session, there) -> None:
    with open_session() as session:
        session.run(f"{SUMS} INSERT INTO t VALUES (1, 2)")
        there.read(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE pid <> pg_backend_pid() AND datname = current_database()"
        )
        with pytest.raises(StoreError, match="the next FLUSH tries again"):
            session.run("FLUSH")
        assert session.query("SELECT * FROM sums").rows() == [(1, 2)]
        session.run("DELETE FROM t; FLUSH; INSERT INTO t VALUES (1, 4); FLUSH")
        assert sums(there) == [(1, 4)]


def test_drop_drops_the_table(open_session, there) -> None:
    with open_session() as session:
        session.run(SUMS)
        change(there, "CREATE VIEW mine AS SELECT * FROM sums")
        with pytest.raises(StoreError, match=r"cannot drop table sums because other objects depend on it. view mine"):
            session.run("DROP MATERIALIZED VIEW sums")
        session.run("INSERT INTO t VALUES (1, 2); FLUSH")
        assert there.read("SELECT * FROM mine") == [(1, 2)]
        change(there, "DROP VIEW mine")
        session.run("DROP MATERIALIZED VIEW sums")
        assert there.read("SELECT to_regclass('sums')") == [(None,)]
        session.run("CREATE MATERIALIZED VIEW sums AS SELECT k, -sum(v) AS s FROM t GROUP BY k")
        assert sums(there) == [(1, -2)]
    assert len(there.read("SELECT * FROM windowpane_batches")) == 1


def test_a_drop_that_did_not_get_there_is_made_up_for(open_session, there, monkeypatch) -> None:
    with open_session() as session:
        session.run(SUMS)
        with monkeypatch.context() as crashing:
            crashing.setattr(PostgresViews, "drop", crash)
            with pytest.raises(UnexpectedError, match="crash"):
                session.run("DROP MATERIALIZED VIEW sums")
    with open_session() as session:
        assert there.read("SELECT to_regclass('sums')") == [(None,)]
        assert session.query("SHOW MATERIALIZED VIEWS").rows() == []


def test_a_table_that_is_there(open_session, there) -> None:
    with open_session() as session:
        session.run("CREATE TABLE t (k int, v int); INSERT INTO t VALUES (1, 2)")
        view = SUMS.partition(";")[2]
        change(there, "CREATE TABLE sums (k int, total bigint)")
        with pytest.raises(ChangedViewSchemaError, match=r"(?s)total: stored bigint, view absent.*s: stored absent, view bigint"):
            session.run(view)
        change(there, "ALTER TABLE sums RENAME total TO s")
        change(there, "INSERT INTO sums VALUES (7, 7)")
        with pytest.raises(StoreError, match="there is a table 'sums' with rows that are not those of a view"):
            session.run(view)
        assert session.query("SHOW MATERIALIZED VIEWS").rows() == []
        change(there, "DELETE FROM sums")
        session.run(view)
        assert sums(there) == [(1, 2)]


@pytest.mark.parametrize(
    ("query", "refusal", "words"),
    [
        (f"SELECT k AS {'n' * 64} FROM t", StoreError, "longer than the 63 bytes"),
        ("SELECT k AS xmin FROM t", SqlNameError, "column 'xmin' of 'm' conflicts with a system column name"),
    ],
)
def test_a_view_that_cannot_stand_in_postgresql_is_not_made(open_session, query: str, refusal: type, words: str) -> None:
    with open_session() as session:
        session.run("CREATE TABLE t (k int)")
        with pytest.raises(refusal, match=words):
            session.run(f"CREATE MATERIALIZED VIEW m AS {query}")
        assert session.query("SHOW MATERIALIZED VIEWS").rows() == []
        session.run("CREATE MATERIALIZED VIEW m AS SELECT k FROM t")


def test_arrays_of_arrays_stand_in_postgresql_as_jsonb(open_session) -> None:
    with open_session() as session:
        session.run(
            "CREATE TABLE t (k int); CREATE MATERIALIZED VIEW m AS SELECT k, ARRAY[ARRAY[k], ARRAY[k + 1]] AS nested FROM t"
        )
        session.run("INSERT INTO t VALUES (1), (2); FLUSH")
    with open_session() as session:
        session.run("DELETE FROM t WHERE k = 1; FLUSH")
        assert session.query("SELECT k, nested FROM m").rows() == [(2, [[2], [3]])]


def test_a_store_and_a_state_that_do_not_belong_together(
    open_session, there, postgres_server, postgres_url, tmp_path: Path
) -> None:
    state = str(tmp_path / "state.duckdb")
    with open_session() as session:
        session.run(f"{SUMS} INSERT INTO t VALUES (1, 2); FLUSH")
    with pytest.raises(MisplacedStateError, match=r"belongs? to|state of the views in the PostgreSQL store"):
        Session(state)
    with pytest.raises(MisplacedStateError, match=rf"(?s){state}.*and '.*other.duckdb' is not there"):
        Session(store=postgres_url, state=str(tmp_path / "other.duckdb"))
    assert not (tmp_path / "other.duckdb").exists()
    Session(str(tmp_path / "plain.duckdb")).close()
    with pytest.raises(MisplacedStateError, match=rf"(?s){state}.*and '.*plain.duckdb' is another"):
        Session(store=postgres_url, state=str(tmp_path / "plain.duckdb"))
    Session(str(tmp_path / "plain.duckdb")).close()
    postgres_server.psql("CREATE DATABASE elsewhere;")
    elsewhere = postgres_server.get_uri(database="elsewhere")
    with pytest.raises(
        MisplacedStateError, match=r"keeps the views of the store .*, and .*/elsewhere does not know it"
    ) as refused:
        Session(store=elsewhere, state=state)
    with pytest.raises(InvalidSpecError, match="goes with a PostgreSQL store"):
        Session(store=str(tmp_path / "plain.duckdb"), state=state)
    with pytest.raises(InvalidSpecError, match=":memory:"):
        Session(store=postgres_url, state=":memory:")
    # The ways out that the messages name.
    moved = PostgresStore(elsewhere)
    change(moved, str(refused.value).rpartition("run there: ")[2])
    Session(store=elsewhere, state=state).close()
    assert sums(moved) == [(1, 2)]
    moved.close()
    change(there, "DROP TABLE windowpane_state")
    with Session(store=postgres_url, state=str(tmp_path / "new.duckdb")) as session:
        session.run(f"{SUMS} INSERT INTO t VALUES (3, 3); FLUSH")
        assert sums(there) == [(3, 3)]
        change(there, "UPDATE windowpane_state SET id = 'another'")
        with pytest.raises(MisplacedStateError, match="given to another state"):
            session.run("INSERT INTO t VALUES (3, 3); FLUSH")


def test_tables_that_the_state_did_not_leave_so_are_filled_anew(open_session, there, tmp_path: Path) -> None:
    state, copy = tmp_path / "state.duckdb", tmp_path / "copy.duckdb"
    with open_session() as session:
        session.run(f"{SUMS} INSERT INTO t VALUES (1, 2); FLUSH")
    shutil.copy(state, copy)
    with open_session() as session:
        session.run("INSERT INTO t VALUES (1, 3), (2, 2); FLUSH; INSERT INTO t VALUES (2, 2); FLUSH")
        assert sums(there) == [(1, 5), (2, 4)]
    shutil.copy(copy, state)
    with open_session() as session:
        assert sums(there) == [(1, 2)]
        session.run("INSERT INTO t VALUES (3, 3); FLUSH")
        assert sums(there) == [(1, 2), (3, 3)]
    change(there, "DROP TABLE sums")
    with open_session() as session:
        assert sums(there) == [(1, 2), (3, 3)]


def test_a_duckdb_store_becomes_a_state(open_session, there, tmp_path: Path) -> None:
    with Session(str(tmp_path / "state.duckdb")) as session:
        session.run(f"{SUMS} INSERT INTO t VALUES (1, 2); FLUSH")
    with open_session() as session:
        session.run("INSERT INTO t VALUES (1, 3); FLUSH")
        assert sums(there) == [(1, 5)]


def test_the_query_of_a_sink_is_no_view_there(open_session, there, postgres_url: str) -> None:
    sink = f"connector = 'postgres', url = '{postgres_url}', table = 'out'"
    with open_session() as session:
        session.run(f"CREATE TABLE t (k int, v int); CREATE SINK s AS SELECT k, sum(v) AS s FROM t GROUP BY k WITH ({sink})")
        session.run("INSERT INTO t VALUES (1, 2); FLUSH")
    assert there.read("SELECT view FROM windowpane_views") == []
    assert there.read("SELECT k, s FROM out") == [(1, 2)]


def test_the_command_line(postgres_url: str, there, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = f"{SUMS} INSERT INTO t VALUES (1, 2); FLUSH"
    command = [sys.executable, "-m", "windowpane", "sql", "-", "--store", postgres_url]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, input=script, cwd=tmp_path, env=environment, text=True, capture_output=True)
    assert done.returncode == 0, done.stderr
    assert sums(there) == [(1, 2)]
    database = there.database
    assert (tmp_path / f"{database}.state.duckdb").exists()
    monkeypatch.chdir(tmp_path)
    refused = CliRunner().invoke(app, ["sql", "-", "--store", postgres_url, "--state", "other.duckdb"], input=script)
    assert refused.exit_code == 1
    assert f"windowpane: MisplacedStateError: store {there.address}: its views" in refused.stderr


def test_tables_equal_random_views(open_session, there) -> None:
    with open_session() as session:
        Script(7).check(session)  # views equal DuckDB after every flush
        for view in session.relations():
            if view.startswith("mv"):
                columns = ", ".join(session.columns(view))
                here = session.query(f"SELECT {columns} FROM {view}").rows()
                assert sorted(here, key=str) == sorted(there.read(f"SELECT {columns} FROM {view}"), key=str)


def test_a_view_that_is_replaced_has_its_table_replaced_in_one_transaction(open_session, there, monkeypatch) -> None:
    def seen() -> list[list]:
        query = "SELECT array_agg(row_to_json(sums)::text ORDER BY k), (SELECT max(most) FROM best) FROM sums"
        return [list(row) for row in there.read(query)]

    old, same = ([['{"k":1,"s":7}', '{"k":2,"s":3}'], 7]), ([['{"k":1,"s":5}', '{"k":2,"s":3}'], 5])
    new = [['{"k":1,"s":5,"n":1}', '{"k":2,"s":3,"n":1}'], 5]
    with open_session() as session:
        session.run(f"{SUMS} CREATE MATERIALIZED VIEW best AS SELECT max(s) AS most FROM sums")
        session.run("INSERT INTO t VALUES (1, 2), (1, 5), (2, 3); FLUSH")
        assert seen() == [old]
        session.run("CREATE OR REPLACE MATERIALIZED VIEW sums AS SELECT k, sum(v) AS s FROM t WHERE v > 2 GROUP BY k")
        assert seen() == [same]
        with monkeypatch.context() as patched:
            patched.setattr(PostgresViews, "apply", crash)
            with pytest.raises(UnexpectedError, match="crash"):
                session.run("ALTER MATERIALIZED VIEW sums AS SELECT k, sum(v) AS s, count(*) AS n FROM t WHERE v > 2 GROUP BY k")
        assert seen() == [same]
    with open_session() as session:
        assert seen() == [new]
        session.run("INSERT INTO t VALUES (2, 8); FLUSH")
        assert there.read("SELECT k, s, n FROM sums ORDER BY k") == [(1, 5, 1), (2, 11, 2)]
