"""One query in windowpane's Python on Spark, whose results are kept as Parquet files: ``on_fluent INPUT WORK QUERY``."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from bench.batches import put_in_place, seconds_of_batches, steady
from bench.nexmark.arguments import given
from bench.nexmark.fluent import CLOSING, PROGRAMS
from bench.nexmark.on_spark import streams
from bench.nexmark.queries import QUERIES
from bench.systems.spark_job import session
from bench.systems.task_folder import leave_figures

_MUCH_LATER = dt.timedelta(days=1)
_NOBODY = -1


def main() -> None:
    folder, work, name = given()
    if name in CLOSING:
        folder = _ended(folder, work, QUERIES[name].reads)
    results = PROGRAMS[name](streams(session(), folder, name))
    sinks = {"main": str(work / "results"), "checkpoint": str(work / "checkpoint")}
    running = results.start(**sinks, trigger={"availableNow": True})
    running.awaitTermination()
    leave_figures(work, batch_s=steady(seconds_of_batches(running.recentProgress)))


def _ended(folder: Path, work: Path, entities: tuple[str, ...]) -> Path:
    """Return a folder with the same files and, of each entity, one event much later, which closes the windows of all others."""
    ended = work / "events"
    for entity in entities:
        (ended / entity).mkdir(parents=True)
        files = sorted((folder / entity).iterdir())
        for file in files:
            (ended / entity / file.name).symlink_to(file)
        last = pq.read_table(files[-1]).slice(0, 1)
        for at, field in enumerate(last.schema):
            if pa.types.is_timestamp(field.type):
                last = last.set_column(at, field, pa.array([last[at][0].as_py() + _MUCH_LATER], field.type))
            elif pa.types.is_integer(field.type):
                last = last.set_column(at, field, pa.array([_NOBODY], field.type))
        end = ended / entity / f"{len(files):03}.parquet"
        pq.write_table(last, end)
        put_in_place(end, len(files))
    return ended


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
