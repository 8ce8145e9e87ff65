"""Watermarks by source: how far each has come, and which of them holds the others back."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from windowpane.inspect.buckets import Bucket
from windowpane.state.codec import unframe
from windowpane.windowing.times import MAX, MIN

_OWN, _KIND = "watermark", "own-watermark"
"""The blob in which an operator that makes its watermark itself keeps the times of its sources."""


def watermarks_of(buckets: Sequence[Bucket], spark_watermark: int, now: int) -> Iterator[dict[str, Any]]:
    """Yield a row for each source of an operator.

    Args:
        buckets: its buckets.
        spark_watermark: Spark's watermark of the next batch in milliseconds.
        now: the present in microseconds.
    """
    if not buckets:
        return
    first = buckets[0]
    own = next((json.loads(unframe(_KIND, blob)) for each in buckets if (blob := each.store.get(_OWN)) is not None), None)
    delay = first.header.description.get("watermark delay")
    if own is not None:
        watermark = own["watermark"]
        for name, latest, silent in own["sources"]:
            reached = latest - (delay or 0)
            idle = own["now"] - silent if silent and own["now"] is not None else None
            yield _row(first.operator, str(name), latest, watermark, now, idle, own["held_by"] == name, reached)
        if own["sources"]:
            return
    else:
        watermark = spark_watermark * 1000 - 1 if spark_watermark else max(each.header.watermark for each in buckets)
    times = first.header.description.get("event time")
    name = " and ".join(times) if isinstance(times, list) else str(times or "processing time")
    seen = None if delay is None or not spark_watermark else spark_watermark * 1000 + delay
    yield _row(first.operator, name, seen, watermark, now, None, True, watermark)


def _row(
    operator: int, name: str, seen: int | None, watermark: int, now: int, idle: int | None, holds: bool, reached: int
) -> dict[str, Any]:
    is_known = watermark not in (MIN, MAX)
    return {
        "operator": operator,
        "name": name,
        "event_time_seen": seen,
        "watermark": min(reached, watermark) + 1 if is_known else None,
        "behind_now": (now - watermark) / 1e6 if is_known else None,
        "idle_since": idle,
        "holds_back": holds,
    }
