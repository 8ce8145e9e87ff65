"""Sessions: what is set, whether the JVM is beside a session, what that JVM knows and logs, and how jobs are marked."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, cast, overload

from py4j.protocol import Py4JError
from pyspark import TaskContext
from pyspark.errors import PySparkException

if TYPE_CHECKING:
    from py4j.java_gateway import JVMView
    from pyspark.sql import SparkSession

PARTITIONS = "spark.sql.shuffle.partitions"
WATERMARK_POLICY = "spark.sql.streaming.multipleWatermarkPolicy"
"""How Spark makes one watermark of those of several streams: ``min``, that of the slowest, or ``max``."""

RUN, QUERY, BATCH = "spark.jobGroup.id", "sql.streaming.queryId", "streaming.sql.batchId"
"""Local properties of a query's tasks: its run, another one each time that it starts, its id, and the number of the batch."""

_MARK = "windowpane.mark"  # The local property of jobs, and on Spark Connect, which has tags in its place, how our tag begins

_TAG = re.compile(rf"{re.escape(_MARK)}=(\w+)")
_TAGS = "spark.job.tags"

_QUIET = {
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    # Over TCP, a message between Python and the JVM waits 40 ms now and then.
    "spark.python.unix.domain.socket.enabled": "true",
}

_STREAMING = "org.apache.spark.sql.execution.{}"
_STATE_LOGGERS = (
    _STREAMING.format("python.streaming.TransformWithStateInPySparkStateServer"),
    _STREAMING.format("python.streaming.TransformWithStateInPandasStateServer"),
    _STREAMING.format("streaming.operators.stateful.transformwithstate.timers.TimerStateImpl"),
    _STREAMING.format("streaming.TimerStateImpl"),
)
"""What warns that a key has no state yet, and that a timer is there already, in Spark 4.3 and 4.0."""


def is_classic(spark: SparkSession) -> bool:
    return hasattr(spark, "_jsparkSession")


def jvm_of(spark: SparkSession) -> JVMView:
    """Return the JVM of a classic session, by Py4J."""
    return spark._jvm


@overload
def setting(spark: SparkSession, name: str, default: str) -> str: ...
@overload
def setting(spark: SparkSession, name: str) -> str | None: ...
def setting(spark: SparkSession, name: str, default: str | None = None) -> str | None:
    """Return a setting of the session.

    Where the user set nothing it is ``default``, or without one Spark's own; ``None`` if this Spark has no such setting. Give a
    default to what a Spark may not know: without one, a server of Spark Connect logs a stack trace.
    """
    if default is not None:
        return str(spark.conf.get(name, default))
    try:
        return str(spark.conf.get(name))
    except PySparkException:
        return None


def processors(spark: SparkSession) -> int:
    """Return how many processors the JVM of a session has; where that cannot be read, how many this machine has."""
    try:
        return int(jvm_of(spark).java.lang.Runtime.getRuntime().availableProcessors())
    except (AttributeError, Py4JError, NotImplementedError, RuntimeError):
        return os.cpu_count() or 1


def parallelism(spark: SparkSession) -> int:
    """Return how many tasks a session runs at once; where that cannot be read (Connect), how many processors this machine has."""
    return int(spark.sparkContext.defaultParallelism) if is_classic(spark) else processors(spark)


def hide_state_warnings(spark: SparkSession) -> None:
    """Have the JVM of a classic session log no warning where state is read that is not there yet, or a timer set again.

    Errors of the same loggers are logged, and everything is where the session logs in detail.
    """
    if not is_classic(spark):
        return
    log4j = jvm_of(spark).org.apache.logging.log4j
    try:
        for name in _STATE_LOGGERS:
            logger = log4j.LogManager.getLogger(name)
            if logger.isWarnEnabled() and not logger.isDebugEnabled():
                log4j.core.config.Configurator.setLevel(name, log4j.Level.ERROR)
    except (Py4JError, TypeError):  # the session logs by something else
        return


def mark_jobs(spark: SparkSession, mark: str) -> None:
    """Give the jobs that this thread starts from now on in a session a mark, which their tasks can read."""
    if is_classic(spark):
        spark.sparkContext.setLocalProperty(_MARK, mark)
        return
    for tag in list(spark.getTags()):
        if tag.startswith(_MARK):
            spark.removeTag(tag)
    spark.addTag(f"{_MARK}={mark}")


def task_property(name: str) -> str | None:
    """Return, on a task, a local property of its job; ``None`` elsewhere, and where it has none."""
    context = TaskContext.get()
    return None if context is None else context.getLocalProperty(name)


TOLD = "windowpane.told."  # Before the name of an operator: the local property with what makes its engine instead


def tell_tasks(spark: SparkSession, told: Mapping[str, str | None]) -> None:
    """Give the tasks of queries that this thread starts from now on a property each, by the names of operators; classic alone."""
    for name, text in told.items():
        spark.sparkContext.setLocalProperty(TOLD + name, cast("str", text))  # Spark takes a property away by None


def mark_of_job() -> str | None:
    """Return, on a task, the mark that its job has; ``None`` elsewhere, and where it has none."""
    found = _TAG.search(task_property(_TAGS) or "")
    return task_property(_MARK) if found is None else found[1]


def query_of_batch(spark: SparkSession) -> str | None:
    """Return, in a function that is given a batch, the id of its query; ``None`` where the session does not know it (Connect)."""
    try:
        return spark.sparkContext.getLocalProperty(QUERY) if is_classic(spark) else None
    except (AttributeError, Py4JError, RuntimeError):
        return None


def local_session() -> SparkSession:
    """Return the running session, or a new one, quiet; where nothing says which master, on all cores of this machine."""
    from pyspark.sql import SparkSession  # which tasks need not import

    running = SparkSession.getActiveSession()
    if running is not None:
        return running
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("windowpane")
    for name, value in _QUIET.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session
