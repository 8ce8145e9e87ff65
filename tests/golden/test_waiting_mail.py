"""A store of an earlier version: changes wait for views as blobs, a change set is settled, and views have no rows yet.

It was kept before changes stood in files: by a session with the views of ``before.sql`` and the changes of ``after.sql``, none of
which was delivered.
"""

from __future__ import annotations

import lzma
from pathlib import Path

import pytest

from tests.sql.in_process import run_in_process
from windowpane.sql import Session
from windowpane.sql.on_spark.change_log import write_shared

FOLDER = Path(__file__).parent / "mail"
VIEWS = ("totals", "named", "here")
LATER = "UPDATE t SET v = 9 WHERE id = 3; INSERT INTO names VALUES ('c', 'gamma'); INSERT INTO t VALUES (8, 'c', 1); FLUSH"


def held(session: Session) -> dict[str, list[list[str | None]]]:
    return {name: sorted(session.query(f"SELECT * FROM {name}").text_rows(), key=repr) for name in VIEWS}


def test_changes_that_waited_in_a_store_of_an_earlier_version_arrive_once(tmp_path: Path, monkeypatch) -> None:
    run_in_process(monkeypatch)
    store = tmp_path / "views.duckdb"
    store.write_bytes(lzma.decompress((FOLDER / "store.duckdb.xz").read_bytes()))
    with Session() as embedded:
        embedded.run((FOLDER / "before.sql").read_text())
        embedded.run((FOLDER / "after.sql").read_text())
        with Session(object(), str(store)) as session:
            assert session._storage.run("SELECT * FROM windowpane.mail") == []
            assert held(session) == held(embedded)
        embedded.run(LATER)
        with Session(object(), str(store)) as session:
            session.run(LATER)
            assert held(session) == held(embedded)


def test_a_crash_while_they_are_moved_to_files_changes_nothing(tmp_path: Path, monkeypatch) -> None:
    run_in_process(monkeypatch)
    store = tmp_path / "views.duckdb"
    store.write_bytes(lzma.decompress((FOLDER / "store.duckdb.xz").read_bytes()))
    written: list[Path] = []

    def crashing(parts, paths) -> bool:
        write_shared(parts, paths)
        written.extend(paths)
        if len(written) == 3:
            raise KeyboardInterrupt
        return True

    with monkeypatch.context() as patched:
        patched.setattr("windowpane.sql.on_spark.pending_changes.write_shared", crashing)
        with pytest.raises(KeyboardInterrupt):
            Session(object(), str(store))
    with Session() as embedded, Session(object(), str(store)) as session:
        embedded.run((FOLDER / "before.sql").read_text())
        embedded.run((FOLDER / "after.sql").read_text())
        assert held(session) == held(embedded)
