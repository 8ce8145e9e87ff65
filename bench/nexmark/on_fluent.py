"""One query in windowpane's Python on Spark, whose results are kept as Parquet files: ``on_fluent INPUT WORK QUERY``."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa

from bench.batches import seconds_of_batches, steady
from bench.nexmark.arguments import given
from bench.nexmark.events import ended
from bench.nexmark.fluent import CLOSING, PROGRAMS
from bench.nexmark.on_spark import streams
from bench.nexmark.queries import QUERIES
from bench.systems.spark_job import session
from bench.systems.task_folder import leave_figures


def main() -> None:
    folder, work, name = given()
    if name in CLOSING:
        folder = ended(folder, work, QUERIES[name].reads)
    results = PROGRAMS[name](streams(session(), folder, name))
    sinks = {"main": str(work / "results"), "checkpoint": str(work / "checkpoint")}
    running = results.start(**sinks, trigger={"availableNow": True})
    running.awaitTermination()
    leave_figures(work, batch_s=steady(seconds_of_batches(running.recentProgress)))


def kept(work: Path) -> pa.Table:
    """Return the rows that are there when the job has ended: of a changelog those that are not taken back."""
    with duckdb.connect() as database:
        database.execute("SET TimeZone = 'UTC'")
        found = database.read_parquet(f"{work}/results/**/*.parquet", hive_partitioning=False)
        names = [name for name in found.columns if name != "_change_type"]
        if len(names) < len(found.columns):
            sign = "CASE WHEN _change_type IN ('insert', 'update_postimage') THEN 1 ELSE -1 END"
            counted = found.aggregate(f"{', '.join(names)}, sum({sign})::int AS times").filter("times <> 0")
            found = counted.select("* EXCLUDE (times), unnest(range(abs(times))) AS number")
        return found.select(*names).to_arrow_table()


if __name__ == "__main__":
    main()
