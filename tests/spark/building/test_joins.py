"""Joins on Spark: two streams in disorder, restarts in the middle, chains, static inputs, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from pyspark.sql import functions as F

import windowpane as wp
from tests.spark.helpers import Feed, rows, run, table
from windowpane.errors import (
    ChangedPlanError,
    ChangelogInputError,
    ConditionError,
    DuplicateColumnError,
    InvalidSpecError,
    KeyTypeError,
    MissingWatermarkError,
    MixedBoundednessError,
    NeverClosesError,
    UnknownColumnError,
    UnsupportedJoinError,
    WatermarkPolicyError,
)

pytestmark = pytest.mark.spark

CLICKS = "k string, at timestamp, v long, beat boolean"
BUYS = "k string, at timestamp, w int, beat boolean"
BEAT: list[Any] = [(None, 100, None, True)]

LEFT: list[list[Any]] = [
    [("a", 0, 1, False), ("b", 3, 2, False)],
    [("a", 12, 4, False)],
    [("a", 5, 9, False), *BEAT],
    [("z", 200, 1, False)],
    [(None, 1000, None, True)],
]
RIGHT: list[list[Any]] = [
    [("a", 2, 10, False)],
    [("b", 30, 20, False)],
    [("a", 13, 40, False), *BEAT],
    [("z", 201, 5, False), (None, 202, 6, False)],
    [(None, 1000, None, True)],
]


def side(df: Any, **settings: Any) -> wp.Stream:
    return wp.stream(df, event_time="at", watermark="0 seconds", heartbeat="beat", **settings)


class Streams:
    """The two streams, of which the first batches are there at first."""

    def __init__(self, folder: Path, batches: int = len(LEFT)) -> None:
        self.feeds = Feed(folder / "left", CLICKS).add(*LEFT[:batches]), Feed(folder / "right", BUYS).add(*RIGHT[:batches])
        self.batches = batches

    def finish(self) -> None:
        """Let the other batches come."""
        for feed, batches in zip(self.feeds, (LEFT, RIGHT), strict=True):
            feed.add(*batches[self.batches :])

    def of(self, spark: Any) -> tuple[wp.Stream, wp.Stream]:
        return side(self.feeds[0].stream(spark)), side(self.feeds[1].stream(spark))


def interval(spark: Any, streams: Streams) -> wp.IntervalJoin:
    return wp.join(*streams.of(spark)).on("k").within("-5 seconds", "5 seconds")


FULL = [
    ("a", 0, 1, 2, 10),
    ("a", 12, 4, 13, 40),
    ("b", 3, 2, None, None),
    ("b", None, None, 30, 20),
    ("z", 200, 1, 201, 5),
    (None, None, None, 202, 6),
]


@pytest.mark.slow
def test_an_interval_join_pads_each_row_once_and_tells_late_ones(spark: Any, tmp_path: Path) -> None:
    joined = interval(spark, Streams(tmp_path)).how("full").side_output_late_data(left="early_clicks")
    collected = run(joined, "main", "early_clicks")
    assert collected.rows() == sorted(FULL, key=repr)
    assert collected.columns["main"] == ["k", "left_at", "v", "right_at", "w"]
    assert collected.rows("early_clicks") == [("a", 5, 9, True)]
    counted = {name: sum(collected.counted(name)) for name in ("left_late", "right_late", "pairs", "padded")}
    assert counted == {"left_late": 1, "right_late": 0, "pairs": 3, "padded": 3}


def test_an_interval_join_goes_on_from_its_checkpoint(spark: Any, tmp_path: Path) -> None:
    streams = Streams(tmp_path, batches=2)
    first = run(interval(spark, streams).how("left"), checkpoint=tmp_path / "checkpoint")
    streams.finish()
    second = run(interval(spark, streams).how("left"), checkpoint=tmp_path / "checkpoint")
    assert first.rows() == [FULL[0], FULL[2]]
    assert second.rows() == [FULL[1], FULL[4]]


@pytest.mark.slow
def test_a_join_as_of_an_instant_goes_on_from_its_checkpoint(spark: Any, tmp_path: Path) -> None:
    streams = Streams(tmp_path, batches=2)

    def valued() -> wp.AsOfJoin:
        matched = wp.as_of(*streams.of(spark)).on("k").match("nearest", tolerance="2 seconds")
        return matched.select("k", v=wp.left("v"), sum=wp.left("v") + wp.right("w"))

    first = run(valued(), checkpoint=tmp_path / "checkpoint")
    streams.finish()
    second = run(valued(), checkpoint=tmp_path / "checkpoint")
    assert (first.rows(), second.rows()) == ([("a", 1, 11), ("b", 2, None)], [("a", 4, 44), ("z", 1, 6)])


def test_several_right_sides_are_joined_as_of_an_instant_in_one_operator(spark: Any, tmp_path: Path) -> None:
    bids = Feed(tmp_path / "bids", "k string, at timestamp, bid long").add([("a", 1, 10), ("a", 2, None)], [("a", 8, 11)])
    rates = Feed(tmp_path / "rates", "k string, since timestamp, rate long").add([("a", 3, 5)], [("b", 20, 6)])
    trades = Feed(tmp_path / "trades", "k string, at timestamp, v long").add(
        [("a", 1, 1), ("a", 4, 2)], [("a", 9, 3), ("c", 9, 4)]
    )

    def valued() -> wp.AsOfJoin:
        of_bids, of_trades = (wp.stream(feed.stream(spark), "at", "0 seconds") for feed in (bids, trades))
        return wp.as_of(of_trades, {"bid": of_bids, "rate": wp.stream(rates.stream(spark), "since", "0 seconds")}).on("k").match()

    expected = [("a", 1, 1, (1, 10), None), ("a", 4, 2, (2, None), (3, 5)), ("a", 9, 3, (8, 11), (3, 5)), ("c", 9, 4, None, None)]
    first = run(valued(), checkpoint=tmp_path / "checkpoint")
    for feed, end in ((bids, ("z", 90, 0)), (rates, ("z", 90, 0)), (trades, ("z", 90, 0))):
        feed.add([end])
    second = run(valued(), checkpoint=tmp_path / "checkpoint")
    found = [row for row in [*first.rows(), *second.rows()] if row[0] != "z"]
    assert (first.columns["main"], found) == (["k", "at", "v", "bid", "rate"], expected)


def test_a_tolerance_by_row_and_a_sequence(spark: Any) -> None:
    left = table(spark, [("a", 5, 1), ("a", 5, 4), ("a", 5, None)]).withColumn("reach", F.make_dt_interval(secs=F.col("v")))
    right = table(spark, [("a", 3, 8, 2), ("a", 3, 7, 1)], "k string, t timestamp, w long, seq long")
    streams = wp.stream(left, event_time="t"), wp.stream(right, event_time="t")
    matched = wp.as_of(*streams).on("k").match(tolerance=wp.left("REACH"), sequence="SEQ")
    assert rows(matched.select("v", "w").df) == [(1, None), (4, 8), (None, 8)]
    assert "backward, within left('reach'), of one time the largest seq" in matched.explain()


@pytest.mark.slow
def test_a_join_as_of_an_instant_on_update_goes_on_from_its_checkpoint(spark: Any, tmp_path: Path) -> None:
    clicks = Feed(tmp_path / "clicks", "k string, at timestamp, v long, beat boolean").add([("a", 10, 1, False)])
    rates = Feed(tmp_path / "rates", "k string, at timestamp, w int, beat boolean").add([("a", 30, 8, False)])

    def rated() -> wp.AsOfJoin:
        sides = side(clicks.stream(spark)), side(rates.stream(spark))
        return wp.as_of(*sides).on("k").match().select("v", "w").emit_on_update(key="v")

    first = run(rated(), checkpoint=tmp_path / "checkpoint")
    clicks.add([("a", 31, 2, False)], [(None, 1000, None, True)])
    rates.add([("a", 9, 7, False)], [(None, 1000, None, True)])
    second = run(rated(), checkpoint=tmp_path / "checkpoint")
    assert first.columns["main"] == ["v", "w", "_change_type"]
    assert first.rows() == [(1, None, "insert")]
    assert second.rows() == [(1, 7, "update_postimage"), (1, None, "update_preimage"), (2, 8, "insert")]
    assert second.counted("held_left")[-1] == 0
    assert "on update" in rated().explain()
    assert "results are a changelog" in rated().explain()
    clicks.add([("a", 2000, 3, False)])
    once = wp.as_of(side(clicks.stream(spark)), side(rates.stream(spark))).on("k").match().select("v", "w")
    with pytest.raises(ChangedPlanError, match="emit on: was update, is close"):
        run(once, checkpoint=tmp_path / "checkpoint")


@pytest.mark.slow
def test_a_join_by_arrival_needs_no_watermark_and_goes_on_from_its_checkpoint(spark: Any, tmp_path: Path) -> None:
    orders = Feed(tmp_path / "orders").add([("a", 5, 1), ("b", 6, 2)], [("a", 1, 3), (None, 2, 4)])
    rates = Feed(tmp_path / "rates", "k string, rate int, _change_type string").add([("a", 10, "insert")], [("b", 20, "insert")])

    def rated() -> wp.AsOfJoin:
        sides = wp.stream(orders.stream(spark)), wp.stream(rates.stream(spark))
        return wp.as_of(*sides).on("k").by_arrival().select("k", "v", "rate")

    assert "order of arrival" in rated().explain()
    first = run(rated(), checkpoint=tmp_path / "checkpoint")
    assert first.rows() == [("a", 1, 10), ("a", 3, 10), ("b", 2, None), (None, 4, None)]
    orders.add([("a", 0, 5), ("b", 0, 6)])
    rates.add([("a", 11, "update_postimage"), ("b", None, "delete")])
    second = run(rated(), checkpoint=tmp_path / "checkpoint")
    assert second.rows() == [("a", 5, 11), ("b", 6, None)]
    assert (second.counted("pairs"), second.counted("padded"), second.counted("held_right")) == ([1], [1], [1])
    with pytest.raises(InvalidSpecError, match="have no watermark"):
        rated().key_by("k")
    with pytest.raises(UnsupportedJoinError, match="by_arrival: no row"):
        rated().side_output_late_data(left="late")


@pytest.mark.slow
def test_a_window_join_and_a_window_over_its_results(spark: Any, tmp_path: Path) -> None:
    ten = wp.join(*Streams(tmp_path).of(spark)).on("k").window(wp.TumblingEventTimeWindows.of("10 seconds"))
    counted = ten.key_by("k").window(wp.TumblingEventTimeWindows.of("100 seconds")).aggregate(n=wp.count(), w=wp.sum("w"))
    assert run(counted).rows() == [("a", 0, 100, 2, 50), ("z", 200, 300, 1, 5)]


@pytest.mark.slow
def test_a_window_over_the_pairs_of_an_interval_by_way_of_df(spark: Any, tmp_path: Path) -> None:
    pairs = interval(spark, Streams(tmp_path)).df
    windows = wp.stream(pairs, event_time="left_at", name="second").key_by("k")
    counted = windows.window(wp.TumblingEventTimeWindows.of("100 seconds")).aggregate(n=wp.count())
    assert run(counted).rows() == [("a", 0, 100, 2), ("z", 200, 300, 1)]


@pytest.mark.slow
def test_a_window_is_a_side_of_a_join(spark: Any, tmp_path: Path) -> None:
    clicks, buys = Streams(tmp_path).of(spark)
    tens = clicks.key_by("k").window(wp.TumblingEventTimeWindows.of("10 seconds")).aggregate(n=wp.count()).df
    joined = wp.join(wp.stream(tens, event_time="window_end"), buys).on("k").within("-10 seconds", "10 seconds").how("left")
    assert run(joined.select("k", "n", "w")).rows() == [("a", 1, 10), ("a", 1, 40), ("a", 1, 40), ("b", 1, None), ("z", 1, 5)]


def test_static_inputs_give_the_answer_of_a_database(spark: Any) -> None:
    clicks = [(f"k{number % 7}", (number * 37) % 200, number) for number in range(80)]
    buys = [(f"k{number % 6}", (number * 53) % 200, -number) for number in range(80)]
    left = wp.stream(table(spark, clicks), event_time="t")
    right = wp.stream(table(spark, buys).withColumnRenamed("v", "w"), event_time="t")
    with duckdb.connect() as connection:
        for name, given in (("l", clicks), ("r", buys)):
            connection.execute(f"CREATE TABLE {name} (k text, t bigint, v bigint)")
            connection.executemany(f"INSERT INTO {name} VALUES (?, ?, ?)", given)
        on = "l.k = r.k AND r.t BETWEEN l.t - 7 AND l.t + 3 AND r.v < -20"
        expected = connection.sql(f"SELECT coalesce(l.k, r.k), l.v, r.v FROM l FULL JOIN r ON {on}").fetchall()
        as_of = connection.sql("SELECT l.k, l.v, r.v FROM l ASOF LEFT JOIN r ON l.k = r.k AND l.t >= r.t").fetchall()
        anti = connection.sql(
            "SELECT l.k, l.v FROM l WHERE NOT EXISTS (FROM r WHERE l.k = r.k AND l.t // 10 = r.t // 10)"
        ).fetchall()
    matched = wp.join(left, right).on("k").within("-7 seconds", "3 seconds").how("full").where(wp.right("w") < -20)
    assert rows(matched.select("k", "v", "w").df) == sorted(expected, key=repr)
    assert rows(wp.as_of(left, right).on("k").match().select("k", "v", "w").df) == sorted(as_of, key=repr)
    window = wp.join(left, right).on("k").window(wp.TumblingEventTimeWindows.of("10 seconds")).how("anti")
    assert rows(window.select("k", "v").df) == sorted(anti, key=repr)


def test_keys_of_other_names_and_types_meet(spark: Any) -> None:
    left = wp.stream(table(spark, [(1, 5, 1)], "id int, t timestamp, v long"), event_time="t")
    right = wp.stream(table(spark, [(1, 6, 2)], "user long, t timestamp, v long"), event_time="t")
    joined = wp.join(left, right, prefixes=("l_", "")).on(("id", "user")).within("0 seconds", "1 second")
    assert (joined.df.columns, rows(joined.df)) == (["id", "user", "l_t", "l_v", "t", "v"], [(1, 1, 5, 1, 6, 2)])


def test_keys_are_equal_as_spark_compares_them(spark: Any) -> None:
    zeros = "k struct<a: double, b: array<string>>, t timestamp, v long"
    left = wp.stream(table(spark, [({"a": 0.0, "b": ["x"]}, 1, 1), ({"a": float("nan"), "b": []}, 2, 2)], zeros), event_time="t")
    right = wp.stream(table(spark, [({"a": 0.0, "b": ["x"]}, 1, 3), ({"a": float("nan"), "b": []}, 2, 4)], zeros), event_time="t")
    doubles = "k double, t timestamp, v long"
    zero = wp.stream(table(spark, [(0.0, 1, 1)], doubles), event_time="t")
    negative = wp.stream(table(spark, [(-0.0, 1, 2)], doubles), event_time="t")
    for one, other, pairs in ((left, right, [(1, 3), (2, 4)]), (zero, negative, [(1, 2)])):
        joined = wp.join(one, other).on("k")
        kinds = (
            joined.within("0 s", "0 s"),
            joined.window(wp.TumblingEventTimeWindows.of("1 second")),
            wp.as_of(one, other).on("k").match(),
        )
        for kind in kinds:
            assert rows(kind.select("left_v", "right_v").df) == pairs


def test_the_gap_of_a_session_is_that_of_a_row_of_either_side(spark: Any) -> None:
    left = wp.stream(table(spark, [("a", 0, 5), ("b", 0, 2)]), event_time="t")
    right = wp.stream(table(spark, [("a", 4, 1), ("b", 4, 1)]).withColumnRenamed("v", "w"), event_time="t")
    sessions = wp.EventTimeSessionWindows.with_dynamic_gap(lambda row: f"{row.get('v', 1)} seconds")
    joined = wp.join(left, right).on("k").window(sessions).how("full").select("k", "window_start", "window_end")
    assert rows(joined.df) == [("a", 0, 5), ("b", 0, 2), ("b", 4, 5)]


def test_a_function_sees_the_rows_of_both_sides_of_a_window(spark: Any) -> None:
    left = wp.stream(table(spark, [("a", 0, 1), ("a", 3, 2), (None, 4, 3), ("b", 21, 4)]), event_time="t")
    right = wp.stream(table(spark, [("a", 5, 10), ("a", 12, 20)]).withColumnRenamed("k", "key"), event_time="t")
    joined = wp.join(left, right).on(("k", "key"))

    def sums(key: Any, window: Any, lefts: list[Any], rights: list[Any]) -> Any:
        assert {row["k"] for row in lefts} | {row["key"] for row in rights} == {key}
        yield {"l": sum(row["v"] for row in lefts), "r": sum(row["v"] for row in rights), "span": window.end - window.start}

    def counts(lefts: pa.Table, rights: pa.Table) -> pa.Table:
        keyed = ["k", "window_start", "window_end"]
        both = [lefts.select(keyed), rights.select(["key", "window_start", "window_end"]).rename_columns(keyed)]
        return pa.concat_tables(both).group_by(keyed).aggregate([([], "count_all")]).rename_columns([*keyed, "n"])

    tens = joined.window(wp.TumblingEventTimeWindows.of("10 seconds"))
    summed = tens.co_group(sums, "l long, r long, span long")
    assert summed.df.columns == ["k", "window_start", "window_end", "l", "r", "span"]
    span = 10_000_000
    expected = [("a", 0, 10, 3, 10, span), ("a", 10, 20, 0, 20, span), ("b", 20, 30, 4, 0, span), (None, 0, 10, 3, 0, span)]
    assert rows(summed.df) == expected
    assert rows(tens.co_group_in_arrow(counts, "n long").df) == [
        (*row[:3], n) for row, n in zip(expected, (3, 1, 1, 1), strict=True)
    ]
    session = joined.window(wp.EventTimeSessionWindows.with_gap("6 seconds")).co_group(sums, "l long, r long, span long")
    assert rows(session.df)[:2] == [("a", 0, 11, 3, 10, 11_000_000), ("a", 12, 18, 0, 20, 6_000_000)]
    pairs = joined.window(wp.GlobalWindows.create()).trigger(wp.PurgingTrigger.of(wp.CountTrigger.of(2)))
    by_two = pairs.co_group(lambda key, window, lefts, rights: [{"n": len(lefts) + len(rights)}], "n long")
    assert rows(by_two.df) == [("a", None, None, 2), ("a", None, None, 2)]
    last = tens.evictor(wp.CountEvictor.of(1)).co_group(lambda key, window, *sides: [{"n": sum(map(len, sides))}], "n long")
    assert {row[-1] for row in rows(last.df)} == {1}


def test_windows_by_the_clock_need_no_event_time(spark: Any) -> None:
    left = wp.stream(table(spark, [("a", 0, 5), ("b", 0, 2)]).drop("t"))
    right = wp.stream(table(spark, [("a", 4, 1)]).drop("t"))
    joined = wp.join(left, right).on("k").window(wp.TumblingProcessingTimeWindows.of("1 hour")).how("left")
    assert rows(joined.select("k", "left_v", "right_v").df) == [("a", 5, 1), ("b", 2, None)]
    assert "the clock of the machine" in joined.explain()


def test_what_cannot_be_joined_is_refused(spark: Any, tmp_path: Path) -> None:
    clicks, buys = Streams(tmp_path).of(spark)
    static = wp.stream(table(spark, [("a", 1, 2)]), event_time="t")
    joined = wp.join(clicks, buys).on("k")
    near = joined.within("0 seconds", "1 second")
    hour = joined.window(wp.TumblingEventTimeWindows.of("1 hour"))
    changes = side(buys.source.dataframe.withColumn("_change_type", F.lit("insert")))
    no_watermark = wp.stream(buys.source.dataframe, event_time="at")
    numbered = side(buys.source.dataframe.withColumn("_change_type", F.lit(1)))
    naive = wp.stream(static.source.dataframe.withColumn("t", F.col("t").cast("timestamp_ntz")), event_time="t")
    number = side(buys.source.dataframe.withColumn("k", F.lit(1)))
    named = side(buys.source.dataframe.withColumnRenamed("w", "left_at"))
    assert near.explain().count("the latest at; made by Spark") == 2
    refused: list[tuple[Any, type[Exception], str]] = [
        (
            lambda: wp.join(clicks, static).on(("k", "k")).within(0, 1).df,
            MixedBoundednessError,
            "right side of the join is static",
        ),
        (lambda: wp.join(clicks, no_watermark).on("k").within(0, 1).df, MissingWatermarkError, "the right side"),
        (lambda: wp.as_of(changes, buys).on("k").by_arrival().df, ChangelogInputError, "the left side"),
        (lambda: wp.join(clicks, number).on("k").within(0, 1).df, KeyTypeError, "'k' of the left side is string"),
        (lambda: wp.join(clicks, named).on("k").within(0, 1).df, DuplicateColumnError, "'left_at'"),
        (lambda: wp.join(clicks, buys).on("nothing").within(0, 1).df, UnknownColumnError, "on: left side"),
        (lambda: near.select("nothing").df, UnknownColumnError, "nothing"),
        (lambda: near.select(x=wp.right("v")).df, UnknownColumnError, "right side"),
        (lambda: near.how("semi").select(x=wp.right("w")).df, InvalidSpecError, "left columns only"),
        (lambda: near.select(x=wp.left("v") + F.col("w")).df, InvalidSpecError, "of which side"),
        (lambda: near.where(wp.left("v") + 1).df, ConditionError, "its type is int64"),
        (lambda: near.where(wp.col("v") > 1).df, ConditionError, "of no side"),
        (lambda: wp.as_of(clicks, buys).on("k").match("forward").df, NeverClosesError, "tolerance="),
        (lambda: wp.as_of(clicks, buys).on("k").match("forward", "1 s", skip_nulls=True), InvalidSpecError, "of whatever age"),
        (lambda: wp.as_of(clicks, buys).on("k").match(tolerance=wp.left("v")).df, InvalidSpecError, "an interval of days"),
        (lambda: wp.as_of(clicks, buys).on("k").match(tolerance=wp.right("w")), InvalidSpecError, "of the left side"),
        (lambda: wp.as_of(clicks, buys).on("k").match(sequence="x").df, UnknownColumnError, "sequence"),
        (lambda: wp.as_of(clicks, {"x": changes}).on("k").match(), InvalidSpecError, "'x', has a column '_change_type'"),
        (lambda: wp.as_of(clicks, buys).on("k").match().emit_on_update(key="w").df, UnknownColumnError, "of the left side"),
        (lambda: wp.as_of(clicks, buys).on("k").match().emit_on_update(key=()), InvalidSpecError, "identify left rows"),
        (lambda: wp.as_of(clicks, buys).on("k").by_arrival().emit_on_update(key="v"), UnsupportedJoinError, "final"),
        (lambda: hour.trigger(wp.CountTrigger.of(1)).df, UnsupportedJoinError, "trigger.*co_group"),
        (lambda: hour.evictor(wp.CountEvictor.of(1)).df, UnsupportedJoinError, "evictor.*co_group"),
        (lambda: hour.refine("each").df, UnsupportedJoinError, "refine.*co_group"),
        (lambda: hour.how("left").co_group(print, "n long").df, UnsupportedJoinError, "leave out how"),
        (lambda: hour.co_group(print, "k long").df, DuplicateColumnError, "'k'"),
        (lambda: joined.window(wp.GlobalWindows.create()).df, UnsupportedJoinError, "never ends"),
        (lambda: joined.within(0, wp.left("v")).df, InvalidSpecError, r"left\('v'\) is bigint"),
        (lambda: wp.join(static, naive).on("k").within(0, 1).df, InvalidSpecError, "timestamp_ntz: cast one"),
        (lambda: wp.as_of(clicks, numbered).on("k").match().df, InvalidSpecError, "'_change_type' of the right side is int"),
        (lambda: wp.as_of(clicks, buys).on("k").match().how("full"), UnsupportedJoinError, "'left' or 'inner'"),
    ]
    for attempt, error, message in refused:
        with pytest.raises(error, match=message):
            attempt()
    spark.conf.set("spark.sql.streaming.multipleWatermarkPolicy", "max")
    try:
        with pytest.raises(WatermarkPolicyError, match="'max'"):
            _ = joined.within("0 seconds", "1 second").df
    finally:
        spark.conf.unset("spark.sql.streaming.multipleWatermarkPolicy")
