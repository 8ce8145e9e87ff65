"""``python -m tests.sql.killed_streams FOLDER STORE URL MASTER``: two sessions take the files of a folder, until done or killed.

One has a DuckDB store, the other a PostgreSQL store with its state beside the first. The master may be a server of Spark Connect.
"""

from __future__ import annotations

import sys
from pathlib import Path

from windowpane.sql import Session

SOURCE = (
    "CREATE SOURCE trades (k int, v bigint, at timestamp, WATERMARK FOR at AS at - INTERVAL '1 minute') "
    "WITH (connector = 'parquet', path = '{folder}', maxFilesPerTrigger = '1')"
)
VIEWS = {
    "minutes": """SELECT k, window_start, count(*) AS n, sum(v) AS s FROM tumble(trades, at, INTERVAL '1 minute')
        GROUP BY k, window_start EMIT ON WINDOW CLOSE""",
    "largest": """SELECT k, window_start, s, place FROM (SELECT *, rank() OVER (PARTITION BY window_start ORDER BY s DESC)
        AS place FROM (SELECT k, window_start, sum(v) AS s FROM tumble(trades, at, INTERVAL '1 minute')
        GROUP BY k, window_start) AS g) AS p WHERE place <= 3 EMIT ON WINDOW CLOSE""",
    "totals": "SELECT k, count(*) AS n, sum(v) AS s, count(DISTINCT v) AS d FROM trades GROUP BY k",
    "whole": "SELECT count(*) AS c, sum(n) AS n, sum(s) AS s FROM totals",
}
"""A window program, one under a Top-N, groups on the nodes of SQL, and a view on these, which gets their changes as files."""


def take(session: Session, folder: str) -> None:
    """Let a session take all files."""
    with session:
        if not session.relations():
            session.run(SOURCE.format(folder=folder))
        for name in VIEWS:
            if name not in session.relations():
                session.run(f"CREATE MATERIALIZED VIEW {name} AS {VIEWS[name]}")
        session.run("FLUSH")


def main(folder: str, store: str, url: str, master: str) -> None:
    from pyspark.sql import SparkSession

    settings: dict[str, bool | float | int | str | None] = {
        "spark.sql.shuffle.partitions": 2,
        "spark.ui.enabled": False,
        "spark.sql.session.timeZone": "UTC",
    }
    if master.startswith("sc://"):
        spark = SparkSession.builder.remote(master).getOrCreate()
        for name in ("spark.sql.shuffle.partitions", "spark.sql.session.timeZone"):
            spark.conf.set(name, str(settings[name]))
    else:
        spark = SparkSession.builder.master(master).config(map=settings).getOrCreate()
    take(Session(spark, store), folder)
    take(Session(spark, url, f"{Path(store).with_suffix('')}.state.duckdb"), folder)


if __name__ == "__main__":
    main(*sys.argv[1:])
