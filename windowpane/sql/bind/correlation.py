"""What ties a subquery to the query around it: the conditions of its WHERE that name columns of both.

An equality of one side with the other becomes a key of a join; anything else is kept as a condition on joined rows. With the
keys taken out, the subquery is a plan of its own, computed once for all rows around it, key by key: groups, DISTINCT and LIMIT
of it are then those of each key. Where it has these, it is joined with the distinct values that the query around compares by
``<`` and the like, and these values are keys, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from windowpane.errors import present
from windowpane.sql.bind import build_plan as plan
from windowpane.sql.bind.bound_query import BoundQuery
from windowpane.sql.bind.conditions import key_pair
from windowpane.sql.bind.scope import Column, Ids, Scope
from windowpane.sql.expressions.binder import ScalarBinder, name_of, resolved
from windowpane.sql.expressions.expr import Expr, build
from windowpane.sql.expressions.operators import combined, logical
from windowpane.sql.expressions.types import BOOLEAN
from windowpane.sql.nodes import Node
from windowpane.sql.parse.positions import Text
from windowpane.sql.windows.series import call_in_from, called


@dataclass(frozen=True)
class Inner:
    """A subquery as a plan, and what ties it to the query around it.

    Args:
        keys: expressions of the query around it, each with the column of the subquery that equals it.
        condition: what else must hold of a row around it and a row of the subquery.
        is_single: whether there is at most one row for each row around it.
        of_nothing: for a subquery that has one row even where no row fits (an aggregate without GROUP BY): the values of its
            outputs there; empty for all others.
    """

    query: BoundQuery
    keys: tuple[tuple[Expr, Column], ...] = ()
    condition: Expr | None = None
    is_single: bool = False
    of_nothing: tuple[Expr, ...] = ()


def outputs_of(inner: Inner) -> list[Expr]:
    """Return the values of a subquery behind a left join with it."""
    values = []
    for index, column in enumerate(inner.query.outputs):
        value = column.expr
        if inner.of_nothing and inner.keys:
            missing = build(BOOLEAN, "({0} IS NULL)", inner.keys[0][1].expr, operator="IS NULL")
            template = "(CASE WHEN {0} THEN {1} ELSE {2} END)"
            value = build(column.type, template, missing, inner.of_nothing[index], value, name=column.name, operator="CASE")
        values.append(value)
    return values


@dataclass(frozen=True)
class _Nested(Scope):
    """The columns of a subquery, and behind them those of the query around it."""

    around: Scope = field(kw_only=True)

    def find(self, name: str, table: str | None = None) -> list[Column]:
        return super().find(name, table) or self.around.find(name, table)


class Ties:
    """Collects the ties of one subquery while it is bound."""

    def __init__(self, text: Text, around: Scope, rows: Node | None) -> None:
        """Begin with none; ``rows`` are those of the query around.

        ``equal_to_keys`` are the ids of columns of the subquery that are the same in all rows with the same keys.
        """
        self._text, self._around, self._rows = text, around, rows
        self.keys: list[tuple[Expr, Expr]] = []
        self.condition: Expr | None = None
        self.equal_to_keys: set[str] = set()

    @property
    def own_columns(self) -> list[str]:
        """The ids of the subquery's columns that the condition needs."""
        outer = self._outer_ids
        return [] if self.condition is None else sorted(name for name in self.condition.columns if name not in outer)

    @property
    def _outer_ids(self) -> set[str]:
        return {each.column.id for each in self._around.visible}

    def names_around(self, tree: exp.Expr, scope: Scope) -> exp.Column | None:
        """Return a column in an expression that only the query around it has, ``None`` if there is none."""
        for part in _own_columns(tree):
            name, table = name_of(part.this), name_of(part.args["table"]) if part.args.get("table") else None
            if not scope.find(name, table) and self._around.find(name, table):
                return part
        return None

    def relation(self, tree: exp.Expr, ids: Ids, now: str) -> tuple[exp.Expr, Node | None]:
        """Return a relation, and the rows that it is computed of if it is a call of columns around: its arguments, each once.

        A row around has the rows of its own arguments: the call has none where an argument is NULL.
        """
        call, rows = call_in_from(tree), self._rows
        if call is None or rows is None or all(self.names_around(each, Scope()) is None for each in call.expressions):
            return tree, None
        tree = tree.copy()
        call, binder = (
            present(call_in_from(tree), "a copy is a call, too"),
            ScalarBinder(self._text, self._around, called(call), now),
        )
        items = []
        for argument in call.expressions:
            value = binder.bind(argument)
            if value.columns:
                items.append((ids.column("argument", value.type), value))
                argument.replace(resolved(items[-1][0]))
        self.keys += [(value, column.expr) for column, value in items]
        return tree, plan.distinct(plan.project(rows, items), [column.id for column, _ in items])

    def take(self, conditions: Sequence[exp.Expr], scope: Scope, now: str) -> list[exp.Expr]:
        """Keep the conditions that name columns of the query around it, and return the others."""
        binder = ScalarBinder(self._text, _Nested(scope.visible, around=self._around), "the WHERE of a subquery", now)
        own = {each.column.id for each in scope.visible}
        rest = []
        for condition in conditions:
            if self.names_around(condition, scope) is None:
                rest.append(condition)
            elif (pair := key_pair(condition, binder, self._outer_ids, own)) is not None:
                self.keys.append(pair)
            else:
                bound = binder.boolean(condition)
                self.condition = bound if self.condition is None else logical("AND", self.condition, bound)
        return rest

    def take_compared(
        self, conditions: Sequence[exp.Expr], node: Node, scope: Scope, ids: Ids, now: str
    ) -> tuple[list[exp.Expr], Node]:
        """Join the rows with the values around that they are compared with; return the other conditions, and the rows.

        Such a comparison does not hold of NULL, and is the same for all values that are equal, so the values can be keys.
        """
        binder = ScalarBinder(self._text, _Nested(scope.visible, around=self._around), "the WHERE of a subquery", now)
        own = {each.column.id for each in scope.visible}
        rest, met, values = list[exp.Expr](), list[Expr](), list[tuple[Column, Expr]]()
        for condition in (half for each in conditions for half in _halves(each)):
            side, value = self._side_around(condition, binder, own)
            if value is None:
                rest.append(condition)
                continue
            values.append((ids.column("tie", value.type), value))
            compared = condition.copy()
            compared.set(side, resolved(values[-1][0]))
            met.append(binder.boolean(compared))
        if not met:
            return rest, node
        return rest, self._beside_values(node, values, combined("AND", *met), ids)

    def _beside_values(self, node: Node, values: list[tuple[Column, Expr]], condition: Expr, ids: Ids) -> Node:
        """Join rows with the distinct values of the query around, where their keys are equal and a condition holds."""
        ours, rows = plan.Computed(ids), present(self._rows, "a subquery that is tied has rows around it")
        equal = [(ids.column("tie", outer.type), outer) for outer, _ in self.keys]
        domain = plan.distinct(plan.project(rows, [*equal, *values]), [column.id for column, _ in (*equal, *values)])
        pairs = [(ours.column(inner).id, column.id) for (_, inner), (column, _) in zip(self.keys, equal, strict=True)]
        self.equal_to_keys |= {column.id for column, _ in equal}
        self.keys += [(value, column.expr) for column, value in values]
        return plan.join(ours.apply(node), domain, "inner", pairs, condition, ids)

    def _side_around(self, tree: exp.Expr, binder: ScalarBinder, own: set[str]) -> tuple[str, Expr | None]:
        """Return the side of a comparison that is of the query around, if the other one is of columns of the subquery alone."""
        if isinstance(tree, exp.LT | exp.LTE | exp.GT | exp.GTE | exp.NEQ) and not tree.find(*_OF_SEVERAL):
            sides = {place: binder.bind(tree.args[place]) for place in ("this", "expression")}
            for (place, value), other in zip(sides.items(), reversed(sides.values()), strict=True):
                if value.columns and value.columns <= self._outer_ids and other.columns and other.columns <= own:
                    return place, value
        return "", None

    def refuse_elsewhere(self, parts: Sequence[exp.Expr], scope: Scope) -> None:
        """Refuse columns of the query around it outside WHERE."""
        for part in parts:
            found = self.names_around(part, scope)
            if found is not None:
                instead = "Its WHERE may compare such a column with one of its own."
                raise self._text.unsupported(found, f"{found.sql()} of the query around a subquery outside WHERE", instead)


_OF_SEVERAL = (exp.Query, exp.Any, exp.All, exp.Tuple)


def _halves(tree: exp.Expr) -> list[exp.Expr]:
    """Return both comparisons of a BETWEEN."""
    if not isinstance(tree, exp.Between) or tree.args.get("symmetric"):
        return [tree]
    low, high = (tree.args[bound].copy() for bound in ("low", "high"))
    return [exp.GTE(this=tree.this.copy(), expression=low), exp.LTE(this=tree.this.copy(), expression=high)]


def _own_columns(tree: exp.Expr) -> list[exp.Column]:
    """Return the columns in an expression, those of subqueries in it left out."""
    if isinstance(tree, exp.Query):
        return []
    if isinstance(tree, exp.Column):
        return [] if isinstance(tree.this, exp.Star) else [tree]
    return [column for child in tree.iter_expressions() for column in _own_columns(child)]
