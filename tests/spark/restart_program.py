"""Programs that a test kills and restarts: run as ``python restart_program.py INPUT WORK PARTITIONS [--finish] [--only NAME]``.

``sessions`` writes three outputs with ``start``; ``tumbling`` writes ``df`` to Spark's own file sink; ``changed`` writes the
changelog of two OVER windows. Each stalls once in the middle of a batch and leaves a marker, so that the test can kill it there.
With ``--finish`` the input is run to its end, then once more without any disturbance, and what both runs wrote is left in
``WORK/results.json``.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import windowpane as wp
from tests.brief_jvm import brief_settings

SCHEMA = "id long, k string, t timestamp, v long, heartbeat boolean"
STALL = 1_000_000
"""The value at which ``tumbling`` stalls; the others stall in a batch."""
STALLS_IN = 5
LATE = wp.OutputTag("late")
FIRST = wp.OutputTag("first", "firing long, n long")


def stall(marker: str) -> None:
    """Leave the marker and wait to be killed; go on if it is there already."""
    if not os.path.exists(marker):
        Path(marker).touch()
        time.sleep(600)


class Report(wp.ProcessWindowFunction):
    """Counts its firings per key, in global state, and per window where windows do not merge; stalls at one value."""

    def __init__(self, per_window: bool, marker: str | None = None) -> None:
        self.per_window = per_window
        self.marker = marker

    def process(self, key: Any, context: wp.ProcessContext, elements: Sequence[Any]) -> Iterable[Any]:
        values = [row["v"] for row in elements]
        if self.marker is not None and STALL in values:
            stall(self.marker)
        firing = self._count(context.global_state("firings"))
        if self.per_window:
            return [{"n": len(values), "total": sum(values), "firing": self._count(context.window_state("firings"))}]
        if firing == 1:
            context.output(FIRST, {"firing": firing, "n": len(values)})
        return [{"n": len(values), "total": sum(values), "firing": firing}]

    def clear(self, context: wp.ProcessContext) -> None:
        if self.per_window:
            context.window_state("firings").clear()

    @staticmethod
    def _count(state: Any) -> int:
        count = (state.get() or 0) + 1
        state.update(count)
        return int(count)


def stalling_sink(folder: str, marker: str, at: int, *, when_written: bool = False) -> Callable[[Any, int], None]:
    """Return an idempotent sink that stalls in batch ``at``, when the sinks before it have written, or it has itself."""

    def write(df: Any, batch_id: int) -> None:
        if batch_id == at and not when_written:
            stall(marker)
        df.write.mode("overwrite").parquet(f"{folder}/batch={batch_id}")
        if batch_id == at and when_written:
            stall(marker)

    return write


def events(spark: SparkSession, folder: str) -> wp.KeyedStream:
    """Return the input, one file a micro-batch."""
    df = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(folder)
    return wp.stream(df, event_time="t", watermark="2 seconds", heartbeat="heartbeat").key_by("k")


def start_sessions(spark: SparkSession, folder: str, work: Path, trigger: dict[str, Any], at: int = STALLS_IN) -> Any:
    windows = events(spark, folder).window(wp.EventTimeSessionWindows.with_gap("3 seconds")).allowed_lateness("6 seconds")
    result = windows.side_output_late_data(LATE).side_output(FIRST).process(Report(False), "n long, total long, firing long")
    first = stalling_sink(f"{work}/sessions/first", f"{work}/sessions.stalled", at)
    sinks: dict[str, Any] = {"main": f"{work}/sessions/main", "first": first, "late": f"{work}/sessions/late"}
    return result.start(checkpoint=f"{work}/sessions/checkpoint", trigger=trigger, **sinks)


def start_tumbling(spark: SparkSession, folder: str, work: Path, trigger: dict[str, Any], at: int = STALLS_IN) -> Any:
    windows = events(spark, folder).window(wp.TumblingEventTimeWindows.of("10 seconds")).allowed_lateness("15 seconds")
    early = windows.trigger(wp.ContinuousEventTimeTrigger.of("4 seconds"))
    report = Report(True, f"{work}/tumbling.stalled")
    writer = early.process(report, "n long, total long, firing long").df.writeStream.format("parquet").trigger(**trigger)
    return writer.option("checkpointLocation", f"{work}/tumbling/checkpoint").start(f"{work}/tumbling/main")


def start_changed(spark: SparkSession, folder: str, work: Path, trigger: dict[str, Any], at: int = STALLS_IN) -> Any:
    df = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(folder).where("NOT heartbeat")
    calls = {"after": wp.lead("v"), "total": wp.sum("v"), "place": wp.rank().over(partition_by=(), order_by=F.col("v").desc())}
    result = wp.over(df, key="id").partition_by("k").order_by("t").select("*", **calls).emit_on_update()
    main = stalling_sink(f"{work}/changed/main", f"{work}/changed.stalled", at)
    return result.start(checkpoint=f"{work}/changed/checkpoint", trigger=trigger, main=main)


STARTS = {"sessions": start_sessions, "tumbling": start_tumbling, "changed": start_changed}
OUTPUTS = ("sessions/main", "sessions/first", "sessions/late", "tumbling/main", "changed/main")


def run_for_ever(spark: SparkSession, folder: str, work: Path, names: Iterable[str], at: int) -> None:
    """Run programs until somebody kills them, each begun once the one before runs: workers must answer in ten seconds."""
    queries = []
    for name in names:
        queries.append(STARTS[name](spark, folder, work, {"processingTime": "0 seconds"}, at))
        while queries[-1].isActive and queries[-1].lastProgress is None:
            time.sleep(0.05)
    for query in queries:
        query.awaitTermination()


def run_to_the_end(spark: SparkSession, folder: str, work: Path, names: Iterable[str] = tuple(STARTS)) -> None:
    """Run one program after the other."""
    for name in names:
        STARTS[name](spark, folder, work, {"availableNow": True}).awaitTermination()


def results(spark: SparkSession, work: Path, names: Iterable[str] = OUTPUTS) -> dict[str, list[str]]:
    """Return the rows of outputs, as sorted text."""
    outputs = {}
    for name in names:
        df = spark.read.parquet(f"{work}/{name}")
        rows = df.select(F.to_json(F.struct(*[c for c in df.columns if c not in ("query", "batch")]))).collect()
        outputs[name] = sorted(row[0] for row in rows)
    return outputs


def finish(spark: SparkSession, folder: str, work: Path) -> None:
    """Run the input to its end, then again undisturbed, with as many partitions as at the beginning."""
    run_to_the_end(spark, folder, work)
    calm = work / "undisturbed"
    calm.mkdir()
    for name in STARTS:
        (calm / f"{name}.stalled").touch()
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    run_to_the_end(spark, folder, calm)
    both = {"killed": results(spark, work), "undisturbed": results(spark, calm)}
    (work / "results.json").write_text(json.dumps(both))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("input")
    parser.add_argument("work", type=Path)
    parser.add_argument("partitions")
    parser.add_argument("--finish", action="store_true")
    parser.add_argument("--only", choices=STARTS)
    parser.add_argument("--stall-in", type=int, default=STALLS_IN, metavar="BATCH")
    given = parser.parse_args()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {**brief_settings(given.work, given.partitions), "spark.sql.warehouse.dir": f"{given.work}/warehouse"}
    spark = SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()
    if given.finish:
        finish(spark, given.input, given.work)
    else:
        run_for_ever(spark, given.input, given.work, [given.only] if given.only else STARTS, given.stall_in)


if __name__ == "__main__":
    main()
