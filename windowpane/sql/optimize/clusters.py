"""Inner joins beside one another, and the conditions on them, as one set: keys and order follow from the conditions.

``FROM a, b, c WHERE a.x = b.x AND b.y = c.y`` and the same with JOIN ... ON are one cluster of three relations. It is joined from
left to right: the next one is the first relation, in the order of FROM, that an equality ties to those joined so far. Relations
that no equality ties to the others are joined without keys at the end, if ``is_keyless`` allows it. Source of the rule:
RisingWave joins by connectivity in the order of FROM, too; sizes are not known when a view is made.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from windowpane.sql.bind import build_plan as plan
from windowpane.sql.bind.scope import Column, Ids
from windowpane.sql.expressions.expr import Expr
from windowpane.sql.expressions.operators import combined
from windowpane.sql.expressions.types import BOOLEAN
from windowpane.sql.nodes import Aggregate, Filter, Join, Node, Project, Scan, TopN
from windowpane.sql.optimize.conditions import all_of, conjuncts, factored, implied
from windowpane.sql.optimize.extremes import first_of_each_group


def is_inner(node: Node) -> bool:
    """Whether a node is an inner join that may be made in any order."""
    return isinstance(node, Join) and node.kind == "inner" and not node.by_arrival


@dataclass(frozen=True)
class Keys:
    """The equalities among conditions that a join of two sides can have as keys, each as (left, right)."""

    pairs: tuple[tuple[Expr, Expr], ...]
    taken: tuple[Expr, ...]
    null_safe: bool


def equal_keys(conditions: Sequence[Expr], left: Collection[str], right: Collection[str], null_safe: bool | None = None) -> Keys:
    """Return the keys that conditions give; those of one join are either all ``=`` or all ``IS NOT DISTINCT FROM``.

    Args:
        conditions: what must hold.
        left: the ids of one side.
        right: those of the other.
        null_safe: which of the two the join has already, ``None`` for none: then ``=`` is preferred.
    """
    for is_safe in (False, True) if null_safe is None else (null_safe,):
        word = "IS NOT DISTINCT FROM" if is_safe else "="
        found = [(each, pair) for each in conditions if each.operator == word and (pair := _sides(each, left, right))]
        if found:
            return Keys(tuple(pair for _, pair in found), tuple(each for each, _ in found), is_safe)
    return Keys((), (), bool(null_safe))


def _sides(condition: Expr, left: Collection[str], right: Collection[str]) -> tuple[Expr, Expr] | None:
    one, other = condition.parts
    for mine, theirs in ((one, other), (other, one)):
        if mine.columns and theirs.columns and mine.columns <= set(left) and theirs.columns <= set(right):
            return mine, theirs
    return None


@dataclass(frozen=True)
class Cluster:
    """Relations that are joined, in the order of FROM, and what must hold of their rows."""

    relations: tuple[Node, ...]
    conditions: tuple[Expr, ...]

    @classmethod
    def of(cls, node: Node, conditions: Sequence[Expr]) -> Cluster:
        """Return the cluster whose topmost join is ``node``."""
        relations, found = _flat(node)
        parts = [part for each in [*found, *conditions] for whole in conjuncts(each) for part in factored(whole)]
        return cls(tuple(relations), tuple(dict.fromkeys(parts)))

    def about(self, relation: Node) -> list[Expr]:
        """Return what must hold of the rows of one relation alone."""
        alone = [each for each in self.conditions if _is_about(each, relation.ids)]
        return alone + [
            part for each in self.conditions if each not in alone and (part := implied(each, relation.ids)) is not None
        ]

    def joined(self, relations: Sequence[Node], ids: Ids) -> Node:
        """Return the join of the relations, after ``about`` was called for each of them."""
        rest = [each for each in self.conditions if not any(_is_about(each, relation.ids) for relation in self.relations)]
        pieces: list[Node] = []
        waiting = list(relations)
        while waiting:
            piece = waiting.pop(0)
            while (found := _next(piece, waiting, rest)) is not None:
                waiting.remove(found)
                piece, rest = _joined(piece, found, rest, ids)
            pieces.append(piece)
        result = pieces[0]
        for piece in pieces[1:]:
            result, rest = _joined(result, piece, rest, ids)
        condition = all_of(rest)
        return result if condition is None else plan.keep(result, condition)


def _is_about(condition: Expr, names: Collection[str]) -> bool:
    return bool(condition.columns) and condition.columns <= set(names)


def _flat(node: Node) -> tuple[list[Node], list[Expr]]:
    """Return the relations below inner joins, and the conditions on them."""
    if isinstance(node, Filter) and is_inner(_below_filters(node)):
        relations, conditions = _flat(node.input)
        return relations, [*conditions, node.condition]
    if not isinstance(node, Join) or not is_inner(node):
        return [node], []
    relations, conditions = [], []
    for side in node.inputs:
        below, found = _flat(side)
        relations += below
        conditions += found
    word = "IS NOT DISTINCT FROM" if node.null_safe else "="
    keys = [combined(word, _as_expr(node.left, one), _as_expr(node.right, other)) for one, other in node.keys]
    return relations, [*conditions, *keys, *conjuncts(node.residual)]


def _below_filters(node: Node) -> Node:
    while isinstance(node, Filter):
        node = node.input
    return node


def _as_expr(node: Node, name: str) -> Expr:
    return node.column(name).expr


def _next(piece: Node, waiting: Sequence[Node], conditions: Sequence[Expr]) -> Node | None:
    return next((each for each in waiting if equal_keys(conditions, piece.ids, each.ids).pairs), None)


def _joined(left: Node, right: Node, conditions: Sequence[Expr], ids: Ids) -> tuple[Node, list[Expr]]:
    """Return the join of two relations by the conditions that are about them, and the other conditions."""
    both = left.ids | right.ids
    keys = equal_keys(conditions, left.ids, right.ids)
    one, other = plan.Computed(ids), plan.Computed(ids)
    pairs = [(one.column(mine).id, other.column(theirs).id) for mine, theirs in keys.pairs]
    here = [each for each in conditions if each not in keys.taken and _is_about(each, both)]
    rest = [each for each in conditions if each not in keys.taken and each not in here]
    node = plan.join(one.apply(left), other.apply(right), "inner", pairs, all_of(here), ids, keys.null_safe)
    return first_of_each_group(node) or node, rest


def as_before(node: Node, before: Node) -> Node:
    """Return a node with the columns and the key of the one it replaces, in their order."""
    if node.columns == before.columns:
        return replace(node, key=before.key)
    return projected(node, before.columns, before.key)


def projected(node: Node, columns: Sequence[Column], key: tuple[str, ...]) -> Node:
    """Return some columns of a node, the key among them."""
    items = tuple(column.expr for column in columns)
    marks = {column.id: node.watermarks[column.id] for column in columns if column.id in node.watermarks}
    return Project(tuple(columns), key, node.append_only, marks, input=node, items=items)


MOST_ROWS = 10_000
"""The highest LIMIT whose rows count as few."""


def is_small(node: Node) -> bool:
    """Whether a node has few rows, however long its view is kept up to date."""
    if isinstance(node, Scan):
        return node.small
    if isinstance(node, Aggregate) and all(node.column(group).type == BOOLEAN for group in node.groups):
        return True
    if isinstance(node, TopN) and not node.partition and not node.with_ties and (node.limit or MOST_ROWS + 1) <= MOST_ROWS:
        return True
    if isinstance(node, Join) and node.kind in ("semi", "anti"):
        return is_small(node.left)
    return all(is_small(source) for source in node.inputs)


def is_keyless(join: Join) -> bool:
    """Whether a join has no keys, and no side that is small: every change of one side meets every row of the other.

    Small is what has a bounded number of rows by its query (an aggregate without GROUP BY, a LIMIT, rows written in the SQL text,
    groups of booleans), and what was declared so: a table or view ``WITH (small = 'true')``, and what is made of such alone.
    Source of the rule: RisingWave refuses a nested-loop join in a streaming plan.
    """
    return not join.keys and not any(is_small(side) for side in join.inputs)
