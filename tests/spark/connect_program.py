"""What ``test_connect`` runs in a process of its own; prints what came out as one line of JSON."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import windowpane as wp
from tests.brief_jvm import BRIEF
from tests.spark.helpers import EVENTS, WHY, Feed, instant, rows
from windowpane import OutputTag, ProcessWindowFunction, TumblingEventTimeWindows
from windowpane.errors import EndedStreamError, InvalidSpecError, UnknownColumnError
from windowpane.sinks import ChangeWriter
from windowpane.testing import batches

ARRIVED = [[("a", 1, 1), ("b", 2, 5)], [("a", 3, 7), ("a", 30, 2)], [("a", 4, 100)]]
TEN = TumblingEventTimeWindows.of("10 seconds")
SETTINGS: dict[str, Any] = {
    "spark.driver.extraJavaOptions": BRIEF,
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
    "spark.ui.enabled": "false",
}
LATE, LARGE = OutputTag("late"), OutputTag("large", "k string, total long")


class Sum(ProcessWindowFunction):
    """Emits the sum of ``v``, and tells ``LARGE`` of large ones."""

    def process(self, key: Any, context: Any, elements: Any) -> Any:
        total = sum(row["v"] for row in elements)
        if total > 5:
            context.output(LARGE, {"k": key, "total": total})
        yield {"total": total}


def failing(left: Any, right: Any) -> Any:
    """Raise."""
    raise ZeroDivisionError("thirteen")


def main(folder: Path, part: str) -> dict[str, Any]:
    """Run the programs of a part on files in ``folder`` and return what came out."""
    spark = SparkSession.builder.remote("local[2]").config(map=SETTINGS).getOrCreate()
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    Feed(folder / "in").add(*ARRIVED)
    parts = {"start": with_start, "over": over, "other ways": other_ways, "joins": joined, "rolling": rolled, "ending": ended}
    parts["refused"] = refused
    said = parts[part](spark, folder)
    spark.stop()
    return said


def with_start(spark: Any, folder: Path) -> dict[str, Any]:
    """Run static programs, and streams by ``start``."""
    static = spark.read.schema(EVENTS).parquet(str(folder / "in")).coalesce(1)
    said = {"static": rows(wp.stream(static, "t").key_by("k").window(TEN).aggregate(n=wp.count(), s=wp.sum("v")).df)}
    return said | errors(static) | written_by_start(spark, folder) | behind_steps(spark, folder)


def other_ways(spark: Any, folder: Path) -> dict[str, Any]:
    """Run rows that Python makes, watermarks that the operator makes, and a sink of Spark's."""
    made = made_in_python(spark, folder) | made_up(spark, folder)
    return made | with_watermarks_of_its_own(spark, folder) | written_by_spark(spark, folder)


def errors(static: Any) -> dict[str, Any]:
    """Return the texts of an error at building and one at running."""
    windowed = wp.stream(static, "t").key_by("k").window(TEN)
    try:
        windowed.aggregate(s=wp.sum("nothing"))
    except UnknownColumnError as error:
        refused = repr(error)
    try:
        F.col("v") - wp.lag("v")
    except InvalidSpecError as error:
        stands_first = str(error)
    try:
        rows(windowed.reduce(failing).df)
    except PySparkException as error:
        raised = str(error)
    return {"refused": refused, "stands_first": stands_first, "raised": raised}


def with_watermarks_of_its_own(spark: Any, folder: Path) -> dict[str, Any]:
    """Let the operator make the watermark: of sources, here one, and of each key."""
    stream = spark.readStream.schema(EVENTS).option("maxFilesPerTrigger", 1).parquet(str(folder / "in"))
    said, bounded = {}, wp.Watermarks.bounded("0 seconds")
    for name, watermark in {"source": bounded.per_source("s"), "key": bounded.per_key()}.items():
        windowed = wp.stream(stream.withColumn("s", F.lit("one")), "t", watermark).key_by("k").window(TEN)
        result, path = windowed.aggregate(n=wp.count()), str(folder / f"of-{name}")
        query = result.start(main=path, checkpoint=str(folder / f"ck-{name}"), trigger={"availableNow": True})
        query.awaitTermination()
        said[f"of_{name}"] = rows(spark.read.parquet(path).select("k", "n"))
    return said


def made_in_python(spark: Any, folder: Path) -> dict[str, Any]:
    """Read the files by Arrow, and let late rows be told by the watermark that the encoder reports."""
    made = wp.read_in_arrow(spark, str(folder / "in"), EVENTS, maxFilesPerTrigger=1)
    windowed = wp.stream(made, "t", watermark=0).key_by("k").window(TEN).side_output_late_data(LATE)
    result = windowed.aggregate(n=wp.count(), s=wp.sum("v"))
    sinks: dict[str, Any] = {name: str(folder / f"made-{name}") for name in ("main", "late")}
    result.start(checkpoint=str(folder / "ck4"), trigger={"availableNow": True}, **sinks).awaitTermination()
    columns = {"main": ("k", "n"), "late": ("k", "v")}
    return {f"made_{name}": rows(spark.read.parquet(path).select(*columns[name])) for name, path in sinks.items()}


def made_up(spark: Any, folder: Path) -> dict[str, Any]:
    """Count generated rows by a stream and at once, and lists of rows, whose last row is late."""
    given: dict[str, Any] = {"rows": 100, "keys": 3, "disorder": "5 seconds", "every": "1 second"}
    generated = wp.generate(spark, rows_per_batch=40, **given)
    listed = batches(
        spark, [[("a", instant(1), 1), ("b", instant(2), 2)], [("a", instant(31), 4)], [("a", instant(3), 8)]], EVENTS
    )
    said = {"generated": wp.generate(spark, streaming=False, **given).count()}
    for name, rows_of, time in (("counted", generated, "at"), ("listed", listed, "t")):
        windowed = wp.stream(rows_of, time, watermark="5 seconds").key_by("key" if name == "counted" else "k").window(TEN)
        sinks: dict[str, Any] = {output: str(folder / f"{name}-{output}") for output in ("main", "late")}
        result = windowed.side_output_late_data(LATE).aggregate(n=wp.count())
        now, checkpoint = {"availableNow": True}, str(folder / f"ck-{name}")
        result.start(checkpoint=checkpoint, trigger=now, flush_at_end=True, **sinks).awaitTermination()
        said[name] = sum(row["n"] for row in spark.read.parquet(sinks["main"]).collect())
        said[f"{name}_late"] = spark.read.parquet(sinks["late"]).count()
    return said


def over(spark: Any, folder: Path) -> dict[str, Any]:
    """Number the rows of each key, on window close and on update; find small values that no large one follows."""
    static = spark.read.schema(EVENTS).parquet(str(folder / "in")).coalesce(1)
    small = wp.stream(static, "t").key_by("k").match("low -> !high", low=wp.col("v") < 10, high=F.col("v") > 50)
    alone = rows(small.within("10 seconds").select(v=wp.first("low.v")).df)
    begun = wp.over(static, "t", key=("k", "t")).partition_by("k").order_by(F.col("t").desc())
    ranked = rows(begun.select("k", "v", n=wp.row_number(), d=wp.apply(F.abs, wp.col("v") - wp.lag("v"))).emit_on_update().df)
    stream = wp.over(Feed(folder / "in").stream(spark), "t", watermark=0, key=("k", "t")).partition_by("k").order_by("t")
    result = stream.select("*", s=wp.sum("v").over(partition_by=())).side_output_late_data(LATE).emit_on_window_close()
    sinks: dict[str, Any] = {name: str(folder / f"over-{name}") for name in ("main", "late")}
    result.start(checkpoint=str(folder / "ck3"), trigger={"availableNow": True}, **sinks).awaitTermination()
    written = {f"over_{name}": rows(spark.read.parquet(path).drop("query", "batch", *WHY)) for name, path in sinks.items()}
    return {"ranked": ranked, "alone": alone, **written}


def joined(spark: Any, folder: Path) -> dict[str, Any]:
    """Join the files with themselves: as of an instant, and by an interval as streams."""
    static = wp.stream(spark.read.schema(EVENTS).parquet(str(folder / "in")).coalesce(1), "t")
    valued = wp.as_of(static, static).on("k").match(allow_exact=False).select("k", "left_v", "right_v")
    stream = wp.stream(Feed(folder / "in").stream(spark), "t", watermark=0)
    near = wp.join(stream, stream).on("k").within("1 second", "5 seconds").how("left").select("k", "left_v", "right_v")
    writer = near.df.writeStream.format("parquet").option("checkpointLocation", str(folder / "ck5"))
    writer.trigger(availableNow=True).start(str(folder / "near")).awaitTermination()
    return {"as_of": rows(valued.df), "near": rows(spark.read.parquet(str(folder / "near")))}


def rolled(spark: Any, folder: Path) -> dict[str, Any]:
    """Roll over the files: static with labels, and as a stream that begins with a history."""
    static = spark.read.schema(EVENTS).parquet(str(folder / "in")).coalesce(1)
    features = wp.rolling(static, "t").by("k").over("5 seconds", n=wp.count(), total=wp.sum("v")).hop("5 seconds")
    said = {"at": rows(features.at(static.select("k", "t"), time="t").df), "each": rows(features.emit("each").df)}
    stream = wp.rolling(Feed(folder / "in").stream(spark), "t", watermark=0).by("k")
    online = stream.over("5 seconds", n=wp.count(), total=wp.sum("v")).hop("5 seconds").emit("changed")
    past = spark.createDataFrame([("a", -1, 50), ("c", -3, 60)], "k string, s int, v long")
    past = past.selectExpr("k", "timestamp'2024-01-01 00:00:00' + make_dt_interval(0, 0, 0, s) AS t", "v")
    query = online.start(
        main=str(folder / "online"),
        checkpoint=str(folder / "ck6"),
        trigger={"availableNow": True},
        history=past,
        cut="2024-01-01 00:00:00",
    )
    query.awaitTermination()
    return said | {"online": rows(spark.read.parquet(str(folder / "online")).select("k", "as_of", "n", "total"))}


def ended(spark: Any, folder: Path) -> dict[str, Any]:
    """End a stream with early, final and late results, read the latest ones, and start once more."""
    early = windowed_stream(spark, folder).allowed_lateness("1 minute").trigger(wp.EarlyAndFinal(count=1))
    result, path = early.aggregate(s=wp.sum("v")), str(folder / "ended")

    def end() -> Any:
        return result.start(main=path, checkpoint=str(folder / "ck7"), trigger={"availableNow": True}, flush_at_end=True)

    still_runs = end().isActive
    columns = ("k", "window_start", "s", "pane_timing")
    said = {"still_runs": still_runs, "latest": rows(wp.sinks.read_latest(spark, path, key="k").select(*columns))}
    try:
        end()
    except EndedStreamError as error:
        said["again"] = str(error)
    try:
        wp.sinks.read_latest(spark, path, key="origin")
    except UnknownColumnError as error:
        said["refused"] = str(error)
    return said | {"all": rows(spark.read.parquet(path).select(*columns))}


def refused(spark: Any, folder: Path) -> dict[str, Any]:
    """Try a second watermark behind results, unions of two kinds of times, and a writer whose query nobody tells it."""
    said, sums = dict[str, Any](), windowed_stream(spark, folder).aggregate(s=wp.sum("v")).df
    events = Feed(folder / "in").stream(spark)
    ends = sums.select("k", F.col("window_end").alias("t"), F.col("s").alias("v"))
    mixed = events.withWatermark("t", "0 seconds").union(ends).withColumnRenamed("t", "at")
    try:
        wp.stream(mixed.where("v > 0"), "at")
    except InvalidSpecError as error:
        said["mixed"] = str(error)
    over = [wp.over(events, "t", 0, key=("k", "t"), name=each).partition_by("k").order_by("t") for each in ("back", "ahead")]
    frames = (wp.count().rows(-1, 0), wp.count().range(0, "15 seconds"))
    back, ahead = (each.select("k", "t", n=frame).emit_on_window_close().df for each, frame in zip(over, frames, strict=True))
    unions = (back.unionByName(ahead), ahead.union(back).select("k", F.col("t").alias("t")))
    said["delays"] = [wp.stream(union, "t").source.delay for union in unions]
    try:
        wp.stream(sums, "window_start", watermark=0).key_by("k").window(TEN).aggregate(n=wp.count())
    except InvalidSpecError as error:
        said["second"] = str(error)
    writer = ChangeWriter(str(folder / "t.duckdb"), ("k",), "t")
    writing = sums.writeStream.foreachBatch(writer).option("checkpointLocation", str(folder / "ck8"))
    try:
        writing.trigger(availableNow=True).start().awaitTermination()
    except PySparkException as error:
        said["writer"] = str(error)
    return said


def windowed_stream(spark: Any, folder: Path) -> Any:
    """Return the windowed stream of the files."""
    return wp.stream(Feed(folder / "in").stream(spark), "t", watermark=0).key_by("k").window(TEN)


def written_by_spark(spark: Any, folder: Path) -> dict[str, Any]:
    """Write ``df`` by Spark's own parquet sink."""
    result = windowed_stream(spark, folder).aggregate(n=wp.count(), s=wp.sum("v"))
    writer = result.df.writeStream.format("parquet").option("checkpointLocation", str(folder / "ck1"))
    writer.trigger(availableNow=True).start(str(folder / "df")).awaitTermination()
    return {"df": rows(spark.read.parquet(str(folder / "df")))}


def written_by_start(spark: Any, folder: Path) -> dict[str, Any]:
    """Write three outputs by ``start`` and read the counters of the progress."""
    result = windowed_stream(spark, folder).side_output_late_data(LATE).side_output(LARGE).process(Sum(), "total long")
    sinks = {name: str(folder / name) for name in ("main", "late", "large")}
    query = result.start(checkpoint=str(folder / "ck2"), trigger={"availableNow": True}, **sinks)
    query.awaitTermination()
    dropped = wp.progress(query)["late_dropped"]
    read = {name: rows(spark.read.parquet(path).drop("query", "batch", *WHY)) for name, path in sinks.items()}
    return {**read, "late_dropped": dropped}


def behind_steps(spark: Any, folder: Path) -> dict[str, Any]:
    """Write the late rows of windows whose results pass steps of Spark's before the next windows."""
    first = windowed_stream(spark, folder).side_output_late_data(LATE).aggregate(s=wp.sum("v"))
    second = wp.stream(first.df.where("s > 0").select("window_end", "s"), "window_end", name="all").window_all(TEN)
    result = second.aggregate(s=wp.sum("s"))
    sinks: dict[str, Any] = {name: str(folder / f"behind-{name}") for name in ("main", "late")}
    result.start(checkpoint=str(folder / "ck9"), trigger={"availableNow": True}, **sinks).awaitTermination()
    read = {f"behind_{name}": rows(spark.read.parquet(path).drop("query", "batch", *WHY)) for name, path in sinks.items()}
    return read | {"operators": result.explain().count("  engine ")}


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), sys.argv[2])))
