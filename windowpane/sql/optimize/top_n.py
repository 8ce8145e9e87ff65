"""The row_number subquery as Top-N: a filter on the number of a row keeps only the first rows of each partition.

``row_number() <= 3`` above an OVER window with this one call becomes a Top-N, as does ``rank()`` with a limit alone (its ties
stay). What compares the number with whole numbers that are written out says which rows; anything else is left a filter. Source
of the rule: RisingWave's OverWindowToTopN.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from windowpane.sql.bind.build_plan import top
from windowpane.sql.expressions.expr import Expr
from windowpane.sql.expressions.operators import MIRRORED
from windowpane.sql.nodes import Node, Over


def top_n(window: Over, conditions: Sequence[Expr]) -> tuple[Node, list[Expr]]:
    """Return a window with the conditions on its number moved into a Top-N, and the other conditions."""
    function = window.calls[0].function
    if window.closes or len(window.calls) > 1 or function not in ("row_number", "rank"):
        return window, list(conditions)
    number = window.columns[-1]
    found = [_limits(condition, number.id) for condition in conditions]
    mine = [limits for limits in found if limits is not None]
    low = max([1, *(low for low, _ in mine)])
    highs = [high for _, high in mine if high is not None]
    ranked = function == "rank"
    if not mine or (highs and min(highs) < low) or (ranked and (low > 1 or not highs)):
        return window, list(conditions)
    limit = min(highs) - low + 1 if highs else None
    shortened = top(window.input, window.partition, window.order, limit, low - 1, with_ties=ranked, number=number)
    return shortened, [condition for condition, limits in zip(conditions, found, strict=True) if limits is None]


def _limits(condition: Expr, number: str) -> tuple[int, int | None] | None:
    """Return the places that a condition on the number allows, ``None`` if it is about something else."""
    if condition.operator not in MIRRORED:
        return None
    (one, other), operator = condition.parts, condition.operator
    if other.column == number:
        one, other, operator = other, one, MIRRORED[operator]
    if one.column != number or not isinstance(other.value, Decimal) or other.value != int(other.value):
        return None
    place = int(other.value)
    ranges: dict[str, tuple[int, int | None]] = {
        "<": (1, place - 1),
        "<=": (1, place),
        ">": (place + 1, None),
        ">=": (place, None),
        "=": (place, place),
    }
    return ranges[operator]
