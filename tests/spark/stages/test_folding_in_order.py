"""Aggregates that depend on the order of arrival fold before the shuffle on Spark, and give what the order of the file says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import windowpane as wp
from tests.spark.helpers import Feed, run

pytestmark = pytest.mark.spark

KEYS = ("a", "b", "c")
ROWS = 400


def batch(first: int) -> list[tuple[str, int, int]]:
    """Return rows of three keys in two windows, numbered from ``first`` on; their times go to and fro."""
    return [(KEYS[number * 7 % 3], number * 37 % 20, number) for number in range(first, first + ROWS)]


def result_of(feed: Feed, spark: Any) -> wp.Result:
    windowed = wp.stream(feed.stream(spark), "t", "60 seconds").key_by("k").window(wp.TumblingEventTimeWindows.of("10 seconds"))
    latest = wp.arg_max("v", "t")
    return windowed.aggregate(first=wp.first("v"), last=wp.last("v"), values=wp.collect_list("v"), latest=latest)


def expected(rows: list[tuple[str, int, int]]) -> list[tuple[Any, ...]]:
    found = []
    for key in KEYS:
        for start in (0, 10):
            held = [(time, value) for k, time, value in rows if k == key and start <= time < start + 10]
            values = [value for _, value in held]
            last = max(range(len(held)), key=lambda place: (held[place][0], place))
            found.append((key, start, start + 10, values[0], values[-1], values, values[last]))
    return found


def test_the_order_of_arrival_survives_the_fold_and_a_restart(spark: Any, tmp_path: Path) -> None:
    feed = Feed(tmp_path / "in").add(batch(0), batch(ROWS))
    result = result_of(feed, spark)
    assert "on: rows fold before the shuffle" in result.explain()
    assert run(result, checkpoint=tmp_path / "checkpoint").rows() == []
    feed.add(batch(2 * ROWS), [("a", 1000, -1)])
    found = run(result_of(feed, spark), checkpoint=tmp_path / "checkpoint").rows()
    assert found == expected([*batch(0), *batch(ROWS), *batch(2 * ROWS)])
