"""The row_number subquery as Top-N: a filter on the number of a row keeps only the first rows of each partition.

``row_number() <= 3`` above an OVER window with this one call becomes a Top-N, as does ``rank()`` with a limit alone (its ties
stay). The condition is a conjunction of comparisons of the number with constants; anything else is left a filter. Source of
the rule: RisingWave's OverWindowToTopN.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from windowpane.errors import MistakeError
from windowpane.sql.bind.build_plan import top
from windowpane.sql.expressions.binder import ScalarBinder
from windowpane.sql.nodes import Node, Over, Project

_Kind = type[exp.Expr]
_MIRRORED: dict[_Kind, _Kind] = {
    exp.LT: exp.GT,
    exp.LTE: exp.GTE,
    exp.GT: exp.LT,
    exp.GTE: exp.LTE,
    exp.EQ: exp.EQ,
}


def rewrite(node: Node, conditions: list[exp.Expr], binder: ScalarBinder) -> tuple[Node, list[exp.Expr]]:
    """Return a node with the conditions on its number moved into a Top-N, and the other conditions."""
    found = _numbered(node)
    if found is None:
        return node, conditions
    window, numbers = found
    mine = [limits for condition in conditions if (limits := _limits(condition, numbers, binder))]
    rest = [condition for condition in conditions if not _limits(condition, numbers, binder)]
    low = max([1, *(low for low, _ in mine)])
    highs = [high for _, high in mine if high is not None]
    ranked = window.calls[0].function == "rank"
    if not mine or (highs and min(highs) < low) or (ranked and (low > 1 or not highs)):
        return node, conditions
    limit = min(highs) - low + 1 if highs else None
    number = window.columns[-1]
    shortened = top(window.input, window.partition, window.order, limit, low - 1, with_ties=ranked, number=number)
    return _with(node, window, shortened), rest


def _numbered(node: Node) -> tuple[Over, set[str]] | None:
    """Return the OVER window below projections whose one call numbers rows, and the names of the number above them."""
    if isinstance(node, Project):
        below = _numbered(node.input)
        if below is None:
            return None
        window, names = below
        return window, {name for name, source in node.unchanged.items() if source in names}
    if isinstance(node, Over) and len(node.calls) == 1 and node.calls[0].function in ("row_number", "rank"):
        return node, {node.columns[-1].id}
    return None


def _with(node: Node, window: Over, shortened: Node) -> Node:
    if node is window:
        return shortened
    if not isinstance(node, Project):
        raise MistakeError("between a filter and its window are projections only")
    return replace(node, input=_with(node.input, window, shortened))


def _limits(condition: exp.Expr, numbers: set[str], binder: ScalarBinder) -> tuple[int, int | None] | None:
    """Return the places that a condition on the number allows, ``None`` if it is about something else."""
    while isinstance(condition, exp.Paren):
        condition = condition.this
    if isinstance(condition, exp.Between):
        low, high = _constant(condition.args["low"]), _constant(condition.args["high"])
        shift = _shift(condition.this, numbers, binder)
        return None if low is None or high is None or shift is None else (low - shift, high - shift)
    kind: type[exp.Expr] = type(condition)
    if kind not in _MIRRORED:
        return None
    left, right = condition.this, condition.expression
    shift, constant = _shift(left, numbers, binder), _constant(right)
    if shift is None or constant is None:
        shift, constant, kind = _shift(right, numbers, binder), _constant(left), _MIRRORED[kind]
    return None if shift is None or constant is None else _range(kind, constant - shift)


def _range(kind: type[exp.Expr], constant: int) -> tuple[int, int | None]:
    if kind is exp.LT:
        return 1, constant - 1
    if kind is exp.LTE:
        return 1, constant
    if kind is exp.GT:
        return constant + 1, None
    return (constant, None) if kind is exp.GTE else (constant, constant)


def _constant(tree: exp.Expr) -> int | None:
    while isinstance(tree, exp.Paren):
        tree = tree.this
    if isinstance(tree, exp.Neg):
        inside = _constant(tree.this)
        return None if inside is None else -inside
    if isinstance(tree, exp.Cast):
        return _constant(tree.this)
    return int(tree.this) if isinstance(tree, exp.Literal) and not tree.is_string and str(tree.this).isdigit() else None


def _shift(tree: exp.Expr, numbers: set[str], binder: ScalarBinder) -> int | None:
    """Return n if the expression is the number plus n."""
    while isinstance(tree, exp.Paren):
        tree = tree.this
    if isinstance(tree, exp.Add | exp.Sub):
        inside, amount = _shift(tree.this, numbers, binder), _constant(tree.expression)
        if inside is None or amount is None:
            return None
        return inside + (amount if isinstance(tree, exp.Add) else -amount)
    is_number = isinstance(tree, exp.Column | exp.Window) and _names(tree, numbers, binder)
    return 0 if is_number else None


def _names(tree: exp.Expr, numbers: set[str], binder: ScalarBinder) -> bool:
    bound = binder.bind(tree)
    return bound.is_column and bound.column in numbers
