"""The Python of Spark's workers: on one machine it must be one that has windowpane, and of the version of this program.

PySpark starts ``PYSPARK_PYTHON``, or ``python3`` of the ``PATH``: in a virtual environment that is not activated that is another
one. On a cluster the machines have environments of their own, which cannot be seen from here.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from functools import cache
from typing import TYPE_CHECKING

from windowpane.errors import WorkerPythonError
from windowpane.spark.internals.forked_workers import is_forking, with_forks
from windowpane.spark.internals.session import is_classic, jvm_of
from windowpane.spark.internals.worker import NEEDED
from windowpane.spark.session.settings import is_local

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_STATE_MESSAGES = "pyspark.sql.streaming.proto.StateMessage_pb2"
"""Spark's own, which workers with state import; where a Spark has it elsewhere, they do so as they begin."""
_PACKAGES = ("windowpane", "pyarrow", "pandas")
_QUESTION = f"""
import importlib.util, sys
print("%d.%d" % sys.version_info[:2], *[name for name in {_PACKAGES} if importlib.util.find_spec(name) is None])
"""
_PATIENCE = 60.0


def check_worker_python(spark: SparkSession) -> None:
    """Check once the version and the packages of the workers' Python in a local session."""
    if not is_classic(spark) or not is_local(spark) or spark.sparkContext._python_includes:
        return  # files of Python go to the workers with the session, windowpane perhaps among them
    wrong = _wrong_with(spark.sparkContext.pythonExec)
    if wrong is not None:
        raise WorkerPythonError(spark.sparkContext.pythonExec, wrong, sys.executable)


def fork_workers(spark: SparkSession, *modules: str) -> None:
    """Have the workers of a local session forked from one process that starts now, see ``forked_workers``; once is enough.

    What is given to Spark before has a daemon of workers of its own, so this comes before the first function of a query. The
    process imports what each operator needs, and ``modules``.
    """
    if is_classic(spark) and not is_forking(spark.sparkContext.pythonExec) and is_local(spark):
        check_worker_python(spark)
        context = spark.sparkContext
        context.pythonExec = with_forks(context.pythonExec, [*NEEDED, _STATE_MESSAGES, *modules], _environment(spark))


def _environment(spark: SparkSession) -> dict[str, str]:
    """Return the environment in which Spark starts a Python, as far as a Python and its libraries look at it when they start."""
    context, jvm = spark.sparkContext, jvm_of(spark)
    of_spark = jvm.org.apache.spark.api.python.PythonUtils.sparkPythonPath()
    where = (of_spark, context.environment.get("PYTHONPATH"), jvm.System.getenv("PYTHONPATH"))
    threads = context.getConf().get("spark.task.cpus") or "1"
    return {
        **os.environ,
        "OMP_NUM_THREADS": threads,
        **context.environment,
        "PYTHONPATH": os.pathsep.join(filter(None, where)),
    }


@cache
def _wrong_with(executable: str) -> str | None:
    """Return what keeps an executable from being the Python of workers, ``None`` if nothing does."""
    path = shutil.which(executable)
    if path is None:
        return "there is no such program"
    if os.path.abspath(path) == os.path.abspath(sys.executable):
        return None
    try:
        answer = subprocess.run([path, "-c", _QUESTION], capture_output=True, text=True, timeout=_PATIENCE, check=True).stdout
    except (OSError, subprocess.SubprocessError) as error:
        return f"it does not run ({error})"
    version, *missing = answer.split()
    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    if version != here:
        return f"it is Python {version}, and this program runs in Python {here}"
    return f"it has no {', '.join(missing)}" if missing else None
