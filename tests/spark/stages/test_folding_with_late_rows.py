"""Late rows asked for on Spark: rows that cannot be late fold before the shuffle, the others come whole; after a restart, too."""

from __future__ import annotations

import traceback
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark import TaskContext

import windowpane as wp
from tests.spark.helpers import EVENTS, Feed, rows, run, table
from windowpane.spark.sources import source

pytestmark = pytest.mark.spark

TEN = wp.TumblingEventTimeWindows.of("10 seconds")
FIRST = [
    [("a", 1, 1), ("b", 2, 2)],
    [("a", 12, 4), ("b", 30, 8)],
    [("a", 3, 16), ("a", 31, 32), ("b", 32, 64)],  # the watermark is 25: the first row is late
    [("b", 26, 128), ("b", 22, 256), ("a", 50, 512)],  # 27: the second misses nothing of what is open, the window ends at 30
    [("a", 44, 1024), ("a", 33, 2048)],  # 45: the second is late, by more than the delay
]
SECOND = [[("a", 60, 4096), ("a", 20, 8192)], [("b", 61, 16384), ("a", 5, 32768)]]
LATE = [(3, 16), (5, 32768), (20, 8192), (33, 2048)]


class Totals(wp.ArrowAggregateFunction):
    """The sum of v. It writes down how many rows it was given in which batch, by the encoder or by a bucket."""

    def __init__(self, seen: str) -> None:
        self.seen = seen

    def partial(self, rows: pa.Table) -> pa.Table:
        context = TaskContext.get()
        assert context is not None
        batch = context.getLocalProperty("streaming.sql.batchId") or "0"
        place = "encoder" if any(frame.filename.endswith("encode.py") for frame in traceback.extract_stack()) else "bucket"
        with Path(self.seen).open("a") as file:
            file.write(f"{batch} {place} {rows.num_rows}\n")
        return self.merge(rows.select([wp.GROUP, "v"]))

    def merge(self, partials: pa.Table) -> pa.Table:
        return partials.group_by(wp.GROUP).aggregate([("v", "sum")]).rename_columns([wp.GROUP, "v"])

    def finish(self, partials: pa.Table) -> pa.Table:
        return partials


def totals(df: Any, watermark: Any, seen: Path) -> wp.Result:
    windowed = wp.stream(df, "t", watermark).key_by("k").window(TEN).side_output_late_data("late")
    return windowed.aggregate(Totals(str(seen)), schema="v long")


def seen_by_place(seen: Path) -> dict[tuple[int, str], int]:
    """Return how many rows were folded in each batch, at each place."""
    counted: Counter[tuple[int, str]] = Counter()
    for line in seen.read_text().splitlines():
        batch, place, rows = line.split()
        counted[int(batch), place] += int(rows)
    return counted


@pytest.mark.slow
@pytest.mark.parametrize("watermark", ["5 seconds", wp.Watermarks.bounded("5 seconds").at_once()], ids=["spark", "own"])
def test_rows_that_cannot_be_late_fold_before_the_shuffle(spark: Any, tmp_path: Path, watermark: Any) -> None:
    feed, seen = Feed(tmp_path / "in").add(*FIRST), tmp_path / "seen"
    result = totals(feed.stream(spark), watermark, seen)
    assert "on: rows fold before the shuffle, those that may be late come whole" in result.explain()
    first = run(result, "main", "late", checkpoint=tmp_path / "checkpoint")
    folded = seen_by_place(seen)
    assert {place for batch, place in folded if batch == 0} == {"bucket"}  # nothing is known in the first batch of a run
    later = sorted({batch for batch, _ in folded})[1:]  # batches without rows move the watermark in between
    assert [(folded[batch, "encoder"], folded[batch, "bucket"]) for batch in later] == [(2, 0), (2, 1), (3, 0), (1, 1)]
    feed.add(*SECOND)
    second = run(totals(feed.stream(spark), watermark, seen), "main", "late", checkpoint=tmp_path / "checkpoint")
    late = [(t, v) for _, t, v, _, _ in [*first.rows("late"), *second.rows("late")]]
    assert sorted(late) == LATE
    sums = sorted((k, start, v) for k, start, _, v in [*first.rows(), *second.rows()])
    assert sums == [("a", 0, 1), ("a", 10, 4), ("a", 30, 32), ("a", 40, 1024), ("b", 0, 2), ("b", 20, 384), ("b", 30, 72)]


def test_explain_says_that_rows_come_whole_where_a_faster_stream_may_raise_the_watermark(spark: Any, tmp_path: Path) -> None:
    def explained(watermark: Any) -> str:
        return totals(Feed(tmp_path).stream(spark), watermark, tmp_path / "seen").explain()

    own = wp.Watermarks.bounded("5 seconds").at_once()
    assert "on: rows fold before the shuffle" in explained("5 seconds")
    spark.conf.set("spark.sql.streaming.multipleWatermarkPolicy", "MAX")
    try:
        assert "off: late rows are an output, and needed whole: no task knows" in explained("5 seconds")
        assert "on: rows fold before the shuffle" in explained(own)  # Spark's policy says nothing of it
    finally:
        spark.conf.unset("spark.sql.streaming.multipleWatermarkPolicy")


def test_rows_come_whole_where_a_task_may_run_again_on_another_executor(spark: Any, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(source, "is_local", lambda _: False)
    for watermark in ("5 seconds", wp.Watermarks.bounded("5 seconds").at_once()):
        explained = totals(Feed(tmp_path).stream(spark), watermark, tmp_path / "seen").explain()
        assert "off: late rows are an output, and needed whole: no task knows" in explained


def test_static_rows_fold_all(spark: Any, tmp_path: Path) -> None:
    result = totals(table(spark, [row for batch in FIRST for row in batch], EVENTS), "5 seconds", tmp_path / "seen")
    assert rows(result.df)[:2] == [("a", 0, 10, 17), ("a", 10, 20, 4)]
    assert {place for _, place in seen_by_place(tmp_path / "seen")} == {"encoder"}
