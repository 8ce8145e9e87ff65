"""Calls with DISTINCT are folded from the values of groups: they equal DuckDB's on all rows, after any changes and restarts."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from tests.examples import seeds, some
from tests.sql.in_process import NO_SPARK, run_in_process
from windowpane.engines.common.tagged import tagged
from windowpane.engines.protocol import Clock
from windowpane.sql import Session
from windowpane.sql.catalog.entries import ViewInfo
from windowpane.sql.on_spark.change_sets import clock_table
from windowpane.sql.on_spark.node_engine import NodeEngine
from windowpane.sql.on_spark.rowwise import Rowwise
from windowpane.sql.on_spark.stages import cut
from windowpane.sql.streaming.deltas import WEIGHT
from windowpane.state.memory import MemoryBlobStore

COLUMNS = "id int PRIMARY KEY, k int, ts timestamp, v int, w bigint, p numeric(12, 3), s text, b boolean"
COUNTS = (
    "count(DISTINCT v) AS a, count(DISTINCT v) FILTER (WHERE w > 2) AS b, count(DISTINCT v) FILTER (WHERE b) AS c, "
    "count(DISTINCT s) AS d, count(DISTINCT s) FILTER (WHERE v IS NULL) AS e, count(*) AS n, count(DISTINCT k) AS g, "
    "count(DISTINCT p) AS h, count(DISTINCT ts) AS i, count(DISTINCT b) AS j"
)
SUMS = (
    "sum(DISTINCT v) AS a, sum(DISTINCT w) FILTER (WHERE b) AS b, sum(DISTINCT p) AS c, count(DISTINCT w) AS d, sum(v) AS e, "
    "avg(DISTINCT v) AS f, avg(DISTINCT v) FILTER (WHERE k = 1) AS g, count(v) FILTER (WHERE b) AS h"
)
QUERIES = (
    f"SELECT k, {COUNTS} FROM t GROUP BY k",
    f"SELECT {COUNTS} FROM t",
    f"SELECT s, k, ts, {SUMS} FROM t GROUP BY s, k, ts",
    f"SELECT {SUMS} FROM t",
    f"SELECT ts, {COUNTS} FROM t WHERE k > 0 GROUP BY ts HAVING count(DISTINCT v) > 1",
    "SELECT k, min(DISTINCT v) AS a, max(DISTINCT s) AS b, count(DISTINCT v) AS c, min(p) AS d FROM t GROUP BY k",
    "SELECT k, min(DISTINCT v) AS a, max(DISTINCT s) AS b, count(*) AS c FROM t GROUP BY k",
    "SELECT k, string_agg(DISTINCT s, ',' ORDER BY s) AS a, count(DISTINCT s) AS b FROM t GROUP BY k",
    "SELECT k, ts, count(*) AS a, count(*) FILTER (WHERE b) AS c, count(b) AS d, count(DISTINCT b) AS e FROM t GROUP BY k, ts",
    "SELECT s, v, count(DISTINCT k) AS a FROM t GROUP BY GROUPING SETS ((s), (v), ())",
    "SELECT a, count(DISTINCT k) AS n FROM (SELECT k, count(DISTINCT s) AS a FROM t GROUP BY k) q GROUP BY a",
)
"""Groups by each kind of key, on calls of each kind; those that do not fold, too."""


def cells(rng: random.Random) -> list[str]:
    """Return a row without its number: few values, so that rows share them, and NULLs."""
    drawn = (
        rng.choice("0123"),
        f"TIMESTAMP '2024-01-01 10:0{rng.randint(0, 3)}'",
        str(rng.choice([-3, 0, 1, 2, 2**31 - 1])),
        str(rng.choice([-(2**62), 0, 3, 2**62])),
        rng.choice(["0", "1.5", "1.500", "-2", "123456789.125"]),
        rng.choice(["''", "'x'", "'é'", "'x '"]),
        rng.choice(["true", "false"]),
    )
    return ["NULL" if rng.random() < 0.2 else cell for cell in drawn]


class Changes:
    """Random statements on a table; their rows stay if ``keeps``."""

    def __init__(self, rng: random.Random, *, keeps: bool) -> None:
        self._rng, self._keeps, self._next = rng, keeps, 0

    def statement(self) -> str:
        """Return the next one."""
        rng = self._rng
        what = 1.0 if self._keeps or self._next == 0 else rng.random()
        if what > 0.5:
            first, self._next = self._next, self._next + rng.randint(1, 9)
            rows = [f"({', '.join([str(number), *cells(rng)])})" for number in range(first, self._next)]
            return f"INSERT INTO t VALUES {', '.join(rows)}"
        if what > 0.25:
            column = rng.randrange(7)
            name = ("k", "ts", "v", "w", "p", "s", "b")[column]
            return f"UPDATE t SET {name} = {cells(rng)[column]} WHERE {self._some()}"
        return f"DELETE FROM t WHERE {self._some()}"

    def _some(self) -> str:
        rng = self._rng
        return rng.choice(
            [f"id = {rng.randrange(self._next)}", f"id % 3 = {rng.randrange(3)}", f"k = {rng.choice('0123')}", "k IS NULL"]
        )


_KEEPS = [pytest.param(True, marks=pytest.mark.slow), False]


def check(
    open_session: Callable[[], Session], seed: int, *, keeps: bool, oracle: Any = None, queries: Sequence[str] = QUERIES
) -> None:
    """Compare every view with the oracle's result on all rows, DuckDB's if none is given, after every flush."""
    rng = random.Random(seed)
    changes, oracle = Changes(rng, keeps=keeps), oracle or duckdb.connect()
    oracle.execute(f"CREATE TABLE t ({COLUMNS.replace(' PRIMARY KEY', '')})")
    session = open_session()
    session.run(f"CREATE TABLE t ({COLUMNS.replace(' PRIMARY KEY', '') if keeps else COLUMNS}) {'APPEND ONLY' * keeps}")
    for number, query in enumerate(queries):
        session.run(f"CREATE MATERIALIZED VIEW mv{number} AS {query}")
    for turn in range(3):
        for _ in range(rng.randint(1, 4)):
            statement = changes.statement()
            session.run(statement)
            oracle.execute(statement)
        session.run("FLUSH")
        for number, query in enumerate(queries):
            got = shown(session.query(f"SELECT * FROM mv{number}").rows())
            assert got == shown(oracle.execute(query).fetchall()), f"seed {seed}, turn {turn}: {query}"
        if turn % 2:
            session.close()
            session = open_session()
    session.close()
    oracle.close()


def shown(rows: list[tuple[object, ...]]) -> list[list[str]]:
    """Return rows with numbers to ten digits: a mean is a numeric here, and a double in DuckDB."""
    return sorted([value if isinstance(value, str) else f"{_number(value)}" for value in row] for row in rows)


def _number(value: object) -> object:
    try:
        return f"{float(value):.10g}"  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return value


@pytest.mark.parametrize("keeps", _KEEPS)
@pytest.mark.parametrize("seed", seeds(3))
def test_distinct_calls_equal_duckdb(tmp_path: Path, seed: int, keeps: bool) -> None:
    check(partial(Session, store=str(tmp_path / "store.duckdb")), seed, keeps=keeps)


@pytest.mark.parametrize("keeps", _KEEPS)
@pytest.mark.parametrize("seed", seeds(4))
def test_distinct_calls_spread_over_buckets_equal_duckdb(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, keeps: bool
) -> None:
    run_in_process(monkeypatch)
    check(partial(Session, NO_SPARK, str(tmp_path / "store.duckdb")), seed, keeps=keeps, queries=some(QUERIES, 2))


@pytest.mark.parametrize("seed", seeds(2))
def test_distinct_calls_equal_postgresql(tmp_path: Path, postgres_url: str, seed: int) -> None:
    psycopg = pytest.importorskip("psycopg")
    server = psycopg.connect(postgres_url, autocommit=True)
    check(partial(Session, store=str(tmp_path / "store.duckdb")), 100 + seed, keeps=bool(seed), oracle=server)


def test_values_that_are_equal_and_written_differently_count_once() -> None:
    """As in PostgreSQL: 0.0 and -0.0, a day and 24 hours; texts that differ in a blank are two."""
    with Session(":memory:") as session:
        session.run("CREATE TABLE t (id int PRIMARY KEY, f double precision, i interval, s text, j jsonb, a double precision[])")
        calls = ", ".join(f"count(DISTINCT {name}) AS {name}" for name in "fisja")
        session.run(f"CREATE MATERIALIZED VIEW mv AS SELECT {calls} FROM t")
        zero = """0.0, INTERVAL '1 day', 'x', '{"a": 1}', ARRAY[0.0, NULL]"""
        other = """-0.0, INTERVAL '24 hours', 'x ', '{"a": 1.0}', ARRAY[-0.0, NULL]"""
        nan = "'NaN', INTERVAL '1 month', 'x', '[]', ARRAY['NaN'::double precision]"
        for rows, counts in (
            (f"INSERT INTO t VALUES (1, {zero}), (2, {zero}), (3, {nan})", (2, 2, 1, 2, 2)),
            (f"INSERT INTO t VALUES (4, {other}), (5, NULL, NULL, NULL, NULL, NULL), (6, {nan})", (2, 2, 2, 2, 2)),
            ("DELETE FROM t WHERE id < 4", (2, 2, 2, 2, 2)),
            ("DELETE FROM t WHERE id = 4", (1, 1, 1, 1, 1)),
            ("DELETE FROM t WHERE id = 6", (0, 0, 0, 0, 0)),
        ):
            session.run(f"{rows}; FLUSH")
            assert session.query("SELECT * FROM mv").rows() == [counts], rows


def values_kept(session: Session) -> list[int]:
    """Return how many rows each table of the state has that is no table of folded groups."""
    query = "SELECT table_name FROM information_schema.tables WHERE table_name LIKE 'mv/%' ORDER BY 1"
    names = [name for (name,) in session._storage.run(query) if not name.endswith("/folded")]
    return [session._storage.count(f'windowpane_state."{name}"') for name in names]


def test_calls_with_one_argument_share_its_values_and_rows_are_not_kept() -> None:
    with Session(":memory:") as session:
        session.run("CREATE TABLE t (id int PRIMARY KEY, k int, v bigint, s text)")
        calls = "count(DISTINCT v), count(DISTINCT v) FILTER (WHERE k > 0), count(DISTINCT s)"
        session.run(f"CREATE MATERIALIZED VIEW mv AS SELECT k % 2 AS g, {calls} FROM t GROUP BY 1")
        session.run("INSERT INTO t SELECT n, n % 4, n % 6, 'x' FROM generate_series(1, 100) s(n); FLUSH")
        assert values_kept(session) == [6, 2]
        session.run("DELETE FROM t WHERE v < 3; FLUSH")
        assert values_kept(session) == [3, 2]
        session.run("DELETE FROM t; FLUSH")
        assert values_kept(session) == [0, 0]


class _Written(MemoryBlobStore):
    """Notes the names of blobs that are written."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def put(self, key: str, blob: bytes) -> None:
        self.names.append(key)
        super().put(key, blob)


def test_pages_whose_values_are_known_are_not_written_again() -> None:
    """Of rows that stay: the number of a value that has begun to count stays 1."""
    with Session(":memory:") as session:
        session.run("CREATE TABLE t (k int, s text) APPEND ONLY")
        session.run("CREATE MATERIALIZED VIEW mv AS SELECT k, count(*) AS n, count(DISTINCT s) AS c FROM t GROUP BY k")
        view = session._catalog.entries["mv"]
        assert isinstance(view, ViewInfo)
        (stage,) = cut(view.node).stages
    (flow,) = stage.inputs[0]
    store, engine = _Written(), NodeEngine([(0, stage)])
    for texts, found, pages in (
        ("ab", {(1, 2, 2)}, {"0", "1", "kept"}),
        ("ba", {(1, 4, 2)}, {"0"}),
        ("bc", {(1, 6, 3)}, {"0", "1"}),
    ):
        kinds = {"k": pa.int32(), "s": pa.string(), "_row_id": pa.int64(), WEIGHT: pa.int32()}
        values = [[1] * 2, list(texts), [0, 1], [1] * 2]
        rows = pa.table([pa.array(each, kind) for each, kind in zip(values, kinds.values(), strict=True)], list(kinds))
        (placed,) = Rowwise((flow,), stage.place_sql(0))("t", rows)
        store.names.clear()
        output = engine.run(store, [tagged(placed, input="0"), clock_table({}, initial=texts == "ab")], Clock(0, 0))
        results = [row for _, table in output.tables for row in zip(*table.to_pydict().values(), strict=True)]
        assert {row[:-1] for row in results if row[-1:] == (1,)} == found
        assert {name.partition(".")[0] for name in store.names} == pages
