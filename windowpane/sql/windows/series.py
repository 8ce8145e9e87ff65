"""Rows from lists: ``UNNEST(array)``, ``generate_series(first, last[, step])`` and their kin, in FROM and in a select list."""

from __future__ import annotations

from sqlglot import exp

from windowpane.sql.bind import build_plan as plan
from windowpane.sql.bind.scope import Column, Ids, Scope, Visible
from windowpane.sql.expressions.aggregates import AGGREGATES
from windowpane.sql.expressions.binder import ScalarBinder, name_of
from windowpane.sql.expressions.expr import Expr, MismatchError, build, element_type
from windowpane.sql.expressions.types import BIGINT, INTEGER, SqlType, array_of
from windowpane.sql.nodes import Node, Values
from windowpane.sql.parse.positions import Text
from windowpane.sql.scalar.sets import SETS, constant_series, flattened


def one_row(ids: Ids) -> Node:
    """Return the one row of a SELECT without FROM; its column has no name for users."""
    number = ids.column("number", INTEGER)
    return Values((number,), (number.id,), True, {}, rows=((Expr("0", INTEGER),),))


def unnest(tree: exp.Expr, node: Node, binder: ScalarBinder, ids: Ids, text: Text) -> tuple[Node, Scope]:
    """Return each row of a relation with the elements of an array, and the names of what is added."""
    if len(tree.expressions) != 1:
        raise text.unsupported(tree, "UNNEST of several arrays", "UNNEST of one array is.")
    try:
        array = flattened(binder.bind(tree.expressions[0]))
    except MismatchError as error:
        raise text.type_error(tree, f"UNNEST: {error}") from None
    ordinality = tree.args.get("offset")
    names = ["unnest"]
    if ordinality:
        names.append(name_of(ordinality) if isinstance(ordinality, exp.Identifier) else "ordinality")
    return _elements(node, array, element_type(array), ids, names)


def set_in_from(tree: exp.Expr, binder: ScalarBinder, ids: Ids, text: Text) -> tuple[Node, Scope]:
    """Return a function that returns rows, such as ``generate_series(first, last[, step])``, as a relation."""
    listed, series = _listed(tree, binder, text)
    return _elements(one_row(ids), listed, element_type(listed), ids, [str(tree.this).lower()], series)


def _listed(tree: exp.Expr, binder: ScalarBinder, text: Text) -> tuple[Expr, str | None]:
    """Return what a function returns as a list, and as a relation of DuckDB's if it can be one."""
    name = str(tree.this).lower()
    try:
        arguments = [binder.bind(argument) for argument in tree.expressions]
        return SETS[name](arguments), constant_series(name, arguments)
    except MismatchError as error:
        raise text.type_error(tree, f"{name}: {error}") from None


class SetCalls:
    """The functions that return rows in the select list of one SELECT.

    Each row is returned once for each element of the longest of them; the others are NULL where they have fewer (PostgreSQL).
    A call in the arguments of another, as in ``unnest(regexp_matches(...))``, repeats the rows first: calls have levels, and
    those of one level are returned side by side.
    """

    def __init__(self, text: Text, ids: Ids) -> None:
        self._text, self._ids = text, ids
        self._calls: dict[Expr, tuple[Expr, Column, str | None]] = {}
        self._levels: dict[str, int] = {}

    def __bool__(self) -> bool:
        return bool(self._calls)

    def bind(self, tree: exp.Expr, binder: ScalarBinder) -> Expr:
        """Return the column of what a call returns."""
        name = str(tree.this).lower()
        above = tree.parent
        while above is not None and not isinstance(above, exp.Select):
            chooses = isinstance(above, exp.Case | exp.Window | exp.AggFunc)
            called = str(above.this).lower() if isinstance(above, exp.Anonymous) else ""
            if chooses or called == "coalesce" or called in AGGREGATES:
                raise self._text.unsupported(tree, f"{name} inside another call", "Put it into a subquery in FROM.")
            above = above.parent
        listed, series = _listed(tree, binder, self._text)
        if listed not in self._calls:
            column = self._ids.column(name, element_type(listed))
            self._calls[listed] = (listed, column, series)
            self._levels[column.id] = 1 + max((self._levels.get(each, 0) for each in listed.columns), default=0)
        column = self._calls[listed][1]
        return column.renamed(name).expr

    def apply(self, node: Node) -> Node:
        for level in sorted(set(self._levels.values())):
            node = self._repeated(node, [call for call in self._calls.values() if self._levels[call[1].id] == level])
        return node

    def _repeated(self, node: Node, calls: list[tuple[Expr, Column, str | None]]) -> Node:
        number = self._ids.column("ordinality", BIGINT)
        if len(calls) == 1:
            listed, column, series = calls[0]
            return plan.unnest(node, listed, column, number, series)
        computed = plan.Computed(self._ids)
        lists = [(computed.column(listed, "list"), column) for listed, column, _ in calls]
        lengths = ", ".join(f"len({{{place}}})" for place in range(len(lists)))
        numbers = build(array_of(BIGINT), f"range(1, greatest({lengths}) + 1)", *(each.expr for each, _ in lists))
        place = self._ids.column("place", BIGINT)
        node = plan.unnest(computed.apply(node), numbers, place, number)
        kept = [(column, column.expr) for column in node.columns]
        chosen = [(column, _element(each, column, place)) for each, column in lists]
        return plan.project(node, [*kept, *chosen])


def _element(array: Column, element: Column, place: Column) -> Expr:
    return build(element.type, "{0}[{1}]", array.expr, place.expr, name=element.name)


def _elements(
    node: Node, elements: Expr, kind: SqlType, ids: Ids, names: list[str], series: str | None = None
) -> tuple[Node, Scope]:
    columns = (ids.column(names[0], kind), ids.column(names[-1], BIGINT))
    shown = tuple(Visible(names[0], column) for column in columns[: len(names)])
    return plan.unnest(node, elements, *columns, series), Scope(shown)
