"""Late rows, from the counters in the headers of buckets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from windowpane.engines.batch.late_counts import span_of
from windowpane.inspect.buckets import Bucket


def late_rows(operator: int, buckets: Sequence[Bucket]) -> Iterator[dict[str, Any]]:
    """Yield a row for each hour of event time and each span of lateness."""
    found: dict[tuple[int, int], list[Any]] = {}
    for bucket in buckets:
        for hour, span, rows, dropped, key in bucket.header.late:
            cell = found.setdefault((hour, span), [0, 0, key])
            cell[0], cell[1] = cell[0] + rows, cell[1] + dropped
    for (hour, span), (rows, dropped, key) in sorted(found.items()):
        low, high = span_of(span)
        yield {
            "operator": operator,
            "hour": hour,
            "how_late": f"{_seconds(low)} to {_seconds(high)}",
            "at_least": low,
            "less_than": high,
            "rows": rows,
            "dropped": dropped,
            "refined": rows - dropped,
            "example_key": key,
        }


def _seconds(number: float) -> str:
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if number >= 2 * size:
            return f"{number / size:.3g} {unit}"
    return f"{number:g} s"
