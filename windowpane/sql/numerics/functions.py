"""Functions of exact numbers: rounding, roots, powers and logarithms."""

from __future__ import annotations

from collections.abc import Sequence

from windowpane.sql.expressions.expr import Expr, MismatchError, build, convert, places
from windowpane.sql.expressions.types import (
    DIGITS,
    EXACT_PLACES,
    INTEGER,
    QUOTIENT,
    as_numeric,
    is_exact,
    is_float,
    is_integer,
    is_number,
    numeric,
)
from windowpane.sql.numerics.arithmetic import REFUSED_BY_ZERO
from windowpane.sql.numerics.kernels import called
from windowpane.sql.scalar.signatures import Builder, builder


def constant(expr: Expr) -> int | None:
    """Return the value of an integer that is written out, ``None`` for any other expression."""
    return None if expr.number is None or expr.number < 0 or expr.type != INTEGER else int(expr.number)


@builder
def to_integer(arguments: Sequence[Expr], name: str) -> Expr:
    """Return ``round``, ``ceil``, ``floor`` or ``trunc`` of one numeric."""
    (value,) = arguments
    kind = numeric(0, value.type.whole + 1)
    return build(kind, f"CAST({name}({{0}}) AS {kind.duckdb})", value)


@builder
def to_places(arguments: Sequence[Expr], name: str) -> Expr:
    """Return ``round`` or ``trunc`` of a number to a number of places, which may be negative."""
    value, places = arguments
    if not is_integer(places.type):
        raise MismatchError(f"it takes a whole number of places, not {places.type}. Cast the argument.")
    value = convert(value, numeric(EXACT_PLACES)) if is_float(value.type) else convert(value, as_numeric(value.type))
    wanted = constant(places)
    if wanted is None:
        return _to_own_places(name, value, places)
    if wanted >= value.type.scale:
        return value
    if name == "round" and wanted >= 0 and value.at_scale is not None:
        return value.at_scale(wanted)
    kind = numeric(max(wanted, 0), value.type.whole + 1)
    return build(kind, f"CAST({name}({{0}}, {max(wanted, -DIGITS)}) AS {kind.duckdb})", value)


def _to_own_places(name: str, value: Expr, places: Expr) -> Expr:
    call = called(f"{name}_at", "{0}", "{1}")
    return build(value.type, f"CAST({call} AS {value.type.duckdb})", value, convert(places, INTEGER))


@builder
def or_float(arguments: Sequence[Expr], name: str, of_floats: Builder) -> Expr:
    """Return a function that computes numerics exactly, and all else as doubles, as PostgreSQL does."""
    if not takes_numerics(arguments):
        return of_floats(arguments)
    values = [convert(argument, as_numeric(argument.type)) for argument in arguments]
    return build(QUOTIENT, called(name, places(len(values))), *values)


def takes_numerics(arguments: Sequence[Expr]) -> bool:
    """Whether numbers are exact, and one of them a numeric."""
    return all(is_exact(argument.type) for argument in arguments) and any(
        argument.type.name == "numeric" for argument in arguments
    )


def power(base: Expr, exponent: Expr) -> Expr:
    """Return a numeric to a power: exact for a small whole exponent, else with 28 significant digits."""
    raised, kind = constant(exponent), as_numeric(base.type)
    if raised is not None and raised >= 0 and kind.scale * raised <= EXACT_PLACES:
        result = numeric(kind.scale * raised)
        call = called("power_at", "{0}", str(raised))
        return build(result, f"CAST({call} AS {result.duckdb})", convert(base, kind))
    return build(QUOTIENT, called("power", "{0}", "{1}"), convert(base, kind), convert(exponent, as_numeric(exponent.type)))


def whole_quotient(left: Expr, right: Expr) -> Expr:
    """Return ``div``: a quotient cut to an integer; PostgreSQL has none of doubles, either."""
    inexact = next((each.type for each in map(checked, (left, right)) if not is_exact(each.type)), None)
    if inexact is not None:
        raise MismatchError(f"it takes whole numbers and numerics, not {inexact}. Cast the argument to numeric.")
    operands = (convert(left, as_numeric(left.type)), convert(right, as_numeric(right.type)))
    return build(numeric(0), called("div", "{0}", "{1}", REFUSED_BY_ZERO), *operands)


def checked(value: Expr) -> Expr:
    """Return an argument that is a number."""
    if not is_number(value.type):
        raise MismatchError(f"it takes a number, not {value.type}. Cast the argument.")
    return value
