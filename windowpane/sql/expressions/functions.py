"""Scalar functions: name, argument types, result type, and the DuckDB expression."""

from __future__ import annotations

from collections.abc import Sequence

from windowpane.sql.expressions.array_functions import ARRAY_FUNCTIONS
from windowpane.sql.expressions.expr import Expr, MismatchError, build, cast, convert, counted, function, places
from windowpane.sql.expressions.jsonb_functions import JSONB_FUNCTIONS
from windowpane.sql.expressions.operators import arithmetic, compare, is_of_jsonb, power, same_type
from windowpane.sql.expressions.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTERVAL,
    JSONB,
    UNKNOWN,
    VARCHAR,
    is_exact,
    is_integer,
    is_number,
    numeric,
)
from windowpane.sql.numerics.functions import checked, or_float, to_integer, to_places, whole_quotient
from windowpane.sql.scalar.fields import FIELD_FUNCTIONS
from windowpane.sql.scalar.patterns import PATTERN_FUNCTIONS
from windowpane.sql.scalar.signatures import Builder, builder, fixed, taking
from windowpane.sql.scalar.text import TEXT_FUNCTIONS
from windowpane.sql.scalar.times import TIME_FUNCTIONS
from windowpane.sql.values.text_values import text_literal


def _double(template: str) -> Builder:
    return fixed(DOUBLE, template, DOUBLE)


@builder
def _of_integers(arguments: Sequence[Expr], name: str) -> Expr:
    """Return ``gcd`` or ``lcm`` of two integers."""
    counted(arguments, 2, 2)
    if not all(is_integer(argument.type) for argument in arguments):
        return fixed(BIGINT, f"CAST({name}({{0}}, {{1}}) AS BIGINT)", BIGINT, BIGINT)(arguments)
    one, other = same_type(*arguments)
    return build(one.type, f"CAST({name}({{0}}, {{1}}) AS {one.type.duckdb})", one, other)


_AS_IN_DUCKDB = ("cbrt", "sin", "cos", "tan", "atan", "sinh", "cosh", "tanh", "asinh", "degrees", "radians")
_OF_DOUBLES: dict[str, Builder] = {
    **{name: _double(f"{name}({{0}})") for name in _AS_IN_DUCKDB},
    "sqrt": _double("windowpane_sqrt({0})"),
    "exp": _double("windowpane_exp({0})"),
    "ln": _double("ln(windowpane_positive({0}))"),
    "log10": _double("log10(windowpane_positive({0}))"),
    "cot": _double("(1 / tan({0}))"),
    "asin": _double("asin(windowpane_within({0}, -1, 1))"),
    "acos": _double("acos(windowpane_within({0}, -1, 1))"),
    "atan2": fixed(DOUBLE, "atan2({0}, {1})", DOUBLE, DOUBLE),
    "acosh": _double("acosh(windowpane_within({0}, 1, 'Infinity'::DOUBLE))"),
    "atanh": _double("atanh(windowpane_within({0}, -1, 1))"),
    "coth": _double("(1 / tanh({0}))"),
    "pi": fixed(DOUBLE, "pi()"),
    "gcd": _of_integers("gcd"),
    "lcm": _of_integers("lcm"),
}


@builder
def _number(arguments: Sequence[Expr], result: str, exact: str = "") -> Expr:
    """Return a function of one number whose result has the argument's type; ``exact`` is for integers and numeric."""
    counted(arguments, 1, 1)
    value = convert(arguments[0], DOUBLE) if arguments[0].type == UNKNOWN else arguments[0]
    if not is_number(value.type):
        raise MismatchError(f"it takes a number, not {value.type}. Cast the argument.")
    template = exact if exact and is_exact(value.type) else result
    return build(value.type, f"CAST({template} AS {value.type.duckdb})", value)


@builder
def _whole(arguments: Sequence[Expr], name: str, of_floats: str) -> Expr:
    """Return ``round``, ``ceil``, ``floor`` or ``trunc``; the first and the last take a number of places, too.

    Integers and reals become doubles, as in PostgreSQL.
    """
    counted(arguments, 1, 2 if name in ("round", "trunc") else 1)
    value = convert(arguments[0], DOUBLE) if arguments[0].type == UNKNOWN else checked(arguments[0])
    if len(arguments) == 2:
        return to_places(name)((value, arguments[1]))
    if value.type.name == "numeric":
        return to_integer(name)((value,))
    return build(DOUBLE, f"CAST({of_floats} AS DOUBLE)", convert(value, DOUBLE))


@taking
def _sign(value: Expr) -> Expr:
    kind = numeric(0, 1) if checked(value).type.name == "numeric" else DOUBLE
    return build(kind, f"CAST(sign({{0}}) AS {kind.duckdb})", value)


_LOG = fixed(DOUBLE, "(ln(windowpane_positive({1})) / ln(windowpane_positive({0})))", DOUBLE, DOUBLE)


def _log(arguments: Sequence[Expr]) -> Expr:
    """Return ``log(x)``, to the base of ten, or ``log(base, x)``."""
    return or_float("log", _LOG)(arguments) if len(arguments) == 2 else or_float("log10", _OF_DOUBLES["log10"])(arguments)


@builder
def _extreme(arguments: Sequence[Expr], name: str) -> Expr:
    counted(arguments, 1, 100)
    values = same_type(*arguments)
    return build(
        values[0].type, f"{name}({places(len(values))})", *values, name=name, operator=name.upper() * (name == "coalesce")
    )


@builder
def _compared(arguments: Sequence[Expr], name: str, operator: str) -> Expr:
    """Return ``greatest`` or ``least``; DuckDB's compare intervals by their months first, and jsonb as text."""
    found = _extreme(name)(arguments)
    if found.type not in (INTERVAL, JSONB) and found.type.element is None:
        return found
    one, other = (Expr.parameter(word, found.type) for word in ("one", "other"))
    is_better = build(BOOLEAN, "(one IS NULL OR {0})", compare(operator, other, one))
    picked = function(build(found.type, "CASE WHEN {0} THEN other ELSE one END", is_better), "one", "other")
    values = same_type(*arguments)
    return build(found.type, f"list_reduce([{places(len(values))}], {{{len(values)}}})", *values, picked, name=name)


@taking
def _nullif(one: Expr, other: Expr) -> Expr:
    one, other = same_type(one, other)
    if is_of_jsonb(one.type):
        return build(one.type, "(CASE WHEN {0} THEN NULL ELSE {1} END)", compare("=", one, other), one)
    return build(one.type, "nullif({0}, {1})", one, other)


FUNCTIONS: dict[str, Builder] = {
    **_OF_DOUBLES,
    "abs": _number("abs({0})"),
    "ceil": _whole("ceil", "ceil({0})"),
    "ceiling": _whole("ceil", "ceil({0})"),
    "floor": _whole("floor", "floor({0})"),
    "trunc": _whole("trunc", "trunc({0})"),
    "sign": _sign,
    "round": _whole("round", "round_even({0}, 0)"),
    **{name: or_float(name, _OF_DOUBLES[name]) for name in ("sqrt", "exp", "ln", "log10")},
    "log": _log,
    "pow": taking(power),
    "power": taking(power),
    "mod": taking(lambda one, other: arithmetic("%", one, other)),
    "div": taking(whole_quotient),
    "greatest": _compared("greatest", ">"),
    "least": _compared("least", "<"),
    "coalesce": _extreme("coalesce"),
    "ifnull": taking(lambda value, other: _extreme("coalesce")((value, other))),
    "nullif": _nullif,
    "pg_typeof": taking(lambda value: Expr(text_literal(str(value.type)), VARCHAR)),
    "date": taking(lambda value: cast(value, DATE)),
    **TEXT_FUNCTIONS,
    **PATTERN_FUNCTIONS,
    **TIME_FUNCTIONS,
    **FIELD_FUNCTIONS,
    **ARRAY_FUNCTIONS,
    **JSONB_FUNCTIONS,
}
