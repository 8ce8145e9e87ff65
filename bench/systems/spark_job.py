"""One streaming query over a task's files, in a session with Spark's best settings, and the figures of its progress."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from bench.batches import put_in_place, seconds_of_batches, steady
from bench.programs import CHECK, TEXT_KEY, Task
from bench.systems.task_folder import write_figures

CORES = 2
_ROCKSDB = "spark.sql.streaming.stateStore.rocksdb"
_SETTINGS = {
    "spark.driver.memory": os.environ.get("BENCH_DRIVER_MEMORY", "5g"),
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": str(CORES),
    "spark.sql.streaming.numRecentProgressUpdates": "10000",
    "spark.sql.streaming.stateStore.providerClass": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    f"{_ROCKSDB}.changelogCheckpointing.enabled": "true",
    # Counting rows would cost native Spark a read before every write.
    f"{_ROCKSDB}.trackTotalNumberOfRows": "false",
    # Over TCP, a message between Python and the JVM waits 40 ms now and then (Nagle's algorithm and delayed acknowledgements).
    "spark.python.unix.domain.socket.enabled": "true",
    # A local checkpoint's files are committed with two processes of chmod each, not with those and eight of readlink. Hive's
    # file system, Spark's default for local files, does not replace a file; Hadoop's own does.
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.LocalFileSystem",
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


def delay(task: Task) -> str:
    """Return how far behind the watermark stays."""
    return f"{task.program.delay} seconds"


def session(settings: Mapping[str, str] | None = None) -> SparkSession:
    """Return a session of two cores, with more settings if there are."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = SparkSession.builder.master(f"local[{CORES}]").config(map={**_SETTINGS, **(settings or {})}).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def input_folder(task: Task) -> str:
    """Return the folder with the task's files."""
    folder = Path(task.work) / "input"
    folder.mkdir()
    for number, file in enumerate(task.files):
        _copy(Path(file), folder / f"{number:05}{Path(file).suffix}", number)
    return str(folder)


def read(spark: SparkSession, task: Task) -> DataFrame:
    """Return the task's rows (k, price, ts; name where keys are texts) as a stream, with as many files a batch as it says."""
    folder = input_folder(task)
    files = spark.readStream.option("maxFilesPerTrigger", task.batch_files)
    if task.format == "csv":
        rows = files.schema("k bigint, price bigint, ms bigint").csv(folder)
        rows = rows.select("k", "price", F.timestamp_millis("ms").alias("ts"))
    else:
        rows = files.schema("k bigint, price bigint, ts timestamp").parquet(folder)
    return rows.withColumn("name", F.concat(F.lit(TEXT_KEY), "k")) if task.program.text_keys else rows


def _copy(file: Path, to: Path, number: int) -> None:
    """Give a task its own file."""
    shutil.copyfile(file, to)
    put_in_place(to, number)


def run(task: Task, results: DataFrame, mode: str = "append", check: bool = True) -> None:
    """Run a query to its end without a sink, and leave the figures; ``check`` adds up the columns k, window_end, n, s, m."""
    if check:
        checksum = F.expr(CHECK.format(end="unix_millis(window_end)"))
        results = results.observe("check", F.count(F.lit(1)).alias("rows"), F.sum(checksum).alias("checksum"))
    writer = results.writeStream.format("noop").outputMode(mode).option("checkpointLocation", f"{task.work}/checkpoint")
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    figures = _figures(query.recentProgress, task)
    version = results.sparkSession.version
    results.sparkSession.stop()
    write_figures(task, **figures, version=version)


def _figures(progress: list[Any], task: Task) -> dict[str, Any]:
    batches = [p for p in progress if p["numInputRows"]]
    steady_from, times = len(batches) // 2, seconds_of_batches(progress)
    rows = sum(task.batch_rows(number) for number in range(steady_from, len(batches)))
    checks = [p["observedMetrics"]["check"] for p in progress if "check" in p["observedMetrics"]]
    return {
        "rows_per_s": rows / sum(times[steady_from:]),
        "batch_s": steady(times),
        "batches_s": times,
        "durations": progress[-2]["durationMs"] if len(progress) > 1 else {},
        "state_mb": max(_state_bytes(p) for p in progress) / (1 << 20),
        "rows": sum(check.rows for check in checks),
        "checksum": sum(int(check.checksum or 0) for check in checks),
    }


def _state_bytes(progress: Any) -> int:
    """Return the state in bytes: windowpane counts its own, else what RocksDB holds in memory and files."""
    own = [metrics.state_bytes for metrics in progress["observedMetrics"].values() if hasattr(metrics, "state_bytes")]
    if own:
        return int(sum(own))
    held = 0
    for operator in progress["stateOperators"]:
        held += operator["memoryUsedBytes"] + operator["customMetrics"].get("rocksdbSstFileSize", 0)
    return int(held)
