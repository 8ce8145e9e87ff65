"""What binding a query gives, and small questions about parsed queries."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from windowpane.sql.bind.scope import Column
from windowpane.sql.expressions.expr import Expr
from windowpane.sql.nodes import Node, Order
from windowpane.sql.parse.positions import Text, shown

Tables = dict[str, exp.Expr]
"""Common table expressions by name."""


@dataclass(frozen=True)
class BoundQuery:
    """A query as a plan.

    Args:
        outputs: the columns users see, in order; one may appear twice.
        order: the order of the result, for those who read it in order.
    """

    node: Node
    outputs: tuple[Column, ...]
    order: tuple[Order, ...] = ()


def open_literals(tree: exp.Expr) -> dict[int, Expr]:
    """Return the columns of a SELECT that are NULL or a text literal: their type is that of what they meet."""
    if not isinstance(tree, exp.Select) or any(item.is_star for item in tree.expressions):
        return {}
    found = dict[int, Expr]()
    for index, item in enumerate(tree.expressions):
        value = item.unalias()
        if isinstance(value, exp.Null):
            found[index] = Expr.null()
        elif isinstance(value, exp.Literal) and value.is_string:
            found[index] = Expr.of_text(value.this)
    return found


def output_place(tree: exp.Expr, count: int, text: Text) -> int | None:
    """Return the place, from 0, of the output column that a number means, ``None`` if it is no number.

    Raises:
        SqlNameError: there are only ``count``, or it is another constant, which orders and groups nothing.
    """
    is_text = isinstance(tree, exp.Literal) and tree.is_string
    if is_text or isinstance(tree, exp.Null | exp.Boolean) or (isinstance(tree, exp.Neg) and isinstance(tree.this, exp.Literal)):
        message = f"{shown(tree)} is a constant. ORDER BY and GROUP BY take columns, their numbers and expressions of them."
        raise text.name_error(tree, message)
    if not isinstance(tree, exp.Literal) or tree.is_string:
        return None
    if not str(tree.this).isdigit() or not 1 <= int(tree.this) <= count:
        raise text.name_error(tree, f"there is no output column {tree.this}; there are {count}.")
    return int(tree.this) - 1
