"""Filters are pushed down: each condition to the lowest node that has its columns, where the rows it drops do not matter above.

Which conditions pass a node, and why this is sound:

- each row alone (projections, windows of a row, elements of an array): a condition on columns of the input;
- groups, Top-N, OVER, sessions: a condition on columns that rows are grouped by drops whole groups or partitions;
- joins: a condition on one side, unless the result has rows without that side (the other side of an outer join). Of the
  conditions of ON, those on the side that an outer join may leave out are pushed to that side;
- numbers of rows: a condition on them makes a Top-N of the window (``top_n``);
- unions and set operations: the same condition on each branch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from windowpane.sql.bind import build_plan as plan
from windowpane.sql.bind.scope import Ids
from windowpane.sql.expressions.expr import Expr
from windowpane.sql.nodes import (
    Aggregate,
    CloseSort,
    Expand,
    Filter,
    Join,
    Node,
    Over,
    Project,
    SessionWindows,
    SetOperation,
    TemporalFilter,
    TimeWindows,
    TopN,
    Unary,
    UnionAll,
    Unnest,
    Watermark,
)
from windowpane.sql.optimize.clusters import Cluster, as_before, equal_keys, is_inner
from windowpane.sql.optimize.conditions import all_of, conjuncts, factored
from windowpane.sql.optimize.top_n import top_n

_FILTERED_LEFT = ("inner", "left", "semi", "anti")
_FILTERED_RIGHT = ("inner", "right")
_ON_LEFT = ("inner", "right", "semi")
_ON_RIGHT = ("inner", "left", "semi", "anti")


def planned(node: Node, ids: Ids) -> Node:
    """Return a plan with the same columns and key, with filters where they drop rows first and joins on keys."""
    return _Filters(ids).push(node, [])


class _Filters:
    def __init__(self, ids: Ids) -> None:
        self._ids = ids

    def push(self, node: Node, conditions: Sequence[Expr]) -> Node:
        if isinstance(node, Filter):
            return self.push(node.input, [*conditions, *(part for each in conjuncts(node.condition) for part in factored(each))])
        if isinstance(node, Join):
            return self._inner(node, conditions) if is_inner(node) else self._outer(node, conditions)
        if isinstance(node, UnionAll | SetOperation):
            return self._branches(node, conditions)
        if isinstance(node, Over):
            node, conditions = top_n(node, conditions)
        below = [condition for condition in conditions if _passes(node, condition)]
        above = [condition for condition in conditions if not _passes(node, condition)]
        if isinstance(node, Project):
            items = {column.id: item for column, item in zip(node.columns, node.items, strict=True)}
            below = [condition.over(items) for condition in below]
        if isinstance(node, Unary):
            node = with_inputs(node, self.push(node.input, below))
        return _kept(node, above)

    def _inner(self, node: Join, conditions: Sequence[Expr]) -> Node:
        cluster = Cluster.of(node, conditions)
        relations = [self.push(relation, cluster.about(relation)) for relation in cluster.relations]
        return as_before(cluster.joined(relations, self._ids), node)

    def _outer(self, node: Join, conditions: Sequence[Expr]) -> Node:
        left, right = (side.ids for side in node.inputs)
        on = [part for each in conjuncts(node.residual) for part in factored(each)]
        to_left = [part for part in conditions if node.kind in _FILTERED_LEFT and part.columns and part.columns <= left]
        to_right = [part for part in conditions if node.kind in _FILTERED_RIGHT and part.columns and part.columns <= right]
        on_left = [part for part in on if node.kind in _ON_LEFT and part.columns and part.columns <= left]
        on_right = [part for part in on if node.kind in _ON_RIGHT and part.columns and part.columns <= right]
        rest = _without(on, [*on_left, *on_right])
        keys = equal_keys(rest, left, right, null_safe=node.null_safe if node.keys else None)
        one, other = plan.Computed(self._ids), plan.Computed(self._ids)
        pairs = [(one.column(mine).id, other.column(theirs).id) for mine, theirs in keys.pairs]
        sides = (self.push(node.left, [*to_left, *on_left]), self.push(node.right, [*to_right, *on_right]))
        joined = plan.rejoined(
            node,
            one.apply(sides[0]),
            other.apply(sides[1]),
            (*node.keys, *pairs),
            all_of(_without(rest, keys.taken)),
            keys.null_safe,
        )
        return _kept(as_before(joined, node), _without(conditions, [*to_left, *to_right]))

    def _branches(self, node: UnionAll | SetOperation, conditions: Sequence[Expr]) -> Node:
        """Push conditions into all branches; those of a union on what tells its branches apart stay above."""
        visible = node.columns[:-2] if isinstance(node, UnionAll) else node.columns
        shared = {column.id for column in visible}
        below = [condition for condition in conditions if condition.columns and condition.columns <= shared]
        branches = []
        for branch in node.inputs:
            items = {column.id: source.expr for column, source in zip(visible, branch.columns, strict=False)}
            branches.append(self.push(branch, [condition.over(items) for condition in below]))
        return _kept(with_inputs(node, *branches), _without(conditions, below))


def _without(conditions: Sequence[Expr], removed: Sequence[Expr]) -> list[Expr]:
    return [each for each in conditions if not any(each is other for other in removed)]


def _kept(node: Node, conditions: Sequence[Expr]) -> Node:
    condition = all_of(conditions)
    return node if condition is None else plan.keep(node, condition)


def _passes(node: Node, condition: Expr) -> bool:
    """Whether a condition on the result of a node with one input may be checked on the input."""
    if isinstance(node, Project):
        return bool(condition.columns) and condition.columns <= node.ids
    return bool(condition.columns) and condition.columns <= _let_through(node)


def _let_through(node: Node) -> set[str]:
    if isinstance(node, Aggregate):
        return set(node.groups)
    if isinstance(node, TopN | SessionWindows):
        return set(node.partition)
    if isinstance(node, Over):
        return set() if node.closes else set(node.partition)
    if isinstance(node, TimeWindows | Expand | Unnest | TemporalFilter):
        return node.input.ids
    return set()


def with_inputs(node: Node, *inputs: Node) -> Node:
    """Return a node over other inputs with the same columns; it passes on watermarks that the old inputs did not have."""
    changed = node.with_inputs(*inputs)
    if not isinstance(changed, Unary):
        return changed
    return replace(changed, watermarks={**_gained(changed, inputs[0]), **node.watermarks})


def _gained(node: Unary, source: Node) -> dict[str, Watermark]:
    if isinstance(node, Project):
        return {name: source.watermarks[of] for name, of in node.unchanged.items() if of in source.watermarks}
    if isinstance(node, Filter | TimeWindows | Expand | Unnest | CloseSort):
        return dict(source.watermarks)
    return {name: mark for name, mark in source.watermarks.items() if name in _let_through(node)}
