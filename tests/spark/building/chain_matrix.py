"""What may stand behind what: one operator of each kind; docs/how-to/chains.md shows the pairs that are refused, and why."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import windowpane as wp

MINUTE = wp.TumblingEventTimeWindows.of("1 minute")


def _windows(df: Any, at: str) -> Any:
    return wp.stream(df, event_time=at).key_by("k").window(MINUTE).aggregate(v=wp.sum("v"))


def _retracting(df: Any, at: str) -> Any:
    early = wp.AfterWatermark(early=wp.AfterCount(1))
    windowed = wp.stream(df, event_time=at).key_by("k").window(MINUTE).trigger(early).accumulation("retracting")
    return windowed.aggregate(v=wp.sum("v"))


def _over(df: Any, at: str) -> Any:
    return wp.over(df, event_time=at, key=("k", at)).partition_by("k").order_by(at).select("k", at, v=wp.sum("v").rows(-1, 0))


def _close(df: Any, at: str) -> Any:
    return _over(df, at).emit_on_window_close()


def _update(df: Any, at: str) -> Any:
    return _over(df, at).emit_on_update()


def _first(df: Any, at: str) -> Any:
    return wp.stream(df, event_time=at).key_by("k", at).deduplicate(within="1 hour")


def _last(df: Any, at: str) -> Any:
    return wp.stream(df, event_time=at).key_by("k", at).deduplicate(within="1 hour", keep="last")


def _joined(df: Any, at: str) -> Any:
    sides = wp.join(wp.stream(df, event_time=at), wp.stream(df, event_time=at)).on("k")
    return sides.within("0 seconds", "0 seconds").select("k", at=wp.left(at), v=wp.right("v"))


def _joined_windows(df: Any, at: str) -> Any:
    sides = wp.join(wp.stream(df, event_time=at), wp.stream(df, event_time=at)).on("k")
    return sides.window(MINUTE).select("k", "window_end", v=wp.right("v"))


def _as_of(df: Any, at: str) -> Any:
    sides = wp.as_of(wp.stream(df, event_time=at), wp.stream(df, event_time=at)).on("k")
    return sides.match().select("k", at=wp.left(at), v=wp.right("v"))


def _pattern(df: Any, at: str) -> Any:
    return wp.stream(df, event_time=at).key_by("k").match("a", a=wp.col("v") > 0).within("1 hour").all_rows("k", at, "v")


def _rolling(df: Any, at: str) -> Any:
    return wp.rolling(df, event_time=at).by("k").over("5 minutes", v=wp.sum("v")).emit("each")


def _ahead(df: Any, at: str) -> Any:
    over = wp.over(df, event_time=at, key=("k", at)).partition_by("k").order_by(at)
    return over.select("k", at, v=wp.lead("v")).emit_on_update()


def _arriving(df: Any, at: str) -> Any:
    sides = wp.as_of(wp.stream(df, event_time=at), wp.stream(df, event_time=at)).on("k")
    return sides.by_arrival().select("k", at=wp.left(at), v=wp.right("v"))


def _counted(df: Any, at: str) -> Any:
    return wp.stream(df, event_time=at).key_by("k").count_window(2).aggregate(v=wp.sum("v"))


def _newest(df: Any, at: str) -> Any:
    return wp.rolling(df, event_time=at).by("k").over("5 minutes", v=wp.sum("v")).emit("changed")


KINDS: Mapping[str, tuple[Callable[[Any, str], Any], str]] = {
    "windows": (_windows, "window_end"),
    "windows that retract": (_retracting, "window_end"),
    "OVER on close": (_close, "at"),
    "OVER on update": (_update, "at"),
    "first rows": (_first, "at"),
    "last rows": (_last, "at"),
    "join by an interval": (_joined, "at"),
    "join by window": (_joined_windows, "window_end"),
    "join as of": (_as_of, "at"),
    "row patterns": (_pattern, "at"),
    "rolling features of each row": (_rolling, "as_of"),
    "OVER on update that looks ahead": (_ahead, "at"),
    "join by arrival": (_arriving, "at"),
    "windows by count": (_counted, "window_end"),
    "rolling features, the latest": (_newest, "as_of"),
}
"""By the name in the document: what builds it on a stream with ``k``, ``v`` and an event time, and the time that it leaves."""

BY_ARRIVAL = ("windows by count", "join by arrival")
BEHIND: Mapping[str, tuple[str, ...]] = {
    "by event time": tuple(
        each for each in KINDS if each not in ("OVER on update", "OVER on update that looks ahead", *BY_ARRIVAL)
    ),
    "OVER on update": ("OVER on update", "OVER on update that looks ahead"),
    "by count or arrival": BY_ARRIVAL,
}
"""The columns of the document: kinds that take the same in front of them."""
