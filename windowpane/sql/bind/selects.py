"""Binds the expressions of one SELECT: plain ones, those over groups, and those over windows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from sqlglot import exp

from windowpane.errors import MistakeError
from windowpane.sql.bind.build_plan import Computed, aggregate, expand
from windowpane.sql.bind.scope import Column, Ids, Scope
from windowpane.sql.expressions.aggregates import (
    AGGREGATES,
    COUNTS_ROWS,
    Parts,
    Primitive,
    approx_percentile,
    as_jsonb,
    distinct_arguments,
    jsonb_by_value,
    percentile,
    sorted_jsonb,
)
from windowpane.sql.expressions.binder import RESOLVED, ScalarBinder
from windowpane.sql.expressions.expr import Expr, MismatchError, build, places, settled
from windowpane.sql.expressions.forms import is_array_of_query, is_row_of_subquery
from windowpane.sql.expressions.operators import by_value, sortable
from windowpane.sql.expressions.types import BIGINT, INTEGER, JSONB, UNKNOWN, is_float
from windowpane.sql.nodes import Fold, Node, Order
from windowpane.sql.parse.positions import Text
from windowpane.sql.scalar.sets import SETS
from windowpane.sql.windows.calls import WindowCalls
from windowpane.sql.windows.series import SetCalls
from windowpane.sql.windows.temporal_filters import asks_the_clock

Scalar = Callable[[exp.Expr, ScalarBinder], Expr]


def is_aggregate_call(tree: exp.Expr) -> bool:
    """Whether a parsed expression is the call of an aggregate over groups, not over a window."""
    if not (isinstance(tree, exp.Anonymous) and str(tree.this).lower() in AGGREGATES):
        return False
    above = tree.parent
    while isinstance(above, exp.IgnoreNulls | exp.RespectNulls | exp.Filter | exp.WithinGroup) and tree is above.this:
        tree, above = above, above.parent
    return not (isinstance(above, exp.Window) and tree is above.this)


def _is_grouping(tree: exp.Expr) -> bool:
    return isinstance(tree, exp.Anonymous) and str(tree.this).lower() == "grouping"


def own_nodes(tree: exp.Expr) -> list[exp.Expr]:
    """Return the parts of an expression outside of subqueries."""
    parts = [tree]
    for child in tree.iter_expressions():
        if not isinstance(child, exp.Query):
            parts += own_nodes(child)
    return parts


def has_aggregates(tree: exp.Expr) -> bool:
    return any(is_aggregate_call(part) for part in own_nodes(tree))


@dataclass(frozen=True)
class _Call:
    """A call on the groups: its column, its value without rows, and how it is folded, if it can be."""

    column: Column
    of_nothing: Expr
    fold: Fold | None


class Groups:
    """GROUP BY: the columns that groups are made by, and the aggregates on them."""

    def __init__(self, text: Text, ids: Ids, binder: ScalarBinder) -> None:
        self.text, self.ids, self.binder = text, ids, binder
        self.computed = Computed(ids)
        self.keys: dict[Expr, Column] = {}
        self.only_ties = set[Expr]()
        """Keys that tie a subquery to the query around it; only what GROUP BY names can be named."""
        self._calls: dict[Expr, _Call] = {}
        self.sets: list[set[Expr]] = []
        self._masked: list[tuple[str, Column, list[int]]] = []
        self._number = ids.column("grouping set", INTEGER)

    def add_sets(self, sets: Sequence[Sequence[Expr]], *, distinct: bool) -> None:
        """Group by each of several sets of expressions; those that are not in all of them are NULL where they are left out.

        Args:
            sets: the sets.
            distinct: whether a set that is written twice counts once (``GROUP BY DISTINCT``).
        """
        always = set(self.keys)
        for values in sets:
            for value in values:
                self.add_key(value)
            keys = always | {by_value(settled(value)) for value in values}
            if not (distinct and keys in self.sets):
                self.sets.append(keys)
        for key, column in self.keys.items():
            having = [number for number, present in enumerate(self.sets) if key in present]
            if len(having) < len(self.sets):
                self.keys[key] = self.ids.column(column.name, column.type)
                self._masked.append((column.id, self.keys[key], having))

    def grouping(self, tree: exp.Expr) -> Expr:
        """Return ``GROUPING(a, b, ...)``: a bit for each argument, 1 where the grouping set leaves it out."""
        keys = [by_value(settled(self.binder.bind(argument))) for argument in tree.expressions]
        if not keys or any(key not in self.keys for key in keys):
            raise self.text.name_error(tree, "GROUPING takes columns of GROUP BY.")
        bits = [int("".join("01"[key not in present] for key in keys), 2) for present in self.sets]
        if not bits:
            return Expr("CAST(0 AS INTEGER)", INTEGER, value=Decimal(0), name="grouping")
        chosen = " ".join(f"WHEN {number} THEN {value}" for number, value in enumerate(bits))
        number = self._number.expr
        return build(INTEGER, f"CAST(CASE {{0}} {chosen} END AS INTEGER)", number, name="grouping")

    def add_key(self, value: Expr, *, is_tie: bool = False) -> None:
        value = by_value(settled(value))
        (self.only_ties.add if is_tie else self.only_ties.discard)(value)
        self.keys.setdefault(value, self.computed.column(value, value.name))

    def call(self, tree: exp.Expr) -> Expr:
        call = _AggregateCall(tree, self.text)
        try:
            parts = call.parts(self.binder)
            if call.distinct and parts.of_distinct is not None:
                raise MismatchError(f"it has no DISTINCT for this type. {parts.of_distinct}")
            order, condition = call.modifiers(self.binder, self.computed)
            result = parts.finish([self._primitive(part, call, order, condition) for part in parts.primitives])
        except MismatchError as error:
            raise self.text.type_error(tree, f"{call.name}: {error}") from None
        return replace(result, name=call.name, rises_with=None)

    def _primitive(
        self, primitive: Primitive, call: _AggregateCall, order: Sequence[tuple[Column, Order]], condition: Column | None
    ) -> Expr:
        arguments = [self.computed.column(value) for value in primitive.arguments]
        operands = [column.expr for column in arguments] + [Expr(constant, UNKNOWN) for constant in primitive.constants]
        inside = places(len(operands)) or "*"
        sorting = ", ".join(f"{{{place}}} {item.direction}" for place, (_, item) in enumerate(order, start=len(operands)))
        operands += [column.expr for column, _ in order] + ([] if condition is None else [condition.expr])
        by = f" ORDER BY {sorting}" if order else ""
        only = "" if condition is None else f" FILTER (WHERE {{{len(operands) - 1}}})"
        of = f"{primitive.function}({'DISTINCT ' * call.distinct}{inside}{by}){only}"
        made = build(primitive.type, f"CAST({of} AS {primitive.type.duckdb})", *operands)
        if made not in self._calls:
            is_plain = not (order or primitive.constants or len(arguments) > 1)
            argument = arguments[0].id if arguments else None
            only_where = None if condition is None else condition.id
            fold = _fold(primitive, argument, only_where, is_distinct=call.distinct) if is_plain else None
            nothing = Expr(f"CAST({'0' if primitive.is_count else 'NULL'} AS {primitive.type.duckdb})", primitive.type)
            self._calls[made] = _Call(self.ids.column(call.name, primitive.type), nothing, fold)
        return self._calls[made].column.renamed(call.name).expr

    def of_nothing(self, value: Expr) -> Expr:
        """Return a value over the one group of a query without GROUP BY, where the group has no row."""
        return value.over({call.column.id: call.of_nothing for call in self._calls.values()})

    def apply(self, node: Node) -> Node:
        keys = tuple(dict.fromkeys(column.id for column in self.keys.values()))
        if not keys and not self._calls:
            number = Expr("count(*)", BIGINT)
            self._calls[number] = _Call(self.ids.column("count", BIGINT), Expr("CAST(0 AS BIGINT)", BIGINT), Fold.of_count())
        node = self.computed.apply(node)
        if self.sets:
            node = expand(node, self._masked, self._number, len(self.sets))
            keys = (*keys, self._number.id)
        calls = [(call.column, made) for made, call in self._calls.items()]
        return aggregate(node, keys, calls, [call.fold for call in self._calls.values()])


def _fold(primitive: Primitive, argument: str | None, only: str | None, *, is_distinct: bool) -> Fold | None:
    """Return a call of a column, and of the rows that another one keeps, as one that can be folded, ``None`` if it cannot."""
    definition, kind = primitive.definition, primitive.type
    if definition is None or definition.merged_by is None:
        return None
    if primitive.is_count:
        return replace(Fold.of_count(argument, only), distinct=is_distinct)
    takes_back = primitive.is_invertible
    if definition.merged_by != "+":
        return Fold(primitive.function, argument, only, kind.duckdb, takes_back, definition.merged_by, is_distinct)
    if is_distinct and not takes_back:
        return None
    kept = "DOUBLE" if is_float(kind) else "HUGEINT" if kind == BIGINT else kind.duckdb
    return Fold(primitive.function, argument, only, kept, takes_back, distinct=is_distinct)


class _AggregateCall:
    def __init__(self, tree: exp.Expr, text: Text) -> None:
        self.text, self.tree, self.condition, self.within = text, tree, None, None
        while isinstance(tree, exp.Filter | exp.WithinGroup):
            if isinstance(tree, exp.Filter):
                self.condition = tree.expression.this
            else:
                self.within = tree.expression
            tree = tree.this
        self.name = str(tree.this).lower()
        self.aggregate = AGGREGATES[self.name]
        self.distinct, self.order = False, []
        self.arguments = []
        for argument in tree.expressions:
            if isinstance(argument, exp.Order):
                self.order, argument = list(argument.expressions), argument.this
            if isinstance(argument, exp.Distinct):
                self.distinct = True
                self.arguments += distinct_arguments(argument, text, tree)
            elif argument is None:
                raise text.syntax_error(tree, f"{self.name}: ORDER BY stands behind an argument, and there is none.")
            else:
                self.arguments.append(argument)

    def parts(self, binder: ScalarBinder) -> Parts:
        if (self.within is not None) != self.aggregate.is_within_group:
            wanted = "needs" if self.within is None else "does not take"
            raise MismatchError(f"it {wanted} WITHIN GROUP (ORDER BY ...).")
        if self.within is not None:
            if len(self.within.expressions) != 1 or self.order or self.distinct:
                raise MismatchError("it takes one column in WITHIN GROUP (ORDER BY ...), and no ORDER BY or DISTINCT beside it.")
            item = self.within.expressions[0]
            if item.args.get("desc"):
                raise self.text.unsupported(
                    self.tree,
                    "WITHIN GROUP with a descending order",
                    "percentile_cont of one minus the fraction is the same; percentile_disc may take the value beside.",
                )
            value = settled(binder.bind(item.this))
            if self.name == "mode" and self.arguments:
                raise MismatchError("it takes no argument; what it is of stands in WITHIN GROUP (ORDER BY ...).")
            if self.name == "mode":
                return self.aggregate.bind([value])
            if self.name.startswith("percentile") and len(self.arguments) != 1:
                raise MismatchError(f"it takes one fraction, such as {self.name}(0.5) WITHIN GROUP (ORDER BY ...).")
            if self.name == "approx_percentile":
                return approx_percentile([settled(binder.bind(each)) for each in self.arguments], value)
            return percentile(self.name, settled(binder.bind(self.arguments[0])), value)
        if self.name == "count" and len(self.arguments) == 1 and isinstance(self.arguments[0], exp.Star):
            return self.aggregate.bind([])
        arguments = [binder.filtered(binder.bind(argument), self.condition) for argument in self.arguments]
        if self.name == "count" and not arguments:
            raise MismatchError(COUNTS_ROWS)
        if self._sorts_jsonb(arguments):
            listed = sorted_jsonb(arguments[0])
            return as_jsonb(listed) if self.name == "jsonb_agg" else listed
        return self.aggregate.bind([by_value(argument) for argument in arguments] if self.distinct else arguments)

    def _sorts_jsonb(self, arguments: Sequence[Expr]) -> bool:
        """Whether it lists distinct values of jsonb in an order that the query names."""
        return self.distinct and bool(self.order) and self.aggregate.is_array and [each.type for each in arguments] == [JSONB]

    def _sorted_by(self) -> exp.Expr | None:
        """Return what a call sorts by though the query does not name it: so its result does not depend on the order of its rows.

        So does PostgreSQL, which sorts to find values that are equal: ``mode`` of a tie is the smallest one.
        """
        if self.name == "mode" and self.within is not None:
            by: exp.Expr = self.within.expressions[0].this
            return by
        if self.aggregate.sorts_by is not None:
            return self.arguments[self.aggregate.sorts_by]
        return self.arguments[0] if self.distinct and not self.order and self.aggregate.joins_all else None

    def _checked_order(self, binder: ScalarBinder) -> list[exp.Expr]:
        """Return the ORDER BY inside: beside DISTINCT it is by arguments, and dropped where order has no meaning."""
        if not self.distinct or not self.order:
            return self.order
        arguments = [settled(binder.bind(each)) for each in self.arguments]
        for item in self.order:
            if settled(binder.bind(item.this)) not in arguments:
                instead = "It may be by an argument of the call; take the rows of SELECT DISTINCT in a subquery."
                raise self.text.unsupported(item, "ORDER BY in a call with DISTINCT by what is no argument of it", instead)
            if settled(binder.bind(item.this)).type == JSONB and self.aggregate.is_sorted and not self.aggregate.is_array:
                instead = "Take the rows of SELECT DISTINCT in a subquery."
                raise self.text.unsupported(item, "ORDER BY jsonb in a call with DISTINCT", instead)
        return self.order if self.aggregate.is_sorted else []

    def modifiers(self, binder: ScalarBinder, computed: Computed) -> tuple[list[tuple[Column, Order]], Column | None]:
        """Return the ORDER BY inside, with its columns, and the column of the FILTER behind the call."""

        def sorted_by(tree: exp.Expr, descending: bool = False, nulls_first: bool = False) -> tuple[Column, Order]:
            # Distinct values are sorted by themselves alone: those of jsonb by their text, where the query names no order.
            value = binder.filtered(settled(binder.bind(tree)), self.condition)
            if self._sorts_jsonb([value]):
                column = computed.column(jsonb_by_value(value))
            else:
                column = computed.column(by_value(value) if self.distinct else sortable(value))
            return column, Order(column.id, descending, nulls_first)

        items = [
            sorted_by(item.this, bool(item.args.get("desc")), bool(item.args.get("nulls_first")))
            for item in self._checked_order(binder)
        ]
        unnamed = self._sorted_by()
        items += [] if unnamed is None else [sorted_by(unnamed)]
        return items, None if self.condition is None else computed.column(binder.condition(self.condition, "FILTER"))


class SelectBinder(ScalarBinder):
    """Binds the expressions of a SELECT.

    Args:
        groups: what aggregates are put into; ``None`` where there are no groups.
        windows: what calls over windows are put into; ``None`` where none are allowed.
        scalar: binds a subquery that returns one value; ``None`` where none are allowed.
    """

    def __init__(
        self,
        text: Text,
        scope: Scope,
        clause: str,
        now: str,
        groups: Groups | None = None,
        windows: WindowCalls | None = None,
        scalar: Scalar | None = None,
    ) -> None:
        super().__init__(text, scope, clause, now)
        self._groups, self._windows, self._scalar = groups, windows, scalar
        self.sets: SetCalls | None = None
        """What functions that return rows are put into; ``None`` where none are allowed."""
        self.stamp: Callable[[exp.Expr], Expr] | None = None
        """Binds ``PROCTIME()`` in a view; ``None`` where it is ``now()``."""

    def intercept(self, tree: exp.Expr) -> Expr | None:
        if isinstance(tree, exp.Window) and self._windows is not None:
            inner = SelectBinder(self.text, self.scope, "a window", self.now, self._groups, None, self._scalar)
            inner.stamp = self.stamp
            return self._windows.bind(tree, inner)
        if self.stamp is not None and isinstance(tree, exp.Anonymous) and str(tree.this).lower() == "proctime":
            return self.stamp(tree)
        if isinstance(tree.meta.get(RESOLVED), Expr):
            return self.column(tree)
        asks = isinstance(tree, exp.Subquery | exp.Exists) or (isinstance(tree, exp.In) and tree.args.get("query") is not None)
        asks |= is_row_of_subquery(tree) or is_array_of_query(tree)
        if asks and self._scalar is not None:
            return self._scalar(tree, self)
        if self.sets is not None and isinstance(tree, exp.Anonymous) and str(tree.this).lower() in SETS:
            return self.sets.bind(tree, self)
        if self._groups is None:
            return None
        inside = tree
        while isinstance(inside, exp.Filter | exp.WithinGroup):
            inside = inside.this
        if is_aggregate_call(inside):
            return self._groups.call(tree)
        if _is_grouping(tree):
            return self._groups.grouping(tree)
        return self._key(tree)

    def _key(self, tree: exp.Expr) -> Expr | None:
        if self._groups is None:
            raise MistakeError("there are groups")
        if isinstance(tree, exp.Literal | exp.Null | exp.Boolean | exp.Interval):
            return None
        if not self._groups.binder.now and asks_the_clock(tree):
            return None
        if has_aggregates(tree) or any(isinstance(part, exp.Window | exp.Query) or _is_grouping(part) for part in tree.walk()):
            return None
        if self.sets is not None and any(str(part.this).lower() in SETS for part in tree.find_all(exp.Anonymous)):
            return None
        value = by_value(settled(self._groups.binder.bind(tree)))
        key = self._groups.keys.get(value)
        if key is not None and value not in self._groups.only_ties:
            return key.renamed(value.name).expr
        if isinstance(tree, exp.Column):
            shown = tree.sql()
            raise self.text.name_error(
                tree, f"column {shown} is neither in GROUP BY nor in an aggregate. Put it into one of them."
            )
        return None
