"""Conditions: their parts, and the equalities among them that become keys of a join."""

from __future__ import annotations

from sqlglot import exp

from windowpane.sql.expressions.binder import ScalarBinder
from windowpane.sql.expressions.expr import Expr
from windowpane.sql.expressions.operators import comparables, key_value
from windowpane.sql.expressions.types import common


def conjuncts(tree: exp.Expr) -> list[exp.Expr]:
    while isinstance(tree, exp.Paren):
        tree = tree.this
    return conjuncts(tree.this) + conjuncts(tree.expression) if isinstance(tree, exp.And) else [tree]


def key_pair(part: exp.Expr, binder: ScalarBinder, ours: set[str], theirs: set[str]) -> tuple[Expr, Expr] | None:
    """Return both sides of an equality between columns of one side (ids) and of another, ``None`` for anything else."""
    if not isinstance(part, exp.EQ) or part.find(exp.Query):
        return None
    one, other = binder.bind(part.this), binder.bind(part.expression)
    if one.columns and one.columns <= theirs and other.columns <= ours:
        one, other = other, one
    if not (one.columns and other.columns and one.columns <= ours and other.columns <= theirs):
        return None
    if common(one.type, other.type) is None:
        return None
    one, other = comparables(one, other)
    return key_value(one), key_value(other)
