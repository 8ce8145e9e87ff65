"""One query as a materialized view of windowpane's SQL on Spark: ``on_windowpane INPUT WORK QUERY``."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import duckdb
import pyarrow as pa

from bench.batches import seconds_of_batches, steady
from bench.nexmark.arguments import given
from bench.nexmark.events import ENTITIES, ended
from bench.nexmark.queries import DELAY_SECONDS, QUERIES, Query
from bench.nexmark.tables import columns, times
from bench.systems.spark_job import session
from bench.systems.task_folder import leave_figures
from windowpane.sql import Session

STORE = "store.duckdb"
_COLUMNS = "columns.json"


def main() -> None:
    run()


def run(*, closes: bool = False, into_files: bool = False) -> None:
    """Run the query that the command names.

    Args:
        closes: whether each window is emitted once, as Flink does.
        into_files: whether the query is that of a sink of Parquet files, in place of a view in the store.
    """
    folder, work, name = given()
    spark, query = session(), QUERIES[name]
    if closes:
        folder, query = ended(folder, work, query.reads), replace(query, sql=f"{query.sql} EMIT ON WINDOW CLOSE")
    with Session(spark, str(work / STORE)) as store:
        create(store, folder, query, str(work / "results") if into_files else "", maxFilesPerTrigger="1")
        store.run("FLUSH")
        progress = [each for running in spark.streams.active for each in running.recentProgress]
        if not into_files:
            (work / _COLUMNS).write_text(json.dumps(store.columns("found")))
    leave_figures(work, batch_s=steady(seconds_of_batches(progress)))


def create(store: Session, folder: Path, query: Query, sink: str = "", **options: str) -> None:
    """Create the sources that a query reads, of the files of a folder, and its view, ``found``, or its ``sink`` of files."""
    for entity in query.reads:
        source = {"connector": "parquet", "path": str(folder / entity), **options}
        store.run(
            f"CREATE SOURCE {entity} ({columns(entity, text='varchar', time='timestamp')}, "
            f"WATERMARK FOR date_time AS date_time - INTERVAL '{DELAY_SECONDS} seconds') "
            f"WITH ({', '.join(f'{name} = {value!r}' for name, value in source.items())})"
        )
    into = f" WITH (connector = 'parquet', path = {sink!r})" if sink else ""
    store.run(f"CREATE {'SINK' if sink else 'MATERIALIZED VIEW'} found AS {query.sql}{into}")


def results(store: Session) -> pa.Table:
    """Return the rows of the view."""
    store.run("SET max_result_size = '8GB'")
    found = store.query("SELECT * FROM found")
    return found.table.rename_columns(list(found.names))


def kept(work: Path) -> pa.Table:
    """Return the rows of the view as any client of DuckDB reads them in its store, when the job has ended."""
    columns = json.loads((work / _COLUMNS).read_text())
    with duckdb.connect(str(work / STORE), read_only=True) as database:
        return database.sql("FROM found").select(*columns).to_arrow_table()


def differing(folder: Path, query: Query, found: pa.Table) -> int:
    """Return how many rows are not those of DuckDB, of all events in one query; a row that is missing counts, too."""
    with duckdb.connect() as database:
        database.execute("SET TimeZone = 'UTC'")
        for entity in ENTITIES:
            without_zone = ", ".join(f"{name}::timestamp AS {name}" for name in times(entity))
            rows = f"SELECT * REPLACE ({without_zone}) FROM '{folder / entity}/*.parquet'"
            database.execute(f"CREATE VIEW {entity} AS {rows}")
        database.register("found", found)
        ours, right = f"SELECT {query.columns} FROM found", f"SELECT {query.columns} FROM ({query.duckdb or query.sql})"
        both = f"(({ours}) EXCEPT ALL ({right})) UNION ALL (({right}) EXCEPT ALL ({ours}))"
        return int(database.execute(f"SELECT count(*) FROM ({both})").fetchall()[0][0])


if __name__ == "__main__":
    main()
