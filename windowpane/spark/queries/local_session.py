"""A Spark session for programs that are not given one."""

from __future__ import annotations

import os
import sys
from typing import Any

from pyspark.sql import SparkSession

_SETTINGS = {
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    # Over TCP, a message between Python and the JVM waits 40 ms now and then.
    "spark.python.unix.domain.socket.enabled": "true",
}


def local_session() -> Any:
    """Return the running session, or a new one, quiet; where nothing says which master, on all cores of this machine."""
    running = SparkSession.getActiveSession()
    if running is not None:
        return running
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("windowpane")
    for name, value in _SETTINGS.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session
