"""Random SQL from a small grammar: after every flush each materialized view equals what DuckDB answers on the same tables.

DuckDB gets the query as it is written, so orders name where NULLs stand and OVER windows their frames: the defaults differ.
"""

from __future__ import annotations

import random

import duckdb
import pytest

from tests.sql.in_process import spread_session
from windowpane.sql import Session

__all__ = ["spread_session"]

TABLES = {"a": ("id", "g", "h", "v"), "b": ("id", "g", "w")}
FRAMES = (
    "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
    "ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING",
    "ROWS BETWEEN 3 PRECEDING AND 1 PRECEDING",
    "ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
    "ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE CURRENT ROW",
    "GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW",
    "RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
)


class Grammar:
    """Makes queries over the tables."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def query(self) -> str:
        return self.rng.choice(
            [self.filtered, self.grouped, self.over, self.top, self.joined, self.united, self.nested, self.tied, self.valued]
        )()

    def number(self, *columns: str) -> str:
        column = self.rng.choice(columns)
        return self.rng.choice([column, f"{column} + 1", f"{column} * 2 - g", f"coalesce({column}, 0)", f"-{column}"])

    def condition(self) -> str:
        rng = self.rng
        return rng.choice(
            [
                f"v > {rng.randint(0, 9)}",
                "h IS NULL",
                "g IN (1, 2)",
                f"v % 2 = 0 OR g = {rng.randint(0, 3)}",
                "NOT (v <= h)",
                "TRUE",
            ]
        )

    def filtered(self) -> str:
        return f"SELECT id, {self.number('v', 'h')} AS x FROM a WHERE {self.condition()}"

    def grouped(self) -> str:
        keys = self.rng.choice(["g", "g, h", "v % 3", "GROUPING SETS ((g, h), (g), h)"])
        calls = self.rng.sample(
            ["count(*)", "count(h)", "sum(v)", "min(h)", "max(v)", "count(DISTINCT v)", "sum(v) FILTER (WHERE h > 4)"], 3
        )
        having = self.rng.choice(["", " HAVING count(*) > 1"])
        named = ", ".join(f"{call} AS c{index}" for index, call in enumerate(calls))
        return f"SELECT {named} FROM a WHERE {self.condition()} GROUP BY {keys}{having}"

    def window(self) -> str:
        order = self.rng.choice(["v ASC NULLS LAST, id ASC NULLS LAST", "v DESC NULLS FIRST, id DESC NULLS LAST"])
        return f"PARTITION BY {self.rng.choice(['g', 'g, h', 'g + 1'])} ORDER BY {order}"

    def over(self) -> str:
        calls = [
            "row_number() OVER ({w})",
            "rank() OVER ({w})",
            "dense_rank() OVER ({w})",
            "lag(v, 2) OVER ({w})",
            "lead(h) OVER ({w})",
            "sum(v) OVER ({w} {f})",
            "count(h) OVER ({w} {f})",
            "max(v) OVER ({w} {f})",
            "first_value(v) OVER ({w} {f})",
        ]
        chosen = [call.format(w=self.window(), f=self.rng.choice(FRAMES)) for call in self.rng.sample(calls, 3)]
        named = ", ".join(f"{call} AS c{index}" for index, call in enumerate(chosen))
        return f"SELECT id, {named} FROM a WHERE {self.condition()}"

    def top(self) -> str:
        low = self.rng.randint(1, 2)
        number = f"row_number() OVER ({self.window()}) AS n"
        return f"SELECT id, v, n FROM (SELECT *, {number} FROM a) AS t WHERE n >= {low} AND n <= {low + 1}"

    def joined(self) -> str:
        kind = self.rng.choice(["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"])
        more = self.rng.choice(["", " AND a.v < b.w"])
        return f"SELECT a.id AS i, b.id AS j, v, w FROM a {kind} b ON a.g = b.g{more}"

    def united(self) -> str:
        operation = self.rng.choice(["UNION ALL", "UNION", "EXCEPT", "INTERSECT"])
        return f"SELECT g, v FROM a {operation} SELECT g, w FROM b"

    def nested(self) -> str:
        inner = "SELECT g, sum(v) AS s, count(*) AS n FROM a GROUP BY g"
        return f"SELECT b.id, s, n FROM ({inner}) AS q JOIN b ON b.g = q.g WHERE n > {self.rng.randint(0, 2)}"

    def tied(self) -> str:
        tie = self.rng.choice(["b.g = a.g", "b.g = a.g AND b.w > a.v", "b.g = a.g + 1", "b.w > 3"])
        condition = self.rng.choice(["EXISTS (SELECT 1 FROM b WHERE {tie})", "{x} IN (SELECT w FROM b WHERE {tie})"])
        negated = self.rng.choice(["", "NOT "])
        return f"SELECT id, v FROM a WHERE {negated}{condition.format(tie=tie, x=self.number('v', 'h'))} AND ({self.condition()})"

    def valued(self) -> str:
        tie = self.rng.choice(["b.g = a.g", "b.w = a.v", "b.w > 4"])
        value = self.rng.choice(["count(*)", "sum(w)", "max(w) + count(w)", "min(id)"])
        other = self.rng.choice(["EXISTS (SELECT 1 FROM b WHERE {tie})", "v IN (SELECT w FROM b WHERE {tie})"]).format(tie=tie)
        return f"SELECT id, (SELECT {value} FROM b WHERE {tie}) AS x, NOT {other} AS y FROM a WHERE {other} OR v > 4"


def change(rng: random.Random, keys: dict[str, list[int]]) -> str:
    """Return a statement that changes a table, in words both engines know."""
    table = rng.choice(list(TABLES))
    known, columns = keys[table], TABLES[table]
    what = rng.random()
    if known and what < 0.2:
        gone = rng.choice(known)
        known.remove(gone)
        return f"DELETE FROM {table} WHERE id = {gone}"
    if known and what < 0.5:
        column = rng.choice(columns[1:])
        return f"UPDATE {table} SET {column} = {value(rng)} WHERE id = {rng.choice(known)}"
    rows = []
    for _ in range(rng.randint(1, 4)):
        known.append(max(known, default=0) + 1)
        rows.append(f"({', '.join([str(known[-1]), str(rng.randint(0, 3)), *(value(rng) for _ in columns[2:])])})")
    return f"INSERT INTO {table} VALUES {', '.join(rows)}"


def value(rng: random.Random) -> str:
    return "NULL" if rng.random() < 0.15 else str(rng.randint(0, 9))


def rows(cells) -> list[tuple]:
    return sorted(cells, key=repr)


@pytest.mark.parametrize("seed", range(4))
def test_views_equal_duckdb_after_every_flush(seed: int) -> None:
    with Session(":memory:") as session:
        check(session, seed)


@pytest.mark.parametrize("seed", range(100, 103))
def test_views_spread_over_buckets_equal_duckdb_after_every_flush(spread_session: Session, seed: int) -> None:
    check(spread_session, seed)


def check(session: Session, seed: int) -> None:
    rng = random.Random(seed)
    queries = [Grammar(rng).query() for _ in range(6)]
    keys: dict[str, list[int]] = {name: [] for name in TABLES}
    with duckdb.connect() as oracle:
        for name, columns in TABLES.items():
            declared = ", ".join(f"{column} int" for column in columns[1:])
            session.run(f"CREATE TABLE {name} (id int PRIMARY KEY, {declared})")
            oracle.execute(f"CREATE TABLE {name} (id int, {declared})")
        for number, query in enumerate(queries):
            session.run(f"CREATE MATERIALIZED VIEW mv{number} AS {query}")
        for _ in range(4):
            for _ in range(rng.randint(1, 4)):
                statement = change(rng, keys)
                session.run(statement)
                oracle.execute(statement)
            session.run("FLUSH")
            for number, query in enumerate(queries):
                got = rows(session.query(f"SELECT * FROM mv{number}").rows())
                asked = rows(session.query(query).rows())
                expected = rows(oracle.execute(query).fetchall())
                assert got == expected, f"seed {seed}: {query}"
                assert asked == expected, f"seed {seed}, as a query: {query}"
