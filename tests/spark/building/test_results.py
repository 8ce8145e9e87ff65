"""Expressions over aggregates, and the steps on results before a sink: computed by Spark, behind the operator."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import ArithmeticException
from pyspark.sql import functions as F

import windowpane as wp
from tests.spark.helpers import Feed, rows, run, table
from windowpane.errors import DuplicateColumnError, InvalidSpecError, UnknownColumnError

pytestmark = pytest.mark.spark

ROWS = "k string, t timestamp, a long, b long"
TEN = wp.TumblingEventTimeWindows.of("10 seconds")
EVENTS: list[tuple[Any, ...]] = [("x", 1, 6, 4), ("x", 2, 3, 2), ("y", 3, 8, None), ("x", 12, 1, 2)]


def windowed(source: Any) -> wp.WindowedStream:
    return wp.stream(source, event_time="t", watermark="0 seconds").key_by("k").window(TEN)


def test_expressions_over_aggregates_are_typed_as_spark_types_them(spark: Any) -> None:
    result = windowed(table(spark, EVENTS, ROWS)).aggregate(
        rate=wp.sum("a") / wp.sum("b"),
        n=wp.count(),
        spread=wp.max("a") - wp.min("a"),
        whole=(wp.sum("a") / wp.count()).cast("int"),
        known=wp.apply(F.coalesce, wp.sum("b"), F.lit(-1)),
        more=wp.sum("a") > wp.col("n"),
        shown=F.concat(F.col("k"), F.lit("!")),
    )
    kinds = {field.name: field.dataType.simpleString() for field in result.df.schema}
    assert kinds == {
        "k": "string",
        "window_start": "timestamp",
        "window_end": "timestamp",
        "rate": "double",
        "n": "bigint",
        "spread": "bigint",
        "whole": "int",
        "known": "bigint",
        "more": "boolean",
        "shown": "string",
    }
    assert rows(result.df) == [
        ("x", 0, 10, 1.5, 2, 3, 4, 6, True, "x!"),
        ("x", 10, 20, 0.5, 1, 0, 1, 2, False, "x!"),
        ("y", 0, 10, None, 1, 0, 8, -1, True, "y!"),
    ]
    assert "rate = (sum('a') / sum('b'))" in result.explain()


def test_division_by_zero_follows_the_ansi_setting(spark: Any) -> None:
    result = windowed(table(spark, [("x", 1, 6, 0)], ROWS)).aggregate(rate=wp.sum("a") / wp.sum("b"))
    before = spark.conf.get("spark.sql.ansi.enabled")
    try:
        spark.conf.set("spark.sql.ansi.enabled", "false")
        assert [row.rate for row in result.df.collect()] == [None]
        spark.conf.set("spark.sql.ansi.enabled", "true")
        with pytest.raises(ArithmeticException, match="DIVIDE_BY_ZERO"):
            windowed(table(spark, [("x", 1, 6, 0)], ROWS)).aggregate(rate=wp.sum("a") / wp.sum("b")).df.collect()
    finally:
        spark.conf.set("spark.sql.ansi.enabled", before)


def test_results_are_chosen_and_filtered_and_go_on_to_other_windows(spark: Any, tmp_path: Path) -> None:
    batches = [EVENTS, [("x", 25, 5, 1)], [("y", 1, 1, 1), ("x", 45, 9, 9)], [("x", 70, 9, 9)]]
    stream = Feed(tmp_path / "in", ROWS).add(*batches).stream(spark)
    totals = windowed(stream).side_output_late_data("late").aggregate(total=wp.sum("a"), mean=wp.sum("a") / wp.count())
    kept = totals.having(wp.col("total") > 1).select("k", "window_end", half=wp.col("mean") / 2)
    days = kept.window_all(wp.TumblingEventTimeWindows.of("20 seconds")).aggregate(n=wp.count(), most=wp.max("half"))
    out = run(days.where(F.col("most") != 2.5), "main", "late")
    assert out.rows() == [(0, 20, 2, 4.0), (40, 60, 1, 4.5)]
    assert [row[:3] for row in out.rows("late")] == [("y", 1, 1)]


def test_having_an_aggregate_that_is_no_result(spark: Any) -> None:
    given = [("x", 1, 6, 0), ("x", 2, 1, 5), ("y", 1, 9, 1), (None, 3, 1, None)]
    counted = windowed(table(spark, given, ROWS)).aggregate(n=wp.count())
    kept = counted.having((wp.sum("b") > 1) & (wp.col("n") > 1))
    assert [row[:1] + row[3:] for row in rows(kept.df)] == [("x", 2)]
    assert kept.df.columns == counted.df.columns  # a sum of no values is NULL, which is not true
    assert "sum('b') > 1" in kept.explain()


def test_what_cannot_be_chosen_is_refused(spark: Any) -> None:
    given = windowed(table(spark, EVENTS, ROWS))
    with pytest.raises(UnknownColumnError, match=r"'tota'.*Did you mean 'total'"):
        given.aggregate(total=wp.sum("a"), half=wp.col("tota") / 2)
    with pytest.raises(InvalidSpecError, match="there is no aggregate among them"):
        given.aggregate(half=wp.col("k"))
    with pytest.raises(InvalidSpecError, match="a column of that name already"):
        given.aggregate(k=wp.sum("a") / 2)
    with pytest.raises(InvalidSpecError, match="expected an aggregate"):
        given.aggregate(x=wp.sum("a").rows(-1, 0) / 2)
    result = given.aggregate(total=wp.sum("a"))
    with pytest.raises(DuplicateColumnError, match="'total' twice"):
        result.select("*", total=wp.col("total") * 2)
    with pytest.raises(InvalidSpecError, match=r"Name it where it is computed"):
        result.where(wp.sum("a") > 1)
    with pytest.raises(InvalidSpecError, match=r"stands right behind aggregate"):
        result.select("k", "total").having(wp.sum("b") > 1)
    with pytest.raises(InvalidSpecError, match="top needs the keys and windows"):
        result.select("k", "total").top(1, by="total")
    panes = given.trigger(wp.Repeatedly(wp.AfterCount(1))).accumulation("retracting").aggregate(total=wp.sum("a"))
    with pytest.raises(UnknownColumnError, match="_change_type"):
        panes.where(wp.col("_change_type") == "insert")
    assert panes.select("total").df.columns == ["total", "_change_type"]


def test_only_rows_that_differ_from_the_one_before(spark: Any) -> None:
    given = [
        ("x", 1, None, 1),
        ("x", 2, None, 1),
        ("x", 3, 5, 1),
        ("y", 3, 5, 1),
        ("x", 4, 5, 1),
        ("x", 5, 5, 2),
        ("x", 6, None, 2),
    ]
    stream = wp.over(table(spark, given, ROWS), event_time="t", key=("k", "t")).partition_by("k").order_by("t")
    changes = stream.changes_only("a", "b").emit_on_window_close()
    assert rows(changes.df) == [("x", 1, None, 1), ("x", 3, 5, 1), ("x", 5, 5, 2), ("x", 6, None, 2), ("y", 3, 5, 1)]
    on_update = rows(stream.changes_only("a", "b").emit_on_update().df)
    assert on_update == [(*row, "insert") for row in rows(changes.df)]
    with pytest.raises(UnknownColumnError):
        stream.changes_only("none")


def test_of_an_update_one_row_may_be_left_out(spark: Any, tmp_path: Path) -> None:
    """A row that comes between changes what the one behind it is beside, so it leaves the results, and the new one is in them."""
    feed = Feed(tmp_path / "in", ROWS).add([("x", 1, 1, 0), ("x", 3, 3, 0)], [("x", 2, 9, 0)])
    over = wp.over(feed.stream(spark), event_time="t", watermark="1 hour", key=("k", "t")).partition_by("k").order_by("t")
    near = over.select("t", before=wp.lag("a")).emit_on_update().where(wp.col("before") < 5)
    collected = run(near).batches["main"]
    assert sorted(collected, key=repr) == [(0, (3, 1, "insert")), (1, (2, 1, "insert")), (1, (3, 1, "delete"))]


@pytest.mark.slow
def test_a_top_by_what_spark_computes(spark: Any) -> None:
    result = windowed(table(spark, EVENTS, ROWS)).aggregate(mean=wp.sum("a") / wp.count())
    assert rows(result.top(1, by="mean").df) == [(0, 10, "y", 8.0, 1), (10, 20, "x", 1.0, 1)]


def test_rolling_features_of_several_lengths(spark: Any) -> None:
    payments = table(spark, [("x", 1, 6, 4), ("x", 3, 3, 2)], ROWS)
    features = wp.rolling(payments, event_time="t").by("k")
    features = features.over("2 seconds", "10 seconds", n=wp.count(), mean=wp.sum("a") / wp.col("n")).hop("1 second")
    each = features.emit("each").where(wp.col("n_10s") > 1)
    assert each.df.drop("as_of").collect() == [("x", 1, 2, 3.0, 4.5)]
    labels = table(spark, [("x", 4)], "k string, t timestamp")
    assert features.at(labels, time="t").df.columns == ["k", "t", "n_2s", "n_10s", "mean_2s", "mean_10s"]


def test_arguments_may_be_expressions_and_conditions_go_into_them(spark: Any) -> None:
    windows = windowed(table(spark, EVENTS, ROWS))
    many = F.when(F.col("a") > 5, 1)
    result = windows.aggregate(more=wp.sum(wp.col("a") + wp.col("b")), same=wp.max(wp.col("a")), many=wp.count(many))
    found = {(row.k, row.window_start.second): (row.more, row.same, row.many) for row in result.df.collect()}
    assert found == {("x", 0): (15, 6, 1), ("y", 0): (None, 8, 1), ("x", 10): (3, 1, 0)}
    keyed = wp.stream(table(spark, EVENTS, ROWS), "t").key_by(wp.col("k")).window(TEN)
    assert keyed.aggregate(n=wp.count()).df.columns[0] == "k"
    for key in (wp.col("a") % 2, (wp.col("a") % 2).alias("odd")):
        with pytest.raises(InvalidSpecError, match="key_by takes names of columns and Columns of PySpark"):
            wp.stream(table(spark, EVENTS, ROWS), "t").key_by(key)  # type: ignore[arg-type]
    with pytest.raises(InvalidSpecError, match="an aggregate inside another"):
        windows.aggregate(most=wp.max(wp.count() + 1))
    for call in (wp.count().filter(wp.col("a") > 5), wp.sum("a").distinct()):
        with pytest.raises(InvalidSpecError, match=r"OVER call.*wp\.count\(F\.when\(condition, 1\)\)"):
            windows.aggregate(n=call)


def test_a_function_that_takes_a_plain_value_is_refused_where_it_is_written(spark: Any) -> None:
    """``F.date_format`` takes its format as a text; operands are Columns, so a batch would have failed by it."""
    counted = windowed(table(spark, EVENTS, ROWS)).aggregate(n=wp.count())
    with pytest.raises(InvalidSpecError, match=r"date_format\(.*plain value.*a function of yours"):
        counted.select("k", day=wp.apply(F.date_format, wp.col("window_start"), "yyyy"))
    years = counted.select("k", year=wp.apply(lambda at: F.date_format(at, "yyyy"), wp.col("window_start")))
    assert {row.year for row in years.df.collect()} == {"2024"}
    with pytest.raises(InvalidSpecError, match=r"without a name: write select\(name=\.\.\.\)\.$"):
        counted.select(F.date_format("window_start", "yyyy").alias("year"))
