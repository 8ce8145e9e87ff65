"""Groups over rows that stay, folded batch by batch, equal what DuckDB answers on all rows; state behind the watermark goes."""

from __future__ import annotations

import random

import duckdb
import pytest

from tests.sql.in_process import spread_session
from windowpane.sql import Session

__all__ = ["spread_session"]

CALLS = (
    "count(*) AS a, count(v) AS b, sum(v) AS c, min(v) AS d, max(f) AS e, sum(f) AS h, avg(f) AS i, "
    "max(v) FILTER (WHERE f > 2) AS j, min(s) AS l, sum(v) FILTER (WHERE v > 3) AS m"
)
QUERIES = (f"SELECT k, {CALLS} FROM t GROUP BY k", f"SELECT {CALLS} FROM t", "SELECT DISTINCT k, v FROM t WHERE v IS NOT NULL")


def row(rng: random.Random) -> str:
    cells = (rng.choice("123"), rng.randint(-5, 9), rng.randint(0, 20) / 4, rng.choice(["'x'", "'y'", "'é'"]))
    return f"({', '.join('NULL' if rng.random() < 0.2 else str(cell) for cell in cells)})"


def check(session: Session, seed: int) -> None:
    rng = random.Random(seed)
    columns = "k int, v int, f double precision, s text"
    session.run(f"CREATE TABLE t ({columns}) APPEND ONLY")
    with duckdb.connect() as oracle:
        oracle.execute(f"CREATE TABLE t ({columns})")
        for number, query in enumerate(QUERIES):
            session.run(f"CREATE MATERIALIZED VIEW mv{number} AS {query}")
        for _ in range(4):
            rows = ", ".join(row(rng) for _ in range(rng.randint(1, 6)))
            session.run(f"INSERT INTO t VALUES {rows}; FLUSH")
            oracle.execute(f"INSERT INTO t VALUES {rows}")
            for number, query in enumerate(QUERIES):
                got = sorted(session.query(f"SELECT * FROM mv{number}").rows(), key=repr)
                assert got == sorted(oracle.execute(query).fetchall(), key=repr), f"seed {seed}: {query}"


@pytest.mark.parametrize("seed", range(2))
def test_groups_of_rows_that_stay(seed: int) -> None:
    with Session(":memory:") as session:
        check(session, seed)


def test_groups_of_rows_that_stay_spread_over_buckets(spread_session: Session) -> None:
    check(spread_session, 7)


@pytest.mark.parametrize(("call", "stored", "results"), [("sum(v)", [1], [6, 7]), ("count(DISTINCT v)", [1, 2], [2, 3])])
def test_no_rows_are_stored_and_groups_with_their_values_expire(call: str, stored: list[int], results: list[int]) -> None:
    """``stored``: the group of the open window, and its distinct values."""
    with Session(":memory:") as session:
        session.run("CREATE TABLE t (at timestamp, v int, WATERMARK FOR at AS at - INTERVAL '1 minute') APPEND ONLY")
        view = f"SELECT window_start, {call} AS n FROM tumble(t, at, INTERVAL '5 minutes') GROUP BY window_start"
        session.run(f"CREATE MATERIALIZED VIEW mv AS {view}")
        for minute in (0, 1, 2, 6):
            session.run(f"INSERT INTO t VALUES ('2024-01-01 10:0{minute}', 1), ('2024-01-01 10:0{minute}', {minute}); FLUSH")
        tables = session._storage.run("SELECT table_name FROM information_schema.tables WHERE table_name LIKE 'mv/%'")
        assert sorted(session._storage.count(f'windowpane_state."{name}"') for (name,) in tables) == stored
        assert sorted(session.query("SELECT n FROM mv").rows()) == [(n,) for n in results]
