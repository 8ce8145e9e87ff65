"""Rows from lists: ``UNNEST(array)``, ``generate_series(first, last[, step])`` and their kin, in FROM and in a select list."""

from __future__ import annotations

from sqlglot import exp

from windowpane.errors import MistakeError
from windowpane.sql.bind import build_plan as plan
from windowpane.sql.bind.scope import Column, Ids, Scope, Visible
from windowpane.sql.expressions.aggregates import AGGREGATES
from windowpane.sql.expressions.binder import ScalarBinder, name_of
from windowpane.sql.expressions.expr import Expr, MismatchError, build, element_type
from windowpane.sql.expressions.functions import FUNCTIONS
from windowpane.sql.expressions.types import BIGINT, INTEGER, array_of
from windowpane.sql.nodes import Node, Values
from windowpane.sql.parse.positions import Text
from windowpane.sql.scalar.sets import SETS, constant_series, flattened


def one_row(ids: Ids) -> Node:
    """Return the one row of a SELECT without FROM; its column has no name for users."""
    number = ids.column("number", INTEGER)
    return Values((number,), (number.id,), True, {}, rows=((Expr("0", INTEGER),),))


OF_PAIRS = {"jsonb_each": "jsonb_extract_path", "jsonb_each_text": "jsonb_extract_path_text"}
"""Functions that return the keys of an object, each with its value: as which function gives it."""

_VALUES = ("jsonb_array_elements", "jsonb_array_elements_text")
"""Functions whose column in FROM is named ``value``, and not by the function or the alias (PostgreSQL's OUT parameters)."""


def call_in_from(relation: exp.Expr) -> exp.Expr | None:
    """Return the call whose rows a relation has, ``None`` for any other relation."""
    call = relation if isinstance(relation, exp.Unnest) else relation.this
    is_set = isinstance(call, exp.Anonymous) and str(call.this).lower() in (*SETS, *OF_PAIRS)
    return call if is_set or isinstance(call, exp.Unnest) else None


def called(call: exp.Expr) -> str:
    """Return what messages name a call by."""
    return "UNNEST" if isinstance(call, exp.Unnest) else str(call.this).lower()


def looks_aside(relation: exp.Expr) -> bool:
    """Whether a relation may name columns of those before it."""
    call = call_in_from(relation)
    return isinstance(relation, exp.Lateral | exp.Unnest) or (call is not None and call.find(exp.Column) is not None)


def rows_of(
    relation: exp.Expr, node: Node, binder: ScalarBinder, ids: Ids, text: Text, *, keeps: bool = False
) -> tuple[Node, Scope]:
    """Return each row of a node with the rows of a call in FROM, and the names of what is added.

    Args:
        relation: UNNEST, or one of the functions that return sets of rows.
        node: the rows.
        binder: binds the arguments of the call.
        ids: new columns are of these.
        text: the statement.
        keeps: whether a row for which there is none stays, with NULL, as in a LEFT JOIN.
    """
    call = call_in_from(relation)
    if call is None:
        raise MistakeError("a relation of rows is a call")
    name = called(call).lower()
    listed, series = (_unnested(call, binder, text), None) if name == "unnest" else _listed(call, binder, text)
    ordinality = relation.args.get("ordinality") or call.args.get("offset")
    named = name_of(ordinality) if isinstance(ordinality, exp.Identifier) else "ordinality" if ordinality else name
    first = "key" if name in OF_PAIRS else "value" if name in _VALUES else name
    column, number = ids.column(first, element_type(listed)), ids.column(named, BIGINT)
    shown, place = [Visible(name, column, is_row=name in _VALUES and not ordinality)], number.expr
    if keeps:
        place = build(BIGINT, "CASE WHEN len({0}) > 0 THEN {1} END", listed, number.expr)
        none = f"CAST([NULL] AS {listed.type.duckdb})"
        listed, series = build(listed.type, f"CASE WHEN len({{0}}) > 0 THEN {{0}} ELSE {none} END", listed), None
    node, computed = plan.unnest(node, listed, column, number, series), plan.Computed(ids)
    if name in OF_PAIRS:
        value = FUNCTIONS[OF_PAIRS[name]]([binder.bind(call.expressions[0]), column.expr])
        shown.append(Visible(name, computed.column(value, "value")))
    if ordinality:
        shown.append(Visible(name, computed.column(place, named).renamed(named)))
    return computed.apply(node), Scope(tuple(shown))


def _unnested(call: exp.Expr, binder: ScalarBinder, text: Text) -> Expr:
    if len(call.expressions) != 1:
        raise text.unsupported(call, "UNNEST of several arrays", "UNNEST of one array is.")
    try:
        return flattened(binder.bind(call.expressions[0]))
    except MismatchError as error:
        raise text.type_error(call, f"UNNEST: {error}") from None


def _listed(tree: exp.Expr, binder: ScalarBinder, text: Text) -> tuple[Expr, str | None]:
    """Return what a function returns as a list, and as a relation of DuckDB's if it can be one."""
    name = str(tree.this).lower()
    try:
        arguments = [binder.bind(argument) for argument in tree.expressions]
        return SETS["jsonb_object_keys" if name in OF_PAIRS else name](arguments), constant_series(name, arguments)
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
