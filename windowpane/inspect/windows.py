"""Windows, keys and timers, made of what engines list of their state, and why a window is still open, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from windowpane.arrays.instants import format_instant
from windowpane.engines.common.held_panes import ELEMENTS, KNOWN, NEXT, PARTIALS, SIZE
from windowpane.engines.program import Program
from windowpane.errors import present
from windowpane.hidden_columns import END, START
from windowpane.inspect.buckets import Bucket
from windowpane.inspect.key_texts import key_texts
from windowpane.windowing.assigners import ClosedSessionWindows
from windowpane.windowing.times import format_micros

_SUMS: Final = [(ELEMENTS, "sum"), (PARTIALS, "sum"), (SIZE, "sum"), (NEXT, "min")]


class Listing(NamedTuple):
    """Rows of a table, and whether they are all there are."""

    rows: list[dict[str, Any]]
    is_complete: bool


def windows_of(bucket: Bucket, most: int) -> Listing:
    """Return the open windows of a bucket, those that end first, at most ``most``."""
    program = present(bucket.windows, "only windows are asked for")
    parts, complete = list[pa.Table](), True
    for table in bucket.panes:
        known = table.append_column("known", table[KNOWN])
        parts.append(known.group_by([START, END]).aggregate([*_SUMS, (KNOWN, "max"), ([], "count_all")]))
        if sum(part.num_rows for part in parts) > most:
            complete = False
            break
    if not parts:
        return Listing([], True)
    together = pa.concat_tables(parts)
    merged = together.group_by([START, END]).aggregate(
        [*((f"{name}_{how}", how) for name, how in _SUMS), (f"{KNOWN}_max", "max"), ("count_all", "sum")]
    )
    merged = merged.sort_by([(END, "ascending"), (START, "ascending")])
    complete &= merged.num_rows <= most and bucket.panes.is_complete
    return Listing([_window(program, bucket, row) for row in merged.slice(0, most).to_pylist()], complete)


def _window(program: Program, bucket: Bucket, row: Mapping[str, Any]) -> dict[str, Any]:
    start, end = row[START], row[END]
    cleaned = None if end is None else program.spec.lateness.cleanup_time(end - 1) + 1
    return {
        "operator": bucket.operator,
        "bucket": bucket.number,
        "start": start,
        "end": end,
        "keys": row["count_all_sum"],
        "elements": row[f"{ELEMENTS}_sum_sum"],
        "partials": row[f"{PARTIALS}_sum_sum"],
        "bytes": row[f"{SIZE}_sum_sum"],
        "closes_when_watermark_reaches": end if program.spec.lateness.is_event_time else None,
        "cleaned_when": cleaned,
        "next_timer": _next_timer(row[f"{NEXT}_min_min"], end, cleaned, bucket.clock),
        "why_open": why_open(program, bucket.clock, end, row[f"{KNOWN}_max_max"]),
    }


def _next_timer(own: int | None, end: int | None, cleaned: int | None, clock: int) -> int | None:
    if own is not None or end is None or cleaned is None:
        return own
    return end - 1 if end - 1 > clock else cleaned - 1


def why_open(program: Program, clock: int, end: int | None, known: str | None) -> str:
    """Return why a window is open: what it waits for, or how long it is kept.

    Args:
        program: its program.
        clock: the clock that its windows end by.
        end: its end, ``None`` for the global window.
        known: what its trigger knows, in words.
    """
    spec = program.spec
    waits = f"trigger waits for {known}" if known else f"{type(spec.firing_trigger).__name__} has not ended it"
    if end is None:
        return f"global window, which has no end; {waits}"
    which = "watermark" if spec.lateness.is_event_time else "clock"
    more = f"; {waits}" if known else ""
    if end - 1 > clock:
        if spec.merges or isinstance(spec.assigner, ClosedSessionWindows):
            return f"session may extend; waits for the {which} to reach {format_instant(end)}{more}"
        return f"waits for the {which} to reach {format_instant(end)}{more}"
    if spec.allowed_lateness:
        over = format_instant(spec.lateness.cleanup_time(end - 1) + 1)
        return f"fired, allowed lateness of {format_micros(spec.allowed_lateness)} until {over}{more}"
    return f"fired, is removed with the next batch of its bucket{more}"


def keys_of(bucket: Bucket, most: int) -> Listing:
    """Return the keys of a bucket, the largest first, at most ``most``."""
    program = present(bucket.windows, "only windows are asked for")
    parts = list[pa.Table]()
    for table in bucket.panes:
        texts = key_texts([table[name] for name in program.keys.names], table.num_rows)
        narrow = pa.table({"key": texts, SIZE: table[SIZE], END: table[END], NEXT: table[NEXT]})
        parts.append(narrow.group_by("key").aggregate([(SIZE, "sum"), (END, "max"), (NEXT, "min"), ([], "count_all")]))
    if not parts:
        return Listing([], True)
    merged = (
        pa.concat_tables(parts)
        .group_by("key")
        .aggregate([(f"{SIZE}_sum", "sum"), (f"{END}_max", "max"), (f"{NEXT}_min", "min"), ("count_all", "sum")])
    )
    merged = merged.sort_by([(f"{SIZE}_sum_sum", "descending"), ("key", "ascending")])
    rows = [
        {
            "operator": bucket.operator,
            "bucket": bucket.number,
            "key": row["key"],
            "windows": row["count_all_sum"],
            "bytes": row[f"{SIZE}_sum_sum"],
            "newest_element": row[f"{END}_max_max"] and _newest(program, row[f"{END}_max_max"]),
            "next_timer": row[f"{NEXT}_min_min"],
        }
        for row in merged.slice(0, most).to_pylist()
    ]
    return Listing(rows, bucket.panes.is_complete and merged.num_rows <= most)


def _newest(program: Program, end: int) -> int | None:
    """Return the time of the newest element, where the end of a session says it; partials have forgotten it."""
    gap = getattr(program.spec.assigner, "gap", None)
    return end - gap if program.spec.merges and isinstance(gap, int) else None


def timers_of(bucket: Bucket, most: int) -> Listing:
    """Return when triggers, ends of windows and cleanups happen to how many panes of a bucket, the first in front."""
    program = present(bucket.windows, "only windows are asked for")
    clock = "event time" if program.spec.lateness.is_event_time else "processing time"
    parts = [table.select([END, NEXT]) for table in bucket.panes]
    if not parts:
        return Listing([], True)
    together = pa.concat_tables(parts)
    has_end, has_own = (together[name].is_valid().to_numpy() for name in (END, NEXT))
    own, fires = together[NEXT].fill_null(0).to_numpy(), together[END].fill_null(0).to_numpy() - 1
    cleaned = program.spec.lateness.cleanup_times(fires)
    is_own = has_own & ~(has_end & ((own == fires) | (own == cleaned)))
    kinds = {
        "cleanup": cleaned[has_end & (cleaned != fires)],
        "end of window": fires[has_end],
        "trigger": own[is_own],
    }
    rows = []
    for kind, times in kinds.items():
        found, counts = np.unique(times[times > bucket.clock], return_counts=True)
        pairs = zip(found[: most + 1].tolist(), counts[: most + 1].tolist(), strict=True)
        rows += [{"operator": bucket.operator, "time": at, "clock": clock, "kind": kind, "how_many": n} for at, n in pairs]
    rows.sort(key=lambda row: (row["time"], row["kind"]))
    return Listing(rows[:most], bucket.panes.is_complete and len(rows) <= most)
