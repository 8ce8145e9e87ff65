"""A Spark of this process, for the command line."""

from __future__ import annotations

from typing import Any


def local_spark() -> Any:
    """Return the running SparkSession, or a new one, as the settings of Spark say; by default on all cores here."""
    from windowpane.spark.queries.local_session import local_session

    return local_session()
