"""Random expressions over aggregates, a hundred in one program: Spark makes of them what DuckDB makes of the same text."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from random import Random
from typing import Any

import duckdb
import pytest

import windowpane as wp
from tests.spark.helpers import table

pytestmark = pytest.mark.spark

MANY = 100
AGGREGATES: list[tuple[Callable[[], Any], str]] = [
    (wp.count, "count(*)"),
    (lambda: wp.count("v"), "count(v)"),
    (lambda: wp.sum("v"), "CAST(sum(v) AS BIGINT)"),
    (lambda: wp.min("v"), "min(v)"),
    (lambda: wp.max("x"), "max(x)"),
    (lambda: wp.avg("x"), "avg(x)"),
    (lambda: wp.sum("x"), "sum(x)"),
]
ARITHMETIC = {"+": operator.add, "-": operator.sub, "*": operator.mul}
COMPARED = {"<": operator.lt, ">=": operator.ge, "=": operator.eq}

Drawn = tuple[Any, str]


def number(draw: Random, depth: int) -> Drawn:
    """Return a number as an expression, and as SQL; a divisor is never zero, where settings and engines differ."""
    if depth == 0 or draw.random() < 0.2:
        make, sql = draw.choice(AGGREGATES)
        return make(), sql
    left, left_sql = number(draw, depth - 1)
    sign = draw.choice([*ARITHMETIC, "/", "constant"])
    if sign == "/":
        return left / (wp.count() + 1), f"({left_sql} / (count(*) + 1))"
    if sign == "constant":
        value = draw.randint(-3, 3)
        return left * value + 1, f"({left_sql} * {value} + 1)"
    right, right_sql = number(draw, depth - 1)
    return ARITHMETIC[sign](left, right), f"({left_sql} {sign} {right_sql})"


def expression(draw: Random) -> Drawn:
    left, left_sql = number(draw, 3)
    if draw.random() < 0.75:
        return left + 0, f"({left_sql} + 0)"
    sign, (right, right_sql) = draw.choice(list(COMPARED)), number(draw, 1)
    # Aggregates by themselves are equal where they are the same one, as in a dictionary.
    return COMPARED[sign](left + 0, right), f"({left_sql} + 0 {sign} {right_sql})"


@pytest.mark.slow_but("0")
@pytest.mark.parametrize("seed", range(10))
def test_random_expressions_are_those_of_duckdb(spark: Any, seed: int) -> None:
    draw = Random(seed)
    rows = [
        (
            draw.choice("ab"),
            draw.randint(0, 25),
            draw.choice((None, draw.randint(-9, 9))),
            draw.choice((None, draw.randint(-20, 20) / 4)),
        )
        for _ in range(30)
    ]
    drawn = {f"e{at}": expression(draw) for at in range(MANY)}
    stream = wp.stream(table(spark, rows, "k string, t timestamp, v long, x double"), "t").key_by("k")
    windows = stream.window(wp.TumblingEventTimeWindows.of("10 seconds"))
    result = windows.aggregate(**{name: each for name, (each, _) in drawn.items()})
    found = [row.asDict() for row in result.df.orderBy("k", "window_start").collect()]
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t (k VARCHAR, t BIGINT, v BIGINT, x DOUBLE)")
        connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", rows)
        items = ", ".join(f"{sql} AS {name}" for name, (_, sql) in drawn.items())
        asked = connection.execute(f"SELECT {items} FROM t GROUP BY k, t // 10 ORDER BY k, t // 10")
        expected = [dict(zip(drawn, row, strict=True)) for row in asked.fetchall()]
    assert len(found) == len(expected)
    for name, (_, sql) in drawn.items():
        for mine, theirs in zip(found, expected, strict=True):
            assert _same(mine[name], theirs[name]), f"seed {seed}: {sql}: {mine[name]} and not {theirs[name]}"


def _same(mine: Any, theirs: Any) -> bool:
    if isinstance(mine, float) and theirs is not None:
        return math.isclose(mine, theirs, rel_tol=1e-9, abs_tol=1e-9)
    return bool(mine == theirs) and (mine is None) == (theirs is None)
