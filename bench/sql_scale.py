"""A SQL view over many rows with a small driver: ``python -m bench.sql_scale [--rows N] [--view minutes|steps|top] [--url URL]``.

Parquet files with so many rows in all go through GROUP BY over minutes or, as ``steps``, the difference from the row before by
``lag``, with EMIT ON WINDOW CLOSE, or, as ``top``, to the three highest prices of each name, one file a batch, or as many as
``--together`` says. The JVM of the driver has 1 GB, and Spark refuses results of tasks above 64 MB together. Printed are the
time, the median of its batches, how many rows Spark has read, and the resident memory of the driver's Python behind the first
quarter of the files, at its highest behind that, and at the end; the view is compared with DuckDB's own result. By hand, since it
takes minutes: no CI runs it.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, NamedTuple

import duckdb

_DELAY = "INTERVAL '1 minute'"
_ROWS = """SELECT 'sensor ' || lpad((hash(i) % {keys})::varchar, 6, '0') AS name,
    (hash(i + 1) % 10000 / 100)::DECIMAL(10, 2) AS price,
    TIMESTAMP '2024-01-01' + to_microseconds(((i - {first}) * 3600000000 // {count}) + {number} * 3600000000) AS at
    FROM range({first}, {first} + {count}) AS t(i)"""


class View(NamedTuple):
    """A view over the rows ``r``.

    Args:
        query: the view.
        oracle: its rows as DuckDB has them, over files of rows.
        summary: sums of the result that a row twice, missing or elsewhere changes.
    """

    query: str
    oracle: str
    summary: str


VIEWS = {
    "minutes": View(
        "SELECT name, window_start, count(*) AS n, sum(price) AS total FROM tumble(r, at, INTERVAL '1 minute') "
        "GROUP BY name, window_start EMIT ON WINDOW CLOSE",
        f"""WITH r AS (FROM '{{}}/*.parquet')
            SELECT name, date_trunc('minute', "at") AS window_start, count(*) AS n, sum(price) AS total FROM r
            WHERE date_trunc('minute', "at") + INTERVAL '1 minute' <= (SELECT max("at") - {_DELAY} FROM r) GROUP BY 1, 2""",
        "SELECT count(*), sum(n), sum(total * 100), sum(total * 100 * n), sum(n * extract(minute FROM window_start)) "
        "FROM {} AS v",
    ),
    "steps": View(
        "SELECT name, at AS moment, price - lag(price) OVER (PARTITION BY name ORDER BY at) AS d FROM r EMIT ON WINDOW CLOSE",
        f"""WITH r AS (FROM '{{}}/*.parquet')
            SELECT name, "at" AS moment, price - lag(price) OVER (PARTITION BY name ORDER BY "at") AS d FROM r
            WHERE "at" < (SELECT max("at") - {_DELAY} FROM r)""",
        "SELECT count(*), count(d), sum(d * 100), sum(d * 100 * extract(minute FROM moment)) FROM {} AS v",
    ),
    "top": View(
        "SELECT name, price, at AS moment FROM r QUALIFY row_number() OVER (PARTITION BY name ORDER BY price DESC, at) <= 3",
        """WITH r AS (FROM '{}/*.parquet') SELECT name, price, "at" AS moment FROM r
            QUALIFY row_number() OVER (PARTITION BY name ORDER BY price DESC, "at") <= 3""",
        "SELECT count(*), sum(price * 100), sum(extract(minute FROM moment)), sum(price * 100 * extract(hour FROM moment)) "
        "FROM {} AS v",
    ),
}


def made(folder: Path, rows: int, files: int, keys: int) -> None:
    """Write the files, an hour of rows each."""
    folder.mkdir()
    for number in range(files):
        query = _ROWS.format(keys=keys, first=number * (rows // files), count=rows // files, number=number)
        path = folder / f"{number:03}.parquet"
        duckdb.sql(f"COPY ({query}) TO '{path}'")
        os.utime(path, (number, number))


class Memory(threading.Thread):
    """Looks at the resident memory of this process again and again."""

    def __init__(self) -> None:
        """Look once it is started."""
        super().__init__(daemon=True)
        self.seen: list[tuple[float, int]] = []

    def run(self) -> None:
        """Look five times a second."""
        while True:
            pages = int(Path("/proc/self/statm").read_text().split()[1])
            self.seen.append((time.monotonic(), pages * os.sysconf("SC_PAGE_SIZE") >> 20))
            time.sleep(0.2)


def session_of_spark(master: str, tasks: int) -> Any:
    """Return a session with a small driver, whose stages on buckets have so many tasks."""
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    settings: dict[str, bool | float | int | str | None] = {
        "spark.driver.memory": "1g",
        "spark.driver.maxResultSize": "64m",
        "spark.sql.shuffle.partitions": tasks,
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.enabled": False,
        "spark.ui.showConsoleProgress": False,
    }
    session = SparkSession.builder.master(master).config(map=settings).getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(prog="python -m bench.sql_scale", description=__doc__)
    parser.add_argument("--rows", type=int, default=50_000_000)
    parser.add_argument("--files", type=int, default=20)
    parser.add_argument("--keys", type=int, default=1000)
    parser.add_argument("--view", choices=VIEWS, default="minutes")
    parser.add_argument("--together", type=int, default=1, help="so many files are a batch")
    parser.add_argument("--tasks", type=int, default=2, help="of a stage on buckets")
    parser.add_argument("--master", default="local[2]", help="of Spark, as local-cluster[2,1,2048]: two executors of a core each")
    parser.add_argument("--url", default="", help="of a PostgreSQL database, which is the store then")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        run(Path(work), given)


def run(work: Path, given: argparse.Namespace) -> None:
    """Make the rows, let the view take them, and print what was seen."""
    from windowpane.sql import Session

    view = VIEWS[given.view]
    made(work / "in", given.rows, given.files, given.keys)
    spark = session_of_spark(given.master, given.tasks)
    memory = Memory()
    memory.start()
    with (
        Session(spark, given.url, str(work / "state.duckdb")) if given.url else Session(spark, str(work / "v.duckdb")) as session
    ):
        session.run(
            f"CREATE SOURCE r (name text, price numeric(10, 2), at timestamp, WATERMARK FOR at AS at - {_DELAY}) "
            f"WITH (connector = 'parquet', path = '{work / 'in'}', maxFilesPerTrigger = '{given.together}')"
        )
        began = time.monotonic()
        session.run(f"CREATE MATERIALIZED VIEW v AS {view.query}; FLUSH")
        seconds = time.monotonic() - began
        (query,) = (query for query in spark.streams.active if query.name == "windowpane v")
        progress = query.recentProgress
        read = sum(each.numInputRows for each in progress)
        later = [megabytes for at, megabytes in memory.seen if began + seconds / 4 < at <= began + seconds]
        print(f"{platform.processor() or platform.machine()}, {given.master}, store {'PostgreSQL' if given.url else 'DuckDB'}")
        print(f"{given.rows:,} rows in {given.files} files, {seconds:.0f} s, {given.rows / seconds:,.0f} rows a second")
        took = [each.durationMs["triggerExecution"] / 1000 for each in progress if each.numInputRows][1:]
        print(f"a batch: {statistics.median(took or [seconds]):.2f} s, the first left out")
        print(f"read by Spark: {read:,} rows, or files where Arrow reads them, in {len(progress)} batches")
        print(f"resident memory of Python: {later[0]} MB after a quarter, at most {max(later)} MB, {later[-1]} MB at the end")
        found = [int(value) for value in session.query(view.summary.format("v")).rows()[0]]
        oracle = f"({view.oracle.format(work / 'in')})"
        expected = [int(value) for value in duckdb.execute(view.summary.format(oracle)).fetchall()[0]]
        print(f"result rows: {found[0]:,}, {'as' if found == expected else 'NOT AS'} DuckDB has them")
    spark.stop()


if __name__ == "__main__":
    main()
