"""Rolling features that begin with a history: backfill and live rows equal one live run over both, row for row after the cut."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as F

import windowpane as wp
from tests.spark.building.test_rolling import HEARTBEATS, just_before
from tests.spark.helpers import Feed, instant, run, table
from windowpane.errors import HistoryAfterStartError, InvalidSpecError, UnknownColumnError

pytestmark = pytest.mark.spark

CUT = 30
PAST: list[tuple[Any, ...]] = [("a", 1, 5), ("a", 22, 1), ("b", 12, 7), ("c", 27, 3), ("c", 29, None), (None, 24, 4)]
LIVE: list[list[tuple[Any, ...]]] = [
    [("a", 31, 2, False), ("b", 33, 4, False)],
    [("a", 36, 1, False), (None, 41, None, True)],
    [("d", 43, 9, False), ("a", 44, 9, False)],
    [(None, 90, None, True)],
    [(None, 91, None, True)],
]
"""Seconds. Windows are of 5 and 20 seconds, tiles of 5."""


def features(df: Any, **settings: Any) -> wp.RollingFeatures:
    rolling = wp.rolling(df, event_time="t", **settings).by("k")
    counted = rolling.over("5 seconds", "20 seconds", n=wp.count(), total=wp.sum("v"))
    return counted.over("20 seconds", big=wp.count().filter(F.col("v") > 4)).hop("5 seconds")


def live(spark: Any, folder: Path, batches: list[list[tuple[Any, ...]]]) -> wp.RollingFeatures:
    df = Feed(folder / "in", HEARTBEATS).add(*batches).stream(spark)
    return features(df, watermark="0 seconds", heartbeat="heartbeat")


def one_live_run(spark: Any, folder: Path, emit: Any) -> list[tuple[Any, ...]]:
    """Return what comes out of the history and the live rows as one stream."""
    past = [[(*row, False) for row in PAST]]
    return [row for row in run(live(spark, folder, past + LIVE).emit(emit)).rows() if row[1] >= CUT]


FIRST_TICK = [
    (None, just_before(35), 0, 1, None, 4, 0),
    ("a", just_before(35), 1, 2, 2, 3, 0),
    ("b", just_before(35), 1, 1, 4, 4, 0),
    ("c", just_before(35), 0, 2, None, 3, 0),
]
"""What every key has at the first tick after the cut; ``b`` is at 33, for its row of 12 left before."""


@pytest.mark.slow
@pytest.mark.parametrize("emit", ["tick", "each"])
def test_backfill_and_live_rows_are_one_live_run(spark: Any, tmp_path: Path, emit: Any) -> None:
    whole = one_live_run(spark, tmp_path / "whole", emit)
    past = table(spark, PAST)
    found = run(live(spark, tmp_path, LIVE).emit(emit), history=past, cut=instant(CUT)).rows()
    if emit == "tick":
        assert sorted((row for row in found if row[1] == just_before(35)), key=repr) == sorted(FIRST_TICK, key=repr)
        unchanged = [row for row in FIRST_TICK if row not in whole]
        assert all(row[1:3] == (just_before(35), 0) for row in unchanged)  # it came out before the cut, and stands
        whole = sorted([*whole, *unchanged], key=repr)
    assert found == whole
    assert len(found) >= 5


@pytest.mark.slow
def test_a_table_of_the_latest_rows_is_that_of_one_live_run(spark: Any, tmp_path: Path) -> None:
    whole = one_live_run(spark, tmp_path / "whole", "changed")
    found = run(live(spark, tmp_path, LIVE).emit("changed"), history=table(spark, PAST), cut=instant(CUT)).rows()
    latest = [{row[0]: row for row in sorted(rows, key=lambda row: row[1])} for rows in (whole, found)]
    assert latest[0] == latest[1]
    assert {*whole} <= {*found}


def test_what_the_history_has_counts_once_after_a_restart_too(spark: Any, tmp_path: Path) -> None:
    feed = Feed(tmp_path / "in", HEARTBEATS).add([("a", 22, 1, False), ("a", 31, 2, False)])
    result = features(feed.stream(spark), watermark="0 seconds", heartbeat="heartbeat").emit("each")
    first = run(result, checkpoint=tmp_path / "checkpoint", history=table(spark, PAST), cut="2024-01-01 00:00:30+00:00")
    feed.add([("b", 12, 7, False), ("e", 20, 7, False), ("b", 33, 4, False)], [(None, 60, None, True)])
    second = run(result, checkpoint=tmp_path / "checkpoint")
    rows = [("a", 31, 1, 2, 2, 3, 0), ("b", 33, 1, 1, 4, 4, 0)]
    assert sorted([*first.rows(), *second.rows()], key=repr) == rows
    assert (sum(first.counted("before_cut")), sum(second.counted("before_cut"))) == (1, 2)
    assert sum(second.counted("late_dropped")) == 0


@pytest.mark.slow
def test_the_cut_is_after_the_newest_row_where_it_is_not_given(spark: Any, tmp_path: Path) -> None:
    batches: list[list[tuple[Any, ...]]] = [[("a", 29, 100, False), ("a", 30, 2, False)], [(None, 60, None, True)]]
    found = run(live(spark, tmp_path, batches).emit("each"), history=table(spark, PAST))
    assert found.rows() == [("a", 30, 1, 2, 2, 3, 0)]
    assert sum(found.counted("before_cut")) == 1


@pytest.mark.slow
def test_a_history_without_rows_is_no_history(spark: Any, tmp_path: Path) -> None:
    batches: list[list[tuple[Any, ...]]] = [[("a", 29, 9, False), ("a", 30, 2, False)], [(None, 60, None, True)]]
    found = run(live(spark, tmp_path, batches).emit("each"), history=table(spark, []))
    assert found.rows() == [("a", 29, 1, 1, 9, 9, 1), ("a", 30, 2, 2, 11, 11, 1)]


@pytest.mark.slow
def test_rows_that_depend_on_their_order_begin_with_a_history_on_the_reference(spark: Any, tmp_path: Path) -> None:
    df = Feed(tmp_path / "in", HEARTBEATS).add(*LIVE).stream(spark)
    asked = wp.rolling(df, "t", "0 seconds", "heartbeat").by("k").over("20 seconds", last=wp.last("v"), all=wp.collect_list("v"))
    result = asked.hop("5 seconds").emit("tick")
    assert "depends on the order of rows" in result.explain()
    found = run(result, history=table(spark, PAST), cut=instant(CUT)).rows()
    assert ("c", just_before(35), None, [3]) in found
    assert ("a", just_before(35), 2, [1, 2]) in found


def test_a_checkpoint_that_has_begun_takes_no_history(spark: Any, tmp_path: Path) -> None:
    feed = Feed(tmp_path / "in", HEARTBEATS).add(LIVE[0])
    result = features(feed.stream(spark), watermark="0 seconds", heartbeat="heartbeat").emit("changed")
    run(result, checkpoint=tmp_path / "checkpoint")
    with pytest.raises(HistoryAfterStartError, match="has begun already"):
        run(result, checkpoint=tmp_path / "checkpoint", history=table(spark, PAST))


def test_a_row_of_the_history_without_a_time_is_refused(spark: Any, tmp_path: Path) -> None:
    result = live(spark, tmp_path, LIVE).emit("changed")
    query = result.start(
        main=lambda df, _: df.collect(), history=table(spark, [*PAST, ("a", None, 1)]), trigger={"availableNow": True}
    )
    with pytest.raises(Exception, match="MissingEventTimeError"):
        query.awaitTermination()


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"cut": "2026-01-01"}, InvalidSpecError, "give history= too"),
        ({"history": "stream"}, InvalidSpecError, "this one is a stream"),
        ({"history": "narrow"}, UnknownColumnError, "'v'"),
        ({"history": "text"}, InvalidSpecError, "'v' is string"),
        ({"history": "past", "cut": "soon"}, InvalidSpecError, "is no instant"),
        ({"history": "past", "cut": 7}, InvalidSpecError, "it is an instant"),
    ],
)
def test_what_is_no_history_is_refused(
    spark: Any, tmp_path: Path, options: dict[str, Any], error: type[Exception], words: str
) -> None:
    past = table(spark, PAST)
    given = {
        "past": past,
        "stream": Feed(tmp_path / "other", HEARTBEATS).add([]).stream(spark),
        "narrow": past.drop("v"),
        "text": past.withColumn("v", F.col("v").cast("string")),
    }
    if "history" in options:
        options = {**options, "history": given[options["history"]]}
    result = live(spark, tmp_path, [[]]).emit("changed")
    with pytest.raises(error, match=words):
        result.start(main=lambda df, _: None, **options)


def test_only_features_of_streams_begin_with_a_history(spark: Any) -> None:
    past = table(spark, PAST)
    with pytest.raises(InvalidSpecError, match="this DataFrame is static"):
        features(past).emit("changed").start(main=lambda df, _: None, history=past)
