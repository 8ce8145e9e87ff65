"""Scalar functions: name, argument types, result type, and the DuckDB expression."""

from __future__ import annotations

from collections.abc import Sequence

from windowpane.sql.expressions.array_functions import ARRAY_FUNCTIONS
from windowpane.sql.expressions.expr import Expr, MismatchError, build, cast, convert, counted, function
from windowpane.sql.expressions.jsonb import to_jsonb
from windowpane.sql.expressions.operators import arithmetic, compare, is_of_jsonb, power, same_type
from windowpane.sql.expressions.types import (
    BOOLEAN,
    DATE,
    DOUBLE,
    INTERVAL,
    JSONB,
    UNKNOWN,
    VARCHAR,
    is_exact,
    is_number,
    numeric,
)
from windowpane.sql.numerics.functions import checked, or_float, to_integer, to_places, whole_quotient
from windowpane.sql.scalar.fields import FIELD_FUNCTIONS
from windowpane.sql.scalar.numbers import NUMBER_FUNCTIONS
from windowpane.sql.scalar.patterns import PATTERN_FUNCTIONS
from windowpane.sql.scalar.signatures import Builder, builder
from windowpane.sql.scalar.text import TEXT_FUNCTIONS
from windowpane.sql.scalar.times import TIME_FUNCTIONS
from windowpane.sql.values.text_values import text_literal


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


def _sign(arguments: Sequence[Expr]) -> Expr:
    counted(arguments, 1, 1)
    value = checked(arguments[0])
    kind = numeric(0, 1) if value.type.name == "numeric" else DOUBLE
    return build(kind, f"CAST(sign({{0}}) AS {kind.duckdb})", value)


def _power(arguments: Sequence[Expr]) -> Expr:
    counted(arguments, 2, 2)
    return power(*arguments)


def _log(arguments: Sequence[Expr]) -> Expr:
    return or_float("log" if len(arguments) == 2 else "log10", NUMBER_FUNCTIONS["log"])(arguments)


def _mod(arguments: Sequence[Expr]) -> Expr:
    counted(arguments, 2, 2)
    return arithmetic("%", arguments[0], arguments[1])


def _div(arguments: Sequence[Expr]) -> Expr:
    counted(arguments, 2, 2)
    return whole_quotient(arguments)


@builder
def _extreme(arguments: Sequence[Expr], name: str) -> Expr:
    counted(arguments, 1, 100)
    values = same_type(*arguments)
    listed = ", ".join(f"{{{place}}}" for place in range(len(values)))
    return build(values[0].type, f"{name}({listed})", *values, name=name, operator=name.upper() * (name == "coalesce"))


def _if_null(arguments: Sequence[Expr]) -> Expr:
    counted(arguments, 2, 2)
    return _extreme("coalesce")(arguments)


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
    listed = ", ".join(f"{{{place}}}" for place in range(len(values)))
    return build(found.type, f"list_reduce([{listed}], {{{len(values)}}})", *values, picked, name=name)


def _nullif(arguments: Sequence[Expr]) -> Expr:
    counted(arguments, 2, 2)
    one, other = same_type(*arguments)
    if is_of_jsonb(one.type):
        return build(one.type, "(CASE WHEN {0} THEN NULL ELSE {1} END)", compare("=", one, other), one)
    return build(one.type, "nullif({0}, {1})", one, other)


def _type_name(arguments: Sequence[Expr]) -> Expr:
    counted(arguments, 1, 1)
    return Expr(text_literal(str(arguments[0].type)), VARCHAR)


def _to_jsonb(arguments: Sequence[Expr]) -> Expr:
    counted(arguments, 1, 1)
    return to_jsonb(arguments[0])


def _as_date(arguments: Sequence[Expr]) -> Expr:
    counted(arguments, 1, 1)
    return cast(arguments[0], DATE)


FUNCTIONS: dict[str, Builder] = {
    **NUMBER_FUNCTIONS,
    "abs": _number("abs({0})"),
    "ceil": _whole("ceil", "ceil({0})"),
    "ceiling": _whole("ceil", "ceil({0})"),
    "floor": _whole("floor", "floor({0})"),
    "trunc": _whole("trunc", "trunc({0})"),
    "sign": _sign,
    "round": _whole("round", "round_even({0}, 0)"),
    **{name: or_float(name, NUMBER_FUNCTIONS[name]) for name in ("sqrt", "exp", "ln", "log10")},
    "log": _log,
    "pow": _power,
    "power": _power,
    "mod": _mod,
    "div": _div,
    "greatest": _compared("greatest", ">"),
    "least": _compared("least", "<"),
    "coalesce": _extreme("coalesce"),
    "ifnull": _if_null,
    "nullif": _nullif,
    "pg_typeof": _type_name,
    "date": _as_date,
    "to_jsonb": _to_jsonb,
    **TEXT_FUNCTIONS,
    **PATTERN_FUNCTIONS,
    **TIME_FUNCTIONS,
    **FIELD_FUNCTIONS,
    **ARRAY_FUNCTIONS,
}
