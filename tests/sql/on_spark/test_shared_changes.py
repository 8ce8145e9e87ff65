"""Changes of tables on their way to views: one file for all who read them, over a kill between any two steps."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import cache
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.sql.in_process import NO_SPARK, Exchange, Files, Queries, on_connect, run_in_process
from windowpane.errors import SqlRunError, UnreadableStateError
from windowpane.sql import Session
from windowpane.sql.embedded.storage import Storage
from windowpane.sql.on_spark import change_log, spark_runner, view_batches
from windowpane.sql.on_spark.change_log import ChangeLog, held_in
from windowpane.sql.on_spark.change_sets import ChangeFile, ChangeSet, named_in
from windowpane.sql.on_spark.pending_changes import PendingChanges
from windowpane.sql.on_spark.spark_runner import SparkRunner
from windowpane.sql.on_spark.view_batches import ViewBatches
from windowpane.sql.upkeep.stored_changes import StoredChanges

TABLES = "CREATE TABLE t (id int PRIMARY KEY, k text, v numeric); CREATE TABLE names (k text PRIMARY KEY, name text);"
VIEWS = {
    "totals": "SELECT k, count(*) AS n, sum(v) AS s FROM t GROUP BY k",
    "largest": "SELECT id, v FROM t WHERE v IS NOT NULL QUALIFY row_number() OVER (PARTITION BY k ORDER BY v DESC, id) <= 2",
    "named": "SELECT n.name, t.v FROM t JOIN names AS n ON t.k = n.k",
    "whole": "SELECT count(*) AS keys, sum(n) AS n, sum(s) AS s FROM totals",
}
CHANGES = (
    "INSERT INTO t VALUES (1, 'a', 1.5), (2, 'b', 2), (3, 'a', NULL), (4, NULL, 8); INSERT INTO names VALUES ('a', 'alpha')",
    "UPDATE t SET v = v + 1 WHERE k = 'a'; INSERT INTO t VALUES (5, 'c', 3); INSERT INTO names VALUES ('c', 'gamma')",
    "DELETE FROM t WHERE id = 2; UPDATE names SET name = 'omega'; INSERT INTO t VALUES (6, 'a', 0.25)",
)


class KilledError(BaseException):
    """Ends a session in the middle: nothing of ours takes it."""


def held(session: Session, views: tuple[str, ...] = tuple(VIEWS)) -> dict[str, list[list[str | None]]]:
    return {name: sorted(session.query(f"SELECT * FROM {name}").text_rows(), key=repr) for name in views}


def define(session: Session) -> None:
    session.run(TABLES)
    for name, query in VIEWS.items():
        session.run(f"CREATE MATERIALIZED VIEW {name} AS {query}")


@cache
def expected(changes: tuple[str, ...]) -> dict[str, list[list[str | None]]]:
    """Return what the views hold on the embedded engine."""
    with Session() as session:
        define(session)
        for change in changes:
            session.run(f"{change}; FLUSH")
        return held(session)


def inodes(streams: Path) -> dict[int, int]:
    """Return how many names each file of changes has that change sets name."""
    found: dict[int, int] = {}
    for path in streams.glob("*/received/*"):
        assert path.suffix == ".parquet"
        found[path.stat().st_ino] = found.get(path.stat().st_ino, 0) + 1
    return found


def unnamed(session: Session, streams: Path) -> set[str]:
    """Return the files of changes that nothing will read."""
    waiting = {file for (file,) in session._storage.run("SELECT file FROM windowpane.mail")}
    for change_set in streams.glob("*/inbox/*.parquet"):
        waiting |= set(json.loads(pq.read_metadata(change_set).metadata[b"windowpane.files"]))
    return {path.name for path in streams.glob("*/received/*")} - waiting


@pytest.fixture(autouse=True)
def _in_process(monkeypatch: pytest.MonkeyPatch) -> None:
    run_in_process(monkeypatch)


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a file of changes have a part for each row or two, and tasks share most change sets."""
    monkeypatch.setattr(view_batches, "PART_ROWS", 2)
    monkeypatch.setattr(change_log, "_TOGETHER_ROWS", 2)
    monkeypatch.setattr(spark_runner, "LARGE_CHANGE_SET", replace(spark_runner.LARGE_CHANGE_SET, usual=600))


def test_views_that_read_a_table_share_one_file_until_all_have_taken_it(tmp_path: Path, small_parts) -> None:
    store = tmp_path / "views.duckdb"
    streams = Path(f"{store}.streams")
    with Session(NO_SPARK, str(store)) as session:
        define(session)
        session.run(f"{CHANGES[0]}; FLUSH")
        *others, of_t = sorted(inodes(streams).values())
        assert of_t == 3  # views read it
        assert set(others) == {1}  # names, and totals -> whole: a file a bucket
        assert held(session) == expected(CHANGES[:1])
        for number in range(10, 14):  # change sets are kept a while, since Spark may ask for the last ones again
            session.run(f"INSERT INTO t VALUES ({number}, 'z', NULL); FLUSH")
        assert len(list(streams.glob("*/inbox/*.parquet"))) <= 3 * len(VIEWS)
        assert sum(inodes(streams).values()) <= 4 * 3
        assert unnamed(session, streams) == set()
        assert session._storage.run("SELECT * FROM windowpane.mail") == []
        session.run("DROP MATERIALIZED VIEW named")
    with Session(NO_SPARK, str(store)):
        assert max(inodes(streams).values()) == 2


def test_tasks_share_a_large_change_set_and_read_each_part_once(tmp_path: Path, monkeypatch, small_parts) -> None:
    read: list[tuple[str, int | None]] = []
    held_in, tasks = change_log.held_in, Files.tasks

    def noted(path: Path, group: int | None = None) -> Iterator[pa.Table]:
        read.append((path.name, group))
        yield from held_in(path, group)

    taken: list[list[int]] = []

    def counted(self: Files, path: Path | None) -> list[list[pa.RecordBatch]]:
        found = tasks(self, path)
        taken.append([sum(batch.num_rows for batch in task) for task in found])
        return found

    monkeypatch.setattr("windowpane.sql.on_spark.change_sets.held_in", noted)
    monkeypatch.setattr(Files, "tasks", counted)
    with Session(NO_SPARK, str(tmp_path / "views.duckdb")) as session:
        session.run("CREATE TABLE t (k int, v int); CREATE MATERIALIZED VIEW small AS SELECT k, v FROM t WHERE v < 0")
        session.run("INSERT INTO t SELECT n % 3, n FROM generate_series(1, 40) AS s(n); FLUSH")
        assert sorted(read, key=repr) == sorted(((read[0][0], group) for group in range(20)), key=repr)
        read.clear()
        taken.clear()
        session.run("CREATE MATERIALIZED VIEW totals AS SELECT k, count(*) AS n, sum(v) AS s FROM t GROUP BY k")
        assert sorted(read, key=repr) == sorted(((read[0][0], group) for group in range(20)), key=repr)
        assert [11, 10] in taken  # 20 parts, and the watermarks
        assert session.query("SELECT k, n, s FROM totals ORDER BY k").rows() == [(0, 13, 273), (1, 14, 287), (2, 13, 260)]
        read.clear()
        session.run("INSERT INTO t VALUES (0, 100); FLUSH; DELETE FROM t WHERE v = 100; INSERT INTO t VALUES (2, 5); FLUSH")
        assert session.query("SELECT k, n, s FROM totals ORDER BY k").rows() == [(0, 13, 273), (1, 14, 287), (2, 14, 265)]
        assert sorted(Counter(group for _, group in read).values()) == [4]  # two flushes, two views, one part each


def test_parts_of_a_batch_come_together_where_they_are_alike(tmp_path: Path, monkeypatch) -> None:
    parts: list[list[dict[str, object]]] = [[{"a": 1}, {"a": 2}], [{"a": 3}], [{"a": "x"}], [{"a": "y"}], [{"a": "z"}]]
    folder = tmp_path / f"{7:012}"
    folder.mkdir()
    for number, rows in enumerate(parts):
        change_log.write_shared([pa.Table.from_pylist(rows)], [folder / f"part-{number}.parquet"])
    log = change_log.ChangeLog(tmp_path)
    assert [part.to_pylist() for part in log.changes(7)] == [parts[0] + parts[1], parts[2] + parts[3] + parts[4]]
    monkeypatch.setattr(change_log, "_TOGETHER_ROWS", 2)
    assert [part.to_pylist() for part in log.changes(7)] == [parts[0], parts[1], parts[2] + parts[3], parts[4]]
    monkeypatch.setattr(change_log, "_TOGETHER_BYTES", 1)
    assert [part.to_pylist() for part in log.changes(7)] == parts


def before(function: Callable) -> Callable:
    def killed(*given: object, **named: object) -> object:
        raise KilledError

    return killed


def after(function: Callable) -> Callable:
    def killed(*given: object, **named: object) -> object:
        function(*given, **named)
        raise KilledError

    return killed


def after_one_part(pieces: Callable) -> Callable:
    def killed(*given: object) -> Iterator[pa.Table]:
        yield next(pieces(*given))
        raise KilledError

    return killed


def after_one_answer(finish: Callable) -> Callable:
    def killed(self: Queries, name: str, **given: bool) -> None:
        finish(self, name, **given)
        if name == "largest":
            raise KilledError

    return killed


STEPS: dict[str, tuple[object, str, Callable]] = {
    "the flush begins": (PendingChanges, "begin", after),
    "the file is half written": (Storage, "pieces", after_one_part),
    "the file is written under its first name": (change_log, "_share", before),
    "the file has a second name": (change_log, "_share", after),
    "the file has all its names": (view_batches, "write_shared", after),
    "a pending change names it": (PendingChanges, "post", after),
    "the flush is about to commit": (StoredChanges, "end_of_tables", after),
    "the flush is committed": (SparkRunner, "deliver", before),
    "the change set is about to be settled": (PendingChanges, "due_change_set", after),
    "the change set is settled": (ChangeSet, "write", before),
    "the change set lies in the inbox": (ChangeSet, "write", after),
    "the change set is about to be sent": (PendingChanges, "sent", after),
    "the query is about to take it": (Queries, "finish", before),
    "the batch begins": (Exchange, "publish", after),
    "the batch has run": (ChangeLog, "keep", before),
    "the batch is in the change log": (ChangeLog, "keep", after),
    "the batch is about to be taken": (ViewBatches, "_took", before),
    "the files of a view are shared": (PendingChanges, "took_directly", before),
    "the batch is about to commit": (PendingChanges, "took_directly", after),
    "the batch is committed": (ViewBatches, "_took", after),
    "the change log is trimmed": (ChangeLog, "trim", after),
    "one of three readers has answered": (Queries, "finish", after_one_answer),
    "all batches are committed": (PendingChanges, "answered", before),
    "the answer is about to be noted": (PendingChanges, "answered", after),
    "the answer is noted": (spark_runner, "sweep", before),
    "old change sets are swept": (spark_runner, "sweep", after),
}


ON_CONNECT = [
    "the query is about to take it",
    "the batch has run",
    "the batch is in the change log",
    "the batch is about to be taken",
    "the files of a view are shared",
    "the batch is about to commit",
    "the batch is committed",
    "the change log is trimmed",
    "all batches are committed",
    "the answer is about to be noted",
]
"""On Spark Connect a batch that is in the change log is committed before it is taken."""


@pytest.mark.parametrize("step", STEPS)
def test_each_step_is_one_of_the_program(step):
    owner, name, _ = STEPS[step]
    assert callable(getattr(owner, name))


@pytest.mark.slow_but(
    "the file is written",
    "the flush is committed",
    "the change set lies",
    "the batch is committed",
)
@pytest.mark.parametrize("step", STEPS)
def test_a_kill_between_two_steps_loses_nothing_and_counts_nothing_twice(tmp_path: Path, monkeypatch, small_parts, step) -> None:
    killed_at(step, tmp_path, monkeypatch)


@pytest.mark.slow_but("the batch is in")
@pytest.mark.parametrize("step", ON_CONNECT)
def test_nor_does_a_kill_of_a_client_of_spark_connect(tmp_path: Path, monkeypatch, small_parts, step) -> None:
    """The next session is one of Spark Connect, or a classic one."""
    with on_connect():
        killed_at(step, tmp_path / "connect", monkeypatch)
    killed_at(step, tmp_path / "classic", monkeypatch, first=on_connect)


def killed_at(step: str, folder: Path, monkeypatch, first: Callable[[], AbstractContextManager[None]] = nullcontext) -> None:
    """Kill a session at a step, and go on in others with the folder as it was then.

    What the session does behind the kill, such as a roll-back, is undone. ``first`` is around the first session.
    """
    work, saved = folder / "work", folder / "saved"
    store, (owner, name, when) = str(work / "views.duckdb"), STEPS[step]
    with first():
        session = Session(NO_SPARK, store)
        define(session)
        session.run(f"{CHANGES[0]}; FLUSH")
        session.run(CHANGES[1])
        with monkeypatch.context() as patched:

            def kill(self: KilledError) -> None:
                if not saved.exists():
                    shutil.copytree(work, saved)

            patched.setattr(KilledError, "__init__", kill)
            patched.setattr(owner, name, when(getattr(owner, name)))
            with pytest.raises(KilledError):
                session.run("FLUSH")
            session.close()
    shutil.rmtree(work)
    saved.rename(work)

    with Session(NO_SPARK, store) as session:
        session.run("FLUSH")
        assert held(session) == expected(CHANGES[:2])
        session.run(f"{CHANGES[2]}; FLUSH")
        assert held(session) == expected(CHANGES)
    with Session(NO_SPARK, store) as session:
        session.run("FLUSH")
        assert held(session) == expected(CHANGES)
        assert unnamed(session, work / "views.duckdb.streams") == set()


def test_a_statement_that_is_rolled_back_leaves_no_file(tmp_path: Path, monkeypatch) -> None:
    store = tmp_path / "views.duckdb"
    streams = Path(f"{store}.streams")
    with Session(NO_SPARK, str(store)) as session:
        define(session)
        session.run(f"{CHANGES[0]}; FLUSH")
        files = set(inodes(streams))

        def failing(*_: object) -> None:
            raise SqlRunError("no room")

        with monkeypatch.context() as patched:
            patched.setattr(StoredChanges, "end_of_tables", failing)
            for statement in ("FLUSH", "CREATE MATERIALIZED VIEW ids AS SELECT id FROM t"):
                with pytest.raises(SqlRunError, match="no room"):
                    session.run(f"{CHANGES[1]}; {statement}" if statement == "FLUSH" else statement)
                assert set(inodes(streams)) == files
        session.run("FLUSH")
        assert held(session) == expected(CHANGES[:2])


@pytest.mark.parametrize("share", [0, 0.5, 0.9])
def test_a_truncated_file_is_no_mistake_of_ours_but_named_with_the_way_out(tmp_path: Path, share: float) -> None:
    names = {"inbox": "2.parquet", "received": "t.parquet", "log": "part-00000.parquet"}
    paths = {kind: tmp_path / kind / "inbox" / name for kind, name in names.items()}
    rows = pa.table({"id": list(range(100))})
    log = ChangeLog(tmp_path / "view" / "changes")
    outcome = log.folder / f"{0:012}" / "_outcome.json"
    for path in paths.values():
        change_log.write_shared([rows], [path])
    log.keep(0, json.dumps({"before": {}, "after": {}}), [])
    whole = paths["received"]
    reads: dict[Path, Callable[[], object]] = {
        paths["inbox"]: lambda: named_in(paths["inbox"].parent),
        paths["log"]: lambda: list(held_in(paths["log"])),
        whole: lambda: ChangeFile("t", whole.name, {}).parts(whole.parent),
        outcome: lambda: log.outcome(0),
    }
    for path, read in reads.items():
        read()
        os.truncate(path, int(path.stat().st_size * share))
        with pytest.raises(UnreadableStateError, match=rf"{re.escape(str(path))}.*(?s:.*)Restore the store.* or DROP the view"):
            read()


def test_a_session_names_the_truncated_file_of_its_inbox(tmp_path: Path) -> None:
    store = tmp_path / "views.duckdb"
    with Session(NO_SPARK, str(store)) as session:
        define(session)
        session.run(f"{CHANGES[0]}; FLUSH")
    damaged = min(Path(f"{store}.streams").glob("totals-*/inbox/*.parquet"))
    os.truncate(damaged, damaged.stat().st_size // 2)
    with pytest.raises(UnreadableStateError, match=re.escape(str(damaged))):
        Session(NO_SPARK, str(store))


def test_values_of_every_type_arrive_as_they_are(small_parts) -> None:
    columns = {
        "b": ("boolean", "true"),
        "i": ("bigint", "-9223372036854775808"),
        "n": ("numeric", "12345678901234567890.123456789"),
        "r": ("real", "0.1"),
        "d": ("double precision", "'-infinity'"),
        "x": ("text", "'a\x01é'"),
        "y": ("bytea", "'\\x00ff'"),
        "day": ("date", "'infinity'"),
        "clock": ("time", "'23:59:59.999999'"),
        "at": ("timestamp", "'294246-12-31 23:59:59.999999'"),
        "zoned": ("timestamptz", "'-infinity'"),
        "span": ("interval", "'1 month -2 days 0.000001 seconds'"),
        "list": ("int[]", "ARRAY[1, NULL, 3]"),
        "j": ("jsonb", """'{"a": [1, null]}'"""),
    }
    names = ", ".join(columns)
    with Session(NO_SPARK) as spread, Session() as embedded:
        for session in (spread, embedded):
            session.run(f"CREATE TABLE e ({', '.join(f'{name} {kind}' for name, (kind, _) in columns.items())})")
            session.run(f"CREATE MATERIALIZED VIEW v AS SELECT {names} FROM e")
            for _ in range(3):
                session.run(f"INSERT INTO e VALUES ({', '.join(value for _, value in columns.values())})")
            session.run(f"INSERT INTO e VALUES ({', '.join('NULL' for _ in columns)}); FLUSH")
            session.run(f"CREATE MATERIALIZED VIEW later AS SELECT {names} FROM e")
        for view in ("v", "later"):
            rows = sorted(spread.query(f"SELECT * FROM {view}").text_rows(), key=repr)
            assert rows == sorted(embedded.query(f"SELECT * FROM {view}").text_rows(), key=repr)
            assert len(rows) == 4


def test_a_batch_without_changes_is_no_change_set_for_a_view_of_that_view() -> None:
    with Session(NO_SPARK) as session:
        session.run("CREATE TABLE t (v int); CREATE MATERIALIZED VIEW large AS SELECT v FROM t WHERE v > 5")
        session.run("CREATE MATERIALIZED VIEW total AS SELECT sum(v) AS s FROM large")
        session.run("INSERT INTO t VALUES (1), (7); FLUSH; INSERT INTO t VALUES (2); FLUSH")
        assert session.query("SELECT s FROM total").rows() == [(7,)]
