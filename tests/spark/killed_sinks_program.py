"""Queries with a sink of each kind that kill themselves: ``python killed_sinks_program.py INPUT WORK POSTGRES REDIS [SEED]``.

With a seed, functions of the sinks kill the driver before or after they ran, one call in ``ODDS``, by the seed; without one the
input is run to its end. Every query ends by itself once the input is consumed; the last one flushes its windows at the end.
"""

from __future__ import annotations

import os
import random
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import windowpane as wp
from tests.brief_jvm import brief_settings
from windowpane.errors import EndedStreamError
from windowpane.sinks import ChangeWriter, RedisHashes, apply_changes
from windowpane.spark.queries import ending, running
from windowpane.spark.sinks import paired as writers
from windowpane.stores import DuckStore, PostgresStore

SCHEMA = "id long, k string, t timestamp, v long"
LATE = wp.OutputTag("late")
ODDS = 12
AT_THE_END = {"availableNow": True}
NAMES = ("files", "over", "sessions", "redis", "flushed")


def dangerous(chance: random.Random, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that kills this process, the JVM and the workers with it, now and then: before it runs, or after it."""

    def call(*arguments: Any, **named: Any) -> Any:
        moment = chance.randrange(2 * ODDS)
        if moment == 0:
            os.killpg(0, signal.SIGKILL)
        result = function(*arguments, **named)
        if moment == 1:
            os.killpg(0, signal.SIGKILL)
        return result

    return call


def endanger(seed: int) -> None:
    """Make what sinks do dangerous."""
    chance = random.Random(seed)
    places: list[tuple[Any, str]] = [
        (writers.FilesWriter, "take"),
        (running.BatchWriter, "__call__"),
        (DuckStore, "_merge"),
        (DuckStore, "apply"),
        (PostgresStore, "_merge"),
        (PostgresStore, "apply"),
        (ending, "set_mark"),
        (writers, "keep_number"),
        (ending, "_write_last_windows"),
        (RedisHashes, "take"),
    ]
    for owner, name in places:
        setattr(owner, name, dangerous(chance, getattr(owner, name)))


def rows(spark: SparkSession, folder: str) -> Any:
    """Return the input, one file a micro-batch."""
    return spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(folder)


def windows(df: Any) -> wp.Result:
    """Return sums of ten seconds that late rows refine."""
    keyed = wp.stream(df, event_time="t", watermark="5 seconds").key_by("k").window(wp.TumblingEventTimeWindows.of("10 seconds"))
    late = keyed.allowed_lateness("6 seconds").side_output_late_data(LATE)
    result: wp.Result = late.aggregate(n=wp.count(), total=wp.sum("v"))
    return result


def sessions(df: Any) -> wp.Result:
    """Return sessions as a changelog: results before a session ends are taken back."""
    keyed = wp.stream(df, event_time="t", watermark="40 seconds").key_by("k")
    early = keyed.window(wp.EventTimeSessionWindows.with_gap("2 seconds")).trigger(wp.AfterWatermark(early=wp.AfterCount(2)))
    result: wp.Result = early.accumulation("retracting").aggregate(n=wp.count(), total=wp.sum("v"))
    return result


def begin(spark: SparkSession, name: str, folder: str, work: Path, postgres: str, redis: str) -> Any:
    """Start one of the queries; the last of them is waited for."""
    df, checkpoint = rows(spark, folder), str(work / name / "checkpoint")
    if name == "files":
        main, late = wp.Files(f"{work}/files/main", "json"), f"{work}/files/late"
        return windows(df).start(main=main, late=late, checkpoint=checkpoint, trigger=AT_THE_END)
    if name == "over":
        calls = {"after": wp.lead("v"), "total": wp.sum("v")}
        over = wp.over(df, key="id").partition_by("k").order_by("t", "id").select("*", **calls).emit_on_update()
        store = str(work / "over.duckdb")
        return apply_changes(over.df, store, "id", table="running", checkpoint=checkpoint, trigger=AT_THE_END)
    if name == "sessions":
        writer = ChangeWriter(postgres, ("k", "window_start", "window_end"), "sessions")
        return sessions(df).start(main=writer, checkpoint=checkpoint, trigger=AT_THE_END)
    if name == "redis":
        hashes = RedisHashes(redis, key="k", prefix="w:", version="window_start")
        return windows(df).start(main=hashes, checkpoint=checkpoint, trigger=AT_THE_END)
    main = wp.Files(f"{work}/flushed/main")
    try:
        return windows(df).start(main=main, checkpoint=checkpoint, trigger=AT_THE_END, flush_at_end=True)
    except EndedStreamError:
        return None


def main() -> None:
    folder, work, postgres, redis, *seed = sys.argv[1:]
    os.environ["PYSPARK_PYTHON"] = sys.executable
    # A task whose worker is killed runs again, three times.
    spark = SparkSession.builder.master("local[2,4]").config(map=brief_settings(work)).getOrCreate()
    if seed:
        endanger(int(seed[0]))
    for name in NAMES:
        query = begin(spark, name, folder, Path(work), postgres, redis)
        if query is not None:
            query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main()
