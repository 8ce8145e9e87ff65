"""Scalar functions: name, argument types, result type, and the DuckDB expression."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from windowpane.sql.array_functions import ARRAY_FUNCTIONS
from windowpane.sql.expr import Expr, MismatchError, as_text, build, convert, rising, settled
from windowpane.sql.numerics.functions import checked, or_float, to_integer, to_places, whole_quotient
from windowpane.sql.operators import arithmetic, power, same_type
from windowpane.sql.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    INTERVAL,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    UNKNOWN,
    VARCHAR,
    SqlType,
    is_exact,
    is_instant,
    is_integer,
    is_number,
    is_text,
    numeric,
)

Builder = Callable[[Sequence[Expr]], Expr]


def _fixed(result: SqlType, template: str, *kinds: SqlType, least: int | None = None) -> Builder:
    """Return a function of arguments of fixed types; those behind ``least`` may be left out."""
    needed = len(kinds) if least is None else least

    def bind(arguments: Sequence[Expr]) -> Expr:
        _count(arguments, needed, len(kinds))
        given = [_accept(argument, kind) for argument, kind in zip(arguments, kinds, strict=False)]
        listed = ", ".join(f"{{{index}}}" for index in range(len(given)))
        return build(result, template.replace("{*}", listed), *given)

    return bind


def _count(arguments: Sequence[Expr], least: int, most: int) -> None:
    if not least <= len(arguments) <= most:
        wanted = str(least) if least == most else f"{least} to {most}"
        raise MismatchError(f"it takes {wanted} arguments, not {len(arguments)}.")


def _accept(argument: Expr, kind: SqlType) -> Expr:
    if argument.type == kind or argument.type == UNKNOWN:
        return convert(argument, kind)
    widens = is_number(argument.type) and kind == DOUBLE
    widens = widens or (is_integer(argument.type) and kind in (BIGINT, INTEGER))
    widens = widens or (is_instant(argument.type) and is_instant(kind))
    if not widens:
        raise MismatchError(f"it takes {kind}, not {argument.type}. Cast the argument.")
    return convert(argument, kind)


def _number(result: str, exact: str = "") -> Builder:
    """Return a function of one number whose result has the argument's type; ``exact`` is for integers and numeric."""

    def bind(arguments: Sequence[Expr]) -> Expr:
        _count(arguments, 1, 1)
        value = convert(arguments[0], DOUBLE) if arguments[0].type == UNKNOWN else arguments[0]
        if not is_number(value.type):
            raise MismatchError(f"it takes a number, not {value.type}. Cast the argument.")
        template = exact if exact and is_exact(value.type) else result
        return build(value.type, f"CAST({template} AS {value.type.duckdb})", value)

    return bind


def _whole(name: str, of_floats: str) -> Builder:
    """Return ``round``, ``ceil``, ``floor`` or ``trunc``; the first and the last take a number of places, too.

    Integers become doubles, as in PostgreSQL.
    """

    def bind(arguments: Sequence[Expr]) -> Expr:
        _count(arguments, 1, 2 if name in ("round", "trunc") else 1)
        value = convert(arguments[0], DOUBLE) if arguments[0].type == UNKNOWN else checked(arguments[0])
        if len(arguments) == 2:
            return to_places(name)((value, arguments[1]))
        if value.type.name == "numeric":
            return to_integer(name)((value,))
        value = convert(value, DOUBLE) if is_integer(value.type) else value
        return build(value.type, f"CAST({of_floats} AS {value.type.duckdb})", value)

    return bind


def _sign(arguments: Sequence[Expr]) -> Expr:
    _count(arguments, 1, 1)
    value = checked(arguments[0])
    kind = numeric(0, 1) if value.type.name == "numeric" else DOUBLE
    return build(kind, f"CAST(sign({{0}}) AS {kind.duckdb})", value)


def _power(arguments: Sequence[Expr]) -> Expr:
    _count(arguments, 2, 2)
    return power(*arguments)


def _log(arguments: Sequence[Expr]) -> Expr:
    if len(arguments) == 2:
        return or_float("log", _fixed(DOUBLE, "(ln({1}) / ln({0}))", DOUBLE, DOUBLE))(arguments)
    return or_float("log10", _fixed(DOUBLE, "log10({0})", DOUBLE))(arguments)


def _mod(arguments: Sequence[Expr]) -> Expr:
    _count(arguments, 2, 2)
    return arithmetic("%", arguments[0], arguments[1])


def _div(arguments: Sequence[Expr]) -> Expr:
    _count(arguments, 2, 2)
    return whole_quotient(arguments)


def _extreme(name: str) -> Builder:
    def bind(arguments: Sequence[Expr]) -> Expr:
        _count(arguments, 1, 100)
        values = same_type(*arguments)
        return build(values[0].type, f"{name}({', '.join(f'{{{i}}}' for i in range(len(values)))})", *values, name=name)

    return bind


def _nullif(arguments: Sequence[Expr]) -> Expr:
    _count(arguments, 2, 2)
    one, other = same_type(*arguments)
    return build(one.type, "nullif({0}, {1})", one, other)


def _concat(arguments: Sequence[Expr]) -> Expr:
    texts = [as_text(settled(argument)) for argument in arguments]
    return build(VARCHAR, f"concat({', '.join(f'{{{i}}}' for i in range(len(texts)))})", *texts)


def _concat_ws(arguments: Sequence[Expr]) -> Expr:
    texts = [as_text(settled(argument)) for argument in arguments]
    return build(VARCHAR, f"concat_ws({', '.join(f'{{{i}}}' for i in range(len(texts)))})", *texts)


def _date_trunc(arguments: Sequence[Expr]) -> Expr:
    _count(arguments, 2, 2)
    value = convert(arguments[1], TIMESTAMP) if arguments[1].type in (UNKNOWN, DATE) else arguments[1]
    if value.type == INTERVAL:
        return build(INTERVAL, "date_trunc({0}, {1})", convert(arguments[0], VARCHAR), value)
    if not is_instant(value.type):
        raise MismatchError(f"date_trunc takes a timestamp, not {value.type}. Cast the argument.")
    field = convert(arguments[0], VARCHAR)
    truncated = build(value.type, f"CAST(date_trunc({{0}}, {{1}}) AS {value.type.duckdb})", field, value)
    return truncated if field.columns else rising(truncated, value)


def extract(field: str, value: Expr) -> Expr:
    """Return ``EXTRACT(field FROM value)``, a numeric."""
    if value.type == UNKNOWN:
        value = convert(value, TIMESTAMP)
    if not (is_instant(value.type) or value.type in (INTERVAL,) or value.type.name == "time"):
        raise MismatchError(f"extract takes a time, not {value.type}. Cast the argument.")
    part = field.lower()
    kind = numeric(6 if part in ("epoch", "second") else 3 if part.startswith("millisecond") else 0)
    if part == "epoch":
        if value.type == INTERVAL:
            return build(kind, f"CAST(epoch({{0}}) AS {kind.duckdb})", value)
        timed = convert(value, TIMESTAMP) if value.type == DATE else value
        return build(kind, "(CAST(epoch_us({0}) AS DECIMAL(38, 6)) * 0.000001::DECIMAL(7, 6))::DECIMAL(38, 6)", timed)
    if part == "second":
        return build(
            kind, "(CAST(date_part('microsecond', {0}) AS DECIMAL(20, 0)) * 0.000001::DECIMAL(7, 6))::DECIMAL(38, 6)", value
        )
    return build(kind, f"CAST(date_part('{part}', {{0}}) AS {kind.duckdb})", value)


def _date_part(arguments: Sequence[Expr]) -> Expr:
    _count(arguments, 2, 2)
    if arguments[0].literal is None:
        raise MismatchError("date_part takes the name of a field in quotes.")
    return convert(extract(arguments[0].literal, arguments[1]), DOUBLE)


def _to_timestamp(arguments: Sequence[Expr]) -> Expr:
    if len(arguments) == 2:
        return build(TIMESTAMPTZ, "strptime({0}, {1})::TIMESTAMP::TIMESTAMPTZ", arguments[0], _time_format(arguments[1]))
    return _fixed(TIMESTAMPTZ, "to_timestamp({0})", DOUBLE)(arguments)


_FORMATS = (
    ("YYYY", "%Y"),
    ("HH24", "%H"),
    ("HH12", "%I"),
    ("MM", "%m"),
    ("DD", "%d"),
    ("MI", "%M"),
    ("SS", "%S"),
    ("MS", "%g"),
    ("US", "%f"),
    ("HH", "%I"),
    ("AM", "%p"),
    ("PM", "%p"),
)


def _time_format(pattern: Expr) -> Expr:
    if pattern.literal is None:
        raise MismatchError("the format must be a text literal.")
    text = pattern.literal.upper()
    for word, code in _FORMATS:
        text = text.replace(word, code)
    return build(VARCHAR, "'" + text.replace("'", "''").replace("{", "{{").replace("}", "}}") + "'")


def _to_char(arguments: Sequence[Expr]) -> Expr:
    _count(arguments, 2, 2)
    if not is_instant(arguments[0].type):
        raise MismatchError(f"to_char takes a timestamp, not {arguments[0].type}. Cast the argument.")
    return build(VARCHAR, "strftime({0}, {1})", arguments[0], _time_format(arguments[1]))


def _to_date(arguments: Sequence[Expr]) -> Expr:
    _count(arguments, 2, 2)
    return build(DATE, "CAST(strptime({0}, {1}) AS DATE)", arguments[0], _time_format(arguments[1]))


def _substr(arguments: Sequence[Expr]) -> Expr:
    return _fixed(VARCHAR, "substring({*})", VARCHAR, INTEGER, INTEGER, least=2)(arguments)


def _trim(name: str) -> Builder:
    return _fixed(VARCHAR, f"{name}({{*}})", VARCHAR, VARCHAR, least=1)


def _pad(name: str) -> Builder:
    def bind(arguments: Sequence[Expr]) -> Expr:
        filled = [*arguments, Expr("' '", VARCHAR)] if len(arguments) == 2 else arguments
        return _fixed(VARCHAR, f"{name}({{0}}, {{1}}, {{2}})", VARCHAR, INTEGER, VARCHAR)(filled)

    return bind


def _length(arguments: Sequence[Expr]) -> Expr:
    _count(arguments, 1, 1)
    if not is_text(arguments[0].type):
        raise MismatchError(f"it takes text, not {arguments[0].type}. Cast the argument.")
    return build(INTEGER, "CAST(length({0}) AS INTEGER)", convert(arguments[0], VARCHAR))


FUNCTIONS: dict[str, Builder] = {
    "abs": _number("abs({0})"),
    "ceil": _whole("ceil", "ceil({0})"),
    "ceiling": _whole("ceil", "ceil({0})"),
    "floor": _whole("floor", "floor({0})"),
    "trunc": _whole("trunc", "trunc({0})"),
    "sign": _sign,
    "round": _whole("round", "round_even({0}, 0)"),
    "sqrt": or_float("sqrt", _fixed(DOUBLE, "sqrt({0})", DOUBLE)),
    "cbrt": _fixed(DOUBLE, "cbrt({0})", DOUBLE),
    "exp": or_float("exp", _fixed(DOUBLE, "exp({0})", DOUBLE)),
    "ln": or_float("ln", _fixed(DOUBLE, "ln({0})", DOUBLE)),
    "log": _log,
    "log10": or_float("log10", _fixed(DOUBLE, "log10({0})", DOUBLE)),
    "pow": _power,
    "power": _power,
    "sin": _fixed(DOUBLE, "sin({0})", DOUBLE),
    "cos": _fixed(DOUBLE, "cos({0})", DOUBLE),
    "tan": _fixed(DOUBLE, "tan({0})", DOUBLE),
    "pi": _fixed(DOUBLE, "pi()"),
    "mod": _mod,
    "div": _div,
    "greatest": _extreme("greatest"),
    "least": _extreme("least"),
    "coalesce": _extreme("coalesce"),
    "nullif": _nullif,
    "upper": _fixed(VARCHAR, "upper({0})", VARCHAR),
    "lower": _fixed(VARCHAR, "lower({0})", VARCHAR),
    "initcap": _fixed(
        VARCHAR, "list_aggregate([upper(w[1]) || lower(w[2:]) for w in string_split({0}, ' ')], 'string_agg', ' ')", VARCHAR
    ),
    "length": _length,
    "char_length": _length,
    "character_length": _length,
    "octet_length": _fixed(INTEGER, "CAST(strlen({0}) AS INTEGER)", VARCHAR),
    "substr": _substr,
    "substring": _substr,
    "left": _fixed(VARCHAR, "left({0}, {1})", VARCHAR, INTEGER),
    "right": _fixed(VARCHAR, "right({0}, {1})", VARCHAR, INTEGER),
    "strpos": _fixed(INTEGER, "CAST(strpos({0}, {1}) AS INTEGER)", VARCHAR, VARCHAR),
    "position": _fixed(INTEGER, "CAST(strpos({1}, {0}) AS INTEGER)", VARCHAR, VARCHAR),
    "trim": _trim("trim"),
    "btrim": _trim("trim"),
    "ltrim": _trim("ltrim"),
    "rtrim": _trim("rtrim"),
    "replace": _fixed(VARCHAR, "replace({0}, {1}, {2})", VARCHAR, VARCHAR, VARCHAR),
    "reverse": _fixed(VARCHAR, "reverse({0})", VARCHAR),
    "repeat": _fixed(VARCHAR, "repeat({0}, {1})", VARCHAR, INTEGER),
    "lpad": _pad("lpad"),
    "rpad": _pad("rpad"),
    "translate": _fixed(VARCHAR, "translate({0}, {1}, {2})", VARCHAR, VARCHAR, VARCHAR),
    "split_part": _fixed(VARCHAR, "split_part({0}, {1}, {2})", VARCHAR, VARCHAR, INTEGER),
    "starts_with": _fixed(BOOLEAN, "starts_with({0}, {1})", VARCHAR, VARCHAR),
    "regexp_replace": _fixed(VARCHAR, "regexp_replace({*})", VARCHAR, VARCHAR, VARCHAR, VARCHAR, least=3),
    "regexp_count": _fixed(INTEGER, "CAST(len(regexp_extract_all({0}, {1})) AS INTEGER)", VARCHAR, VARCHAR),
    "md5": _fixed(VARCHAR, "md5({0})", VARCHAR),
    "ascii": _fixed(INTEGER, "ascii({0})", VARCHAR),
    "chr": _fixed(VARCHAR, "chr({0})", INTEGER),
    "concat": _concat,
    "concat_ws": _concat_ws,
    "date_trunc": _date_trunc,
    "date_part": _date_part,
    "to_timestamp": _to_timestamp,
    "to_char": _to_char,
    "to_date": _to_date,
    "make_timestamp": _fixed(
        TIMESTAMP,
        "make_timestamp({0}, {1}, {2}, {3}, {4}, {5})",
        BIGINT,
        BIGINT,
        BIGINT,
        BIGINT,
        BIGINT,
        DOUBLE,
    ),
    "make_time": _fixed(TIME, "make_time({0}, {1}, {2})", BIGINT, BIGINT, DOUBLE),
    "make_date": _fixed(DATE, "make_date({0}, {1}, {2})", INTEGER, INTEGER, INTEGER),
    **ARRAY_FUNCTIONS,
}
