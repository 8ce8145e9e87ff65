"""The support matrix: one small program of each kind, run on the Spark that is installed, beside results found by hand.

``python -m tests.spark.support_matrix`` prints a line for each feature, for docs/support.md.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyspark

import windowpane as wp
from tests.spark.helpers import Feed, instant, plain, run

BEATS = "k string, t timestamp, v long, beat boolean"
END: tuple[Any, ...] = (None, 1000, None, True)
EVENTS: list[list[tuple[Any, ...]]] = [[("a", 1, 1, False), ("a", 3, 2, False), ("b", 2, 4, False)], [("a", 12, 8, False)], [END]]
TEN = wp.TumblingEventTimeWindows.of("10 seconds")
TOTALS = {("a", 0, 3), ("b", 0, 4), ("a", 10, 8)}

Rows = list[tuple[Any, ...]]


@dataclass(frozen=True)
class Feature:
    """A feature: the engine that runs it, the program, and the rows that it gives, in any order."""

    engine: str
    program: Callable[[Any, Path], Rows]
    expected: set[tuple[Any, ...]]


def _stream(spark: Any, folder: Path, **settings: Any) -> wp.Stream:
    watermark = settings.pop("watermark", "0 seconds")
    df = Feed(folder / "in", BEATS).add(*EVENTS).stream(spark)
    return wp.stream(df, event_time="t", watermark=watermark, heartbeat="beat", **settings)


def _collected(result: Any, *columns: int, output: str = "main") -> Rows:
    return [tuple(row[column] for column in columns) for row in run(result, *dict.fromkeys(("main", output))).rows(output)]


def _windowed(spark: Any, folder: Path, assigner: wp.WindowAssigner = TEN, **settings: Any) -> wp.WindowedStream:
    return _stream(spark, folder, **settings).key_by("k").window(assigner)


def _ends(key: str, context: wp.ProcessContext, rows: Any) -> Any:
    yield {"total": sum(row["v"] for row in rows)}


def tumbling(spark: Any, folder: Path) -> Rows:
    return _collected(_windowed(spark, folder).aggregate(v=wp.sum("v")), 0, 1, 3)


def sessions(spark: Any, folder: Path) -> Rows:
    gap = wp.EventTimeSessionWindows.with_gap("5 seconds")
    return _collected(_windowed(spark, folder, gap).aggregate(v=wp.sum("v")), 0, 1, 2, 3)


def early(spark: Any, folder: Path) -> Rows:
    windowed = _windowed(spark, folder).trigger(wp.ContinuousEventTimeTrigger.of("5 seconds"))
    return _collected(windowed.aggregate(v=wp.sum("v")), 0, 1, 3)


def each_batch(spark: Any, folder: Path) -> Rows:
    return _collected(_windowed(spark, folder).trigger(wp.EachBatch()).aggregate(v=wp.sum("v")), 0, 1, 3)


def count_windows(spark: Any, folder: Path) -> Rows:
    return _collected(_stream(spark, folder).key_by("k").count_window(3).aggregate(v=wp.sum("v")), 0, 3)


def process(spark: Any, folder: Path) -> Rows:
    return _collected(_windowed(spark, folder).process(_ends, "total long"), 0, 1, 3)


def panes(spark: Any, folder: Path) -> Rows:
    result = _windowed(spark, folder).trigger(wp.EarlyAndFinal(count=2)).aggregate(v=wp.sum("v"))
    return _collected(result, 0, 1, 3, 6)


def chained(spark: Any, folder: Path) -> Rows:
    return _collected(_windowed(spark, folder).aggregate(v=wp.sum("v")).top(1, by="v"), 0, 2, 3)


def own_watermark(spark: Any, folder: Path) -> Rows:
    watermark = wp.Watermarks.bounded("0 seconds").at_once()
    return _collected(_windowed(spark, folder, watermark=watermark).aggregate(v=wp.sum("v")), 0, 1, 3)


def late_rows(spark: Any, folder: Path) -> Rows:
    Feed(folder / "in", BEATS, 3).add([("c", 5, 1, False)])
    result = _windowed(spark, folder).side_output_late_data("late").aggregate(v=wp.sum("v"))
    return _collected(result, 0, 1, 4, output="late")


def flushed(spark: Any, folder: Path) -> Rows:
    found: Rows = []
    df = Feed(folder / "in", BEATS).add(EVENTS[0]).stream(spark)
    windowed = wp.stream(df, event_time="t", watermark="0 seconds").key_by("k").window(TEN).aggregate(v=wp.sum("v"))
    windowed.start(
        main=lambda rows, batch: found.extend(plain(list(rows.collect()))),
        checkpoint=str(folder / "checkpoint"),
        trigger={"availableNow": True},
        flush_at_end=True,
    )
    return [(row[0], row[3]) for row in found]


def read_in_arrow(spark: Any, folder: Path) -> Rows:
    Feed(folder / "in", BEATS).add(*EVENTS)
    made = wp.read_in_arrow(spark, str(folder / "in"), BEATS, maxFilesPerTrigger=1)
    windowed = wp.stream(made, "t", watermark="0 seconds", heartbeat="beat").key_by("k").window(TEN)
    return _collected(windowed.aggregate(v=wp.sum("v")), 0, 1, 3)


def static_rows(spark: Any, folder: Path) -> Rows:
    rows = [(key, instant(at), value) for batch in EVENTS[:2] for key, at, value, _ in batch]
    df = spark.createDataFrame(rows, "k string, t timestamp, v long")
    result = wp.stream(df, event_time="t").key_by("k").window(TEN).aggregate(v=wp.sum("v"))
    return [(row.k, row.v) for row in result.df.collect()]


def _over(spark: Any, folder: Path) -> Any:
    df = Feed(folder / "in", BEATS).add(*EVENTS).stream(spark)
    begun = wp.over(df, event_time="t", watermark="0 seconds", key=("k", "t"), heartbeat="beat")
    return begun.partition_by("k").order_by("t").select("k", "v", before=wp.lag("v"))


def over_update(spark: Any, folder: Path) -> Rows:
    return _collected(_over(spark, folder).emit_on_update(), 0, 1, 2)


def over_close(spark: Any, folder: Path) -> Rows:
    return _collected(_over(spark, folder).emit_on_window_close(), 0, 1, 2)


def rolling(spark: Any, folder: Path) -> Rows:
    df = Feed(folder / "in", BEATS).add(*EVENTS[:2]).stream(spark)
    features = (
        wp.rolling(df, event_time="t", watermark="0 seconds").by("k").over("10 seconds", total=wp.sum("v")).hop("5 seconds")
    )
    return [row for row in _collected(features.emit("changed"), 0, 2) if row[1] is not None]


def deduplicate(spark: Any, folder: Path) -> Rows:
    return _collected(_stream(spark, folder).key_by("k").deduplicate(within="5 seconds"), 0, 2)


def _sides(spark: Any, folder: Path) -> tuple[wp.Stream, wp.Stream]:
    return _stream(spark, folder / "left", name="left"), _stream(spark, folder / "right", name="right")


def interval_join(spark: Any, folder: Path) -> Rows:
    left, right = _sides(spark, folder)
    pairs = wp.join(left, right).on("k").within("1 second", "5 seconds").select(l=wp.left("v"), r=wp.right("v"))
    return [row[-2:] for row in run(pairs).rows()]


def window_join(spark: Any, folder: Path) -> Rows:
    left, right = _sides(spark, folder)
    pairs = wp.join(left, right).on("k").window(TEN).select(l=wp.left("v"), r=wp.right("v"))
    return [row[-2:] for row in run(pairs).rows()]


FEATURES = {
    "tumbling, sliding, cumulating, calendar windows": Feature("slices", tumbling, TOTALS),
    "sessions": Feature("sessions", sessions, {("a", 1, 8, 3), ("b", 2, 7, 4), ("a", 12, 17, 8)}),
    "early results by continuous triggers": Feature("panes", early, TOTALS),
    "a changelog of each batch": Feature("panes", each_batch, TOTALS),
    "count windows": Feature("panes", count_windows, {("a", 11)}),
    "functions of your own, row by row": Feature("row", process, TOTALS),
    "composable triggers and panes": Feature(
        "panes or row", panes, {("a", 0, 3, "EARLY"), ("a", 0, 3, "ON_TIME"), ("b", 0, 4, "ON_TIME"), ("a", 10, 8, "ON_TIME")}
    ),
    "windows over windows, the top of each": Feature("slices, panes", chained, {(0, "b", 4), (10, "a", 8)}),
    "watermarks made in the operator": Feature("slices", own_watermark, TOTALS),
    "late rows as data": Feature("slices", late_rows, {("c", 5, True)}),
    "`flush_at_end`": Feature("slices", flushed, {("a", 3), ("b", 4)}),
    "files read by Arrow": Feature("slices", read_in_arrow, TOTALS),
    "static DataFrames": Feature("slices", static_rows, {("a", 3), ("b", 4), ("a", 8)}),
    "OVER windows on update": Feature("over update", over_update, {("a", 1, None), ("a", 2, 1), ("b", 4, None), ("a", 8, 2)}),
    "OVER windows on window close": Feature("over close", over_close, {("a", 1, None), ("a", 2, 1), ("b", 4, None), ("a", 8, 2)}),
    "rolling features": Feature("rolling", rolling, {("a", 3), ("b", 4), ("a", 10)}),
    "deduplication": Feature("deduplication", deduplicate, {("a", 1), ("b", 4), ("a", 8)}),
    "joins by an interval": Feature("join_interval", interval_join, {(1, 2)}),
    "joins by window": Feature("join_window", window_join, {(1, 1), (1, 2), (2, 1), (2, 2), (4, 4), (8, 8)}),
}
"""By what docs/support.md calls them."""


def main() -> None:
    """Run every feature on the Spark that is installed and print how it went."""
    from pyspark.sql import SparkSession

    from tests.conftest import SETTINGS

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    names = sys.argv[1:] or list(FEATURES)
    spark = SparkSession.builder.master("local[2]").config(map=SETTINGS).getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    for name in names:
        feature = FEATURES[name]
        with tempfile.TemporaryDirectory() as folder:
            try:
                found = feature.program(spark, Path(folder))
                said = "yes" if set(found) == feature.expected else f"no: {sorted(found, key=repr)}"
            except Exception as error:
                said = f"no: {type(error).__name__}: {str(error)[:300]}"
        print(f"{pyspark.__version__} | {name} | {said}", flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
