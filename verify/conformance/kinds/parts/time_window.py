"""Kind ``time_window``: the arithmetic of windows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from verify.conformance.reading.fields import Json, NotUnderstoodError, read_window, require_known, write_window
from verify.conformance.reading.vectors import Case
from verify.conformance.replay.verdicts import Difference, Options
from windowpane.windowing.assigners import WindowStagger
from windowpane.windowing.windows import TimeWindow, merge_overlapping, window_start

_CALL = {"op", "is", "is_between", "ts", "offset", "size", "a", "b", "window", "windows", "stagger", "processing_time"}


def replay(case: Case, options: Options) -> list[Difference]:
    """Compare the result of every call."""
    require_known(case.body, {"id", "kind", "calls"}, "case")
    differences = []
    for call in case.get("calls"):
        require_known(call, _CALL, "time_window call")
        got = _answer(call)
        if "is_between" in call:
            low, high = call["is_between"]
            if not low <= got < high:
                differences.append(Difference(f"{call}", call["is_between"], got))
        elif got != call["is"]:
            differences.append(Difference(f"{call}", call["is"], got))
    return differences


def _answer(call: Json) -> Any:
    operations: dict[str, Callable[[Json], Any]] = {
        "window_start_with_offset": lambda c: window_start(c["ts"], c.get("offset", 0), c["size"]),
        "window_start": lambda c: window_start(c["ts"], c.get("offset", 0), c["size"]),
        "intersects": _intersects,
        "cover": lambda c: write_window(_time_window(c["a"]).cover(_time_window(c["b"]))),
        "max_timestamp": lambda c: read_window(c["window"]).max_timestamp,
        "stagger_offset": lambda c: WindowStagger[c["stagger"]].offset(c["processing_time"], c["size"]),
        "merge": _merge,
    }
    operation = operations.get(call["op"])
    if operation is None:
        raise NotUnderstoodError(f"time_window call {call['op']!r} is not understood")
    return operation(call)


def _time_window(node: Any) -> TimeWindow:
    window = read_window(node)
    if not isinstance(window, TimeWindow):
        raise NotUnderstoodError(f"{node!r} is no time window")
    return window


def _intersects(call: Json) -> bool | str:
    a, b = _time_window(call["a"]), _time_window(call["b"])
    return a.intersects(b) if a.intersects(b) == b.intersects(a) else "not symmetric"


def _merge(call: Json) -> list[Json]:
    groups = merge_overlapping([_time_window(window) for window in call["windows"]])
    return [{"from": [write_window(w) for w in members], "into": write_window(cover)} for cover, members in groups]
