"""Operators of exact numbers: which function computes each, and the type of its result.

Sums and products keep all digits: up to 20 decimal places they are DuckDB's own, which refuses what 38 digits do not hold. A
quotient has 28 places, rounded to RisingWave's digits, and what is computed from one is rounded so, too. A division by a literal
such as 100 is a product, and keeps the room before the point.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

from windowpane.sql.expressions.expr import Expr, build, convert
from windowpane.sql.expressions.types import (
    DIGITS,
    EXACT_PLACES,
    NUMERIC_PLACES,
    QUOTIENT,
    QUOTIENT_PLACES,
    SqlType,
    as_numeric,
    is_exact,
    numeric,
)
from windowpane.sql.numerics.kernels import called

REFUSED_BY_ZERO = "current_setting('error_on_division_by_zero')"
"""Whether a division by zero is an error, as in a query, or NULL, as in a view."""


def computed(operator: str, left: Expr, right: Expr) -> Expr:
    if operator == "/":
        return divide(left, right)
    left, right = convert(left, as_numeric(left.type)), convert(right, as_numeric(right.type))
    if operator == "*":
        return multiply(left, right)
    one, other = left.type, right.type
    kind = numeric(max(one.scale, other.scale), max(one.whole, other.whole) + 1)
    return build(kind, f"CAST(({{0}} {operator} {{1}}) AS {kind.duckdb})", convert(left, kind), convert(right, kind))


def multiply(left: Expr, right: Expr) -> Expr:
    one, other = left.type, right.type
    scale, whole = one.scale + other.scale, one.whole + other.whole
    is_native = scale <= EXACT_PLACES or scale + whole <= DIGITS
    if max(one.scale, other.scale) > EXACT_PLACES:
        if not is_native and scale > QUOTIENT_PLACES:
            return build(QUOTIENT, called("rounded_product", "{0}", "{1}"), left, right)
        is_native = True
    if is_native:
        kind = numeric(scale, whole)
        return build(kind, f"CAST(({{0}} * {{1}}) AS {kind.duckdb})", left, right)
    return build(numeric(EXACT_PLACES, whole), called("product", "{0}", "{1}"), left, right)


def divide(left: Expr, right: Expr) -> Expr:
    one, other = convert(left, as_numeric(left.type)), convert(right, as_numeric(right.type))
    inverse = None if right.number is None or right.number < 0 else _inverse(right.number)
    if inverse is not None and one.type.scale + inverse.type.scale <= EXACT_PLACES:
        return multiply(one, inverse)

    def at_scale(scale: int) -> Expr:
        kind = numeric(scale)
        call = called("quotient_at", "{0}", "{1}", REFUSED_BY_ZERO, str(scale))
        return build(kind, f"CAST({call} AS {kind.duckdb})", one, other)

    if not (one.columns or other.columns) and _whole_digits(one) + other.type.scale > QUOTIENT.whole:
        return _of_constants(one, other)
    found = build(QUOTIENT, called("quotient", "{0}", "{1}", REFUSED_BY_ZERO), one, other)
    return replace(found, at_scale=at_scale)


def _of_constants(one: Expr, other: Expr) -> Expr:
    """Return a quotient of constants, whose digits before the point are known: they leave fewer behind it, but not too few."""
    kind = numeric(max(DIGITS - _whole_digits(one) - other.type.scale, NUMERIC_PLACES), DIGITS)
    call = called("quotient_within", "{0}", "{1}", REFUSED_BY_ZERO, str(kind.scale))
    return build(kind, f"CAST({call} AS {kind.duckdb})", one, other)


def _whole_digits(value: Expr) -> int:
    """Return how many digits a value may have before the point: of a literal as many as it has, or one more by rounding."""
    if not isinstance(value.value, Decimal):
        return value.type.whole
    return min(len(str(abs(int(value.value)))) + 1, value.type.whole)


def _inverse(divisor: Decimal) -> Expr | None:
    """Return 1 / a literal, ``None`` if it does not end."""
    if not divisor:
        return None
    fraction = 1 / Fraction(divisor)
    rest, places = fraction.denominator, 0
    while rest > 1 and places < EXACT_PLACES:
        places += 1
        rest = (fraction * 10**places).denominator
    if rest > 1:
        return None
    kind = numeric(places, len(str(int(fraction))))
    inverse = Decimal(int(fraction * 10**places)).scaleb(-places)
    return Expr(f"CAST({inverse:f} AS {kind.duckdb})", kind, value=inverse)


def comparable(value: Expr, kind: SqlType) -> Expr:
    """Return a value to be compared as a numeric: one too large for its scale counts as the largest there is.

    What it is compared with has at most that many digits, so the outcome is that of the value itself.
    """
    if not is_exact(value.type) or as_numeric(value.type).whole + kind.scale <= DIGITS:
        return convert(value, kind)
    value = convert(value, as_numeric(value.type))
    largest = f"CAST({'9' * (DIGITS - kind.scale)}.{'9' * kind.scale} AS {kind.duckdb})"
    template = (
        f"coalesce(TRY_CAST({{0}} AS {kind.duckdb}), CASE WHEN {{0}} > 0 THEN {largest} WHEN {{0}} < 0 THEN -{largest} END)"
    )
    return build(kind, template, value, name=value.name)
