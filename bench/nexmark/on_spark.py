"""One query on native Spark, whose results go nowhere: ``on_spark INPUT WORK QUERY``."""

from __future__ import annotations

from bench.batches import seconds_of_batches, steady
from bench.nexmark.arguments import given
from bench.nexmark.native_spark import PROGRAMS
from bench.nexmark.queries import QUERIES
from bench.nexmark.tables import columns
from bench.systems.spark_job import session
from bench.systems.task_folder import leave_figures


def main() -> None:
    folder, work, name = given()
    spark, program = session(), PROGRAMS[name]
    reader = spark.readStream.option("maxFilesPerTrigger", 1)
    entities = {
        entity: reader.schema(columns(entity, text="string", time="timestamp")).parquet(str(folder / entity))
        for entity in QUERIES[name].reads
    }
    writer = program.of(entities).writeStream.format("noop").outputMode(program.mode)
    running = writer.option("checkpointLocation", str(work / "checkpoint")).trigger(availableNow=True).start()
    running.awaitTermination()
    leave_figures(work, batch_s=steady(seconds_of_batches(running.recentProgress)))


if __name__ == "__main__":
    main()
