"""GROUPING SETS, ROLLUP and CUBE: which sets of columns a GROUP BY asks for."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, product

from sqlglot import exp

Set = tuple[exp.Expr, ...]


def sets_of(items: Sequence[exp.Expr]) -> list[Set]:
    """Return the sets of columns that the items of a GROUP BY ask for: every combination of one set of each item.

    An item is a column, a row of columns, GROUPING SETS (the sets listed), ROLLUP (the beginnings of the list, the empty one too)
    or CUBE (all subsets of the list). Source: PostgreSQL, "GROUPING SETS, CUBE, and ROLLUP".
    """
    return [tuple(part for chosen in choice for part in chosen) for choice in product(*(_sets(item) for item in items))]


def _sets(item: exp.Expr) -> list[Set]:
    if isinstance(item, exp.GroupingSets):
        return [chosen for inside in item.expressions for chosen in _sets(inside)]
    parts = [_columns(part) for part in item.expressions]
    if isinstance(item, exp.Rollup):
        return [_together(parts[:length]) for length in range(len(parts), -1, -1)]
    if isinstance(item, exp.Cube):
        lengths = range(len(parts), -1, -1)
        return [_together(chosen) for length in lengths for chosen in combinations(parts, length)]
    return [_columns(item)]


def _columns(item: exp.Expr) -> Set:
    if isinstance(item, exp.Paren):
        return _columns(item.this)
    return tuple(item.expressions) if isinstance(item, exp.Tuple) else (item,)


def _together(parts: Sequence[Set]) -> Set:
    return tuple(column for part in parts for column in part)
