"""Starting a query once more where Spark was too impatient with the driver's Python worker.

To plan a stateful operator written in Python, Spark starts a Python process beside the driver and gives it ten seconds to connect
back; no setting changes that. A machine under load may need longer the first time, when nothing is in its caches. Nothing has
been computed or written by then, so the query is started again.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any

from windowpane.errors import MistakeError
from windowpane.spark.internals.session import is_classic

STARTS = 3
"""How often a query is started at most."""

_PATIENCE = 120.0
"""Seconds until a query that does nothing visible is left to itself."""
_STEP = 0.05
_TOO_SLOW = ("Python worker failed to connect back", "waiting for the Python worker to connect back")


def started(start: Callable[[], Any], spark: Any) -> Any:
    """Start a query, again where the driver's Python worker did not connect back in time, and return it.

    Returns once the query's first batch is planned, or while it waits for data. An error of any other kind stays in the query.
    """
    for further in reversed(range(STARTS)):
        query = start()
        if not (further and is_classic(spark) and _was_too_slow(query, spark)):
            return query
        warn()
    raise MistakeError("the last start returns")


def was_too_slow(error: object) -> bool:
    """Whether a query ended by the silence of the driver's Python worker."""
    return any(each in str(error or "") for each in _TOO_SLOW)


def warn() -> None:
    """Say that a query is started again."""
    logging.getLogger(__name__).warning(
        "Spark gave the driver's Python worker ten seconds to connect back, which it did not manage: the machine is busy. "
        "Nothing of the batch was computed yet; the query is started again."
    )


def _was_too_slow(query: Any, spark: Any) -> bool:
    """Wait until the query's first batch is under way; return whether it ended before, by the worker's silence."""
    deadline = time.monotonic() + _PATIENCE
    while query.isActive and time.monotonic() < deadline:
        if _is_under_way(query, spark):
            return False
        time.sleep(_STEP)
    return was_too_slow(query.exception())


def _is_under_way(query: Any, spark: Any) -> bool:
    """Whether a query has planned a batch, or has none to plan."""
    if query.lastProgress is not None or str(query.status["message"]).startswith("Waiting"):
        return True
    return bool(spark.sparkContext.statusTracker().getJobIdsForGroup(str(query.runId)))
