"""Rolling features on Spark: streams with disorder, silent keys, late rows, a restart; static rows, and labels."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest
from pyspark.sql import functions as F

import windowpane as wp
from tests.spark.helpers import WHY, Feed, instant, rows, run, table
from windowpane.errors import ChangedPlanError, DuplicateColumnError, InvalidSpecError, MissingWatermarkError, UnknownColumnError
from windowpane.sinks import apply_changes

pytestmark = pytest.mark.spark

HEARTBEATS = "k string, t timestamp, v long, heartbeat boolean"
EVENTS: list[list[tuple[Any, ...]]] = [
    [("a", 1, 5, False), ("a", 3, 1, False), ("b", 2, 7, False)],
    [("a", 14, 2, False)],
    [("b", 13, 4, False), (None, 40, None, True)],
    [("a", 5, 9, False), (None, 41, None, True)],
    [(None, 60, None, True)],
]
"""Seconds. When batch 2 runs the watermark is at 14: the tick at 10 has passed, and b has no row within 5 seconds of it. When
batch 3 runs it is at 40: its row is behind all windows, the longest of which are 20 seconds and have tiles of 5."""


def features(df: Any, **settings: Any) -> wp.RollingFeatures:
    return (
        wp.rolling(df, event_time="t", **settings)
        .by("k")
        .over("5 seconds", "20 seconds", n=wp.count(), total=wp.sum("v"))
        .over("20 seconds", big=wp.count().filter(F.col("v") > 4))
        .hop("5 seconds")
    )


def streamed(spark: Any, folder: Path, batches: list[list[tuple[Any, ...]]] = EVENTS) -> wp.RollingFeatures:
    df = Feed(folder / "in", HEARTBEATS).add(*batches).stream(spark)
    return features(df, watermark="0 seconds", heartbeat="heartbeat").side_output_late_data("late")


def just_before(seconds: int) -> float:
    return (instant(seconds) - timedelta(microseconds=1) - instant(0)).total_seconds()


def test_features_of_a_stream_go_down_and_late_rows_come_out(spark: Any, tmp_path: Path) -> None:
    collected = run(streamed(spark, tmp_path).emit("changed"), "main", "late")
    assert collected.columns["main"] == ["k", "as_of", "n_5s", "n_20s", "total_5s", "total_20s", "big"]
    assert [row for _, row in collected.batches["main"] if row[0] == "a"] == [
        ("a", 3, 2, 2, 6, 6, 1),
        ("a", 14, 1, 3, 2, 8, 1),
        ("a", just_before(40), 0, 0, None, None, 0),
    ]
    assert [row for _, row in collected.batches["main"] if row[0] == "b"] == [
        ("b", 2, 1, 1, 7, 7, 1),
        ("b", 13, 1, 2, 4, 11, 1),  # of one batch: the tick was first
        ("b", just_before(10), 0, 1, None, 7, 1),
        ("b", just_before(40), 0, 0, None, None, 0),
    ]
    assert collected.rows("late") == [("a", 5, 9, True)]
    assert sum(collected.counted("late_dropped")) == 1


@pytest.mark.slow
def test_a_restart_goes_on_from_the_checkpoint(spark: Any, tmp_path: Path) -> None:
    whole = run(streamed(spark, tmp_path / "whole").emit("tick"))
    feed = Feed(tmp_path / "in", HEARTBEATS).add(*EVENTS[:2])
    result = features(feed.stream(spark), watermark="0 seconds", heartbeat="heartbeat").emit("tick")
    first = run(result, checkpoint=tmp_path / "checkpoint")
    feed.add(*EVENTS[2:])
    second = run(result, checkpoint=tmp_path / "checkpoint")
    assert sorted([*first.rows(), *second.rows()], key=repr) == whole.rows()
    assert ("a", just_before(5), 2, 2, 6, 6, 1) in first.rows()
    assert ("a", just_before(35), 0, 0, None, None, 0) in second.rows()


@pytest.mark.slow
def test_ticks_are_corrected_for_late_rows(spark: Any, tmp_path: Path) -> None:
    batches: list[list[tuple[Any, ...]]] = [
        [("a", 1, 5, False), (None, 13, None, True)],
        [("a", 8, 1, False), (None, 14, None, True)],
        [(None, 60, None, True)],
        [(None, 61, None, True)],
    ]
    df = Feed(tmp_path / "in", HEARTBEATS).add(*batches).stream(spark)
    asked = wp.rolling(df, "t", "0 seconds", "heartbeat").by("k").over("10 seconds", total=wp.sum("v")).hop("5 seconds")
    collected = run(asked.emit("tick", corrections=True))
    assert collected.columns["main"] == ["k", "as_of", "total", "revision"]
    assert collected.rows() == [
        ("a", just_before(15), 1, 0),
        ("a", just_before(20), None, 0),
        ("a", just_before(5), 5, 0),
        ("a", just_before(10), 6, 1),
    ]
    assert "are emitted again" in asked.emit("tick", corrections=True).explain()


STATIC = [("a", 1, 5), ("a", 3, 1), ("b", 2, 7), (None, 14, 2)]


def test_a_static_input_goes_on_to_the_tick_after_its_newest_row(spark: Any) -> None:
    result = features(table(spark, STATIC)).emit("tick")
    assert rows(result.df) == [
        ("a", just_before(5), 2, 2, 6, 6, 1),
        ("a", just_before(10), 0, 2, None, 6, 1),
        ("b", just_before(5), 1, 1, 7, 7, 1),
        ("b", just_before(10), 0, 1, None, 7, 1),
        (None, just_before(15), 1, 1, 2, 2, 0),
    ]


def test_a_static_input_goes_on_until_it_is_told_to_end(spark: Any) -> None:
    deleted = features(table(spark, STATIC)).emit("changed", on_empty="delete", until=instant(60))
    last = [row for row in rows(deleted.df) if row[-1] == "delete"]
    assert [(row[0], row[1]) for row in last] == [("a", just_before(60)), ("b", just_before(60)), (None, just_before(60))]


def test_each_row_has_its_own_windows(spark: Any) -> None:
    result = features(table(spark, [("a", 3, 1), ("a", 1, 5), ("a", 6, 2)])).emit("each")
    assert rows(result.df) == [("a", 1, 1, 1, 5, 5, 1), ("a", 3, 2, 2, 6, 6, 1), ("a", 6, 2, 3, 3, 8, 1)]


def test_labels_get_what_was_before_them(spark: Any) -> None:
    labels = table(spark, [("a", 3, 1), ("b", 2, 2), ("c", 9, 3)], "card string, at timestamp, n_5s long")
    strict = features(table(spark, STATIC)).at(labels, time="at", on="card")
    assert strict.df.columns == ["card", "at", "label_n_5s", "n_5s", "n_20s", "total_5s", "total_20s", "big"]
    assert rows(strict.df) == [
        ("a", 3, 1, 1, 1, 5, 5, 1),
        ("b", 2, 2, 0, 0, None, None, 0),
        ("c", 9, 3, 0, 0, None, None, 0),
    ]
    inclusive = features(table(spark, STATIC)).at(labels, time="at", on="card", inclusive=True)
    assert [row[3] for row in rows(inclusive.df)] == [2, 1, 0]


def test_labels_of_a_stream_wait_for_both_watermarks(spark: Any, tmp_path: Path) -> None:
    given = Feed(tmp_path / "rows", HEARTBEATS).add(
        [("a", 1, 5, False), ("b", 2, 7, False)],
        [("a", 9, 1, False)],
        [("a", 4, 2, False), (None, 30, None, True)],
        [(None, 60, None, True)],
        [(None, 65, None, True)],
    )
    asked = Feed(tmp_path / "labels", "card string, at timestamp, n_5s long").add(
        [("a", 3, 1)], [("a", 9, 2), ("c", 5, 3)], [("b", 33, 4)], [("a", 3, 5)], [("b", 60, 6)]
    )
    labels = asked.stream(spark).withWatermark("at", "0 seconds")
    rolling = features(given.stream(spark), watermark="10 seconds", heartbeat="heartbeat").side_output_late_data("late")
    result = rolling.at(labels, time="at", on="card")
    assert "waiting labels" in result.explain()
    first = run(result, "main", "late", checkpoint=tmp_path / "checkpoint")
    assert first.columns["main"] == ["card", "at", "label_n_5s", "n_5s", "n_20s", "total_5s", "total_20s", "big"]
    assert first.columns["late"] == ["card", "at", "n_5s", "dropped", *WHY]
    assert first.rows() == [
        ("a", 3, 1, 1, 1, 5, 5, 1),
        ("a", 9, 2, 1, 2, 2, 7, 1),  # the row of 4 came behind the label, and counts
        ("b", 33, 4, 0, 0, None, None, 0),
        ("c", 5, 3, 0, 0, None, None, 0),
    ]
    assert first.rows("late") == [("a", 3, 5, True)]
    given.add([("b", 58, 3, False), (None, 200, None, True)], [(None, 201, None, True)])
    asked.add([("c", 190, 7)], [("c", 191, 8)])
    second = run(result, "main", "late", checkpoint=tmp_path / "checkpoint")
    assert ("b", 60, 6, 1, 1, 3, 3, 0) in second.rows()


def test_labels_get_what_was_known_by_then(spark: Any) -> None:
    given = table(spark, [("a", 1, 2, 5), ("a", 2, 30, 6), ("a", 3, None, 7)], "k string, t timestamp, arrived timestamp, v long")
    labels = table(spark, [("a", 10), ("a", 20), ("a", 30)], "k string, at timestamp")
    asked = wp.rolling(given, event_time="t").by("k").over("1 hour", total=wp.sum("v"))
    assert [row[2] for row in rows(asked.at(labels, time="at").df)] == [18, 18, 18]
    assert [row[2] for row in rows(asked.at(labels, time="at", known_at="arrived").df)] == [5, 5, 11]


@pytest.mark.slow
def test_a_table_follows_the_latest_row_of_each_key(spark: Any, tmp_path: Path) -> None:
    store, result = (
        str(tmp_path / "store.duckdb"),
        streamed(spark, tmp_path, [*EVENTS[:3], [("c", 38, 3, False)]]).emit("changed"),
    )
    trigger, checkpoint = {"availableNow": True}, str(tmp_path / "checkpoint")
    apply_changes(result.df, store, "k", table="features", checkpoint=checkpoint, trigger=trigger).awaitTermination()
    with duckdb.connect(store) as connection:
        found = connection.execute("SELECT k, n_5s, n_20s, total_20s FROM features ORDER BY k").fetchall()
    assert found == [("a", 0, 0, None), ("b", 0, 0, None), ("c", 1, 1, 3)]


@pytest.mark.slow
def test_another_window_is_another_plan(spark: Any, tmp_path: Path) -> None:
    feed = Feed(tmp_path / "in", HEARTBEATS).add(EVENTS[0])
    asked = features(feed.stream(spark), watermark="0 seconds", heartbeat="heartbeat")
    run(asked.emit("tick"), checkpoint=tmp_path / "checkpoint")
    feed.add(EVENTS[1])
    with pytest.raises(ChangedPlanError, match="call more: was absent"):
        run(asked.over("1 minute", more=wp.count()).emit("tick"), checkpoint=tmp_path / "checkpoint")


@pytest.mark.slow
def test_a_query_goes_on_with_a_window_of_what_it_holds(spark: Any, tmp_path: Path) -> None:
    feed = Feed(tmp_path / "in", HEARTBEATS).add(EVENTS[0])
    asked = features(feed.stream(spark), watermark="0 seconds", heartbeat="heartbeat")
    run(asked.emit("changed"), checkpoint=tmp_path / "checkpoint")
    feed.add([("a", 11, 2, False), (None, 11, None, True)], [(None, 12, None, True)])
    second = run(asked.over("10 seconds", n_10s=wp.count()).emit("changed"), checkpoint=tmp_path / "checkpoint")
    assert second.columns["main"][-2:] == ["big", "n_10s"]
    assert second.rows() == [("a", 11, 1, 3, 2, 8, 1, 2), ("b", just_before(10), 0, 1, None, 7, 1, 1)]


def test_explain_says_which_edges_there_are(spark: Any, tmp_path: Path) -> None:
    df = Feed(tmp_path / "in").add([]).stream(spark)
    asked = wp.rolling(df, "t", "1 hour").by("k").over("1 hour", "30 days", n=wp.count())
    text = asked.emit("batch").explain()
    assert "over 1 hour     n_1h = count(); exact edge" in text
    assert "over 30 days    n_30d = count(); hop edge: up to 1 day too long" in text
    assert "WARNING: a key without new rows keeps its last values" in text
    assert "rolling: windows of a key merge pieces" in text
    labels = features(table(spark, STATIC)).at(table(spark, [("a", 3, 1)]), time="t")
    assert "a row counts even if it came late" in labels.explain()


@pytest.mark.parametrize(
    ("asked", "error", "words"),
    [
        (lambda df: features(df).emit("changed"), MissingWatermarkError, "watermark='10 minutes'"),
        (lambda df: features(df, watermark="1 hour").over("1 hour", big=wp.count()).emit("tick"), DuplicateColumnError, "'big'"),
        (lambda df: features(df, watermark="1 hour").emit("sometimes"), InvalidSpecError, "'changed', 'batch', 'tick'"),  # type: ignore[arg-type]
        (lambda df: features(df, watermark="1 hour").emit("each", on_empty="delete"), InvalidSpecError, "on_empty='delete'"),
        (lambda df: features(df, watermark="1 hour").emit("tick", until=instant(3)), InvalidSpecError, "until="),
        (lambda df: features(df, watermark="1 hour").emit("changed", corrections=True), InvalidSpecError, "corrections=True"),
        (lambda df: features(df).at(df, time="t"), MissingWatermarkError, "withWatermark"),
        (lambda df: features(df, watermark="1 hour").at(df, time="t"), MissingWatermarkError, "labels have"),
        (
            lambda df: features(df, watermark="1 hour").at(df.sparkSession.createDataFrame([], df.schema), time="t"),
            InvalidSpecError,
            "both are one or the other",
        ),
        (
            lambda df: features(df, watermark=wp.Watermarks.bounded("1 hour").at_once()).at(
                df.withWatermark("t", "1 hour"), time="t"
            ),
            InvalidSpecError,
            "a strategy that Spark runs",
        ),
        (lambda df: features(df).edge("soft"), InvalidSpecError, "'exact', 'hop'"),  # type: ignore[arg-type]
        (lambda df: features(df).over("1 hour", n="v"), InvalidSpecError, "expected an aggregate"),
        (lambda df: features(df).over("1 hour", n=wp.sum("v").rows(-1, 0)), InvalidSpecError, "with .filter"),
        (lambda df: features(df).over("1 hour", n=wp.row_number()), InvalidSpecError, "built-in aggregate"),
        (lambda df: wp.rolling(df, "t", "1 hour").by("nobody"), UnknownColumnError, "nobody"),
        (lambda df: wp.rolling(df, "t", "1 hour").by("k").emit("tick"), InvalidSpecError, "need a window"),
        (lambda df: wp.rolling(df, "t", "1 hour").by("k").over("1 hour", n=wp.sum("w")).emit("tick"), UnknownColumnError, "'w'"),
        (
            lambda df: features(df, watermark=wp.Watermarks.bounded("1 minute").per_key()).emit("tick"),
            InvalidSpecError,
            "one watermark for all keys",
        ),
    ],
)
def test_what_cannot_work_is_refused(spark: Any, tmp_path: Path, asked: Any, error: type, words: str) -> None:
    df = Feed(tmp_path / "in").add([]).stream(spark)
    with pytest.raises(error, match=words):
        asked(df)
