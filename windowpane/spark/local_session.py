"""A Spark session for programs that are not given one."""

from __future__ import annotations

import os
import sys
from typing import Any

from pyspark.sql import SparkSession

_QUIET = {"spark.ui.showConsoleProgress": "false", "spark.sql.session.timeZone": "UTC"}


def local_session() -> Any:
    """Return the running session, or a new one, quiet; where nothing says which master, on all cores of this machine."""
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
