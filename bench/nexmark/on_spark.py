"""One query on native Spark, whose results go nowhere: ``on_spark INPUT WORK QUERY``; ``on_spark_written`` writes them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import DataStreamWriter

from bench.batches import seconds_of_batches, steady
from bench.nexmark.arguments import given
from bench.nexmark.native_spark import PROGRAMS
from bench.nexmark.queries import QUERIES
from bench.nexmark.tables import columns
from bench.systems.spark_job import session
from bench.systems.task_folder import leave_figures


def main() -> None:
    run(lambda writer, _: writer.format("noop"))


def run(into: Callable[[DataStreamWriter, Path], DataStreamWriter]) -> None:
    """Run the query that the command names, with its results into the sink that ``into`` gives the writer."""
    folder, work, name = given()
    program = PROGRAMS[name]
    writer = into(program.of(streams(session(), folder, name)).writeStream.outputMode(program.mode), work)
    running = writer.option("checkpointLocation", str(work / "checkpoint")).trigger(availableNow=True).start()
    running.awaitTermination()
    leave_figures(work, batch_s=steady(seconds_of_batches(running.recentProgress)))


def streams(spark: SparkSession, folder: Path, name: str) -> dict[str, DataFrame]:
    """Return streams of the entities that a query reads, one file a batch."""
    reader = spark.readStream.option("maxFilesPerTrigger", 1)
    return {
        entity: reader.schema(columns(entity, text="string", time="timestamp")).parquet(str(folder / entity))
        for entity in QUERIES[name].reads
    }


if __name__ == "__main__":
    main()
