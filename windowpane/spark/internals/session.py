"""Sessions: whether a session has its JVM beside it, and what only that JVM knows."""

from __future__ import annotations

import os
from typing import Any

from py4j.protocol import Py4JError


def is_classic(spark: Any) -> bool:
    """Whether a session has its JVM beside it, as a Spark Connect client has not."""
    return hasattr(spark, "_jsparkSession")


def processors(spark: Any) -> int:
    """Return how many processors the JVM of a session has; where it cannot be asked, how many this machine has."""
    try:
        return int(spark.sparkContext._jvm.java.lang.Runtime.getRuntime().availableProcessors())
    except (AttributeError, Py4JError, NotImplementedError, RuntimeError):
        return os.cpu_count() or 1
