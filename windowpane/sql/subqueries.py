"""Joins subqueries in expressions to the SELECT they stand in: IN, EXISTS, and those that give one value.

``x IN (SELECT ...)`` and EXISTS among the conditions of WHERE are semi joins, with NOT anti joins; anywhere else EXISTS is a
left join with the keys that are there, and a scalar subquery a left join with its rows. Conditions that tie a subquery to the
query around it (``ties``) are the keys of these joins.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from windowpane.sql import build_plan as plan
from windowpane.sql.expr import Expr, build, column_expr, convert
from windowpane.sql.nodes import Fold, Node
from windowpane.sql.scalars import ScalarBinder
from windowpane.sql.scope import Column
from windowpane.sql.ties import Inner, outputs_of
from windowpane.sql.types import BIGINT, BOOLEAN, common

if TYPE_CHECKING:
    from windowpane.sql.select_plan import SelectPlan

Pairs = list[tuple[Expr, Expr]]


class Subqueries:
    """The subqueries of one SELECT."""

    def __init__(self, select: SelectPlan) -> None:
        """Join to the plan of ``select``."""
        self._select, self._ids, self._text = select, select.ids, select.text
        self._above: list[tuple[Node, list[tuple[Expr, Column]]]] = []

    def _inner(self, tree: exp.Expr) -> Inner:
        return self._select.query.bind_inner(tree, self._select.tables, self._select.scope)

    # --- conditions of WHERE ---------------------------------------------------------------------------

    def condition(self, tree: exp.Expr, binder: ScalarBinder) -> bool:
        """Join with the subquery that a condition is about, and say whether it is about one."""
        negated = False
        while isinstance(tree, exp.Not | exp.Paren):
            negated ^= isinstance(tree, exp.Not)
            tree = tree.this
        if isinstance(tree, exp.Exists):
            self._exists(tree, negated)
        elif isinstance(tree, exp.In) and tree.args.get("query") is not None:
            self._in(tree, tree.this, tree.args["query"], binder, negated)
        elif isinstance(tree, exp.EQ) and isinstance(tree.expression, exp.Any) and isinstance(tree.expression.this, exp.Query):
            self._in(tree, tree.this, tree.expression.this, binder, negated)
        else:
            return False
        return True

    def _exists(self, tree: exp.Expr, negated: bool) -> None:
        inner = self._inner(tree.this)
        self._refuse_constant(tree, inner)
        node = inner.query.node if inner.condition is not None else self._present(inner)
        self._join(inner, "anti" if negated else "semi", node)

    def _present(self, inner: Inner) -> Node:
        """Return the keys that a subquery has rows for; without keys, a row if it has any."""
        if inner.keys:
            return plan.distinct(inner.query.node, [column.id for _, column in inner.keys])
        counted, column = self._counted(inner)
        return plan.keep(counted, build(BOOLEAN, "({0} > 0)", column))

    def _counted(self, inner: Inner) -> tuple[Node, Expr]:
        count = self._ids.column("count", BIGINT)
        fold = Fold("count", None, None, "BIGINT", takes_back=True)
        return plan.aggregate(inner.query.node, (), [(count, "count(*)")], [fold]), column_expr(count.id, BIGINT, "count")

    def _refuse_constant(self, tree: exp.Expr, inner: Inner) -> None:
        if inner.of_nothing:
            raise self._text.unsupported(
                tree, "IN or EXISTS over an aggregate without GROUP BY", "It has one row always: compare it with = instead."
            )

    def _in(self, tree: exp.Expr, left: exp.Expr, query: exp.Expr, binder: ScalarBinder, negated: bool) -> None:
        inner = self._inner(query)
        if inner.keys or inner.condition is not None:
            self._refuse_constant(tree, inner)
        values = [binder.bind(part) for part in (left.expressions if isinstance(left, exp.Tuple) else [left])]
        if len(values) != len(inner.query.outputs):
            given = "one column" if len(values) == 1 else f"{len(values)} columns"
            raise self._text.type_error(tree, f"the subquery of IN has {given}, not {len(inner.query.outputs)}.")
        pairs = [self._pair(tree, value, column) for value, column in zip(values, inner.query.outputs, strict=True)]
        self._join(inner, "anti" if negated else "semi", inner.query.node, pairs)
        if negated:
            if len(pairs) > 1:
                raise self._text.unsupported(tree, "NOT IN of several columns", "Write NOT EXISTS.")
            self._drop_unknown(self._inner(query), values[0])

    def _pair(self, tree: exp.Expr, value: Expr, column: Column) -> tuple[Expr, Expr]:
        shared = common(value.type, column.type)
        if shared is None:
            raise self._text.type_error(tree, f"operator does not exist: {value.type} = {column.type}. Cast one side.")
        return convert(value, shared), convert(column_expr(column.id, column.type, column.name), shared)

    def _drop_unknown(self, inner: Inner, value: Expr) -> None:
        """Drop the rows of which NOT IN is unknown: the value, or one of the subquery, is NULL."""
        output = inner.query.outputs[0]
        computed = plan.Computed(self._ids)
        missing = computed.column(build(BOOLEAN, "({0} IS NULL)", column_expr(output.id, output.type, output.name)))
        node = computed.apply(inner.query.node)
        if inner.condition is None:
            node = plan.distinct(node, [*(column.id for _, column in inner.keys), missing.id])
        unknown = build(BOOLEAN, "({0} IS NULL OR {1})", value, column_expr(missing.id, BOOLEAN, "missing"))
        self._join(inner, "anti", node, residual=unknown)

    def _join(self, inner: Inner, kind: str, node: Node, pairs: Pairs | None = None, residual: Expr | None = None) -> None:
        ours, theirs = plan.Computed(self._ids), plan.Computed(self._ids)
        keys = [(ours.column(outer).id, column.id) for outer, column in inner.keys]
        keys += [(ours.column(one).id, theirs.column(other).id) for one, other in pairs or []]
        conditions = [part for part in (inner.condition, residual) if part is not None]
        condition = None
        for part in conditions:
            condition = part if condition is None else build(BOOLEAN, "({0} AND {1})", condition, part)
        self._select.node = plan.join(ours.apply(self._select.node), theirs.apply(node), kind, keys, condition)

    # --- values ----------------------------------------------------------------------------------------

    def value(self, tree: exp.Expr) -> Expr:
        """Return the value of a subquery, or of EXISTS, in an expression over the rows of FROM."""
        node, keys, value = self._value(tree)
        self._select.node = self._left(self._select.node, node, keys)
        return value

    def value_of_groups(self, tree: exp.Expr) -> Expr:
        """Return the same in an expression over groups; it is joined to them (``apply``)."""
        node, keys, value = self._value(tree)
        groups = self._select.groups
        assert groups is not None, "there are groups"
        known = {column.id for column in groups.keys.values()}
        if any(not outer.columns <= known for outer, _ in keys):
            raise self._text.name_error(tree, "a subquery beside GROUP BY compares with columns of GROUP BY only. Put it there.")
        self._above.append((node, keys))
        return value

    def apply(self, node: Node) -> Node:
        """Return groups with the subqueries beside them."""
        for inner, keys in self._above:
            node = self._left(node, inner, keys)
        return node

    def _left(self, node: Node, inner: Node, keys: list[tuple[Expr, Column]]) -> Node:
        ours = plan.Computed(self._ids)
        pairs = [(ours.column(outer).id, column.id) for outer, column in keys]
        return plan.join(ours.apply(node), inner, "left", pairs, None)

    def _value(self, tree: exp.Expr) -> tuple[Node, list[tuple[Expr, Column]], Expr]:
        inner = self._inner(tree.this)
        if inner.condition is not None:
            instead = "Compare columns of both with =, or write EXISTS among the conditions of WHERE."
            raise self._text.unsupported(tree, "a subquery tied by anything but equality in an expression", instead)
        keys = list(inner.keys)
        if isinstance(tree, exp.Exists):
            self._refuse_constant(tree, inner)
            if keys:
                first = keys[0][1]
                return (
                    self._present(inner),
                    keys,
                    build(BOOLEAN, "({0} IS NOT NULL)", column_expr(first.id, first.type, "exists")),
                )
            counted, column = self._counted(inner)
            return counted, keys, build(BOOLEAN, "({0} > 0)", column, name="exists")
        if len(inner.query.outputs) != 1:
            raise self._text.type_error(tree, f"a subquery in an expression has one column, not {len(inner.query.outputs)}.")
        if not inner.is_single:
            raise self._text.unsupported(
                tree, "a subquery in an expression that may have several rows", "Aggregate it, as in (SELECT max(x) FROM t)."
            )
        return inner.query.node, keys, outputs_of(inner)[0]
