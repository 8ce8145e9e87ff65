"""Conditions: an expression over columns of Arrow arrays, computed for all rows at once.

Operators mean what they mean in Spark: ``/`` divides integers to a double, decimals are computed exactly, and beside a
floating-point number each is the nearest double; a comparison with NULL is NULL, ``&`` and ``|`` are those of three-valued logic,
and the sign of ``%`` is that of the dividend. A division by zero is NULL. NaN equals NaN and is larger than every number, as in
PostgreSQL, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from decimal import ROUND_HALF_UP, Decimal, localcontext
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windowpane.arrays import Mask, NumpyArray
from windowpane.arrays.columns import flat
from windowpane.errors import ConditionError, MistakeError
from windowpane.kernels.keys.ordered_codes import validity
from windowpane.kernels.over.sums import doubles_of
from windowpane.windowing.expressions import Constant, Expression, Operation, Side, SideName

Datum: TypeAlias = "pa.Array | pa.ChunkedArray | pa.Scalar"
Column = Callable[[Expression], Datum]

_NARROW_DIGITS, _WIDE_DIGITS = 38, 76
"""How many digits decimals of 128 and 256 bits have."""
_LONG_DIGITS = 19
_PLACES = 28
"""Places of quotients of decimals."""


def holds(condition: Expression, column: Column, rows: int) -> pa.Array:
    """Return for each row whether a condition is true there; neither false nor NULL is."""
    try:
        found = values(condition, column)
    except (pa.ArrowException, ArithmeticError) as error:
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
    if expression.operator != "coalesce":
        operands = _roomy(operands)
    if expression.operator in COMPARISONS:
        operands = _comparable(operands)
    result: Datum = _OPERATORS[expression.operator](*operands)
    return result


def kind_of(expression: Expression, column: Column) -> pa.DataType | None:
    """Return the type of an expression over columns of NULLs, ``None`` if it cannot be computed."""
    try:
        return values(expression, column).type
    except (pa.ArrowException, ConditionError):
        return None


def _constant(expression: Constant) -> pa.Scalar:
    try:
        return pa.scalar(expression.value)
    except (pa.ArrowException, TypeError) as error:
        raise ConditionError(expression, "it is no constant that Arrow knows") from error


def _beside_floats(operands: list[Datum]) -> list[Datum]:
    """Make every number a floating-point one beside one."""
    if not any(pa.types.is_floating(each.type) for each in operands):
        return operands
    return [each if pa.types.is_floating(each.type) else _doubles(each) for each in operands]


def _doubles(numbers: Datum) -> Datum:
    """Return numbers as the nearest doubles, and what is no number as it is."""
    if not (_has_decimals(numbers) or pa.types.is_integer(numbers.type) or pa.types.is_floating(numbers.type)):
        return numbers
    if isinstance(numbers, pa.Scalar):
        return pa.scalar(float(numbers.as_py()) if numbers.is_valid else None, pa.float64())
    column = flat(numbers)
    return pa.array(doubles_of(column), mask=~validity(column))


def _roomy(operands: list[Datum]) -> list[Datum]:
    """Give decimals room for an exact result."""
    if not _has_decimals(*operands) or _digits(operands) < _NARROW_DIGITS:
        return operands
    wide = [pa.decimal256(each.type.precision, each.type.scale) if _has_decimals(each) else each.type for each in operands]
    return [pc.cast(each, kind) for each, kind in zip(operands, wide, strict=True)]


def _digits(operands: Iterable[Datum]) -> int:
    return sum(each.type.precision if _has_decimals(each) else _LONG_DIGITS for each in operands)


def _has_decimals(*operands: Datum) -> bool:
    return any(pa.types.is_decimal(each.type) for each in operands)


def _comparable(operands: list[Datum]) -> list[Datum]:
    """Give an untyped NULL the type of what it is compared with."""
    kinds = [each.type for each in operands]
    known = next((kind for kind in kinds if not pa.types.is_null(kind)), kinds[0])
    return [each.cast(known) if pa.types.is_null(each.type) else each for each in operands]


def _product(left: Datum, right: Datum) -> Datum:
    if _has_decimals(left, right) and _digits((left, right)) >= _WIDE_DIGITS:
        return _exactly(Decimal.__mul__, left, right)
    return pc.multiply_checked(left, right)


def _divided(left: Datum, right: Datum) -> Datum:
    if _has_decimals(left, right):
        return _exactly(_quotient, left, _not_zero(right))
    return pc.divide(_doubles(left), _not_zero(_doubles(right)))


def _remainder(left: Datum, right: Datum) -> Datum:
    right = _not_zero(right)
    if _has_decimals(left, right):
        return _exactly(Decimal.__mod__, left, right)
    with np.errstate(invalid="ignore"):
        rest = np.fmod(_filled(left), _filled(right))
    is_null = pc.or_(pc.is_null(left), pc.is_null(right))
    return pc.if_else(is_null, None, pa.array(rest) if rest.ndim else pa.scalar(rest.item()))


def _filled(numbers: Datum) -> NumpyArray:
    if isinstance(numbers, pa.Scalar):
        return np.array(numbers.as_py() if numbers.is_valid else 1, numbers.type.to_pandas_dtype())
    filled: NumpyArray = flat(pc.fill_null(numbers, 1)).to_numpy(zero_copy_only=False)
    return filled


def _exactly(compute: Callable[[Decimal, Decimal], Decimal], left: Datum, right: Datum) -> Datum:
    """Return what Python computes of decimals and integers, with as many digits as it has; NULL where one is NULL."""
    is_constant = isinstance(left, pa.Scalar) and isinstance(right, pa.Scalar)
    rows = 1 if is_constant else len(right if isinstance(left, pa.Scalar) else left)
    columns = [[each.as_py()] * rows if isinstance(each, pa.Scalar) else each.to_pylist() for each in (left, right)]
    with localcontext(prec=_WIDE_DIGITS):
        found = [None if None in pair else compute(*map(Decimal, pair)) for pair in zip(*columns, strict=True)]
    made = pa.array(found, pa.decimal128(_NARROW_DIGITS, 0) if found.count(None) == rows else None)
    return made[0] if is_constant else made


def _quotient(left: Decimal, right: Decimal) -> Decimal:
    return (left / right).quantize(Decimal(1).scaleb(-_PLACES), ROUND_HALF_UP)


def _not_zero(divisor: Datum) -> Datum:
    zero = pa.scalar(Decimal(0) if _has_decimals(divisor) else 0, divisor.type)
    return pc.if_else(pc.equal(divisor, zero), pa.scalar(None, divisor.type), divisor)


def _ordered(compare: Callable[..., Datum]) -> Callable[..., Datum]:
    """Return a comparison to which NaN is the largest number: where one side is NaN, what is compared is whether the other is."""

    def compared(left: Datum, right: Datum) -> Datum:
        found = compare(left, right)
        if not pa.types.is_floating(left.type):  # then neither is
            return found
        one, other = map(pc.is_nan, (left, right))
        return pc.if_else(pc.or_(one, other), compare(one.cast(pa.int8()), other.cast(pa.int8())), found)

    return compared


def _differ(left: Datum, right: Datum) -> Datum:
    both = pc.and_(pc.is_null(left), pc.is_null(right))
    return pc.and_(pc.fill_null(_ordered(pc.not_equal)(left, right), True), pc.invert(both))


_OPERATORS: Mapping[str, Callable[..., Datum]] = {
    "+": pc.add_checked,
    "-": pc.subtract_checked,
    "*": _product,
    "/": _divided,
    "%": _remainder,
    "neg": pc.negate_checked,
    "real": lambda number: number.cast(pa.float32()),
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
    "div": lambda left, right: pc.divide_checked(left, _not_zero(right)),
}
COMPARISONS = frozenset({"<", "<=", ">", ">=", "==", "!=", "is distinct from", "coalesce"})
