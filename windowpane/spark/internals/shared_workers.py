"""Shared workers: the stateful stage runs in the Python workers of the other stages.

An executor keeps one daemon, with workers of its own, for each environment that functions need. Spark says in the environment
of other stages how tracebacks are to look, and leaves it out for ``transformWithState``: so there would be a second daemon, which
imports everything again while the first batch waits, and twice as many workers in memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from windowpane.spark.internals.session import is_classic, setting

_TRACEBACKS = {
    "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "SPARK_SIMPLIFIED_TRACEBACK",
    "spark.sql.execution.pyspark.udf.hideTraceback.enabled": "SPARK_HIDE_TRACEBACK",
}


@contextmanager
def shared_workers(spark: Any) -> Iterator[None]:
    """Give the functions that are handed to Spark meanwhile the environment of those of other stages; not on Spark Connect."""
    if not is_classic(spark):
        yield
        return
    environment = spark.sparkContext.environment
    before = dict(environment)
    environment.update({name: "1" for of_session, name in _TRACEBACKS.items() if setting(spark, of_session) == "true"})
    try:
        yield
    finally:
        environment.clear()
        environment.update(before)
