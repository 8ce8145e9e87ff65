"""Rows that are the same to the groups of a stage travel as one, with the sum of their weights."""

from __future__ import annotations

import random
from functools import partial
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from tests.examples import seeds
from tests.sql.in_process import NO_SPARK, run_in_process
from windowpane.sql import Session
from windowpane.sql.catalog.entries import ViewInfo
from windowpane.sql.on_spark.rowwise import Rowwise
from windowpane.sql.on_spark.stages import HASH, Stage, cut
from windowpane.sql.streaming.deltas import WEIGHT

COLUMNS = "k int, v int, b boolean, c boolean, ts timestamp"
ROWS = pa.table(
    {
        "k": pa.array([1, 1, 1, 1, 2, 2, None, None], pa.int32()),
        "v": pa.array([1, 2, 3, 4, 5, 6, 7, 8], pa.int32()),
        "b": [True, True, None, False, True, True, None, None],
        "c": [None] * 8,
        "ts": pa.array([0] * 8, pa.timestamp("us")),
        WEIGHT: pa.array([1, 1, 1, 1, 1, -1, 1, 1], pa.int32()),
    }
)


def stage_of(session: Session, query: str) -> Stage:
    """Return the one stage of a view over the table."""
    session.run(f"CREATE TABLE t ({COLUMNS}) APPEND ONLY; CREATE MATERIALIZED VIEW mv AS {query}")
    view = session._catalog.entries["mv"]
    assert isinstance(view, ViewInfo)
    (stage,) = cut(view.node).stages
    return stage


def sent(query: str) -> list[tuple[int, dict[str, object]]]:
    """Return what arrives at a stage of the rows: weights, and the columns that have a value; sorted."""
    with Session(":memory:") as session:
        stage = stage_of(session, query)
        (flow,) = stage.inputs[0]
        given = ROWS.append_column("_row_id", pa.array(range(ROWS.num_rows), pa.int64()))
        (table,) = Rowwise((flow,), stage.place_sql(0))("t", given)
    assert table.column_names == [*(column.id for column in stage.node.inputs[0].columns), WEIGHT, HASH]
    rows = table.drop_columns([HASH]).to_pylist()
    found = [(row.pop(WEIGHT), {name.split("#")[0]: value for name, value in row.items() if value is not None}) for row in rows]
    return sorted(found, key=repr)


def test_counts_need_the_groups_alone() -> None:
    """Of group 2 a row is inserted and deleted."""
    assert sent("SELECT k, count(*) FROM t GROUP BY k") == [(2, {}), (4, {"k": 1})]
    assert sent("SELECT DISTINCT k FROM t") == [(2, {}), (4, {"k": 1})]
    assert sent("SELECT count(*) FROM t") == [(6, {})]


def test_counts_with_filters_need_their_conditions() -> None:
    query = "SELECT k, count(*), count(*) FILTER (WHERE b) AS n FROM t GROUP BY k"
    assert sent(query) == [(1, {"k": 1, "b": False}), (1, {"k": 1}), (2, {"k": 1, "b": True}), (2, {})]


@pytest.mark.parametrize("call", ["sum(v)", "avg(v)", "count(v)", "max(v)", "count(DISTINCT v)", "array_agg(k)", "bool_or(b)"])
def test_rows_of_other_calls_travel_one_by_one(call: str) -> None:
    assert [weight for weight, _ in sent(f"SELECT k, count(*), {call} FROM t GROUP BY k")] == [-1, *[1] * 7]


QUERIES = (
    "SELECT k, count(*) AS n, count(*) FILTER (WHERE b) AS f, count(b) AS b, count(DISTINCT c) AS c FROM t GROUP BY k",
    "SELECT count(*) AS n, count(*) FILTER (WHERE v > 1 AND b) AS f FROM t",
    "SELECT DISTINCT k, ts FROM t",
    "SELECT n, count(*) AS times FROM (SELECT k, ts, count(*) AS n FROM t GROUP BY k, ts) g GROUP BY n",
    "SELECT k, count(*) AS n FROM (SELECT k, ts FROM t WHERE b UNION ALL SELECT v, ts FROM t) u GROUP BY k",
)


@pytest.mark.parametrize("keeps", [pytest.param(True, marks=pytest.mark.slow), False])
@pytest.mark.parametrize("seed", seeds(4))
def test_views_equal_duckdb_after_any_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, keeps: bool) -> None:
    run_in_process(monkeypatch)
    rng = random.Random(seed)
    open_session = partial(Session, NO_SPARK, str(tmp_path / "store.duckdb"))
    oracle, session = duckdb.connect(), open_session()
    oracle.execute(f"CREATE TABLE t (id int, {COLUMNS})")
    session.run(f"CREATE TABLE t (id int, {COLUMNS}) APPEND ONLY" if keeps else f"CREATE TABLE t (id int PRIMARY KEY, {COLUMNS})")
    for number, query in enumerate(QUERIES):
        session.run(f"CREATE MATERIALIZED VIEW mv{number} AS {query}")
    for turn in range(4):
        rows = []
        for number in range(20 * turn, 20 * turn + 20):
            drawn = [rng.choice("012"), rng.choice("0123"), *(rng.choice(["true", "false"]) for _ in "bc")]
            at = f"TIMESTAMP '2024-01-01 10:0{rng.randint(0, 2)}'"
            rows.append(f"({', '.join([str(number), *('NULL' if rng.random() < 0.2 else each for each in [*drawn, at])])})")
        statements = [f"INSERT INTO t VALUES {', '.join(rows)}"]
        if not keeps:
            statements += [f"UPDATE t SET k = 1, b = NOT b WHERE id % 7 = {turn}", f"DELETE FROM t WHERE id % 5 = {turn}"]
        for statement in statements:
            session.run(statement)
            oracle.execute(statement)
        session.run("FLUSH")
        for number, query in enumerate(QUERIES):
            got = sorted(session.query(f"SELECT * FROM mv{number}").rows(), key=repr)
            assert got == sorted(oracle.execute(query).fetchall(), key=repr), query
        if turn == 1:
            session.close()
            session = open_session()
    session.close()
