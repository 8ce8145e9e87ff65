"""Top-N and extremes over rows that may leave: after every flush they are what DuckDB answers on the rows that are there."""

from __future__ import annotations

import random
from pathlib import Path

import duckdb
import pytest

from tests.examples import first
from windowpane.sql import Session

COLUMNS = "id int PRIMARY KEY, k int, v int, f double precision, s text"


def _top(condition: str, call: str = "row_number", order: str = "v DESC, id", partition: str = "PARTITION BY k ") -> str:
    numbered = f"SELECT id, k, v, {call}() OVER ({partition}ORDER BY {order}) AS place FROM t"
    return f"SELECT id, k, v FROM ({numbered}) WHERE {condition}"


QUERIES = (
    _top("place <= 2"),
    _top("place = 1", order="v, id DESC"),
    _top("place BETWEEN 2 AND 3"),
    _top("place <= 2", call="rank", order="v"),
    _top("place <= 2", call="rank", order="s DESC"),
    "SELECT id, k, v FROM (SELECT *, row_number() OVER (PARTITION BY k, s ORDER BY v, id) AS place FROM t) WHERE place <= 1",
    "SELECT id, v FROM t ORDER BY v DESC, id LIMIT 3",
    "SELECT id, v FROM t ORDER BY v, id LIMIT 2 OFFSET 1",
    "SELECT k, max(v) AS a, min(v) AS b, count(*) AS c, sum(v) AS d FROM t GROUP BY k",
    "SELECT k, max(f) FILTER (WHERE v > 2) AS a, min(s) AS b, count(v) FILTER (WHERE f > 1) AS c FROM t GROUP BY k",
    "SELECT max(v) AS a, min(f) AS b, count(*) AS c FROM t",
    "SELECT m, max(k) AS a FROM (SELECT k, max(v) AS m FROM t GROUP BY k) GROUP BY m",
    "SELECT k, max(v) AS a FROM (SELECT k, v, rank() OVER (PARTITION BY k ORDER BY f) AS p FROM t) WHERE p < 3 GROUP BY 1",
    "SELECT id, k, place FROM (SELECT id, k, row_number() OVER (PARTITION BY k ORDER BY v, id) AS place FROM t) WHERE place <= 3",
)


class _Table:
    """A table of the session, and the same of DuckDB."""

    def __init__(self, seed: int) -> None:
        self._draw, self._next = random.Random(seed), 1
        self.oracle = duckdb.connect()
        self.oracle.execute("SET default_null_order = 'postgres'")
        self.oracle.execute(f"CREATE TABLE t ({COLUMNS})")

    def change(self, session: Session) -> None:
        """Change both by a statement."""
        chosen, where = self._draw.random(), f"(id * {self._draw.randint(1, 7)}) % 5 = {self._draw.randrange(5)}"
        if chosen < 0.55:
            rows = ", ".join(self._row() for _ in range(self._draw.randint(1, 5)))
            self._run(session, f"INSERT INTO t VALUES {rows}")
        elif chosen < 0.8:
            values = (("v", self._draw.randrange(8)), ("k", self._draw.randrange(3)), ("f", "NULL"), ("v", "NULL"))
            column, value = self._draw.choice(values)
            self._run(session, f"UPDATE t SET {column} = {value} WHERE {where}")
        elif chosen < 0.98:
            self._run(session, f"DELETE FROM t WHERE {where}")
        else:
            self._run(session, "DELETE FROM t")

    def _row(self) -> str:
        draw, self._next = self._draw, self._next + 1
        cells = (
            draw.randrange(3),
            draw.randrange(8),
            draw.choice(["0", "-0.0", "1.5", "2.5"]),
            draw.choice(["'x'", "'y'", "''"]),
        )
        return f"({self._next}, {', '.join('NULL' if draw.random() < 0.15 else str(cell) for cell in cells)})"

    def _run(self, session: Session, statement: str) -> None:
        session.run(statement)
        self.oracle.execute(statement)

    def check(self, session: Session, where: str) -> None:
        """Compare every view."""
        for number, query in enumerate(QUERIES):
            got = sorted(session.query(f"SELECT * FROM mv{number}").rows(), key=repr)
            expected = sorted(self.oracle.execute(query).fetchall(), key=repr)
            assert _plain(got) == _plain(expected), f"{where}: {query}"


def _plain(rows: list[tuple[object, ...]]) -> list[tuple[object, ...]]:
    """Return rows with one zero for both."""
    return sorted((tuple(cell + 0.0 if isinstance(cell, float) else cell for cell in row) for row in rows), key=repr)


@pytest.mark.slow_but("0")
@pytest.mark.parametrize("seed", range(6))
def test_views_equal_duckdb_after_every_flush(tmp_path: Path, seed: int) -> None:
    path, table, draw = str(tmp_path / "store.duckdb"), _Table(seed), random.Random(seed)
    session = Session(path)
    session.run(f"CREATE TABLE t ({COLUMNS})")
    early = draw.random() < 0.5
    if not early:
        for _ in range(4):
            table.change(session)
    for number, query in enumerate(QUERIES):
        session.run(f"CREATE MATERIALIZED VIEW mv{number} AS {query}")
    for flush in range(first(8) or 12):
        for _ in range(draw.randint(1, 3)):
            table.change(session)
        session.run("FLUSH")
        table.check(session, f"seed {seed}, flush {flush}")
        if flush % 4 == 3:
            session.close()
            session = Session(path)
    session.close()
