"""What the plan of a DataFrame says, which PySpark has no public way to read."""

from __future__ import annotations

import re
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import DataFrame

from windowpane.spark.internals.session import is_classic

WATERMARK = "spark.watermarkDelayMs"
"""Metadata of a column that Spark makes a watermark of: the delay, in milliseconds."""

_NO_IDEA = 1 << 50
"""Spark multiplies by the largest long where it knows nothing of an input."""
_OBSERVED = re.compile(r"CollectMetrics ([^,]+),")


def metrics_names(dataframe: Any) -> set[str]:
    """Return the names of the metrics that a DataFrame observes; none where the plan cannot be read."""
    try:
        if hasattr(dataframe, "_jdf"):
            return set(_OBSERVED.findall(dataframe._jdf.queryExecution().logical().toString()))
        return {str(each._observation) for each in _nodes(dataframe._plan) if type(each).__name__ == "CollectMetrics"}
    except (AttributeError, TypeError, Py4JError):
        return set()


def estimated_bytes(dataframe: Any) -> int | None:
    """Return how large Spark estimates the rows of a DataFrame; ``None`` where it has no idea, or does not say (Connect)."""
    if not hasattr(dataframe, "_jdf"):
        return None
    try:
        size = int(str(dataframe._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()))
    except (AttributeError, TypeError, ValueError, Py4JError):
        return None
    return size if size < _NO_IDEA else None


def without_watermark(dataframe: Any, column: str) -> tuple[Any, int] | None:
    """Return the rows that ``withWatermark(column, ...)`` was called on last, and the delay in milliseconds.

    ``None`` where that was not the last thing done to them, or the plan cannot be read (Connect).
    """
    if not getattr(dataframe, "isStreaming", False) or not is_classic(dataframe.sparkSession):
        return None
    delays = {field.name: field.metadata[WATERMARK] for field in dataframe.schema.fields if WATERMARK in field.metadata}
    if delays.keys() != {column}:
        return None
    try:
        plan = dataframe._jdf.queryExecution().analyzed()
        if plan.nodeName() != "EventTimeWatermark":
            return None
        spark = dataframe.sparkSession
        below = spark._jvm.org.apache.spark.sql.classic.Dataset.ofRows(spark._jsparkSession, plan.child())
        rows = DataFrame(below, spark)
    except (AttributeError, TypeError, Py4JError):
        return None
    return rows, int(delays[column])


def _nodes(plan: Any) -> list[Any]:
    """Return a plan of Spark Connect and those below it."""
    found, waiting = [], [plan]
    while waiting:
        node = waiting.pop()
        found.append(node)
        below = (getattr(node, name, None) for name in ("_child", "left", "right"))
        waiting.extend(child for child in below if child is not None)
    return found
