"""Joins of all kinds equal DuckDB's on the final tables after every flush, whatever mix of changes a flush has."""

from __future__ import annotations

import random

import pytest

from tests.sql.against_duckdb import check

DECLARED = ("CREATE TABLE l (id int PRIMARY KEY, k int, v int)", "CREATE TABLE r (id int PRIMARY KEY, k int, v int)")
KINDS = ("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")
CONDITIONS = ("l.k = r.k", "l.k = r.k AND l.v < r.v", "l.k = r.k AND r.v > 3")


def _queries() -> list[str]:
    pairs = "SELECT l.id AS lid, l.k AS lk, l.v AS lv, r.id AS rid, r.v AS rv FROM l"
    joins = [
        f"{pairs} {kind} r ON {condition}"
        for kind in KINDS
        for condition in CONDITIONS
        if "FULL" not in kind or "<" not in condition
    ]
    partners = [
        f"SELECT id, k, v FROM l WHERE {word} (SELECT 1 FROM r WHERE r.k = l.k AND r.v <> l.v)"
        for word in ("EXISTS", "NOT EXISTS")
    ]
    twice = "SELECT l.id AS a, m.id AS b FROM l JOIN l AS m ON l.k = m.k AND l.id < m.id"
    return [
        *joins,
        *partners,
        twice,
        f"SELECT lk, count(*) AS n, count(rid) AS m FROM ({pairs} LEFT JOIN r ON l.k = r.k) AS q GROUP BY lk",
    ]


def _change(rng: random.Random) -> list[str]:
    table, number = rng.choice("lr"), rng.randrange(12)
    k = rng.choice(["NULL", "1", "1", "2", "3"])
    kind = rng.random()
    if kind < 0.5:
        delete = f"DELETE FROM {table} WHERE id = {number}"
        return [delete, f"INSERT INTO {table} VALUES ({number}, {k}, {rng.randrange(8)})"]
    if kind < 0.75:
        return [f"UPDATE {table} SET k = {k}, v = {rng.randrange(8)} WHERE id % 3 = {number % 3}"]
    return [f"DELETE FROM {table} WHERE id {rng.choice(['=', '>', '<'])} {number}"]


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_all_kinds_through_random_changes(seed: int) -> None:
    rng = random.Random(seed)
    rounds = [[each for _ in range(rng.choice([1, 1, 2, 6])) for each in _change(rng)] for _ in range(6)]
    check(_queries(), DECLARED, rounds)
