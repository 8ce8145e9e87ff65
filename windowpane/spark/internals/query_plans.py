"""What the plan of a DataFrame says, which PySpark has no public way to ask."""

from __future__ import annotations

import re
from typing import Any

from py4j.protocol import Py4JError

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


def _nodes(plan: Any) -> list[Any]:
    """Return a plan of Spark Connect and those below it."""
    found, waiting = [], [plan]
    while waiting:
        node = waiting.pop()
        found.append(node)
        below = (getattr(node, name, None) for name in ("_child", "left", "right"))
        waiting.extend(child for child in below if child is not None)
    return found
