"""Stores that go elsewhere: to another folder, and to a session with Spark or without."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.sql.in_process import NO_SPARK, Queries, run_in_process
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


@pytest.mark.parametrize("crashes", [False, True])
def test_a_store_goes_on_in_another_folder(tmp_path: Path, monkeypatch, every_key_is_unique: Watch, crashes: bool) -> None:
    run_in_process(monkeypatch)
    first, moved = tmp_path / "first", tmp_path / "moved"
    first.mkdir()
    with Session(NO_SPARK, str(first / "views.duckdb")) as session:
        session.run(DEFINED)
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
    with Session(NO_SPARK, str(moved / "views.duckdb")) as session:
        session.run("INSERT INTO t VALUES (2, 1), (3, NULL); FLUSH")
        assert held(session) == [[["1", "2", "15"], ["2", "2", "21"], ["3", "1", None]], [["5", "36"]]]


@pytest.mark.slow
@pytest.mark.spark
def test_a_copy_of_a_store_takes_no_change_set_twice_on_spark(spark, tmp_path: Path, every_key_is_unique: Watch) -> None:
    first, copied = tmp_path / "first", tmp_path / "a [copy]"
    first.mkdir()
    with Session(spark, str(first / "views.duckdb")) as session:
        session.run(DEFINED)
        session.run("INSERT INTO t VALUES (1, 10), (2, 20); FLUSH; INSERT INTO t VALUES (1, 5); FLUSH")
    shutil.copytree(first, copied)
    every_key_is_unique.moved(str(first / "views.duckdb"), str(copied / "views.duckdb"))
    for folder in (first, copied):
        with Session(spark, str(folder / "views.duckdb")) as session:
            session.run("INSERT INTO t VALUES (2, 1), (3, NULL); FLUSH")
            assert held(session) == [[["1", "2", "15"], ["2", "2", "21"], ["3", "1", None]], [["5", "36"]]]


@pytest.mark.parametrize("fails", [False, True], ids=["a crash of none", "a crash of the first batch"])
def test_views_that_were_made_without_spark_go_on_in_stages(tmp_path: Path, monkeypatch, fails: bool) -> None:
    """What waits for a FLUSH comes with the rows of tables; sinks get what changes, and not what they have."""
    run_in_process(monkeypatch)
    store, out = str(tmp_path / "views.duckdb"), tmp_path / "out"
    with Session(store) as session:
        session.run(f"{DEFINED} INSERT INTO t VALUES (1, 10), (2, 20); FLUSH")
        session.run(f"CREATE SINK s FROM totals WITH (connector = 'parquet', path = '{out}')")
        session.run("INSERT INTO t VALUES (1, 5)")
    if fails:
        with monkeypatch.context() as patched:
            patched.setattr(Queries, "finish", failing)
            with pytest.raises(Exception, match="crash"):
                Session(NO_SPARK, store)
    with Session(NO_SPARK, store) as session:
        assert held(session) == [[["1", "2", "15"], ["2", "1", "20"]], [["3", "35"]]]
        session.run("DELETE FROM t WHERE k = 2; INSERT INTO t VALUES (3, 1); FLUSH")
        assert held(session) == [[["1", "2", "15"], ["3", "1", "1"]], [["3", "16"]]]
    changes = [row for file in sorted(out.glob("*.parquet")) for row in pq.read_table(file).to_pylist()]
    assert [(row["_change_type"], row["k"], row["s"]) for row in changes] == [
        *(("insert", 1, 10), ("insert", 2, 20), ("update_preimage", 1, 10), ("update_postimage", 1, 15)),
        *(("delete", 2, 20), ("insert", 3, 1)),
    ]
    with pytest.raises(UnsupportedStoreError, match=r"the state of totals, whole lies in Spark's checkpoints"):
        Session(store)


@pytest.mark.spark
@pytest.mark.slow
def test_a_store_that_was_made_without_spark_goes_on_on_spark(spark, tmp_path: Path) -> None:
    views = {
        "closed": "SELECT window_start, sum(v) AS s FROM tumble(e, at, INTERVAL '1 hour') GROUP BY window_start "
        "EMIT ON WINDOW CLOSE",
        "steps": "SELECT k, at, v - lag(v) OVER (PARTITION BY k ORDER BY at) AS d FROM e",
        "best": "SELECT max(d) AS d FROM steps",
    }
    made = "CREATE TABLE e (at timestamp, k int, v int, WATERMARK FOR at AS at) APPEND ONLY; " + "; ".join(
        f"CREATE MATERIALIZED VIEW {name} AS {query}" for name, query in views.items()
    )
    first = "INSERT INTO e VALUES ('2024-01-01 10:00', 1, 5), ('2024-01-01 10:30', 1, 7), ('2024-01-01 11:10', 2, 1); FLUSH"
    waiting = "INSERT INTO e VALUES ('2024-01-01 11:20', 2, 9), ('2024-01-01 10:40', 1, 100)"
    more = "INSERT INTO e VALUES ('2024-01-01 12:00', 1, 8); FLUSH"

    def rows(session: Session) -> dict[str, list[str]]:
        return {name: sorted(map(str, session.query(f"SELECT * FROM {name}").rows())) for name in views}

    store = str(tmp_path / "views.duckdb")
    with Session(store) as session, Session() as undisturbed:
        session.run(f"{made}; {first}; {waiting}")
        undisturbed.run(f"{made}; {first}; {waiting}; FLUSH")
        expected = [rows(undisturbed)]
        undisturbed.run(more)
        expected.append(rows(undisturbed))
    with Session(spark, store) as session:
        assert rows(session) == expected[0]
        session.run(more)
        assert rows(session) == expected[1]


def test_what_spark_does_not_run_is_not_taken_up(tmp_path: Path, monkeypatch) -> None:
    run_in_process(monkeypatch)
    store = str(tmp_path / "views.duckdb")
    with Session(store) as session:
        session.run("CREATE TABLE t (at timestamp); CREATE MATERIALIZED VIEW v AS SELECT * FROM t WHERE at > now()::timestamp")
    with pytest.raises(UnsupportedStoreError, match=r"Spark cannot take up 'v'.*now\(\)"):
        Session(NO_SPARK, store)
    with Session(store) as session:
        assert session.query("SELECT * FROM v").rows() == []


@pytest.mark.parametrize(("kind", "begins"), [("TABLE", NO_SPARK), ("TABLE", None), ("SOURCE", None)])
def test_files_that_were_read_with_spark_are_not_read_again_without_nor_the_other_way_round(
    tmp_path: Path, monkeypatch, kind: str, begins: Any
) -> None:
    run_in_process(monkeypatch)
    store, files = str(tmp_path / "views.duckdb"), tmp_path / "files"
    files.mkdir()
    pq.write_table(pa.table({"k": pa.array([1, 2], pa.int32())}), files / "0.parquet")
    with Session(begins, store) as session:
        session.run(f"CREATE {kind} t (k int) WITH (connector = 'parquet', path = '{files}')")
        session.run("CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n FROM t; FLUSH")
        assert session.query("SELECT n FROM v").rows() == [(2,)]
        if begins is not None:
            session.run("DROP MATERIALIZED VIEW v")
    with pytest.raises(UnsupportedStoreError, match=r"\bt\b.*each row would be there twice"):
        Session(NO_SPARK if begins is None else None, store)
    pq.write_table(pa.table({"k": pa.array([3], pa.int32())}), files / "1.parquet")
    if begins is None:
        with Session(None, store) as session:
            session.run("FLUSH")
            assert session.query("SELECT n FROM v").rows() == [(3,)]
