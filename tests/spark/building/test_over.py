"""OVER windows on Spark: both ways to emit, chains of windows, changelogs, late rows; expected values follow from the rules."""

from __future__ import annotations

from collections import Counter

import pytest
from pyspark.sql import functions as F

import windowpane as wp
from tests.spark.helpers import WHY, Feed, failure, rows, run, table
from windowpane import TumblingEventTimeWindows
from windowpane.errors import ChangedPlanError, InvalidSpecError, NeverClosesError, UnknownColumnError

pytestmark = pytest.mark.spark

TRADES = "id int, sym string, t timestamp, price int"
CHANGES = f"{TRADES}, _change_type string"


def materialized(changes, columns):
    """Apply a changelog, (.., change type) in order of batches, to an empty table; every delete must find its row."""
    held: Counter = Counter()
    taken = {"delete": -1, "update_preimage": -1, "insert": 1, "update_postimage": 1}
    by_batch: dict[int, list] = {}
    for batch, row in changes:
        by_batch.setdefault(batch, []).append(row)
    for batch in sorted(by_batch):
        for *values, change in by_batch[batch]:
            held[tuple(values[:columns])] += taken[change]
        assert min(held.values()) >= 0, f"batch {batch} deletes a row that was not there"
    return sorted((row for row, count in held.items() for _ in range(count)), key=repr)


@pytest.mark.slow
def test_a_changelog_of_differences_and_a_second_window(spark, tmp_path):
    """Trades arrive out of order, one is corrected, one moves to another symbol, one is deleted."""
    feed = Feed(tmp_path / "in", CHANGES)
    feed.add(
        [(1, "a", 10, 100, "insert"), (2, "a", 30, 130, "insert"), (3, "b", 5, 7, "insert")],
        [(4, "a", 20, 90, "insert")],
        [(4, "a", 20, 90, "update_preimage"), (4, "a", 20, 95, "update_postimage"), (3, "b", 5, 7, "delete")],
        [(2, "a", 30, 130, "update_preimage"), (2, "c", 30, 130, "update_postimage")],
    )
    result = (
        wp.over(feed.stream(spark), key="id")
        .partition_by("sym")
        .order_by("t")
        .select(
            "id",
            "sym",
            diff=wp.col("price") - wp.lag("price"),
            place=wp.row_number().over(partition_by=(), order_by=F.col("price").desc()),
        )
        .emit_on_update()
    )
    collected = run(result)
    assert collected.columns["main"] == ["id", "sym", "diff", "place", "_change_type"]
    batches = collected.batches["main"]
    assert materialized([each for each in batches if each[0] == 0], 4) == [(1, "a", None, 2), (2, "a", 30, 1), (3, "b", None, 3)]
    assert materialized([each for each in batches if each[0] <= 1], 4) == [
        (1, "a", None, 2),
        (2, "a", 40, 1),
        (3, "b", None, 4),
        (4, "a", -10, 3),
    ]
    assert materialized(batches, 4) == [(1, "a", None, 2), (2, "c", None, 1), (4, "a", -5, 3)]
    assert collected.counted("inconsistent") == [0] * 4
    assert "operator 2 of 2" in result.explain()


def test_window_close_emits_each_row_once_and_late_rows_by_the_side(spark, tmp_path):
    feed = Feed(tmp_path / "in", TRADES)
    feed.add(
        [(2, "a", 20, 5), (1, "a", 10, 3), (3, "b", 12, 1)],
        [(4, "a", 40, 9), (5, "b", 11, 2)],  # t=11 is late once the watermark has moved to 20
        [(6, "b", 100, 4)],
        [(7, "b", 200, 4)],
    )
    late = wp.OutputTag("late")
    trades = wp.over(feed.stream(spark), event_time="t", watermark="0 seconds", key="id").partition_by("sym").order_by("t")
    recent, of_all = wp.sum("price").range("-15 seconds", 0), wp.count().over(partition_by=())
    result = trades.select("*", n=wp.row_number(), recent=recent, of_all=of_all).side_output_late_data(late)
    collected = run(result.emit_on_window_close(), "main", "late")
    expected = [(1, "a", 10, 3, 1, 3, 1), (2, "a", 20, 5, 2, 8, 3), (3, "b", 12, 1, 1, 1, 2), (4, "a", 40, 9, 3, 9, 4)]
    assert collected.rows()[:4] == expected
    assert collected.rows("late") == [(5, "b", 11, 2, True)]
    assert collected.columns["late"] == ["id", "sym", "t", "price", "dropped", *WHY]
    narrow = trades.select("price", n=wp.row_number()).side_output_late_data(late).emit_on_window_close()
    assert narrow.get_side_output(late).columns == collected.columns["late"]
    assert sum(collected.counted("late_dropped")) == 1


def test_a_column_that_spark_computes_is_written_by_start_into_files(spark, tmp_path):
    feed = Feed(tmp_path / "in", TRADES)
    feed.add([(1, "a", 10, 100), (2, "a", 20, 130), (3, "a", 30, 125)])
    trades = wp.over(feed.stream(spark), event_time="t", watermark="1 second", key="id")
    result = trades.partition_by("sym").order_by("t").select("id", step=wp.col("price") - wp.lag("price")).emit_on_update()
    written = tmp_path / "steps"
    result.start(main=str(written), checkpoint=str(tmp_path / "ckpt"), trigger={"availableNow": True}).awaitTermination()
    rows_of_files = spark.read.parquet(str(written)).select("id", "step", "_change_type").collect()
    assert sorted(map(tuple, rows_of_files)) == [(1, None, "insert"), (2, 30, "insert"), (3, -5, "insert")]


def test_static_rows_give_their_final_values_in_both_modes(spark):
    trades = table(spark, [(1, "a", 10, 3), (2, "a", 10, 5), (3, "a", 30, None), (4, None, 1, 1)], TRADES)
    begun = wp.over(trades, event_time="t", key="id").partition_by("sym").order_by(F.col("t").asc_nulls_last())
    calls = {
        "running": wp.sum("price"),
        "rows": wp.sum("price").rows(),
        "ahead": wp.lead("price", 1, -1),
        "share": wp.col("price") / wp.sum("price").rows(),
        "odd": wp.count().filter(F.col("price") % 2 == 1),
        "known": wp.last_value("price").rows(None, -1).ignore_nulls(),
    }
    selected = begun.select("id", **calls)
    expected = [
        (1, 8, 3, 5, 1.0, 2, None),
        (2, 8, 8, None, 0.625, 2, 3),
        (3, 8, 8, -1, None, 2, 5),
        (4, 1, 1, -1, 1.0, 1, None),
    ]
    assert rows(selected.emit_on_window_close().df) == expected
    assert rows(selected.emit_on_update().df) == [(*row, "insert") for row in expected]


def test_names_and_settings_that_cannot_work_are_refused(spark):
    trades = table(spark, [(1, "a", 10, 3)], TRADES)
    begun = wp.over(trades, event_time="t", key="id").partition_by("sym").order_by("t")
    with pytest.raises(UnknownColumnError, match="pice"):
        begun.select("*", n=wp.sum("pice")).emit_on_update()
    with pytest.raises(InvalidSpecError, match="price"):
        begun.select("*", price=wp.sum("price")).emit_on_update()
    with pytest.raises(NeverClosesError, match="UNBOUNDED FOLLOWING"):
        begun.select(n=wp.sum("price").rows(0, None)).emit_on_window_close()
    changelog = table(spark, [(1, "a", 10, 3, "insert"), (2, "a", 20, 4, "insert"), (1, "a", 10, 3, "delete")], CHANGES)
    settled = wp.over(changelog, "t", key="id").order_by("t").select("id", n=wp.row_number()).emit_on_window_close()
    assert rows(settled.df) == [(2, 1)]
    numbered = changelog.withColumn("_change_type", changelog["id"].cast("int"))
    with pytest.raises(InvalidSpecError, match="is int, but a changelog has it as string"):
        wp.over(numbered, "t", key="id").order_by("t").select(n=wp.row_number()).emit_on_window_close()


@pytest.mark.slow
def test_a_changed_plan_and_an_impossible_change_are_refused(spark, tmp_path):
    feed = Feed(tmp_path / "in", CHANGES).add([(1, "a", 10, 100, "insert")])
    begun = wp.over(feed.stream(spark), key="id").partition_by("sym").order_by("t")
    run(begun.select(n=wp.row_number()).emit_on_update(), checkpoint=tmp_path / "ck")
    feed.add([(1, "a", 10, 100, "insert")])
    with pytest.raises(ChangedPlanError, match="partition by"):
        run(begun.partition_by("id").select(n=wp.row_number()).emit_on_update(), checkpoint=tmp_path / "ck")
    impossible = failure(begun.select(n=wp.row_number()).emit_on_update(), checkpoint=tmp_path / "ck")
    assert "InconsistentChangeError" in impossible


@pytest.mark.slow
def test_windows_over_rows_that_came_out_on_window_close(spark, tmp_path):
    """The watermark is passed on: the window waits for rows that the OVER window still holds back."""
    feed = Feed(tmp_path / "in", TRADES)
    feed.add([(1, "a", 10, 1), (2, "a", 20, 1), (3, "a", 12, 1)], [(4, "a", 40, 1)], [(5, "a", 100, 1)], [(6, "a", 200, 1)])
    numbered = (
        wp.over(feed.stream(spark), event_time="t", watermark="0 seconds", key="id")
        .partition_by("sym")
        .order_by("t")
        .select("t", "sym", n=wp.row_number(), ahead=wp.count().range(0, "5 seconds"))
        .emit_on_window_close()
    )
    assert "passed on       the watermark less 5 seconds" in numbered.explain()
    windows = wp.stream(numbered.df, event_time="t").key_by("sym").window(TumblingEventTimeWindows.of("30 seconds"))
    collected = run(windows.aggregate(rows=wp.count(), last=wp.max("n"), ahead=wp.sum("ahead")))
    assert collected.rows() == [("a", 0, 30, 3, 3, 4), ("a", 30, 60, 1, 4, 1), ("a", 90, 120, 1, 5, 1)]
    assert sum(collected.counted("firings", "windowpane_2")) == 3, "operators that are given no name are numbered"
    assert sum(collected.counted("late_elements", "second")) == 0
