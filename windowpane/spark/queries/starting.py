"""Starting a query once more where Spark was too impatient with the driver's Python worker.

To plan a stateful operator written in Python, Spark starts a Python process beside the driver and gives it ten seconds to connect
back; no setting changes that. A machine under load may need longer the first time, when nothing is in its caches. Nothing has
been computed or written by then, so the query is started again, as often as it takes: each time it is said.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

from windowpane.spark.internals.session import is_classic
from windowpane.spark.session.reasons import SPARK_ERRORS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_PATIENCE = 120.0  # Seconds until a query that does nothing visible is left to itself
_STEP = 0.05
_TOO_SLOW = ("Python worker failed to connect back", "waiting for the Python worker to connect back")

_MENDED = {(4, 0): None, (4, 1): 4, (4, 2): 1}
"""Lines of Spark that leak a socket for each task and batch of a stateful operator in Python (SPARK-58932).

Beside each is its first release that does not; no release of 4.0 has been mended.
"""


def started(start: Callable[[], StreamingQuery], spark: SparkSession) -> StreamingQuery:
    """Start a query, again where the driver's Python worker did not connect back in time, and return it.

    Returns once the query's first batch is planned, or while it waits for data. An error of any other kind stays in the query.
    On Spark Connect the server starts a process for the sinks before the query, with the same patience: there the start fails.
    """
    while True:
        try:
            query = start()
        except SPARK_ERRORS as error:
            if not was_too_slow(error):
                raise
            warn()
            continue
        if not (is_classic(spark) and _was_too_slow(query, spark)):
            return query
        warn()


def was_too_slow(error: object) -> bool:
    return any(each in str(error or "") for each in _TOO_SLOW)


def warn() -> None:
    logging.getLogger(__name__).warning(
        "Spark gave the driver's Python worker ten seconds to connect back, which it did not manage: the machine is busy. "
        "Nothing of the batch was computed yet; the query is started again, until it succeeds or you interrupt it."
    )


def _was_too_slow(query: StreamingQuery, spark: SparkSession) -> bool:
    """Wait until the query's first batch is under way; return whether it ended before, by the worker's silence."""
    deadline = time.monotonic() + _PATIENCE
    while query.isActive and time.monotonic() < deadline:
        if query.lastProgress is not None or str(query.status["message"]).startswith("Waiting"):
            return False
        if spark.sparkContext.statusTracker().getJobIdsForGroup(str(query.runId)):
            return False
        time.sleep(_STEP)
    return was_too_slow(query.exception())


def warn_of_leaking_sockets(spark: SparkSession) -> None:
    _warn(str(spark.version))


def leaks_sockets(version: str) -> bool:
    major, minor, patch = ([int(number) for number in re.findall(r"\d+", version)] + [0, 0, 0])[:3]
    mended = _MENDED.get((major, minor), 0)
    return mended is None or patch < mended


@cache
def _warn(version: str) -> None:
    if leaks_sockets(version):
        logging.getLogger(__name__).warning(
            "Spark %s leaks a socket for each task of each batch (SPARK-58932): a query that runs for hours ends with "
            "BindException when the machine has no ports left. Spark 4.1.4, 4.2.1 and 4.3.0 do not; until then restart queries "
            "now and then.",
            version,
        )
