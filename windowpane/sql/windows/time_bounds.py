"""Bounds in time between both sides of a join: ``l.at >= r.at - INTERVAL '5 minutes'``.

With such a bound the watermark of one side shows which rows of the other no later row can match: where ``low <= high`` holds for
every match, ``low`` rises with a column of one side, and by that side's watermark ``low`` of all later rows is greater than the
``high`` of a row, the row has had its matches.
"""

from __future__ import annotations

from collections.abc import Iterator

from windowpane.sql.expressions.expr import Expr, quoted
from windowpane.sql.nodes import Node, TimeBound


def time_bounds(condition: Expr | None, left: Node, right: Node) -> tuple[TimeBound, ...]:
    """Return the bounds that the condition of a join puts on rows of each side."""
    found = (_bound(low, high, left, right) for low, high in _inequalities(condition))
    return tuple(bound for bound in found if bound is not None)


def _inequalities(condition: Expr | None) -> Iterator[tuple[Expr, Expr]]:
    """Yield (low, high) for each ``low <= high`` that a condition implies."""
    if condition is None:
        return
    if condition.operator == "AND":
        for part in condition.parts:
            yield from _inequalities(part)
    elif condition.operator in ("<", "<=", "="):
        yield condition.parts[0], condition.parts[1]
    if condition.operator in (">", ">=", "="):
        yield condition.parts[1], condition.parts[0]


def _bound(low: Expr, high: Expr, left: Node, right: Node) -> TimeBound | None:
    for index, (source, other) in enumerate(((left, right), (right, left))):
        ids = {column.id for column in source.columns}
        risen = low.rises_with
        if risen is not None and risen in other.watermarks and low.columns == {risen} and high.columns and high.columns <= ids:
            watermark = other.watermarks[risen].through(low.sql.replace(quoted(risen), "{w}"))
            return TimeBound(index, high.sql, watermark, high.column if high.is_column else None, high.type)
    return None
