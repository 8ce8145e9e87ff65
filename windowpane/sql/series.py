"""Rows from lists: ``UNNEST(array)`` and ``generate_series(first, last[, step])``, as relations."""

from __future__ import annotations

from sqlglot import exp

from windowpane.sql import build_plan as plan
from windowpane.sql.expr import Expr, MismatchError, convert
from windowpane.sql.nodes import Node, Values
from windowpane.sql.operators import same_type
from windowpane.sql.places import Text
from windowpane.sql.scalars import ScalarBinder, name_of
from windowpane.sql.scope import Ids, Scope, Visible
from windowpane.sql.types import BIGINT, INTEGER, INTERVAL, SqlType, is_instant, is_integer


def one_row(ids: Ids) -> Node:
    """Return the one row of a SELECT without FROM; a column of it nobody names."""
    number = ids.column("number", INTEGER)
    return Values((number,), (number.id,), True, {}, rows=(("0",),))


def unnest(tree: exp.Expr, node: Node, binder: ScalarBinder, ids: Ids, text: Text) -> tuple[Node, Scope]:
    """Return each row of a relation with the elements of an array, and the names of what is added.

    Raises:
        SqlError: it is no array, or there are several, with the place.
    """
    if len(tree.expressions) != 1:
        raise text.unsupported(tree, "UNNEST of several arrays", "UNNEST of one array is.")
    array = binder.bind(tree.expressions[0])
    if array.type.element is None:
        raise text.type_error(tree, f"UNNEST takes an array, not {array.type}.")
    ordinality = tree.args.get("offset")
    names = ["unnest"]
    if ordinality:
        names.append(name_of(ordinality) if isinstance(ordinality, exp.Identifier) else "ordinality")
    return _elements(node, array.sql, array.type.element, ids, names)


def generate_series(tree: exp.Expr, binder: ScalarBinder, ids: Ids, text: Text) -> tuple[Node, Scope]:
    """Return ``generate_series(first, last[, step])``: whole numbers, or times a step apart.

    Raises:
        SqlError: arguments of other types, or too few, with the place.
    """
    arguments = [binder.bind(argument) for argument in tree.expressions]
    if not 2 <= len(arguments) <= 3:
        raise text.type_error(tree, "generate_series takes a first value, a last value and perhaps a step.")
    try:
        kind, values = _bounds(arguments)
    except MismatchError as error:
        raise text.type_error(tree, f"generate_series: {error}") from None
    call = f"generate_series({', '.join(value.sql for value in values)})"
    return _elements(one_row(ids), call, kind, ids, ["generate_series"])


def _bounds(arguments: list[Expr]) -> tuple[SqlType, list[Expr]]:
    first, last = same_type(*arguments[:2])
    if is_integer(first.type):
        return same_type(*arguments)[0].type, list(same_type(*arguments))
    if not is_instant(first.type) or len(arguments) < 3:
        raise MismatchError(f"it takes whole numbers, or two times and an interval, not {first.type}.")
    return first.type, [first, last, convert(arguments[2], INTERVAL)]


def _elements(node: Node, elements: str, kind: SqlType, ids: Ids, names: list[str]) -> tuple[Node, Scope]:
    columns = (ids.column(names[0], kind), ids.column(names[-1], BIGINT))
    shown = tuple(Visible(names[0], column) for column in columns[: len(names)])
    return plan.unnest(node, elements, *columns), Scope(shown)
