"""Conditions as values: their parts, and what all branches of an OR agree on."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from windowpane.sql.expressions.expr import Expr
from windowpane.sql.expressions.operators import combined


def conjuncts(condition: Expr | None) -> list[Expr]:
    if condition is None:
        return []
    if condition.operator != "AND":
        return [condition]
    return [part for each in condition.parts for part in conjuncts(each)]


def _disjuncts(condition: Expr) -> list[Expr]:
    if condition.operator != "OR":
        return [condition]
    return [part for each in condition.parts for part in _disjuncts(each)]


def all_of(conditions: Sequence[Expr]) -> Expr | None:
    return combined("AND", *conditions) if conditions else None


def factored(condition: Expr) -> list[Expr]:
    """Return a condition as conjuncts: those that all branches of an OR have precede it, ``(a AND b) OR (a AND c)``.

    They hold for the same rows; where the condition is NULL, they may be false.
    """
    branches = [conjuncts(branch) for branch in _disjuncts(condition)]
    if len(branches) == 1:
        return [condition]
    if (equal := _null_safe(branches)) is not None:
        return [equal]
    shared = [part for part in dict.fromkeys(branches[0]) if all(part in rest for rest in branches[1:])]
    if not shared:
        return [condition]
    left = [[part for part in branch if part not in shared] for branch in branches]
    return [*shared, combined("OR", *(combined("AND", *rest) for rest in left))] if all(left) else shared


def _null_safe(branches: Sequence[Sequence[Expr]]) -> Expr | None:
    """Return ``a IS NOT DISTINCT FROM b`` for the branches of ``a = b OR (a IS NULL AND b IS NULL)``, ``None`` for others."""
    if sorted(map(len, branches)) != [1, 2]:
        return None
    (equal,), nulls = sorted(branches, key=len)
    are_null = [part.parts[0] for part in nulls if part.operator == "IS NULL"]
    if equal.operator != "=" or set(are_null) != set(equal.parts) or len(are_null) < len(nulls):
        return None
    return combined("IS NOT DISTINCT FROM", *equal.parts)


def implied(condition: Expr, columns: Collection[str]) -> Expr | None:
    """Return what an OR says about some columns alone: each of its branches says something about them, ``None`` if not."""
    branches = _disjuncts(condition)
    if len(branches) == 1:
        return None
    about = [[part for part in conjuncts(branch) if part.columns and part.columns <= set(columns)] for branch in branches]
    return combined("OR", *(combined("AND", *parts) for parts in about)) if all(about) else None
