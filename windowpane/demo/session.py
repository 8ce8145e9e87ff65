"""Spark sessions of two cores: one that keeps the terminal clean, and one that archives the classes that its JVM loads.

A JVM reads, checks and links more than twenty thousand classes before the first batch of a query is done, on few cores most of
the time until then. What it has made of them it can write when it ends, and later ones map that into their memory. Source: JEP
350, "Dynamic CDS Archives".
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from importlib.util import find_spec
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark import SparkContext
from pyspark.sql import SparkSession

import windowpane as wp
from windowpane.errors import NoArchiveError

_SETTINGS: dict[str, bool | float | int | str | None] = {
    "spark.driver.memory": "2g",
    # A minute or two of small batches: compiling for longer runs and collecting in parallel would cost more than they save.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.streaming.numRecentProgressUpdates": "1000",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}

_VIEW = """
CREATE SOURCE r (k varchar, v bigint, at timestamp, WATERMARK FOR at AS at - INTERVAL '1 second')
    WITH (connector = 'parquet', path = '{folder}');
CREATE MATERIALIZED VIEW m AS SELECT k, window_start, count(*) AS n, sum(v) AS s
    FROM TUMBLE(r, at, INTERVAL '10 seconds') GROUP BY k, window_start;
FLUSH;
"""
_LONGEST_WRITING = 600.0


@contextmanager
def quiet_session(log: Path) -> Iterator[SparkSession]:
    """Open a session whose JVM and Python workers write to ``log``; stop it at the end."""
    session = _session(log, _SETTINGS)
    try:
        yield session
    finally:
        session.stop()


def _session(log: Path, settings: dict[str, bool | float | int | str | None]) -> SparkSession:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    with terminal_as(log):  # the JVM keeps the terminal it is started with
        return SparkSession.builder.master("local[2]").appName("windowpane demo").config(map=settings).getOrCreate()


@contextmanager
def terminal_as(log: Path) -> Iterator[None]:
    """Let standard output and error of this process, and of what it starts, go to ``log``."""
    sys.stdout.flush()
    sys.stderr.flush()
    terminal = {number: os.dup(number) for number in (1, 2)}
    with log.open("ab") as file:
        for number in terminal:
            os.dup2(file.fileno(), number)
    try:
        yield
    finally:
        for number, saved in terminal.items():
            os.dup2(saved, number)
            os.close(saved)


def write_archive(archive: Path) -> str:
    """Run small queries in a session of its own, in Python and in SQL, and archive the classes that they load.

    It serves a session with the same Java, the same Spark and the same jars; where one of them is another one, the JVM starts as
    without it. No session may run in this process.

    Args:
        archive: the file, some 180 MB.

    Returns:
        The option of the JVM, for ``spark.driver.extraJavaOptions``.

    Raises:
        NoArchiveError: the JVM has written none.
    """
    archive = archive.absolute()
    archive.unlink(missing_ok=True)
    option = f'"-XX:ArchiveClassesAtExit={archive}" -Xlog:disable'
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work)
        spark = _session(folder / "log.txt", {"spark.driver.extraJavaOptions": option, "spark.ui.showConsoleProgress": "false"})
        try:
            _load_classes(spark, folder)
        finally:
            _end(spark)
    if not archive.is_file():
        raise NoArchiveError(str(archive))
    return f'"-XX:SharedArchiveFile={archive}"'  # Spark cuts its options at spaces, and takes quotes away


def _load_classes(spark: SparkSession, folder: Path) -> None:
    rows = folder / "rows"
    rows.mkdir()
    times = [datetime(2013, 1, 1) + timedelta(seconds=second) for second in range(100)]
    pq.write_table(pa.table({"k": ["a", "b"] * 50, "v": range(100), "at": times}), rows / "rows.parquet")
    stream = wp.stream(spark.readStream.schema("k string, v long, at timestamp").parquet(str(rows)), "at", "1 second")
    windows = stream.key_by("k").window(wp.TumblingEventTimeWindows.of("10 seconds"))
    results = windows.aggregate(n=wp.count(), s=wp.sum("v"))
    running = results.start(checkpoint=str(folder / "checkpoint"), main=str(folder / "results"), trigger={"availableNow": True})
    running.awaitTermination()
    if find_spec("sqlglot") is not None:
        from windowpane.sql import Session

        with Session(spark, str(folder / "store.duckdb")) as session:
            session.run(_VIEW.format(folder=rows))


def _end(spark: SparkSession) -> None:
    """End the JVM of a session, which writes its archive meanwhile."""
    gateway = SparkContext._gateway
    spark.stop()
    if gateway is not None:
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait(_LONGEST_WRITING)
