"""Watermarks by source: how far each has come, which of them holds the others back, and the rows that were late behind them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from windowpane.engines.batch.late_counts import span_of
from windowpane.engines.batch.own_watermark import OWN_WATERMARK, read_state
from windowpane.engines.filling.program import FillingProgram
from windowpane.engines.settling.program import SettlingProgram
from windowpane.inspect.buckets import Bucket
from windowpane.windowing.times import MAX, MIN


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
    if first.reached is not None:
        of_relations = {name: at - 1 for each in buckets for name, at in (each.reached or {}).items()}
        last = min(of_relations.values(), default=MIN)
        for relation, at in of_relations.items():
            yield _row(first.operator, relation, None, at, now, None, at == last, at)
        return
    own = next((read_state(blob)[0] for each in buckets if (blob := each.store.get(OWN_WATERMARK)) is not None), None)
    delay = first.header.description.get("watermark delay")
    if own is not None:
        for name, mark in own.sources.items():
            reached = mark.latest - (delay or 0)
            idle = own.now - mark.silent if mark.silent and own.now is not None else None
            shown = ("NULL" if own.sources.keys() != {None} else _event_time(first)) if name is None else name
            yield _row(first.operator, shown, mark.latest, own.watermark, now, idle, name in own.holders, reached)
        if not own.holders:
            yield _row(first.operator, own.held_by, None, own.watermark, now, None, True, own.watermark)
        return
    watermark = spark_watermark * 1000 - 1 if spark_watermark else max(each.header.watermark for each in buckets)
    seen = None if delay is None or not spark_watermark else spark_watermark * 1000 + delay
    yield _row(first.operator, _event_time(first), seen, watermark, now, None, True, watermark)


def _event_time(bucket: Bucket) -> str:
    times = bucket.header.description.get("event time")
    if times is None and isinstance(bucket.program, FillingProgram | SettlingProgram):
        return "the operator before it"
    return " and ".join(times) if isinstance(times, list) else str(times or "processing time")


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


def late_rows(operator: int, buckets: Sequence[Bucket]) -> Iterator[dict[str, Any]]:
    """Yield a row for each hour of event time and each span of lateness, from the counters in the headers of buckets."""
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
