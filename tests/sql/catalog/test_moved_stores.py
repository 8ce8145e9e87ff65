"""Stores that go elsewhere: to another folder, and to a session with Spark or without."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.sql.in_process import Queries, run_in_process
from tests.sql.watched_keys import Watch
from windowpane.errors import UnsupportedStoreError
from windowpane.sql import Session

DEFINED = """
CREATE TABLE t (k int, v int);
CREATE MATERIALIZED VIEW totals AS SELECT k, count(*) AS n, sum(v) AS s FROM t GROUP BY k;
CREATE MATERIALIZED VIEW whole AS SELECT sum(n) AS n, sum(s) AS s FROM totals;
"""


def held(session: Session) -> list[list[list[str | None]]]:
    return [session.query(f"SELECT * FROM {view} ORDER BY 1").text_rows() for view in ("totals", "whole")]


def failing(*_: object, **__: object) -> None:
    raise RuntimeError("crash")


@pytest.mark.parametrize("parallelism", [0, 1], ids=["spread", "on the driver"])
@pytest.mark.parametrize("crashes", [False, True])
def test_a_store_goes_on_in_another_folder(
    tmp_path: Path, monkeypatch, every_key_is_unique: Watch, parallelism: int, crashes: bool
) -> None:
    run_in_process(monkeypatch)
    first, moved = tmp_path / "first", tmp_path / "moved"
    first.mkdir()
    with Session(object(), str(first / "views.duckdb")) as session:
        session.run(f"SET streaming_parallelism = {parallelism}; {DEFINED}")
        session.run("INSERT INTO t VALUES (1, 10), (2, 20); FLUSH")
        if crashes:
            with monkeypatch.context() as patched:
                patched.setattr(Queries, "finish", failing)
                with pytest.raises(Exception, match="crash"):
                    session.run("INSERT INTO t VALUES (1, 5); FLUSH")
            assert session._storage.value("SELECT count(*) FROM windowpane.streams WHERE sent <> done") == 1
        else:
            session.run("INSERT INTO t VALUES (1, 5); FLUSH")
        paths = {file for (file,) in session._storage.run("SELECT file FROM windowpane.mail")}
        assert not any("/" in path for path in paths)
    first.rename(moved)
    every_key_is_unique.moved(str(first / "views.duckdb"), str(moved / "views.duckdb"))
    with Session(object(), str(moved / "views.duckdb")) as session:
        session.run("INSERT INTO t VALUES (2, 1), (3, NULL); FLUSH")
        assert held(session) == [[["1", "2", "15"], ["2", "2", "21"], ["3", "1", None]], [["5", "36"]]]


@pytest.mark.spark
@pytest.mark.parametrize("parallelism", [0, 1], ids=["spread", "on the driver"])
def test_a_copy_of_a_store_takes_no_change_set_twice_on_spark(
    spark, tmp_path: Path, every_key_is_unique: Watch, parallelism: int
) -> None:
    first, copied = tmp_path / "first", tmp_path / "a [copy]"
    first.mkdir()
    with Session(spark, str(first / "views.duckdb")) as session:
        session.run(f"SET streaming_parallelism = {parallelism}; {DEFINED}")
        session.run("INSERT INTO t VALUES (1, 10), (2, 20); FLUSH; INSERT INTO t VALUES (1, 5); FLUSH")
    shutil.copytree(first, copied)
    every_key_is_unique.moved(str(first / "views.duckdb"), str(copied / "views.duckdb"))
    for folder in (first, copied):
        with Session(spark, str(folder / "views.duckdb")) as session:
            session.run("INSERT INTO t VALUES (2, 1), (3, NULL); FLUSH")
            assert held(session) == [[["1", "2", "15"], ["2", "2", "21"], ["3", "1", None]], [["5", "36"]]]


@pytest.mark.parametrize("filled", [True, False], ids=["a change set", "its first change set"])
def test_changes_that_wait_for_a_view_are_not_passed_over_without_spark(tmp_path: Path, monkeypatch, filled: bool) -> None:
    """The folder is kept as it is at the kill: the session would remove a view that has not had its first rows."""
    run_in_process(monkeypatch)
    work, saved = tmp_path / "work", tmp_path / "saved"
    work.mkdir()

    def killed(*_: object, **__: object) -> None:
        shutil.copytree(work, saved)
        raise KeyboardInterrupt

    with Session(object(), str(work / "views.duckdb")) as session:
        session.run("SET streaming_parallelism = 1; CREATE TABLE t (k int, v int); INSERT INTO t VALUES (1, 10); FLUSH")
        if filled:
            session.run(DEFINED.replace("CREATE TABLE t (k int, v int);", ""))
        statement = "INSERT INTO t VALUES (1, 5); FLUSH" if filled else "CREATE MATERIALIZED VIEW totals AS SELECT 7 AS n"
        with monkeypatch.context() as patched:
            patched.setattr(Queries, "finish", killed)
            with pytest.raises(KeyboardInterrupt):
                session.run(statement)
    shutil.rmtree(work)
    saved.rename(work)
    store = str(work / "views.duckdb")
    with pytest.raises(UnsupportedStoreError, match=r"changes wait for totals that a session with Spark has not handed on"):
        Session(store)
    with Session(object(), store) as session:
        session.run("FLUSH")
    with Session(store) as session:
        assert session.query("SELECT n FROM totals").rows() == [(2 if filled else 7,)]
        session.run("INSERT INTO t VALUES (1, 1); FLUSH")
        assert session.query("SELECT n FROM totals").rows() == [(3 if filled else 7,)]


@pytest.mark.parametrize("kind", ["TABLE", "SOURCE"])
@pytest.mark.parametrize("begins", [object(), None], ids=["with Spark", "without"])
def test_files_that_were_read_with_spark_are_not_read_again_without_nor_the_other_way_round(
    tmp_path: Path, monkeypatch, kind: str, begins: object | None
) -> None:
    run_in_process(monkeypatch)
    store, files = str(tmp_path / "views.duckdb"), tmp_path / "files"
    files.mkdir()
    pq.write_table(pa.table({"k": pa.array([1, 2], pa.int32())}), files / "0.parquet")
    with Session(begins, store) as session:
        session.run("SET streaming_parallelism = 1")
        session.run(f"CREATE {kind} t (k int) WITH (connector = 'parquet', path = '{files}')")
        session.run("CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n FROM t; FLUSH")
        assert session.query("SELECT n FROM v").rows() == [(2,)]
    with pytest.raises(UnsupportedStoreError, match=r"\bt\b.*each row would be there twice"):
        Session(object() if begins is None else None, store)
    pq.write_table(pa.table({"k": pa.array([3], pa.int32())}), files / "1.parquet")
    if begins is None:
        with Session(None, store) as session:
            session.run("FLUSH")
            assert session.query("SELECT n FROM v").rows() == [(3,)]
