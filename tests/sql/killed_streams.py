"""``python -m tests.sql.killed_streams FOLDER STORE URL MASTER``: two sessions take the files of a folder, until done or killed.

One has a DuckDB store, the other a PostgreSQL store with its state beside the first.
"""

from __future__ import annotations

import sys
from pathlib import Path

from windowpane.sql import Session

SOURCE = (
    "CREATE SOURCE trades (k int, v bigint, at timestamp, WATERMARK FOR at AS at - INTERVAL '1 minute') "
    "WITH (connector = 'parquet', path = '{folder}', maxFilesPerTrigger = '1')"
)
VIEW = """CREATE MATERIALIZED VIEW minutes AS SELECT k, window_start, count(*) AS n, sum(v) AS s
    FROM tumble(trades, at, INTERVAL '1 minute') GROUP BY k, window_start EMIT ON WINDOW CLOSE"""


def take(session: Session, folder: str) -> None:
    """Let a session take all files."""
    with session:
        if not session.relations():
            session.run(SOURCE.format(folder=folder))
            session.run(VIEW)
        session.run("FLUSH")


def main(folder: str, store: str, url: str, master: str) -> None:
    from pyspark.sql import SparkSession

    settings: dict[str, bool | float | int | str | None] = {
        "spark.sql.shuffle.partitions": 2,
        "spark.ui.enabled": False,
        "spark.sql.session.timeZone": "UTC",
    }
    spark = SparkSession.builder.master(master).config(map=settings).getOrCreate()
    take(Session(spark, store), folder)
    take(Session(spark, url, f"{Path(store).with_suffix('')}.state.duckdb"), folder)


if __name__ == "__main__":
    main(*sys.argv[1:])
