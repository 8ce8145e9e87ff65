"""Builds plan nodes, and works out their keys, watermarks and whether they only append."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from windowpane.errors import MistakeError
from windowpane.sql.bind.scope import Column, Ids
from windowpane.sql.expressions.expr import Expr
from windowpane.sql.expressions.types import BOOLEAN
from windowpane.sql.nodes import (
    BRANCH_TYPE,
    IDENTITY_TYPE,
    Aggregate,
    ClockStamp,
    CloseSort,
    Expand,
    Filter,
    Fold,
    Join,
    Node,
    Order,
    Over,
    Project,
    SetOperation,
    TimeBound,
    TopN,
    UnionAll,
    Unnest,
    Watermark,
)
from windowpane.sql.windows.over_calls import OverNodeCall


class Computed:
    """Columns that a projection adds to a node before an operator that takes columns only."""

    def __init__(self, ids: Ids) -> None:
        self._ids = ids
        self._added: dict[Expr, Column] = {}
        self._own: list[tuple[Column, Expr]] = []

    def column(self, expr: Expr, name: str = "argument") -> Column:
        if expr.is_column:
            return Column(expr.column, expr.name, expr.type)
        if expr not in self._added:
            self._added[expr] = self._ids.column(name, expr.type)
            self._own.append((self._added[expr], expr))
        return self._added[expr]

    def own(self, expr: Expr) -> Column:
        """Return a column that holds an expression and nothing else does, not the column that the expression may be."""
        column = self._ids.column(expr.name or "own", expr.type)
        self._own.append((column, expr))
        return column

    def apply(self, node: Node) -> Node:
        if not self._own:
            return node
        kept = [(column, column.expr) for column in node.columns]
        return project(node, [*kept, *self._own])


def project(node: Node, items: Sequence[tuple[Column, Expr]]) -> Node:
    """Return a projection; columns of the key that it lacks are added behind."""
    there = {column.id for column, expr in items if expr.is_column and expr.column == column.id}
    renamed = {expr.column: column.id for column, expr in reversed(items) if expr.is_column}
    renamed |= {name: name for name in there}
    missing = [node.column(name) for name in node.key if name not in renamed]
    full = [*items, *((column, column.expr) for column in missing)]
    key = tuple(renamed.get(name, name) for name in node.key)
    watermarks = _projected(node, full)
    return Project(
        columns=tuple(column for column, _ in full),
        key=key,
        append_only=node.append_only,
        watermarks=watermarks,
        input=node,
        items=tuple(expr for _, expr in full),
    )


def _projected(node: Node, items: Sequence[tuple[Column, Expr]]) -> dict[str, Watermark]:
    found = {}
    for column, expr in items:
        if expr.is_column and expr.column in node.watermarks:
            found[column.id] = node.watermarks[expr.column]
        elif (source := expr.rises_with) is not None and source in node.watermarks:
            found[column.id] = node.watermarks[source].under(expr)
    return found


def keep(node: Node, condition: Expr) -> Node:
    return Filter(node.columns, node.key, node.append_only, node.watermarks, input=node, condition=condition)


def aggregate(node: Node, groups: Sequence[str], calls: Sequence[tuple[Column, Expr]], folds: Sequence[Fold | None] = ()) -> Node:
    columns = (*(node.column(group) for group in groups), *(column for column, _ in calls))
    watermarks = {group: node.watermarks[group] for group in groups if group in node.watermarks}
    return Aggregate(
        columns,
        tuple(groups),
        False,
        watermarks,
        input=node,
        groups=tuple(groups),
        calls=tuple(call for _, call in calls),
        folds=tuple(folds),
    )


def expand(node: Node, masked: Sequence[tuple[str, Column, Sequence[int]]], number: Column, count: int) -> Node:
    """Return each row once for each of ``count`` grouping sets; ``masked`` are (column, masked column, the sets that have it)."""
    return Expand(
        (*node.columns, *(column for _, column, _ in masked), number),
        (*node.key, number.id),
        node.append_only,
        node.watermarks,
        input=node,
        masked=tuple(source for source, _, _ in masked),
        sets=tuple(tuple(sets) for _, _, sets in masked),
        count=count,
    )


def unnest(node: Node, elements: Expr, value: Column, number: Column, series: str | None = None) -> Node:
    """Return each row once for each element of a list; ``series`` is the list as a relation, where it can be one."""
    columns, key = (*node.columns, value, number), (*node.key, number.id)
    return Unnest(columns, key, node.append_only, node.watermarks, input=node, elements=elements, series=series)


def distinct(node: Node, columns: Sequence[str]) -> Node:
    grouped = aggregate(node, tuple(dict.fromkeys(columns)), [])
    if not isinstance(grouped, Aggregate):
        raise MistakeError("groups are an Aggregate")
    return grouped


def over(
    node: Node,
    partition: Sequence[str],
    order: Sequence[Order],
    calls: Sequence[tuple[Column, OverNodeCall]],
) -> Node:
    return Over(
        (*node.columns, *(column for column, _ in calls)),
        *_of_partitions(node, partition),
        input=node,
        partition=tuple(partition),
        order=tuple(order),
        calls=tuple(call for _, call in calls),
    )


def _of_partitions(node: Node, partition: Sequence[str]) -> tuple[tuple[str, ...], bool, dict[str, Watermark]]:
    """Return key, whether rows stay, and watermarks of what is computed partition by partition: a row can change, or move."""
    key = (*node.key, *(name for name in partition if name not in node.key))
    return key, False, {name: node.watermarks[name] for name in partition if name in node.watermarks}


def top(
    node: Node,
    partition: Sequence[str],
    order: Sequence[Order],
    limit: int | None,
    offset: int = 0,
    with_ties: bool = False,
    number: Column | None = None,
) -> Node:
    """Return the first rows of each partition."""
    columns = node.columns if number is None else (*node.columns, number)
    name = None if number is None else number.id
    return TopN(
        columns,
        *_of_partitions(node, partition),
        input=node,
        partition=tuple(partition),
        order=tuple(order),
        limit=limit,
        offset=offset,
        with_ties=with_ties,
        number=name,
    )


def join(
    left: Node,
    right: Node,
    kind: str,
    keys: Sequence[tuple[str, str]],
    residual: Expr | None,
    ids: Ids,
    null_safe: bool = False,
) -> Join:
    """Return a join; semi and anti joins have the columns of the left side.

    Both keys identify a row of a join. In a full join a row of the left side alone and one of the right side alone can both have
    NULL in all of them (groups of NULL, the one row of an aggregate without GROUP BY): a mark on rows of the left side tells
    them apart.
    """
    if kind == "full":
        left = _marked(left, ids)
    one_sided = kind in ("semi", "anti")
    bounds = time_bounds(residual, left, right)
    columns = left.columns if one_sided else left.columns + right.columns
    key = left.key if one_sided else tuple(dict.fromkeys((*left.key, *right.key, *_mark_of(left, kind))))
    return Join(
        columns,
        key,
        kind == "inner" and left.append_only and right.append_only,
        _joined_watermarks(left, right, kind, keys, bounds),
        left=left,
        right=right,
        kind=kind,
        keys=tuple(keys),
        residual=residual,
        null_safe=null_safe,
        bounds=bounds,
    )


def join_by_arrival(left: Node, right: Node, kind: str, keys: Sequence[tuple[str, str]], residual: Expr | None, ids: Ids) -> Join:
    """Return the rows of the left side, which stay, each with those that the right side has when it arrives."""
    joined = join(left, right, kind, keys, residual, ids)
    return replace(joined, append_only=True, watermarks=dict(left.watermarks), bounds=(), by_arrival=True)


def rejoined(
    node: Join, left: Node, right: Node, keys: Sequence[tuple[str, str]], residual: Expr | None, null_safe: bool
) -> Join:
    """Return a join of other inputs that have the columns of the old ones, and perhaps more; its key stays."""
    one_sided = node.kind in ("semi", "anti")
    bounds = () if node.by_arrival else time_bounds(residual, left, right)
    found = _joined_watermarks(left, right, node.kind, keys, bounds)
    return replace(
        node,
        columns=left.columns if one_sided else left.columns + right.columns,
        watermarks=dict(left.watermarks) if node.by_arrival else found,
        left=left,
        right=right,
        keys=tuple(keys),
        residual=residual,
        null_safe=null_safe,
        bounds=bounds,
    )


def _marked(node: Node, ids: Ids) -> Node:
    """Return rows with a column behind them that is TRUE."""
    kept = [(column, column.expr) for column in node.columns]
    return project(node, [*kept, (ids.column("there", BOOLEAN), Expr("TRUE", BOOLEAN))])


def _mark_of(left: Node, kind: str) -> tuple[str, ...]:
    return (left.columns[-1].id,) if kind == "full" else ()


def _joined_watermarks(
    left: Node, right: Node, kind: str, keys: Sequence[tuple[str, str]], bounds: Sequence[TimeBound]
) -> dict[str, Watermark]:
    """Return the watermarks of keys and of columns bounded by the other side's time.

    Those of a side whose rows may be missing are left out, since NULL never falls behind a watermark.
    """
    sides = (kind in ("inner", "left", "semi", "anti"), kind in ("inner", "right"))
    watermarks: dict[str, Watermark] = {}
    for bound in bounds:
        own = (left, right)[bound.frees].watermarks.get(bound.value.column)
        if own is not None and sides[bound.frees]:
            watermarks[bound.value.column] = Watermark.least(own, bound.watermark)
    for one, other in keys:
        if one in left.watermarks and other in right.watermarks:
            both = Watermark.least(left.watermarks[one], right.watermarks[other])
            watermarks |= {name: both for name, has_all in zip((one, other), sides, strict=True) if has_all}
    return watermarks


def union_all(branches: Sequence[Node], columns: Sequence[Column], ids: Ids) -> Node:
    number, identity = ids.column("branch", BRANCH_TYPE), ids.column("identity", IDENTITY_TYPE)
    watermarks = {}
    for index, column in enumerate(columns):
        found = [branch.watermarks.get(branch.columns[index].id) for branch in branches]
        if all(each is not None for each in found):
            watermarks[column.id] = Watermark.least(*(each for each in found if each is not None))
    return UnionAll(
        (*columns, number, identity),
        (number.id, identity.id),
        all(branch.append_only for branch in branches),
        watermarks,
        branches=tuple(branches),
    )


def set_operation(left: Node, right: Node, kind: str, columns: Sequence[Column]) -> Node:
    watermarks = {}
    for column, one, other in zip(columns, left.columns, right.columns, strict=False):
        if one.id in left.watermarks and other.id in right.watermarks:
            watermarks[column.id] = Watermark.least(left.watermarks[one.id], right.watermarks[other.id])
    key = tuple(column.id for column in columns)
    return SetOperation(tuple(columns), key, False, watermarks, left=left, right=right, kind=kind)


def stamped(node: Node, column: Column) -> Node:
    """Return each row with the time at which it was taken in."""
    return ClockStamp((*node.columns, column), node.key, node.append_only, node.watermarks, input=node)


def close_sort(node: Node, by: Sequence[str]) -> Node:
    """Return a node whose rows wait until the watermark of one of the columns has passed them."""
    return CloseSort(node.columns, node.key, True, node.watermarks, input=node, by=tuple(by))


def time_bounds(condition: Expr | None, left: Node, right: Node) -> tuple[TimeBound, ...]:
    """Return the bounds in time that the condition of a join puts on rows of each side: ``l.at >= r.at - INTERVAL '5 minutes'``.

    With such a bound the watermark of one side shows which rows of the other no later row can match: where ``low <= high`` holds
    for every match, ``low`` rises with a column of one side, and by that side's watermark ``low`` of all later rows is greater
    than the ``high`` of a row, the row has had its matches.
    """
    found = (_bound(low, high, left, right) for low, high in _inequalities(condition))
    return tuple(bound for bound in found if bound is not None)


def _inequalities(condition: Expr | None) -> Iterator[tuple[Expr, Expr]]:
    """Yield (low, high) for each ``low <= high`` that a condition implies."""
    if condition is None:
        return
    if condition.operator == "AND":
        for part in condition.parts:
            yield from _inequalities(part)
    elif condition.operator in ("<", "<=", "="):
        yield condition.parts[0], condition.parts[1]
    if condition.operator in (">", ">=", "="):
        yield condition.parts[1], condition.parts[0]


def _bound(low: Expr, high: Expr, left: Node, right: Node) -> TimeBound | None:
    for index, (source, other) in enumerate(((left, right), (right, left))):
        risen = low.rises_with
        if (
            risen is not None
            and risen in other.watermarks
            and low.columns == {risen}
            and high.columns
            and high.columns <= source.ids
        ):
            return TimeBound(index, high, other.watermarks[risen].under(low))
    return None
