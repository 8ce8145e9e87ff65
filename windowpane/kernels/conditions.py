"""Conditions: an expression over columns of Arrow arrays, computed for all rows at once.

Operators mean what they mean in Spark: ``/`` divides integers to a double, a comparison with NULL is NULL, ``&`` and ``|`` are
those of three-valued logic, and the sign of ``%`` is that of the dividend. A division by zero is NULL. NaN equals NaN and is
larger than every number, as in PostgreSQL, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windowpane.arrays import Mask
from windowpane.arrays.columns import flat
from windowpane.errors import ConditionError, MistakeError
from windowpane.windowing.expressions import Constant, Expression, Operation, Side, SideName

Datum: TypeAlias = "pa.Array | pa.ChunkedArray | pa.Scalar"
Column = Callable[[Expression], Datum]


def holds(condition: Expression, column: Column, rows: int) -> pa.Array:
    """Return for each row whether a condition is true there; neither false nor NULL is."""
    try:
        found = values(condition, column)
    except pa.ArrowException as error:
        raise ConditionError(condition, str(error)) from error
    if not pa.types.is_boolean(found.type):
        raise ConditionError(condition, f"its type is {found.type}, and a condition is a boolean")
    if isinstance(found, pa.Scalar):
        return pa.repeat(pa.scalar(found.as_py() is True), rows)
    return flat(pc.fill_null(found, False))


def pairs_hold(condition: Expression | None, column: Callable[[Side, str], Datum], pairs: int) -> Mask:
    """Return for which pairs of rows a condition on both sides is true: without one for all; ``column`` is of the side's rows."""
    if condition is None:
        return np.ones(pairs, np.bool_)

    def of_side(name: Expression) -> Datum:
        if not isinstance(name, SideName):
            raise MistakeError("planning has resolved names")
        return column(name.side, name.name)

    mask: Mask = holds(condition, of_side, pairs).to_numpy(zero_copy_only=False)
    return mask


def values(expression: Expression, column: Column) -> Datum:
    """Return the values of an expression; ``column`` has those of what is neither a constant nor an operation."""
    if isinstance(expression, Constant):
        return _constant(expression)
    if not isinstance(expression, Operation):
        return column(expression)
    operands = _beside_floats([values(part, column) for part in expression.parts])
    if expression.operator in _COMPARISONS:
        operands = _comparable(operands)
    result: Datum = _OPERATORS[expression.operator](*operands)
    return result


def _constant(expression: Constant) -> pa.Scalar:
    try:
        return pa.scalar(expression.value)
    except (pa.ArrowException, TypeError) as error:
        raise ConditionError(expression, "it is no constant that Arrow knows") from error


def _beside_floats(operands: list[Datum]) -> list[Datum]:
    """Make whole numbers floating-point ones beside one, rounded where they are large; Arrow refuses these."""
    if not any(pa.types.is_floating(each.type) for each in operands):
        return operands
    return [pc.cast(each, pa.float64(), safe=False) if pa.types.is_integer(each.type) else each for each in operands]


def _comparable(operands: list[Datum]) -> list[Datum]:
    """Give an untyped NULL the type of what it is compared with."""
    kinds = [each.type for each in operands]
    known = next((kind for kind in kinds if not pa.types.is_null(kind)), kinds[0])
    return [each.cast(known) if pa.types.is_null(each.type) else each for each in operands]


def _divided(left: Datum, right: Datum) -> Datum:
    left, right = (pc.cast(each, pa.float64()) if pa.types.is_integer(each.type) else each for each in (left, right))
    return pc.divide(left, _not_zero(right))


def _remainder(left: Datum, right: Datum) -> Datum:
    if not all(pa.types.is_integer(each.type) for each in (left, right)):
        left, right = (pc.cast(each, pa.float64()) for each in (left, right))
        return pc.subtract(left, pc.multiply(pc.trunc(pc.divide(left, _not_zero(right))), right))
    return pc.subtract(left, pc.multiply(pc.divide(left, _not_zero(right)), right))


def _not_zero(divisor: Datum) -> Datum:
    zero = pa.scalar(0).cast(divisor.type)
    return pc.if_else(pc.equal(divisor, zero), pa.scalar(None, divisor.type), divisor)


def _ordered(compare: Callable[..., Datum]) -> Callable[..., Datum]:
    """Return a comparison to which NaN is the largest number: where one side is NaN, what is compared is whether the other is."""

    def compared(left: Datum, right: Datum) -> Datum:
        found = compare(left, right)
        if not any(pa.types.is_floating(each.type) for each in (left, right)):
            return found
        one, other = (
            pc.is_nan(each) if pa.types.is_floating(each.type) else pc.and_(pc.is_null(each), False) for each in (left, right)
        )
        return pc.if_else(pc.or_(one, other), compare(one.cast(pa.int8()), other.cast(pa.int8())), found)

    return compared


def _differ(left: Datum, right: Datum) -> Datum:
    both = pc.and_(pc.is_null(left), pc.is_null(right))
    return pc.and_(pc.fill_null(_ordered(pc.not_equal)(left, right), True), pc.invert(both))


_OPERATORS: Mapping[str, Callable[..., Datum]] = {
    "+": pc.add_checked,
    "-": pc.subtract_checked,
    "*": pc.multiply_checked,
    "/": _divided,
    "%": _remainder,
    "neg": pc.negate_checked,
    "~": pc.invert,
    "&": pc.and_kleene,
    "|": pc.or_kleene,
    "<": _ordered(pc.less),
    "<=": _ordered(pc.less_equal),
    ">": _ordered(pc.greater),
    ">=": _ordered(pc.greater_equal),
    "==": _ordered(pc.equal),
    "!=": _ordered(pc.not_equal),
    "is null": pc.is_null,
    "is not null": pc.is_valid,
    "is distinct from": _differ,
    "coalesce": pc.coalesce,
    "div": lambda left, right: pc.divide(left, _not_zero(right)),
}
_COMPARISONS = frozenset({"<", "<=", ">", ">=", "==", "!=", "is distinct from", "coalesce"})
