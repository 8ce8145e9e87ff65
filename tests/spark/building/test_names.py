"""Columns may be called anything: dots, spaces and backticks in the names of keys, times and values, in every kind of program."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as F

import windowpane as wp
from tests.spark.helpers import Feed, instant, rows, run, table

pytestmark = pytest.mark.spark

NAMES = [("a.b", "c d", "ti.me", "be.at"), ("we`ird", "s.e`l", "t`i.me", "b`.")]
TEN = wp.TumblingEventTimeWindows.of("10 seconds")
EVENTS: list[tuple[Any, ...]] = [("a", 1, 5), ("a", 3, 2), ("b", 12, 7)]
"""Keys, seconds and values."""


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def schema(key: str, value: str, time: str, beat: str | None = None) -> str:
    columns = f"{quoted(key)} string, {quoted(time)} timestamp, {quoted(value)} bigint"
    return columns if beat is None else f"{columns}, {quoted(beat)} boolean"


@pytest.mark.slow_but("a.b-c")
@pytest.mark.parametrize(("key", "value", "time", "beat"), NAMES)
def test_rolling_features_begin_with_a_history(spark: Any, tmp_path: Path, key: str, value: str, time: str, beat: str) -> None:
    live: list[list[tuple[Any, ...]]] = [
        [("a", 31, 2, False)],
        [("b", 33, 4, False), (None, 60, None, True)],
        [(None, 90, None, True)],
    ]
    df = Feed(tmp_path / "in", schema(key, value, time, beat)).add(*live).stream(spark)
    rolling = wp.rolling(df, event_time=time, watermark="0 seconds", heartbeat=beat).by(key)
    features = rolling.over("20 seconds", n=wp.count(), total=wp.sum(value)).hop("5 seconds").emit("each")
    past = table(spark, [("a", 22, 1), ("b", 2, 9)], schema(key, value, time))
    assert run(features, history=past, cut=instant(30)).rows() == [("a", 31, 2, 3), ("b", 33, 1, 4)]


@pytest.mark.parametrize(("key", "value", "time", "beat"), NAMES)
def test_programs_of_static_rows(spark: Any, key: str, value: str, time: str, beat: str) -> None:
    df = table(spark, EVENTS, schema(key, value, time))
    keyed = wp.stream(df, event_time=time).key_by(key)
    totals = keyed.window(TEN).aggregate(**{value: wp.sum(value)})
    assert rows(totals.top(1, by=value).df) == [(0, 10, "a", 7, 1), (10, 20, "b", 7, 1)]
    assert rows(totals.top(1, by=value, per=key).df) == [("a", 0, 10, 7, 1), ("b", 10, 20, 7, 1)]
    assert rows(keyed.deduplicate(within="5 seconds").df) == [("a", 1, 5), ("b", 12, 7)]
    assert rows(keyed.deduplicate(within="5 seconds", keep="last").df) == [("a", 3, 2, "insert"), ("b", 12, 7, "insert")]
    over = wp.over(df, event_time=time, key=time).partition_by(key).order_by(time).select("*", total=wp.sum(value))
    assert rows(over.emit_on_window_close().df) == [("a", 1, 5, 5), ("a", 3, 2, 7), ("b", 12, 7, 7)]
    assert rows(over.emit_on_update().df) == [(*row, "insert") for row in [("a", 1, 5, 5), ("a", 3, 2, 7), ("b", 12, 7, 7)]]
    labels = table(spark, [("a", 4), ("b", 13)], f"{quoted(key)} string, {quoted('at.')} timestamp")
    counted = wp.rolling(df, event_time=time).by(key).over("20 seconds", n=wp.count(), total=wp.sum(value))
    rolling = counted.hop("5 seconds")
    assert rows(rolling.at(labels, time="at.").df) == [("a", 4, 2, 7), ("b", 13, 1, 7)]


@pytest.mark.slow_but("we`ird")
@pytest.mark.parametrize(("key", "value", "time", "beat"), NAMES)
def test_labels_of_a_stream(spark: Any, tmp_path: Path, key: str, value: str, time: str, beat: str) -> None:
    given = Feed(tmp_path / "rows", schema(key, value, time, beat)).add(
        [(*row, False) for row in EVENTS], *[[(None, seconds, None, True)] for seconds in (60, 61)]
    )
    asked = Feed(tmp_path / "labels", f"{quoted(key)} string, {quoted('at.')} timestamp")
    asked.add([("a", 4)], [("b", 13)], [("c", 70)])
    labels = asked.stream(spark).withWatermark("`at.`", "0 seconds")
    rolling = wp.rolling(given.stream(spark), event_time=time, watermark="0 seconds", heartbeat=beat).by(key)
    features = rolling.over("20 seconds", n=wp.count(), total=wp.sum(value)).hop("5 seconds")
    assert run(features.at(labels, time="at.")).rows() == [("a", 4, 2, 7), ("b", 13, 1, 7)]


@pytest.mark.parametrize(("key", "value", "time", "beat"), NAMES)
def test_joins(spark: Any, key: str, value: str, time: str, beat: str) -> None:
    left = wp.stream(table(spark, EVENTS, schema(key, value, time)), event_time=time)
    prices = table(spark, [("a", 2, 10), ("b", 11, 20)], schema(key, "w.x", "at."))
    right = wp.stream(prices, event_time="at.")
    near = wp.join(left, right).on(key).within("-1 second", "1 second")
    assert rows(near.df.select(*map(F.col, map(quoted, (value, "w.x"))))) == [(2, 10), (5, 10), (7, 20)]
    shared = wp.join(left, right).on(key).window(TEN)
    assert rows(shared.df.select(*map(F.col, map(quoted, (value, "w.x"))))) == [(2, 10), (5, 10), (7, 20)]
    for matched in (wp.as_of(left, right).on(key).match(), wp.as_of(left, right).on(key).match().select(key, value, "w.x")):
        assert rows(matched.df.select(*map(F.col, map(quoted, (value, "w.x"))))) == [(2, 10), (5, None), (7, 20)]
