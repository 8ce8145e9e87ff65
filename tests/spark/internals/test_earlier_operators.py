"""Rows that have passed an operator of Spark's: what is late is known by the watermark that this operator was under before.

Expected results are those of Spark's own second aggregation, which compares rows with the watermark of the batch before, too.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as F

import windowpane as wp
from tests.spark.helpers import Feed, run
from tests.spark.helpers import rows as rows_of
from windowpane.errors import InvalidSpecError

pytestmark = pytest.mark.spark

TEN = wp.TumblingEventTimeWindows.of("10 seconds")
FIVE = wp.TumblingEventTimeWindows.of("5 seconds")
EVENTS = [[("a", 1, 1), ("a", 6, 2), ("b", 2, 3)], [("a", 12, 4), ("b", 13, 5)], [("b", 27, 7)], [("a", 41, 8)], [("a", 60, 9)]]


def events(spark: Any, folder: Path) -> Any:
    return Feed(folder / "in").add(*EVENTS).stream(spark)


def by_spark(spark: Any, folder: Path) -> Any:
    """Return sums of five seconds that Spark has aggregated."""
    grouped = events(spark, folder).withWatermark("t", "0 seconds").groupBy(F.window("t", "5 seconds"), "k")
    return grouped.agg(F.sum("v").alias("s"))


def by_windows(spark: Any, folder: Path) -> Any:
    """Return the same sums by windows of this package."""
    return wp.stream(events(spark, folder), "t", watermark="0 seconds").key_by("k").window(FIVE).aggregate(s=wp.sum("v")).df


@pytest.mark.slow
def test_results_of_an_aggregation_are_not_late(spark: Any, tmp_path: Path) -> None:
    sums = by_spark(spark, tmp_path).select("k", F.window_time("window").alias("at"), "s")
    collected = run(wp.stream(sums, "at").key_by("k").window(TEN).aggregate(n=wp.count(), s=wp.sum("s")))
    expected = [("a", 0, 10, 2, 3), ("a", 10, 20, 1, 4), ("a", 40, 50, 1, 8)]
    assert collected.rows() == [*expected, ("b", 0, 10, 1, 3), ("b", 10, 20, 1, 5), ("b", 20, 30, 1, 7)]
    assert sum(collected.counted("late_elements")) == 0


def test_rows_that_an_outer_join_held_are_not_late(spark: Any, tmp_path: Path) -> None:
    left = events(spark, tmp_path).withWatermark("t", "0 seconds")
    others = Feed(tmp_path / "right", "k2 string, t2 timestamp").add(
        [("a", 1)], [("b", 13)], [("a", 27)], [("a", 41)], [("c", 60)]
    )
    right = others.stream(spark).withWatermark("t2", "0 seconds")
    near = F.expr("k = k2 AND t2 BETWEEN t - INTERVAL 3 SECONDS AND t + INTERVAL 3 SECONDS")
    joined = left.join(right, near, "leftOuter")
    collected = run(wp.stream(joined, "t").key_by("k").window(TEN).aggregate(n=wp.count(), met=wp.count("t2")))
    expected = [("a", 0, 10, 2, 1), ("a", 10, 20, 1, 0), ("a", 40, 50, 1, 1)]
    assert collected.rows() == [*expected, ("b", 0, 10, 1, 0), ("b", 10, 20, 1, 1), ("b", 20, 30, 1, 0)]


def test_rows_of_a_source_go_behind_the_watermark(spark: Any, tmp_path: Path) -> None:
    """Joins with static rows, and deduplication, keep no row back: rows fold before the shuffle as before."""
    named = spark.createDataFrame([("a", "Ann"), ("b", "Bob")], "k string, name string")
    names = named.groupBy("k").agg(F.max("name").alias("name"))
    rows = events(spark, tmp_path).withWatermark("t", "0 seconds").join(names, "k").dropDuplicatesWithinWatermark(["k", "v"])
    explained = wp.stream(rows, "t").key_by("name").window(TEN).aggregate(n=wp.count()).explain()
    assert "fold before the shuffle" in explained
    assert "late one by one" not in explained


@pytest.mark.parametrize("made", [by_spark, by_windows])
def test_a_second_watermark_that_would_stop_the_query_is_refused(spark: Any, tmp_path: Path, made: Any) -> None:
    end = "window.end" if made is by_spark else "window_end"
    sums = made(spark, tmp_path).select("k", "s", F.expr(f"{end} - INTERVAL 1 SECOND").alias("at"))
    with pytest.raises(InvalidSpecError, match="nothing would ever be emitted"):
        wp.stream(sums, "at", watermark="5 seconds").key_by("k").window(TEN).aggregate(n=wp.count())


def test_a_watermark_of_late_rows_that_would_keep_them_from_being_late_is_refused(spark: Any, tmp_path: Path) -> None:
    five = wp.stream(events(spark, tmp_path), "t", watermark="0 seconds").key_by("k").window(FIVE)
    late = five.side_output_late_data("late").aggregate(s=wp.sum("v")).get_side_output("late").select("k", F.col("t").alias("at"))
    with pytest.raises(InvalidSpecError, match="nothing would ever be emitted"):
        wp.stream(late, "at", watermark="5 seconds").key_by("k").window(TEN).aggregate(n=wp.count())


@pytest.mark.slow_but_one_in(2)
@pytest.mark.parametrize("strategy", [wp.Watermarks.bounded("0 seconds"), wp.Watermarks.bounded("0 seconds").at_once()])
def test_a_table_of_results_has_no_watermark_of_the_operator_that_made_them(
    spark: Any, tmp_path: Path, strategy: wp.Watermarks
) -> None:
    """Spark writes the metadata of columns to Parquet. An end of a window stays one: it counts as the microsecond before."""
    first = wp.stream(events(spark, tmp_path), "t", strategy).key_by("k").window(FIVE).aggregate(s=wp.sum("v"))
    first.start(main=f"{tmp_path}/out", checkpoint=f"{tmp_path}/ck", trigger={"availableNow": True}).awaitTermination()
    written = spark.read.parquet(f"{tmp_path}/out")
    again = spark.readStream.schema(written.schema).parquet(f"{tmp_path}/out")
    second = wp.stream(again, "window_end", watermark="0 seconds").key_by("k").window(TEN).aggregate(n=wp.count())
    assert run(second).rows() == [("a", 0, 10, 2), ("a", 10, 20, 1), ("b", 0, 10, 1), ("b", 10, 20, 1), ("b", 20, 30, 1)]
    whole = wp.stream(written, "window_end").key_by("k").window(TEN).aggregate(n=wp.count())
    assert whole.df.count() == 6


def test_ends_of_windows_beside_other_times_are_refused(spark: Any, tmp_path: Path) -> None:
    sums = by_windows(spark, tmp_path).select("k", F.col("window_end").alias("t"), F.col("s").alias("v"))
    mixed = sums.union(events(spark, tmp_path / "other").withWatermark("t", "0 seconds"))
    with pytest.raises(InvalidSpecError, match="one meaning before the union"):
        wp.stream(mixed, "t").key_by("k").window(TEN).aggregate(n=wp.count())


def test_ends_of_windows_are_refused_in_whichever_part_of_a_union(spark: Any, tmp_path: Path) -> None:
    sums = by_windows(spark, tmp_path).select("k", F.col("window_end").alias("t"), F.col("s").alias("v"))
    others = events(spark, tmp_path / "other").withWatermark("t", "0 seconds").union(sums).withColumnRenamed("t", "at")
    with pytest.raises(InvalidSpecError, match="one meaning before the union"):
        wp.stream(others.where("v > 0"), "at")
    computed = sums.union(events(spark, tmp_path / "third")).withColumn("t", F.col("t") + F.expr("INTERVAL 1 SECOND"))
    assert not wp.stream(computed, "t").source.is_passed_on


def test_windows_are_over_a_join_whose_sides_are_results_and_rows_of_a_source(spark: Any, tmp_path: Path) -> None:
    """The join unites its sides itself; what it emits are ends of windows alone."""
    ends = by_windows(spark, tmp_path).select("k", F.col("window_end").alias("at"), "s")
    sums = wp.stream(ends, "at", name="sums")
    others = wp.stream(events(spark, tmp_path / "other"), "t", "0 seconds", name="others")
    joined = wp.join(sums, others).on("k").window(FIVE).select("k", "window_end")
    assert wp.stream(joined.df, "window_end").source.is_window_end


@pytest.mark.slow
def test_windows_over_windows_over_rows_that_an_operator_holds_back_are_not_late(spark: Any, tmp_path: Path) -> None:
    """The second windows fire as far behind the watermark as their rows may be."""
    batches = [("a", 1, 1), ("a", 3, 2)], [("a", 12, 3), ("a", 14, 4)], [("a", 26, 5)], [("a", 43, 6)], [("a", 1000, 7)]
    over = wp.over(Feed(tmp_path).add(*batches).stream(spark), "t", "0 seconds", key=("k", "t")).partition_by("k").order_by("t")
    ahead = over.select("k", "t", n=wp.count().range(0, "15 seconds")).emit_on_window_close()
    fives = wp.stream(ahead.df, "t").key_by("k").window(FIVE).aggregate(n=wp.sum("n"))
    tens = wp.stream(fives.df, "window_end").key_by("k").window(TEN).aggregate(fives=wp.count(), n=wp.sum("n"))
    assert run(tens).rows() == [("a", 0, 10, 1, 7), ("a", 10, 20, 1, 5), ("a", 20, 30, 1, 1), ("a", 40, 50, 1, 1)]


@pytest.mark.slow
@pytest.mark.parametrize("is_stream", [True, False])
def test_ends_of_windows_of_keys_with_watermarks_of_their_own_are_ends(spark: Any, tmp_path: Path, is_stream: bool) -> None:
    """They count as the microsecond before, as of a static DataFrame, where nothing has a watermark."""
    own = wp.Watermarks.bounded("0 seconds").per_key()
    rows = Feed(tmp_path).add([("a", 1, 1), ("a", 6, 2)], [("a", 8, 4), ("a", 16, 8)], [("a", 60, 16)], [("a", 99, 32)])
    source = rows.stream(spark) if is_stream else spark.read.parquet(str(tmp_path))
    fives = wp.stream(source, "t", own).key_by("k").window(FIVE).aggregate(s=wp.sum("v"))
    tens = wp.stream(fives.df, "window_end", own, name="tens").key_by("k").window(TEN).aggregate(n=wp.count(), s=wp.sum("s"))
    expected = [("a", 0, 10, 2, 7), ("a", 10, 20, 1, 8), ("a", 60, 70, 1, 16), ("a", 90, 100, 1, 32)]
    assert (run(tens).rows() if is_stream else rows_of(tens.df)) == (expected[:2] if is_stream else expected)


@pytest.mark.slow
def test_the_longest_delay_of_the_parts_of_a_union_is_that_of_all(spark: Any, tmp_path: Path) -> None:
    batches = [("a", 1, 1), ("a", 3, 2)], [("a", 12, 3), ("a", 14, 4)], [("a", 26, 5)], [("a", 1000, 6)]
    stream = Feed(tmp_path).add(*batches).stream(spark)

    def counted(name: str, frame: Any) -> Any:
        over = wp.over(stream, "t", "0 seconds", key=("k", "t"), name=name).partition_by("k").order_by("t")
        return over.select("k", "t", n=frame).emit_on_window_close().df

    back, ahead = counted("back", wp.count().rows(-1, 0)), counted("ahead", wp.count().range(0, "15 seconds"))
    both = wp.stream(back.unionByName(ahead), "t").key_by("k").window(TEN).aggregate(rows=wp.count(), n=wp.sum("n"))
    assert run(both).rows() == [("a", 0, 10, 4, 3 + 7), ("a", 10, 20, 4, 4 + 5), ("a", 20, 30, 2, 2 + 1)]


@pytest.mark.slow
def test_a_view_of_results_has_names_of_counters_of_its_own(spark: Any, tmp_path: Path) -> None:
    by_windows(spark, tmp_path).createOrReplaceTempView("results_of_windows")
    sums = spark.sql("SELECT k, window_end, s FROM results_of_windows")
    collected = run(wp.stream(sums, "window_end").key_by("k").window(TEN).aggregate(n=wp.count()))
    assert len(collected.rows()) == 6
    assert collected.counted("firings", "windowpane_2")


@pytest.mark.slow
def test_a_union_of_two_programs_without_names_is_refused_and_one_with_names_runs(spark: Any, tmp_path: Path) -> None:
    one, other = (wp.stream(events(spark, tmp_path / side), "t", watermark="0 seconds") for side in "lr")
    named = wp.stream(events(spark, tmp_path / "r"), "t", watermark="0 seconds", name="other")
    first, second, third = (each.key_by("k").window(FIVE).aggregate(s=wp.sum("v")).df for each in (one, other, named))
    with pytest.raises(InvalidSpecError, match=r"counters of the same name, 'windowpane'.*name='second'"):
        first.union(second)
    query = first.unionByName(third).writeStream.format("memory").queryName("both").trigger(availableNow=True)
    query.option("checkpointLocation", str(tmp_path / "checkpoint")).start().awaitTermination()
    assert [row.n for row in spark.sql("SELECT count(*) AS n FROM both GROUP BY k, window_start").collect()] == [2] * 7


@pytest.mark.parametrize("made", [by_spark, by_windows])
def test_the_end_of_a_stream_is_refused_where_an_operator_before_keeps_rows(spark: Any, tmp_path: Path, made: Any) -> None:
    end = F.window_time("window") if made is by_spark else F.col("window_end")
    sums = made(spark, tmp_path).select("k", "s", end.alias("at"))
    result = wp.stream(sums, "at").key_by("k").window(TEN).aggregate(n=wp.count())
    with pytest.raises(InvalidSpecError, match="results of one are the input of another"):
        run(result, checkpoint=tmp_path / "checkpoint", flush_at_end=True)
