"""EMIT ON WINDOW CLOSE over a join whose result has no column with a watermark: when a row of it is final.

A row of one side is final once, by the watermark of the other side, no later row can match it: behind a bound in time
(``r.at <= l.at + INTERVAL '1 minute'``: when ``l.at`` and a minute are behind the watermark of ``r.at``), or behind a key that
both watermarks have passed (``l.window_end = r.window_end``). Pairs never change, and a row that an outer, semi or anti join
returns by itself does not change from then on. So each side gets hidden columns, the *ends* of its rows, for which results wait.

A bound that is NULL matches nothing: such a row is final when it arrives.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from windowpane.sql.bind import build_plan as plan
from windowpane.sql.bind.scope import Column, Ids
from windowpane.sql.expressions.expr import build
from windowpane.sql.expressions.types import is_instant
from windowpane.sql.nodes import CloseSort, Filter, Join, Node, Project, TimeBound, Watermark
from windowpane.sql.optimize.clusters import projected

Ends = Mapping[str, Watermark]
"""Columns, and the watermarks behind which rows are final by them."""

_SHOWN = {"inner": (0, 1), "left": (0,), "semi": (0,), "anti": (0,), "right": (1,), "full": (0, 1)}
"""For each kind of join the sides of which one is in every row."""


def closing_join(node: Node, ids: Ids) -> Node | None:
    """Return a plan whose rows are emitted once they are final, ``None`` if it is no join, or nothing says when they are."""
    found = _with_ends(node, ids)
    if found is None:
        return None
    with_ends, ends = found
    watermarks = {**with_ends.watermarks, **ends}
    closed = CloseSort(with_ends.columns, with_ends.key, True, watermarks, input=with_ends, by=tuple(ends))
    return projected(closed, node.columns, node.key)


def _with_ends(node: Node, ids: Ids) -> tuple[Node, Ends] | None:
    if isinstance(node, Join):
        return _ended(node, ids)
    if not isinstance(node, Project | Filter):
        return None
    below = _with_ends(node.input, ids)
    if below is None:
        return None
    source, ends = below
    if isinstance(node, Filter):
        return replace(node, columns=source.columns, input=source), ends
    hidden = [source.column(name) for name in ends if name not in node.ids]
    items = (*node.items, *(column.expr for column in hidden))
    return replace(node, columns=(*node.columns, *hidden), items=items, input=source), ends


def _ended(node: Join, ids: Ids) -> tuple[Node, Ends] | None:
    """Return a join with the ends of its rows."""
    sides, ends = list(node.inputs), [dict[str, Watermark](), dict[str, Watermark]()]
    for pair in node.keys:
        marks = [side.watermarks[name] for side, name in zip(node.inputs, pair, strict=True) if name in side.watermarks]
        both = Watermark.least(*marks)
        if len(marks) == len(pair) and both.final:
            for of, name in zip(ends, pair, strict=True):
                of[name] = both
    for bound in node.bounds:
        if bound.watermark.final and all(side.append_only for side in node.inputs):
            sides[bound.frees], end = _with_end(sides[bound.frees], bound, ids)
            ends[bound.frees][end.id] = bound.watermark
    shown = _SHOWN[node.kind]
    if node.by_arrival or not (all if node.kind == "full" else any)(ends[index] for index in shown):
        return None
    joined = plan.rejoined(node, sides[0], sides[1], node.keys, node.residual, node.null_safe)
    return joined, {name: mark for index in shown for name, mark in ends[index].items()}


def _with_end(side: Node, bound: TimeBound, ids: Ids) -> tuple[Node, Column]:
    end = bound.value
    if is_instant(end.type):
        end = build(end.type, f"coalesce({{0}}, CAST('-infinity' AS {end.type.duckdb}))", end)
    computed = plan.Computed(ids)
    column = computed.column(end, "end")
    return computed.apply(side), column
