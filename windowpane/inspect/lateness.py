"""Late rows, from the counters in the headers of buckets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from windowpane.inspect.buckets import Bucket


def late_rows(operator: int, buckets: Sequence[Bucket]) -> Iterator[dict[str, Any]]:
    """Yield a row for each hour of event time and each span of lateness."""
    return iter(())
