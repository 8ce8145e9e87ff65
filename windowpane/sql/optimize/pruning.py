"""Columns that no node above reads are removed where they begin, so that state and batches hold only what is needed.

Every node keeps its key, which its rows are found by. What a node reads by position (unions, set operations) gets a projection
below it that puts columns in their places; what keeps its input gets one that leaves out the rest.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from windowpane.errors import MistakeError
from windowpane.sql.bind import build_plan as plan
from windowpane.sql.bind.scope import Column
from windowpane.sql.nodes import (
    Aggregate,
    ClockStamp,
    CloseSort,
    Expand,
    Filter,
    Join,
    Match,
    Node,
    Over,
    Project,
    Scan,
    SessionWindows,
    SetOperation,
    TemporalFilter,
    TimeWindows,
    TopN,
    Unary,
    UnionAll,
    Unnest,
)
from windowpane.sql.optimize.clusters import projected


def pruned(node: Node, needed: Collection[str] | None = None) -> Node:
    """Return a node with the columns of ``needed`` and of its key, perhaps more; ``None`` needs all that it has."""
    wanted = _wanted(node, node.ids if needed is None else needed)
    if isinstance(node, Scan):
        return _scan(node, wanted)
    if isinstance(node, Join):
        return _join(node, wanted)
    if isinstance(node, UnionAll):
        return _union(node, wanted)
    if isinstance(node, SetOperation):
        return node.with_inputs(*(_in_places(side, range(len(node.columns))) for side in node.inputs))
    if isinstance(node, Project):
        return _project(node, wanted)
    if isinstance(node, Aggregate):
        return _aggregate(node, wanted)
    if isinstance(node, Match):
        return replace(node, input=_narrow(node.input, node.reads))
    if isinstance(node, Over):
        return _unary(_with_calls(node, wanted), wanted)
    return _unary(node, wanted) if isinstance(node, Unary) else node


def _wanted(node: Node, needed: Collection[str]) -> set[str]:
    """Return the columns of a node that stay: at least one, since a row must have a column."""
    return set(needed) | set(node.key) or {node.columns[0].id}


def _kept(columns: Iterable[Column], wanted: Collection[str]) -> tuple[Column, ...]:
    return tuple(column for column in columns if column.id in wanted)


def _narrow(node: Node, needed: Collection[str]) -> Node:
    """Return a node with the columns of ``needed`` and of its key alone, for one that keeps them."""
    wanted = _wanted(node, needed)
    node = pruned(node, wanted)
    kept = _kept(node.columns, wanted)
    return node if len(kept) == len(node.columns) else projected(node, kept, node.key)


def _scan(node: Scan, wanted: Collection[str]) -> Node:
    pairs = [(column, name) for column, name in zip(node.columns, node.stored, strict=True) if column.id in wanted]
    return replace(
        node,
        columns=tuple(column for column, _ in pairs),
        stored=tuple(name for _, name in pairs),
        watermarks={name: mark for name, mark in node.watermarks.items() if name in wanted},
    )


def _project(node: Project, wanted: Collection[str]) -> Node:
    pairs = [(column, item) for column, item in zip(node.columns, node.items, strict=True) if column.id in wanted]
    read = set().union(*(item.columns for _, item in pairs))
    source = pruned(node.input, read & node.input.ids)
    kept = {column.id for column, _ in pairs}
    items = tuple(item for _, item in pairs)
    while isinstance(source, Project) and _moves_alone(source):
        known = {column.id: item for column, item in zip(source.columns, source.items, strict=True)}
        items, source = tuple(item.over(known) for item in items), source.input
    return replace(
        node,
        columns=tuple(column for column, _ in pairs),
        items=items,
        watermarks={name: mark for name, mark in node.watermarks.items() if name in kept},
        input=source,
    )


def _moves_alone(node: Project) -> bool:
    """Whether a projection computes nothing, so that one above it can do without."""
    return all(item.is_column for item in node.items)


def _aggregate(node: Aggregate, wanted: Collection[str]) -> Node:
    width = len(node.groups)
    kept = [index for index, column in enumerate(node.columns[width:]) if column.id in wanted]
    calls = tuple(node.calls[index] for index in kept)
    read = set(node.groups).union(*(call.columns for call in calls))
    return replace(
        node,
        columns=(*node.columns[:width], *(node.columns[width + index] for index in kept)),
        calls=calls,
        folds=tuple(node.folds[index] for index in kept) if node.folds else (),
        input=_narrow(node.input, read & node.input.ids),
    )


def _join(node: Join, wanted: Collection[str]) -> Node:
    wanted = {*wanted, *(node.residual.columns if node.residual is not None else ())}
    left = _narrow(node.left, node.left.ids & {*wanted, *(one for one, _ in node.keys)})
    right = _narrow(node.right, node.right.ids & {*wanted, *(other for _, other in node.keys)})
    return replace(plan.rejoined(node, left, right, node.keys, node.residual, node.null_safe), watermarks=node.watermarks)


def _union(node: UnionAll, wanted: Collection[str]) -> Node:
    places = [index for index, column in enumerate(node.columns[:-2]) if column.id in wanted]
    columns = (*(node.columns[index] for index in places), *node.columns[-2:])
    marks = {name: mark for name, mark in node.watermarks.items() if name in {column.id for column in columns}}
    branches = tuple(_in_places(branch, places) for branch in node.branches)
    return replace(node, columns=columns, watermarks=marks, branches=branches)


def _in_places(node: Node, places: Sequence[int]) -> Node:
    """Return the columns of a node at some places, in that order, and those of its key behind them."""
    first = [node.columns[place] for place in places]
    source = pruned(node, {column.id for column in first})
    items = [(column, column.expr) for column in first]
    arranged = plan.project(source, items)
    return source if arranged.columns == source.columns else arranged


def _with_calls(node: Over, wanted: Collection[str]) -> Over:
    """Return an OVER node with the calls that are read, one at least."""
    width = len(node.input.columns)
    pairs = list(zip(node.columns[width:], node.calls, strict=True))
    kept = [(column, call) for column, call in pairs if column.id in wanted] or pairs[:1]
    columns = (*node.columns[:width], *(column for column, _ in kept))
    return replace(node, columns=columns, calls=tuple(call for _, call in kept))


def _unary(node: Unary, wanted: Collection[str]) -> Node:
    read, keeps = _reads(node)
    below = node.input.ids & ({*wanted} | read)
    source = _narrow(node.input, below) if keeps else pruned(node.input, below)
    added = node.columns[len(node.input.columns) :]
    return replace(
        node,
        columns=(*source.columns, *added),
        input=source,
        watermarks={name: mark for name, mark in node.watermarks.items() if name in source.ids | {each.id for each in added}},
    )


def _reads(node: Unary) -> tuple[set[str], bool]:
    """Return the columns that a node reads of its input, whose other columns it passes on, and whether it keeps its input."""
    if isinstance(node, Filter):
        return set(node.condition.columns), False
    if isinstance(node, TimeWindows):
        return set(node.start.columns | node.end.columns | node.condition.columns), False
    if isinstance(node, Expand):
        return set(node.masked), False
    if isinstance(node, Unnest):
        return set(node.elements.columns), False
    if isinstance(node, TopN):
        return {*node.partition, *(item.column for item in node.order)}, True
    if isinstance(node, SessionWindows):
        return {*node.partition, node.time, *([] if node.closes is None else [node.closes])}, True
    if isinstance(node, CloseSort):
        return set(node.by), True
    if isinstance(node, TemporalFilter):
        return set(node.condition.columns), True
    if isinstance(node, ClockStamp):
        return set(), True
    if not isinstance(node, Over):
        raise MistakeError(f"{node.label} is none of the nodes with one input")
    calls = set().union(*({*call.arguments, *([call.filter] if call.filter else [])} for call in node.calls))
    return calls | {*node.partition, *(item.column for item in node.order)}, True
