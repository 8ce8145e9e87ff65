"""Joins subqueries in expressions to their SELECT: IN, EXISTS, and those that return one value.

``x IN (SELECT ...)`` and EXISTS among the conditions of WHERE are semi joins, with NOT anti joins; anywhere else they are
left joins with the keys that exist, and a scalar subquery a left join with its rows. Conditions that tie a subquery to the
query around it (``ties``) are the keys of these joins.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlglot import exp

from windowpane.errors import present
from windowpane.sql.bind import build_plan as plan
from windowpane.sql.bind.binding import Selecting
from windowpane.sql.bind.bound_query import output_place
from windowpane.sql.bind.correlation import Inner, outputs_of
from windowpane.sql.bind.scope import Column, Ids
from windowpane.sql.expressions.aggregates import AGGREGATES
from windowpane.sql.expressions.binder import ScalarBinder, resolved
from windowpane.sql.expressions.expr import Expr, build
from windowpane.sql.expressions.forms import is_array_of_query, is_row_of_subquery, row_values
from windowpane.sql.expressions.operators import combined, comparables, key_value
from windowpane.sql.expressions.types import BIGINT, BOOLEAN, common
from windowpane.sql.nodes import Fold, Node
from windowpane.sql.parse.positions import Text
from windowpane.sql.scalar.sets import SETS

Pairs = list[tuple[Expr, Expr]]


@dataclass(frozen=True)
class _Beside:
    """A plan to join on the left with: by the ties of a subquery, and by further pairs."""

    node: Node
    ties: tuple[tuple[Expr, Column], ...] = ()
    pairs: tuple[tuple[Expr, Column], ...] = ()

    def joined(self, node: Node, ids: Ids) -> Node:
        ours = plan.Computed(ids)
        pairs = [(ours.column(outer).id, column.id) for outer, column in (*self.ties, *self.pairs)]
        return plan.join(ours.apply(node), self.node, "left", pairs, None, ids)


@dataclass(frozen=True)
class _Value:
    value: Expr
    joined: tuple[_Beside, ...]


def _selecting(tree: exp.Expr) -> exp.Expr:
    """Return the query of EXISTS, which may select nothing, with something to select."""
    if not isinstance(tree, exp.Select) or tree.expressions:
        return tree
    selecting = tree.copy()
    selecting.set("expressions", [exp.Literal.number(1)])
    return selecting


_FOLDING = ("group", "having", "distinct", "limit", "offset", "qualify", "windows")


def _listing(query: exp.Query, text: Text) -> exp.Expr:
    """Return the query of ``ARRAY(SELECT ...)`` with its values as one array, in its order.

    One that folds its rows, as by GROUP BY or LIMIT, becomes a relation of another, which lists them: behind its value are the
    columns that order it.
    """
    if len(query.selects) != 1 or isinstance(query.selects[0], exp.Star):
        raise text.type_error(query, "ARRAY(SELECT ...) takes a query of one column.")
    query = query.copy()
    clause, value, name = query.args.get("order"), query.selects[0].unalias(), query.selects[0].alias_or_name
    order = [] if clause is None else [item.copy() for item in clause.expressions]
    by_value = [
        output_place(item.this, 1, text) is not None or (isinstance(item.this, exp.Column) and item.this.sql() == name)
        for item in order
    ]
    if _folds(query, value):
        names = ["value"]
        for item, is_value in zip(order, by_value, strict=True):
            if not is_value and (not isinstance(query, exp.Select) or query.args.get("distinct")):
                raise text.unsupported(query, "ARRAY of such a query with this ORDER BY", "Put the query into FROM.")
            if not is_value:
                names.append(f"order {len(names)}")
                query.append("expressions", item.this)
            item.set("this", exp.column("value" if is_value else names[-1], quoted=True))
        columns = [exp.to_identifier(each, quoted=True) for each in names]
        alias = exp.TableAlias(this=exp.to_identifier("listed"), columns=columns)
        value, query = exp.column("value"), exp.Select(from_=exp.From(this=exp.Subquery(this=query, alias=alias)))
    else:
        for item, is_value in zip(order, by_value, strict=True):
            item.set("this", value.copy() if is_value else item.this)
        query.set("order", None)
    listed = exp.Anonymous(this="array_agg", expressions=[exp.Order(this=value, expressions=order) if order else value])
    query.set("expressions", [listed])
    return query


def _folds(query: exp.Expr, value: exp.Expr) -> bool:
    """Whether a query has other rows than those of its FROM and WHERE."""
    calls = [str(part.this).lower() for part in value.find_all(exp.Anonymous)]
    has_calls = value.find(exp.Window) is not None or any(name in AGGREGATES or name in SETS for name in calls)
    return not isinstance(query, exp.Select) or has_calls or any(query.args.get(part) for part in _FOLDING)


class Subqueries:
    def __init__(self, select: Selecting) -> None:
        self._select, self._ids, self._text = select, select.query.ids, select.query.text
        self._above: list[_Beside] = []

    def _inner(self, tree: exp.Expr, *, by_keys: bool = False) -> Inner:
        return self._select.query.bind_inner(tree, self._select.tables, self._select.scope, self._select.node, by_keys=by_keys)

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
        inner = self._inner(_selecting(tree.this))
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
        counted = plan.aggregate(inner.query.node, (), [(count, Expr("count(*)", BIGINT))], [Fold.of_count()])
        return counted, count.expr

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
                raise self._text.unsupported(
                    tree,
                    "NOT IN of several columns",
                    "NOT EXISTS keeps a row with NULL in a column, where NOT IN drops it; else it is the same.",
                )
            self._drop_unknown(self._inner(query), values[0])

    def _pair(self, tree: exp.Expr, value: Expr, column: Column) -> tuple[Expr, Expr]:
        if common(value.type, column.type) is None:
            raise self._text.type_error(tree, f"operator does not exist: {value.type} = {column.type}. Cast one side.")
        one, other = comparables(value, column.expr)
        return key_value(one), key_value(other)

    def _drop_unknown(self, inner: Inner, value: Expr) -> None:
        """Drop the rows of which NOT IN is unknown: the value, or one of the subquery, is NULL."""
        output = inner.query.outputs[0]
        computed = plan.Computed(self._ids)
        missing = computed.column(build(BOOLEAN, "({0} IS NULL)", output.expr))
        node = computed.apply(inner.query.node)
        if inner.condition is None:
            node = plan.distinct(node, [*(column.id for _, column in inner.keys), missing.id])
        unknown = build(BOOLEAN, "({0} IS NULL OR {1})", value, missing.expr)
        self._join(inner, "anti", node, residual=unknown)

    def _join(self, inner: Inner, kind: str, node: Node, pairs: Pairs | None = None, residual: Expr | None = None) -> None:
        ours, theirs = plan.Computed(self._ids), plan.Computed(self._ids)
        keys = [(ours.column(outer).id, column.id) for outer, column in inner.keys]
        keys += [(ours.column(one).id, theirs.column(other).id) for one, other in pairs or []]
        conditions = [part for part in (inner.condition, residual) if part is not None]
        condition = combined("AND", *conditions) if conditions else None
        self._select.node = plan.join(ours.apply(self._select.node), theirs.apply(node), kind, keys, condition, self._ids)

    # --- values ----------------------------------------------------------------------------------------

    def value(self, tree: exp.Expr, binder: ScalarBinder) -> Expr:
        """Return the value of a subquery, of EXISTS or of IN, in an expression over the rows of FROM."""
        value = self._value(tree, binder)
        for beside in value.joined:
            self._select.node = beside.joined(self._select.node, self._ids)
        return value.value

    def value_of_groups(self, tree: exp.Expr, binder: ScalarBinder) -> Expr:
        """Return the same in an expression over groups; it is joined to them (``apply``)."""
        value = self._value(tree, binder)
        groups = present(self._select.groups, "there are groups")
        known = {column.id for column in groups.keys.values()}
        if any(not outer.columns <= known for beside in value.joined for outer, _ in beside.ties):
            raise self._text.name_error(tree, "a subquery beside GROUP BY compares with columns of GROUP BY only. Put it there.")
        self._above += value.joined
        return value.value

    def apply(self, node: Node) -> Node:
        for beside in self._above:
            node = beside.joined(node, self._ids)
        return node

    def _value(self, tree: exp.Expr, binder: ScalarBinder) -> _Value:
        if is_array_of_query(tree):
            found = self._value(exp.Subquery(this=_listing(tree.expressions[0], self._text)), binder)
            kind = found.value.type
            return replace(found, value=build(kind, f"coalesce({{0}}, CAST([] AS {kind.duckdb}))", found.value, name="array"))
        if isinstance(tree, exp.In):
            return self._membership(tree, binder)
        if is_row_of_subquery(tree):
            return self._compared(tree, binder)
        inner = self._tied_by_keys(tree, _selecting(tree.this) if isinstance(tree, exp.Exists) else tree.this)
        if isinstance(tree, exp.Exists):
            return self._presence(tree, inner)
        return _Value(self._single(tree, inner, 1)[0], (_Beside(inner.query.node, inner.keys),))

    def _compared(self, tree: exp.Expr, binder: ScalarBinder) -> _Value:
        """Return the comparison of a row with that of a subquery; where it has none, all of its values are NULL."""
        inner = self._tied_by_keys(tree, tree.expression.this)
        found, comparison = exp.Tuple(), tree.copy()
        for value in self._single(tree, inner, len(row_values(tree.this) or ())):
            found.append("expressions", resolved(value))
        comparison.set("expression", found)
        return _Value(binder.bind(comparison), (_Beside(inner.query.node, inner.keys),))

    def _single(self, tree: exp.Expr, inner: Inner, count: int) -> list[Expr]:
        """Return the values of a subquery that has so many columns, and one row at most."""
        if len(inner.query.outputs) != count:
            wanted = "one column" if count == 1 else f"{count} columns"
            raise self._text.type_error(tree, f"the subquery of this expression needs {wanted}, not {len(inner.query.outputs)}.")
        if not inner.is_single:
            raise self._text.unsupported(
                tree, "a subquery in an expression that may have several rows", "Aggregate it, as in (SELECT max(x) FROM t)."
            )
        return outputs_of(inner)

    def _tied_by_keys(self, tree: exp.Expr, query: exp.Expr) -> Inner:
        inner = self._inner(query, by_keys=True)
        if inner.condition is not None:
            instead = "Compare columns of both with = or <, or write EXISTS among the conditions of WHERE."
            raise self._text.unsupported(tree, "a subquery tied by anything but a comparison in an expression", instead)
        return inner

    def _presence(self, tree: exp.Expr, inner: Inner) -> _Value:
        self._refuse_constant(tree, inner)
        if not inner.keys:
            counted, column = self._counted(inner)
            return _Value(build(BOOLEAN, "({0} > 0)", column, name="exists"), (_Beside(counted),))
        first = inner.keys[0][1]
        there = build(BOOLEAN, "({0} IS NOT NULL)", first.expr, name="exists")
        return _Value(there, (_Beside(self._present(inner), inner.keys),))

    def _membership(self, tree: exp.Expr, binder: ScalarBinder) -> _Value:
        """Return ``x IN (SELECT y ...)``: NULL where x is not among the values, and x or one of them is NULL."""
        matching, counted = (self._tied_by_keys(tree, tree.args["query"]) for _ in range(2))
        if matching.keys:
            self._refuse_constant(tree, matching)
        if isinstance(tree.this, exp.Tuple) or len(matching.query.outputs) != 1:
            raise self._text.unsupported(tree, "IN of several columns in this place", "It may stand in WHERE, joined by AND.")
        value = binder.bind(tree.this)
        theirs = plan.Computed(self._ids)
        one, other = self._pair(tree, value, matching.query.outputs[0])
        found = theirs.column(other)
        keys = [column.id for _, column in matching.keys]
        values = plan.distinct(theirs.apply(matching.query.node), [*keys, found.id])
        rows, known = self._ids.column("rows", BIGINT), self._ids.column("known", BIGINT)
        output = counted.query.outputs[0]
        calls = [(rows, Expr("count(*)", BIGINT)), (known, build(BIGINT, "count({0})", output.expr))]
        folds = [Fold.of_count(), Fold.of_count(output.id)]
        counts = plan.aggregate(counted.query.node, [column.id for _, column in counted.keys], calls, folds)
        template = (
            "(CASE WHEN {0} IS NOT NULL THEN TRUE WHEN coalesce({1}, 0) = 0 THEN FALSE "
            "WHEN {3} IS NULL OR {2} < {1} THEN NULL ELSE FALSE END)"
        )
        operands = [column.expr for column in (found, rows, known)]
        joined = (_Beside(values, matching.keys, ((one, found),)), _Beside(counts, counted.keys))
        return _Value(build(BOOLEAN, template, *operands, value), joined)
