"""Functions of doubles. Outside of its domain a root, power or logarithm is an error, a trigonometric function NaN."""

from __future__ import annotations

from collections.abc import Sequence

from windowpane.sql.expressions.expr import Expr, build, counted
from windowpane.sql.expressions.operators import same_type
from windowpane.sql.expressions.types import BIGINT, DOUBLE, is_integer
from windowpane.sql.scalar.signatures import Builder, builder, fixed


def _double(template: str) -> Builder:
    return fixed(DOUBLE, template, DOUBLE)


def log(arguments: Sequence[Expr]) -> Expr:
    """Return ``log(x)``, to the base of ten, or ``log(base, x)``."""
    if len(arguments) == 2:
        return fixed(DOUBLE, "(ln(windowpane_positive({1})) / ln(windowpane_positive({0})))", DOUBLE, DOUBLE)(arguments)
    return fixed(DOUBLE, "log10(windowpane_positive({0}))", DOUBLE)(arguments)


@builder
def _whole(arguments: Sequence[Expr], name: str) -> Expr:
    """Return ``gcd`` or ``lcm`` of two integers."""
    counted(arguments, 2, 2)
    if not all(is_integer(argument.type) for argument in arguments):
        return fixed(BIGINT, f"CAST({name}({{0}}, {{1}}) AS BIGINT)", BIGINT, BIGINT)(arguments)
    one, other = same_type(*arguments)
    return build(one.type, f"CAST({name}({{0}}, {{1}}) AS {one.type.duckdb})", one, other)


NUMBER_FUNCTIONS: dict[str, Builder] = {
    "sqrt": _double("windowpane_sqrt({0})"),
    "cbrt": _double("cbrt({0})"),
    "exp": _double("windowpane_exp({0})"),
    "ln": _double("ln(windowpane_positive({0}))"),
    "log": log,
    "log10": _double("log10(windowpane_positive({0}))"),
    "pow": fixed(DOUBLE, "windowpane_pow({0}, {1})", DOUBLE, DOUBLE),
    "power": fixed(DOUBLE, "windowpane_pow({0}, {1})", DOUBLE, DOUBLE),
    "sin": _double("sin({0})"),
    "cos": _double("cos({0})"),
    "tan": _double("tan({0})"),
    "cot": _double("(1 / tan({0}))"),
    "asin": _double("asin(windowpane_within({0}, -1, 1))"),
    "acos": _double("acos(windowpane_within({0}, -1, 1))"),
    "atan": _double("atan({0})"),
    "atan2": fixed(DOUBLE, "atan2({0}, {1})", DOUBLE, DOUBLE),
    "sinh": _double("sinh({0})"),
    "cosh": _double("cosh({0})"),
    "tanh": _double("tanh({0})"),
    "asinh": _double("asinh({0})"),
    "acosh": _double("acosh(windowpane_within({0}, 1, 'Infinity'::DOUBLE))"),
    "atanh": _double("atanh(windowpane_within({0}, -1, 1))"),
    "coth": _double("(1 / tanh({0}))"),
    "degrees": _double("degrees({0})"),
    "radians": _double("radians({0})"),
    "gamma": _double("windowpane_gamma({0})"),
    "lgamma": _double("windowpane_lgamma({0})"),
    "pi": fixed(DOUBLE, "pi()"),
    "gcd": _whole("gcd"),
    "lcm": _whole("lcm"),
}
