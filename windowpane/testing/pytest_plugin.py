"""Fixtures for testing streaming programs with pytest: a local session, streams made of lists, and runs that end by themselves.

Name the plugin in the ``conftest.py`` at the top of your tests::

    pytest_plugins = ["windowpane.testing.pytest_plugin"]

and write, for example::

    def test_hours(stream_of, run_stream):
        flights = stream_of([[("JFK", at("08:05"))], [("JFK", at("10:00"))]], "origin string, scheduled timestamp")
        hourly = wp.stream(flights, event_time="scheduled", watermark="0 seconds").key_by("origin").window(...).aggregate(...)
        assert [row.n for row in run_stream(hourly)["main"]] == [1]

Triggers, evictors and functions of your own need no Spark: test them with ``WindowTestHarness``, in milliseconds.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from windowpane.arrays.values import Value
from windowpane.result import Runnable
from windowpane.windowing.outputs import Schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Batches = Sequence[Sequence[Value]]
"""The rows of each micro-batch: tuples, dicts or Rows."""
Collected = dict[str, list[Value]]
"""The rows of each output, in the order of batches."""

_SETTINGS = {
    "spark.sql.adaptive.enabled": "false",
    # Compiling expressions costs queries this small more than interpreting them.
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


@pytest.fixture(scope="session")
def windowpane_spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A local session with two cores for the whole run, set up for small queries; the one that is running, if there is one.

    A fixture of this name in your ``conftest.py`` takes its place: a session of Spark Connect, for example.
    """
    from pyspark.sql import SparkSession

    running = SparkSession.getActiveSession()
    if running is not None:
        yield running
        return
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[2]").appName("windowpane tests")
    for name, value in _SETTINGS.items():
        builder = builder.config(name, value)
    session = builder.config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse"))).getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture
def stream_of(windowpane_spark: SparkSession, tmp_path: Path) -> Callable[[Batches, Schema], DataFrame]:
    """A function that returns a streaming DataFrame of lists of rows, one list a micro-batch, in this order.

    Its arguments: the batches, and their schema as DDL text or ``StructType``. The watermark of a batch is made of the
    batches before it, so a window that a row closes is emitted with the next batch: end with a batch far enough ahead.
    """
    made: list[Path] = []

    def make(batches: Batches, schema: Schema) -> DataFrame:
        folder = tmp_path / f"stream_{len(made)}"
        made.append(folder)
        folder.mkdir()
        for number, rows in enumerate(batches):
            written = tmp_path / f"written_{len(made)}_{number}"
            windowpane_spark.createDataFrame(list(rows), schema).coalesce(1).write.parquet(str(written))
            (file,) = written.glob("*.parquet")
            target = file.rename(folder / f"{number:06}.parquet")
            os.utime(target, (1_700_000_000 + number, 1_700_000_000 + number))  # Spark reads files in this order
        reader = windowpane_spark.readStream.option("maxFilesPerTrigger", 1)
        typed = windowpane_spark.createDataFrame([], schema).schema
        return reader.schema(typed).parquet(str(folder))

    return make


@pytest.fixture
def run_stream(tmp_path: Path) -> Callable[..., Collected]:
    """A function that runs a result until its input is consumed, and returns the rows of each output in order of batches.

    Its arguments: the result, the names of the outputs (``main`` where none is given), and ``checkpoint``, a folder from which
    a second run continues; a new one where it is left out.
    """
    runs: list[str] = []

    def run(result: Runnable, *outputs: str, checkpoint: str | Path | None = None) -> Collected:
        runs.append(str(checkpoint or tmp_path / f"checkpoint_{len(runs)}"))
        collected: Collected = {name: [] for name in outputs or ("main",)}

        def sink(name: str) -> Callable[[DataFrame, int], None]:
            return lambda rows, batch: collected[name].extend(rows.collect())

        sinks: dict[str, Value] = {name: sink(name) for name in collected}
        result.start(checkpoint=runs[-1], trigger={"availableNow": True}, **sinks).awaitTermination()
        return collected

    return run
