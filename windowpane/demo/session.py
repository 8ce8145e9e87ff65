"""A Spark session of two cores that keeps the terminal clean: what Spark has to say goes to a log file."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

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


@contextmanager
def quiet_session(log: Path) -> Iterator[SparkSession]:
    """Open a session whose JVM and Python workers write to ``log``; stop it at the end."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    with terminal_as(log):  # the JVM keeps the terminal it is started with
        session = SparkSession.builder.master("local[2]").appName("windowpane demo").config(map=_SETTINGS).getOrCreate()
    try:
        yield session
    finally:
        session.stop()


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
