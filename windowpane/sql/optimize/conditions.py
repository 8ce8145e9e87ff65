"""Conditions as values: their parts, what all branches of an OR agree on, and the same condition over other columns."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import reduce

from windowpane.sql.expressions.expr import Expr, quoted
from windowpane.sql.expressions.operators import combined

_TOKENS = re.compile(r"'(?:[^']|'')*'|\"((?:[^\"]|\"\")*)\"")


def conjuncts(condition: Expr | None) -> list[Expr]:
    """Return the parts that AND joins."""
    if condition is None:
        return []
    if condition.operator != "AND":
        return [condition]
    return [part for each in condition.parts for part in conjuncts(each)]


def _disjuncts(condition: Expr) -> list[Expr]:
    if condition.operator != "OR":
        return [condition]
    return [part for each in condition.parts for part in _disjuncts(each)]


def joined(operator: str, conditions: Sequence[Expr]) -> Expr:
    """Return conditions joined by AND or OR; there is at least one."""
    return reduce(lambda one, other: combined(operator, one, other), conditions)


def all_of(conditions: Sequence[Expr]) -> Expr | None:
    """Return conditions joined by AND, ``None`` for none."""
    return joined("AND", conditions) if conditions else None


def factored(condition: Expr) -> list[Expr]:
    """Return a condition as conjuncts: those that all branches of an OR have precede it, ``(a AND b) OR (a AND c)``.

    They hold for the same rows; where the condition is NULL, they may be false.
    """
    branches = [conjuncts(branch) for branch in _disjuncts(condition)]
    if len(branches) == 1:
        return [condition]
    if (equal := _null_safe(branches)) is not None:
        return [equal]
    shared = [part for part in _unique(branches[0]) if all(any(part.sql == each.sql for each in rest) for rest in branches[1:])]
    if not shared:
        return [condition]
    known = {part.sql for part in shared}
    left = [[part for part in branch if part.sql not in known] for branch in branches]
    return [*shared, joined("OR", [joined("AND", rest) for rest in left])] if all(left) else shared


def _null_safe(branches: Sequence[Sequence[Expr]]) -> Expr | None:
    """Return ``a IS NOT DISTINCT FROM b`` for the branches of ``a = b OR (a IS NULL AND b IS NULL)``, ``None`` for others."""
    if sorted(map(len, branches)) != [1, 2]:
        return None
    (equal,), nulls = sorted(branches, key=len)
    if equal.operator != "=" or {part.sql for part in nulls} != {f"({side.sql} IS NULL)" for side in equal.parts}:
        return None
    return combined("IS NOT DISTINCT FROM", *equal.parts)


def _unique(conditions: Iterable[Expr]) -> list[Expr]:
    return list({condition.sql: condition for condition in conditions}.values())


def implied(condition: Expr, columns: Collection[str]) -> Expr | None:
    """Return what an OR says about some columns alone: each of its branches says something about them, ``None`` if not."""
    branches = _disjuncts(condition)
    if len(branches) == 1:
        return None
    about = [[part for part in conjuncts(branch) if part.columns and part.columns <= set(columns)] for branch in branches]
    return joined("OR", [joined("AND", parts) for parts in about]) if all(about) else None


def ids_in(sql: str) -> set[str]:
    """Return the column ids that SQL names, outside of text literals."""
    return {found.replace('""', '"') for found in _TOKENS.findall(sql) if found}


def over(condition: Expr, items: Mapping[str, str]) -> Expr:
    """Return a condition with other SQL in the place of columns."""
    sql = substituted(condition.sql, items)
    named = ids_in(items.get(condition.rises_with or "", ""))
    parts = tuple(over(part, items) for part in condition.parts)
    rises_with = next(iter(named)) if len(named) == 1 and items[condition.rises_with or ""] in map(quoted, named) else None
    return replace(condition, sql=sql, columns=frozenset(ids_in(sql)), parts=parts, rises_with=rises_with)


def substituted(sql: str, items: Mapping[str, str]) -> str:
    """Return SQL with other SQL in the place of columns."""

    def written(found: re.Match[str]) -> str:
        name = found.group(1)
        item = None if name is None else items.get(name.replace('""', '"'))
        if item is None:
            return found.group(0)
        return item if _TOKENS.fullmatch(item) else f"({item})"

    return _TOKENS.sub(written, sql)
