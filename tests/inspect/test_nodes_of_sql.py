"""Looking into nodes of SQL: figures are compared with the state it is of, with DuckDB, and with what a flush then removes."""

from __future__ import annotations

import datetime as dt
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

import windowpane as wp
from tests.golden import stores_on_spark
from tests.sql.in_process import CHECKPOINTS, NO_SPARK, run_in_process
from tests.sql.windowed_views import TABLES, VIEWS, create
from windowpane.errors import InvalidSpecError, UnreadableStateError, present
from windowpane.inspect.inspection import Inspection
from windowpane.inspect.nodes import buckets_of_nodes
from windowpane.sql import Session

PROBE = 77  # the key of rows that only move the watermark
KINDS = (
    *("folded", "recomputed", "groups_of_groups", "top_n", "deduplicated", "sessions", "groups_of_sessions", "intersection"),
    *("with_partner", "window_join_inner", "window_join_left", "interval_join_with_more_full"),
)
MOVED_BY_PROBES = ("top_n", "groups_of_sessions")  # they push rows out of a top, and are in sessions of all keys
DELAY = dt.timedelta(seconds=30)
START = dt.datetime(2024, 1, 1)


def rows_of(found: Inspection) -> list[tuple[str, dt.datetime | None, str, tuple[Any, ...]]]:
    """Return what is held, without rows of the probe: where, until when in both forms, and the values."""
    held = []
    for row in found.contents().to_pylist():
        values = tuple(
            str(value) for name, value in row.items() if name not in ("operator", "bucket", "holds", "leaves", "stays")
        )
        if str(PROBE) not in values:
            leaves = None if row["leaves"] is None else row["leaves"].replace(tzinfo=None)
            held.append((row["holds"], leaves, row["stays"], values))
    return held


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    draw = random.Random(5)
    with Session(":memory:") as session:
        session.run(TABLES)
        for name in KINDS:
            create(session, name, VIEWS[name])
        for table in "ab":
            rows = [
                f"({draw.choice([0, 1, 2, 'NULL'])}, timestamp '{START + dt.timedelta(seconds=draw.randrange(150))}', {n % 4})"
                for n in range(14)
            ]
            session.run(f"INSERT INTO {table} VALUES {', '.join(rows)}")
        session.run("FLUSH")
        yield session


def test_nodes_count_what_their_tables_hold(session: Session) -> None:
    found = wp.inspect(session, 10_000)
    shown, sizes = Counter[str](), Counter[str]()
    for row in found.nodes.to_pylist():
        shown[row["holds"].partition(",")[0]] += row["rows"]
    for row in found.state.to_pylist():
        sizes[row["structure"].partition(",")[0]] += row["entries"]
    query = (
        "SELECT table_name FROM information_schema.tables WHERE table_schema = 'windowpane_state' AND contains(table_name, '/')"
    )
    expected = Counter[str]()
    for (name,) in session._storage.run(query):
        expected[name.partition("/")[0]] += session._storage.count(f'windowpane_state."{name}"')
    assert dict(shown) == dict(sizes) == {name: count for name, count in expected.items() if count}
    assert set(found.query["engine"].to_pylist()) == {"nodes of SQL"}
    assert sum(found.nodes["bytes"].to_pylist()) <= sum(found.state["bytes"].to_pylist())


def test_rows_go_when_it_is_said(session: Session) -> None:
    """Of every kind of view: a watermark just below the instant that is shown keeps a row, one at it removes it."""
    before = rows_of(wp.inspect(session, 10_000))
    ends = sorted({leaves for _, leaves, _, _ in before if leaves is not None})
    assert len(ends) > 20
    for end in (ends[len(ends) // 3], ends[-8]):
        for watermark in (end - dt.timedelta(microseconds=1), end):
            for table in "ab":
                session.run(f"INSERT INTO {table} VALUES ({PROBE}, timestamp '{watermark + DELAY}', 1)")
            session.run("FLUSH")
            found = rows_of(wp.inspect(session, 10_000))
            after = Counter((holds, values) for holds, _, _, values in found)
            for holds, leaves, stays, values in before:
                if any(view in holds for view in MOVED_BY_PROBES):
                    continue
                if leaves is None or leaves > watermark:
                    assert after[holds, values], f"{holds} {values} is gone under {watermark}, and was to stay {stays}"
                elif "no partner" not in stays:
                    assert not after[holds, values], f"{holds} {values} is there under {watermark}, and was to stay {stays}"
            before = found


def test_rows_of_a_window_join_go_with_the_window(session: Session) -> None:
    """By the rule, not by the code: no row of a window that has ended can come under a watermark above its start's minute."""
    for row in wp.inspect(session, 10_000).contents().to_pylist():
        if row["holds"].startswith("window_join_inner, Join") and row["leaves"] is not None and row["window_start"] is not None:
            minute = row["at"].replace(second=0, microsecond=0)
            assert row["leaves"].replace(tzinfo=None) == minute + dt.timedelta(minutes=1)


def test_groups_show_what_they_have_added_up() -> None:
    rows = [(n % 3, n % 5, n % 2 == 0) for n in range(20)]
    with Session(":memory:") as session:
        session.run("CREATE TABLE t (k int, v int, f boolean)")
        calls = "count(*) AS n, sum(v) AS s, count(DISTINCT v) AS d"
        session.run(f"CREATE MATERIALIZED VIEW m AS SELECT k, {calls} FROM t GROUP BY k")
        session.run(f"INSERT INTO t VALUES {', '.join(map(str, rows))}; FLUSH")
        found = wp.inspect(session)
        groups = [row for row in found.contents().to_pylist() if row["holds"] == "m, Aggregate: groups"]
        given = duckdb.sql(f"SELECT * FROM (VALUES {', '.join(map(str, rows))}) AS t(k, v, f)")  # noqa: F841 (DuckDB reads it)
        query = "SELECT k, count(*), count(*), sum(v), count(DISTINCT v) FROM given GROUP BY k ORDER BY k"
        expected = present(duckdb.sql(query), "it is a query").fetchall()
        names = ("k", "rows", "count(*)", "sum(v)", "count(DISTINCT v)")
        assert sorted(tuple(row[name] for name in names) for row in groups) == expected
        assert {row["stays"] for row in groups} == {"until its rows are deleted"}
        (one,) = [row for row in found.contents(key=1).to_pylist() if row["holds"] == "m, Aggregate: groups"]
        assert one == next(row for row in groups if row["k"] == 1)
        values = [row for row in found.contents(key={"k": 1}).to_pylist() if row["holds"].endswith("distinct values of v")]
        assert len(values) == expected[1][4]
        with pytest.raises(InvalidSpecError, match="has other columns than those of m, Aggregate: groups: k"):
            found.contents(key=(1, 2))
        with pytest.raises(InvalidSpecError, match="holds rows, and no windows"):
            found.contents(window=(0, 1))


def test_what_no_watermark_ends_stays_without_end() -> None:
    with Session(":memory:") as session:
        session.run("CREATE TABLE t (k int, v int) APPEND ONLY")
        session.run("CREATE MATERIALIZED VIEW m AS SELECT l.k, r.v FROM t AS l JOIN t AS r ON l.v = r.k")
        session.run("INSERT INTO t VALUES (1, 2), (2, 3), (NULL, 1); FLUSH")
        rows = wp.inspect(session).nodes.to_pylist()
        assert {row["stays"] for row in rows} == {"without end"}
        assert {row["leaves"] for row in rows} == {None}
        sides = Counter((row["holds"], row["key"]) for row in rows)
        assert sides["m, Join: rows of the left side", "2"] == sides["m, Join: rows of the right side", "NULL"] == 1


def test_other_nodes_say_what_ends_their_rows() -> None:
    """The top of a partition, rows that the clock ends, rows that wait for a close, and OVER and patterns as programs."""
    clock = [dt.datetime(2024, 1, 1, 12, tzinfo=dt.UTC)]
    with Session(":memory:", clock=lambda: clock[0]) as session:
        session.run(
            "CREATE TABLE t (k int, at timestamptz, v int, WATERMARK FOR at AS at) APPEND ONLY; CREATE TABLE u (k int, v int)"
        )
        place = "SELECT *, row_number() OVER (PARTITION BY k ORDER BY v) AS n FROM"
        session.run(f"CREATE MATERIALIZED VIEW short AS SELECT k, v FROM ({place} t) WHERE n <= 2")
        session.run(f"CREATE MATERIALIZED VIEW tops AS SELECT k, v FROM ({place} u) WHERE n <= 1")
        session.run("CREATE MATERIALIZED VIEW recent AS SELECT * FROM t WHERE at > now() - INTERVAL '1 hour'")
        session.run("CREATE MATERIALIZED VIEW befores AS SELECT k, at, lag(v) OVER (PARTITION BY k ORDER BY at, v) AS b FROM t")
        session.run(
            "INSERT INTO t VALUES (1, '2024-01-01 11:30+00', 5), (1, '2024-01-01 11:40+00', 4), (1, '2024-01-01 11:50+00', 3);"
            "INSERT INTO u VALUES (1, 1), (1, 2); FLUSH"
        )
        found = wp.inspect(session)
        held = {(row["holds"], row["rows"], row["stays"]) for row in found.nodes.to_pylist()}
        assert ("short, TopN: the top of each partition", 2, "until rows are beyond it") in held
        assert {
            ("tops, TopN: rows", 2, "until it is deleted"),
            ("tops, TopN: the top of each partition", 1, "until it is deleted"),
        } <= held
        recent = [row for row in found.contents().to_pylist() if row["holds"].startswith("recent")]
        for row in recent:
            assert row["leaves"] == row["at"] + dt.timedelta(hours=1, microseconds=1)
            assert row["stays"].startswith("until the clock reaches 2024-01-01T12:")
        assert len(recent) == 3
        clock[0] = dt.datetime(2024, 1, 1, 12, 40, 0, 1, tzinfo=dt.UTC)
        session.run("FLUSH")
        left = [row["at"] for row in wp.inspect(session).contents().to_pylist() if row["holds"].startswith("recent")]
        assert left == [dt.datetime(2024, 1, 1, 11, 50, tzinfo=dt.UTC)]
        assert [(row["holds"], row["key"], row["rows"]) for row in found.over.to_pylist()] == [
            ("rows with their results", "1", 3)
        ]


def test_a_store_is_looked_into_where_no_session_has_it(tmp_path: Path) -> None:
    path = tmp_path / "store.duckdb"
    with Session(str(path)) as session:
        session.run("CREATE TABLE t (k int, v int); CREATE MATERIALIZED VIEW m AS SELECT k, sum(v) AS s FROM t GROUP BY k")
        session.run("INSERT INTO t VALUES (1, 2), (1, 3), (2, 4); FLUSH")
        open_rows = wp.inspect(session).contents().to_pylist()
        with pytest.raises(UnreadableStateError, match=r"wp.inspect\(session\)"):
            wp.inspect(path)
    before = path.read_bytes()
    assert wp.inspect(path).contents().to_pylist() == open_rows
    assert {row["k"]: row["sum(v)"] for row in open_rows} == {1: 5, 2: 4}
    assert path.read_bytes() == before


def test_views_that_were_replaced_renamed_or_dropped_hold_what_is_there(tmp_path: Path) -> None:
    path = tmp_path / "store.duckdb"
    with Session(str(path)) as session:
        session.run("CREATE TABLE t (k int, v int); INSERT INTO t VALUES (1, 2), (1, 3), (2, 4)")
        for name in ("m", "gone"):
            session.run(f"CREATE MATERIALIZED VIEW {name} AS SELECT k, sum(v) AS s FROM t GROUP BY k")
            session.run(f"ALTER MATERIALIZED VIEW {name} AS SELECT v % 2 AS k, sum(v) AS s FROM t GROUP BY v % 2")
        session.run("DROP MATERIALIZED VIEW gone; ALTER MATERIALIZED VIEW m RENAME TO n")
    rows = wp.inspect(path).contents().to_pylist()
    assert [(row["holds"].partition(",")[0], row["sum(v)"]) for row in rows] == [("n", 6), ("n", 3)]


def test_views_on_spark_hold_what_the_embedded_ones_do(tmp_path: Path) -> None:
    """The rows of the packed store, which tasks have written, are those of a session without Spark over the same files."""
    stores_on_spark.unpack(tmp_path)
    folders = {path.parent.name.partition("-")[0]: path for path in tmp_path.glob("*.streams/*/checkpoint")}
    (tmp_path / "embedded").mkdir()
    batches = stores_on_spark.random_batches(seed=77, count=4)[: stores_on_spark.SPLIT]
    stores_on_spark.run(None, tmp_path / "embedded", dict(enumerate(batches)))
    embedded = wp.inspect(tmp_path / "embedded" / stores_on_spark.STORE, 10_000)
    expected = Counter((row["holds"], row["key"], row["rows"], row["stays"]) for row in embedded.nodes.to_pylist())
    for view, node, kept in (("counts", "Aggregate", "groups"), ("best", "Join", "rows of the left side"), ("best", "TopN", "")):
        spread = wp.inspect(folders[view], 10_000)
        assert spread.query["engine"].to_pylist()[0] == "nodes of SQL"
        own = [row for row in spread.nodes.to_pylist() if f"{node}: {kept}" in row["holds"]]
        rows = Counter((row["key"], row["rows"]) for row in own)
        assert rows
        alike = [(key, count) for holds, key, count, _ in expected.elements() if holds.startswith(f"{view}, {node}: {kept}")]
        assert node == "TopN" or rows == Counter(alike)
        listed = [row for row in spread.state.to_pylist() if f"{node}: {kept}" in row["structure"]]
        assert sum(row["rows"] for row in own) == sum(row["entries"] for row in listed)
        assert sum(row["bytes"] for row in own) <= sum(row["bytes"] for row in listed)
    with pytest.raises(InvalidSpecError, match=r"run on Spark; look into the checkpoint of one\. .*counts: .*/checkpoint"):
        wp.inspect(tmp_path / stores_on_spark.STORE)
    assert wp.inspect(folders["named"]).watermarks["name"].to_pylist() == ["trades"]
    before = wp.inspect(folders["before"])
    assert before.over.num_rows == len({row[1] for batch in batches for row in batch if row[3] is not None})
    assert {row["stays"] for row in wp.inspect(folders["counts"]).nodes.to_pylist()} == {"without end"}


def test_rows_of_the_right_side_of_a_join_by_arrival_are_seen_on_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the left side are not kept, and distinct values lie behind the inputs."""
    run_in_process(monkeypatch)
    with Session(NO_SPARK) as session:
        session.run("CREATE TABLE p (k int PRIMARY KEY, name varchar); CREATE TABLE t (k int, v int) APPEND ONLY")
        session.run(
            "CREATE MATERIALIZED VIEW j AS SELECT t.k, v, name FROM t JOIN p FOR SYSTEM_TIME AS OF PROCTIME() ON t.k = p.k; "
            "CREATE MATERIALIZED VIEW d AS SELECT k, count(DISTINCT v) AS n FROM t GROUP BY k"
        )
        session.run(
            "INSERT INTO p VALUES (1, 'a'), (2, 'b'), (3, 'c'); FLUSH; INSERT INTO t VALUES (1, 5), (2, 6), (2, 7); FLUSH"
        )
        stores = [store for checkpoint in CHECKPOINTS.values() for store in checkpoint.stores.values()]
    nodes = [present(bucket.node, "no engine runs it") for store in stores for bucket in buckets_of_nodes(0, 0, store)]
    rows = Counter[str]()
    for held in (each for node in nodes for each in node.held()):
        rows[held.holds] += present(held.rows, "it is a node").num_rows
    assert rows == {"Join: rows of the right side": 3, "Aggregate: groups": 2, "Aggregate: distinct values of v": 3}
