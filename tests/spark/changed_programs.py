"""Programs of several kinds and what becomes of them: ``python changed_programs.py INPUT WORK PLACES``, for a test that kills it.

``PLACES`` is JSON: by the name of a program a batch and a place in it. The changed programs go on one after the other, each from
its checkpoint. In that batch a program stalls before its results are written (the state of all tasks is committed then), behind
that, or in the batch that comes next; ``none`` does not stall. A program that stalls leaves a marker, and the next one starts.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import windowpane as wp
from tests.brief_jvm import brief_settings
from tests.spark import deploy_program
from tests.spark.restart_program import stall

SCHEMA = "id long, k string, once long, t timestamp, v long, kind string, heartbeat boolean"
TEN = wp.TumblingEventTimeWindows.of("10 seconds")


def _read(spark: SparkSession, folder: str) -> Any:
    return spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(folder)


def _keyed(df: Any, *keys: str) -> wp.KeyedStream:
    return wp.stream(df, event_time="t", watermark="4 seconds", heartbeat="heartbeat").key_by(*keys)


def windows(spark: SparkSession, folder: str, is_new: bool) -> Any:
    """An aggregate is added, and the lateness is twice as long."""
    calls = {"n": wp.count(), "total": wp.sum("v")} | ({"top": wp.max("v")} if is_new else {})
    windowed = _keyed(_read(spark, folder), "k").window(TEN)
    return windowed.allowed_lateness("8 seconds" if is_new else "4 seconds").aggregate(**calls)


def assigner(spark: SparkSession, folder: str, is_new: bool) -> Any:
    """Ten seconds become six, every three."""
    sliding = wp.SlidingEventTimeWindows.of("6 seconds", "3 seconds")
    return _keyed(_read(spark, folder), "k").window(sliding if is_new else TEN).aggregate(n=wp.count(), total=wp.sum("v"))


def _over(spark: SparkSession, folder: str, is_new: bool) -> Any:
    calls = {"before": wp.lag("v"), "near": wp.sum("v").rows(-2, 0)} | ({"top": wp.max("v").rows(-2, 0)} if is_new else {})
    rows = wp.over(_read(spark, folder), "t", "4 seconds", key="id", heartbeat="heartbeat")
    return rows.partition_by("k").order_by("t").select("id", "k", **calls)


def over_close(spark: SparkSession, folder: str, is_new: bool) -> Any:
    """A call is added, the rows of whose frame are in state."""
    return _over(spark, folder, is_new).emit_on_window_close()


def over_update(spark: SparkSession, folder: str, is_new: bool) -> Any:
    """The same of rows without a watermark: those in state get its values, as updates."""
    calls = {"before": wp.lag("v")} | ({"so_far": wp.max("v")} if is_new else {})
    rows = wp.over(_read(spark, folder).where("NOT heartbeat"), key="id").partition_by("k").order_by("t")
    return rows.select("id", "k", **calls).emit_on_update()


def deduplication(spark: SparkSession, folder: str, is_new: bool) -> Any:
    """Rows are near for twice as long."""
    return _keyed(_read(spark, folder), "once").deduplicate(within="6 seconds" if is_new else "3 seconds")


def join(spark: SparkSession, folder: str, is_new: bool) -> Any:
    """The bounds of an interval become narrower."""
    df = _read(spark, folder)
    paid = df.where("kind = 'pay' OR heartbeat").selectExpr("id AS other", "k", "t", "heartbeat")
    left, right = (
        wp.stream(side, event_time="t", watermark="4 seconds", heartbeat="heartbeat")
        for side in (df.where("kind = 'order' OR heartbeat"), paid)
    )
    bounds = ("-1 second", "3 seconds") if is_new else ("-3 seconds", "6 seconds")
    return wp.join(left, right).on("k").within(*bounds).how("inner").select("id", other=wp.right("other"))


def pattern(spark: SparkSession, folder: str, is_new: bool) -> Any:
    """Matches may be half as long, which none is: attempts that wait begin anew."""
    pairs = _keyed(_read(spark, folder), "k").match("a b", b=wp.col("v") >= 50).order_by("id")
    near = pairs.within("30 minutes" if is_new else "1 hour").after_match("to next row")
    return near.select(one=wp.first("a.id"), two=wp.last("b.id"))


PROGRAMS: dict[str, Callable[[SparkSession, str, bool], Any]] = {
    "windows": windows,
    "assigner": assigner,
    "chain": deploy_program.program,
    "over_close": over_close,
    "over_update": over_update,
    "deduplication": deduplication,
    "join": join,
    "pattern": pattern,
}
"""By their names, the programs that are what they were, or are changed."""


@dataclass(frozen=True)
class Sink:
    """Writes each batch to a folder of its own, over what is there, and stalls once.

    Args:
        work: the folder of the program.
        batch: the first one behind the change, -1 for none in which it stalls.
        place: where it stalls.
    """

    work: Path
    batch: int = -1
    place: str = "none"

    def __call__(self, rows: Any, batch: int) -> None:
        if (self.place, batch) in (("computed", self.batch), ("committed", self.batch + 1)):
            stall(f"{self.work}/stalled")
        rows.write.mode("overwrite").parquet(f"{self.work}/main/batch={batch}")
        if (self.place, batch) == ("written", self.batch):
            stall(f"{self.work}/stalled")


def start(spark: SparkSession, name: str, folder: str, work: Path, is_new: bool, sink: Sink | None = None) -> Any:
    """Start a program over all files there are, from its checkpoint."""
    result = PROGRAMS[name](spark, folder, is_new)
    checkpoint = f"{work}/checkpoint"
    return result.start(main=sink or Sink(work), checkpoint=checkpoint, changes="accept", trigger={"availableNow": True})


def main() -> None:
    folder, work, places = sys.argv[1], Path(sys.argv[2]), json.loads(sys.argv[3])
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = SparkSession.builder.master("local[2]").config(map=brief_settings(work)).getOrCreate()
    queries = []
    for name, (batch, place) in places.items():
        own = work / name
        queries.append(start(spark, name, folder, own, is_new=True, sink=Sink(own, batch, place)))
        while place != "none" and queries[-1].isActive and not (own / "stalled").exists():
            time.sleep(0.02)
    for query in queries:
        query.awaitTermination()


if __name__ == "__main__":
    main()
