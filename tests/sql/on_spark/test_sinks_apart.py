"""A session and the stores of its sinks, one of them removed or restored from an older copy: an error with both numbers."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.sql.watched_keys import Watch
from windowpane.errors import AbsentRowError, MisplacedStateError, UnexpectedError
from windowpane.sql import Session
from windowpane.stores import open_store

SINKS = {
    "duckdb": "connector = 'duckdb', path = '{folder}/out/s.duckdb', table = 'o'",
    "parquet": "connector = 'parquet', path = '{folder}/out'",
}


def flush(folder: Path, number: int, state: str = "state.duckdb") -> None:
    with Session(store=str(folder / state)) as session:
        session.run(f"INSERT INTO t VALUES ({number % 2}, {number}); FLUSH")


@pytest.fixture(params=SINKS)
def folder(request: pytest.FixtureRequest, tmp_path: Path, every_key_is_unique: Watch) -> Path:
    (tmp_path / "out").mkdir()
    with Session(store=str(tmp_path / "state.duckdb")) as session:
        session.run("CREATE TABLE t (k int, v int)")
        options = SINKS[request.param].format(folder=tmp_path)
        session.run(f"CREATE SINK o AS SELECT k, sum(v) AS s FROM t GROUP BY k WITH ({options})")
    for number in range(3):
        flush(tmp_path, number)
        shutil.copytree(tmp_path / "out", tmp_path / f"out{number}")
        shutil.copy(tmp_path / "state.duckdb", tmp_path / f"state{number}")
        every_key_is_unique.moved(str(tmp_path / "state.duckdb"), str(tmp_path / f"state{number}"))
    return tmp_path


def restore(folder: Path, number: int) -> None:
    shutil.rmtree(folder / "out")
    shutil.copytree(folder / f"out{number}", folder / "out")


def older_store(folder: Path) -> None:
    restore(folder, 0)


def no_store(folder: Path) -> None:
    shutil.rmtree(folder / "out")
    (folder / "out").mkdir()


def older_session(folder: Path) -> None:
    shutil.copy(folder / "state1", folder / "state.duckdb")


@pytest.mark.slow_but_one_in(4)
@pytest.mark.parametrize("part", [older_store, no_store, older_session])
@pytest.mark.parametrize("changes", ["INSERT INTO t VALUES (7, 7); ", ""])
def test_a_sink_that_is_apart_from_its_session_is_refused_by_each_flush(
    folder: Path, part: Callable[[Path], None], changes: str
) -> None:
    part(folder)
    with Session(store=str(folder / "state.duckdb")) as session:
        for _ in range(2):
            with pytest.raises(MisplacedStateError, match=r"sink 'o' of session [^ ]+, which knows batch"):
                session.run(f"{changes}FLUSH")


def test_the_way_out_fills_the_store_anew(folder: Path) -> None:
    older_store(folder)
    with Session(store=str(folder / "state.duckdb")) as session:
        with pytest.raises(MisplacedStateError):
            session.run("FLUSH")
        shutil.rmtree(folder / "out")
        (folder / "out").mkdir()
        options = SINKS["duckdb"].format(folder=folder)
        session.run(f"DROP SINK o; CREATE SINK o AS SELECT k, sum(v) AS s FROM t GROUP BY k WITH ({options}); FLUSH")
    store = open_store(str(folder / "out" / "s.duckdb"))
    assert sorted(store.read("SELECT k, s FROM o")) == [(0, 2), (1, 1)]
    store.close()


def test_both_restored_from_copies_that_belong_together_go_on(folder: Path) -> None:
    restore(folder, 1)
    flush(folder, 4, "state1")
    flush(folder, 5, "state1")
    if (folder / "out" / "s.duckdb").exists():
        store = open_store(str(folder / "out" / "s.duckdb"))
        assert sorted(store.read("SELECT k, s FROM o")) == [(0, 4), (1, 6)]
        store.close()
    else:
        rows = pq.read_table(folder / "out").to_pylist()
        assert [row["s"] for row in rows if row["_change_type"] in ("insert", "update_postimage")] == [0, 1, 4, 6]


def test_parquet_files_that_were_taken_away_are_no_gap(folder: Path) -> None:
    for file in (folder / "out").glob("*.parquet"):
        file.unlink()
    flush(folder, 4)
    assert (folder / "out" / "s.duckdb").exists() or len(list((folder / "out").glob("*.parquet"))) == 1


def test_a_batch_that_the_store_has_and_the_session_does_not_know_of_is_given_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A crash between both commits."""
    with monkeypatch.context() as broken, Session(store=str(folder / "state.duckdb")) as session:
        broken.setattr("windowpane.sql.embedded.outbox.Outbox.delivered", lambda box, number: 1 / 0)
        with pytest.raises(UnexpectedError, match="ZeroDivisionError"):
            session.run("INSERT INTO t VALUES (0, 9); FLUSH")
    flush(folder, 5)
    if (folder / "out" / "s.duckdb").exists():
        store = open_store(str(folder / "out" / "s.duckdb"))
        assert sorted(store.read("SELECT k, s FROM o")) == [(0, 11), (1, 6)]
        store.close()
    else:
        assert pq.read_table(folder / "out")["s"].to_pylist().count(11) == 1


def test_a_row_that_others_removed_from_the_store_of_a_sink_is_named(folder: Path) -> None:
    if not (folder / "out" / "s.duckdb").exists():
        pytest.skip("files have no rows to take back")
    store = open_store(str(folder / "out" / "s.duckdb"))
    store.read("DELETE FROM o WHERE k = 0")
    store.close()
    with pytest.raises(AbsentRowError, match=r"'k': 0"):
        flush(folder, 4)
