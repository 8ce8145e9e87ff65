"""Reading a vector's JSON strictly: a field nobody understands is reported by name, so that nothing is silently ignored."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from windowpane.windowing.times import MAX, MIN
from windowpane.windowing.windows import GLOBAL_WINDOW, GlobalWindow, TimeWindow, Window

Json = dict[str, Any]

REMARKS = frozenset({"notes", "remark", "comment", "comments", "source", "line"})
"""Fields that speak to people, allowed everywhere."""
PAYLOAD = frozenset({"key", "value", "text"})
"""Fields whose strings are data, even if they read MIN or MAX."""


class NotUnderstoodError(Exception):
    """The case needs something this runner does not know; it is skipped, with the message as the reason."""


class LeftToRowsError(NotUnderstoodError):
    """The planner leaves the case's program to rows; the message says why."""


def require_known(fields: Mapping[str, Any], known: Collection[str], what: str) -> None:
    """Refuse fields outside ``known``.

    Raises:
        NotUnderstoodError: naming the unknown fields.
    """
    unknown = sorted(set(fields) - set(known) - REMARKS)
    if unknown:
        raise NotUnderstoodError(f"{what} has fields that are not understood: {', '.join(unknown)}")


def with_limits(node: Any, field: str = "") -> Any:
    """Return JSON with ``"MIN"`` and ``"MAX"`` as the limits of int64, wherever they can be times."""
    if isinstance(node, dict):
        return {name: with_limits(child, name) for name, child in node.items()}
    if isinstance(node, list):
        return [with_limits(child, field) for child in node]
    if field not in PAYLOAD and node in ("MIN", "MAX"):
        return MIN if node == "MIN" else MAX
    return node


def read_window(node: Any) -> Window:
    """Return the window of ``[start, end]`` or ``"GLOBAL"``."""
    if node == "GLOBAL":
        return GLOBAL_WINDOW
    if isinstance(node, list) and len(node) == 2:
        return TimeWindow(node[0], node[1])
    raise NotUnderstoodError(f"{node!r} is no window")


def write_window(window: Window | None) -> Any:
    """Return a window as the vectors write it."""
    if isinstance(window, TimeWindow):
        return [window.start, window.end]
    return "GLOBAL" if isinstance(window, GlobalWindow) else repr(window)
