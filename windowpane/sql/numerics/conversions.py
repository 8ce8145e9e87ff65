"""Conversions to ``numeric`` and from it, as SQL: implicit ones lose nothing, casts to a declared scale round as PostgreSQL."""

from __future__ import annotations

import re
from decimal import Decimal

from windowpane.sql.expressions.types import (
    BOOLEAN,
    BYTEA,
    DATE,
    DIGITS,
    EXACT_PLACES,
    INTERVAL,
    JSONB,
    TIME,
    VARCHAR,
    SqlType,
    as_numeric,
    dimensions,
    innermost,
    is_exact,
    is_float,
    is_instant,
    is_integer,
    is_text,
    numeric,
)
from windowpane.sql.numerics.kernels import called, parse
from windowpane.sql.numerics.placing import exact, rounded

_OF_TEXT = {
    BYTEA: "(CASE WHEN contains({0}, '\\') THEN windowpane_bytea_read({0}) ELSE encode({0}) END)",
    INTERVAL: "windowpane_interval_of(windowpane_interval_parts({0}))",
    BOOLEAN: "windowpane_boolean({0})",
    JSONB: "CAST(windowpane_jsonb({0}) AS JSON)",
    TIME: "CAST(windowpane_clock({0}, 'time') AS TIME)",
}
"""What a text means as a value of a type; as bytes those its hexadecimal digits or its escapes mean, or its own."""

_TEXTS = ("VARCHAR", "STRING", "LARGE_STRING", "STRING_VIEW")
_DECIMAL = re.compile(r"DECIMAL\(\d+, ?(\d+)\)")


def numeric_of(sql: str, one: SqlType, other: SqlType) -> str:
    """Return a value as a numeric by an implicit conversion: one that does not fit is an error."""
    if one.name == "numeric" and one.scale > other.scale:
        sql = called("exactly", sql, str(other.scale))
    elif is_float(one) or one.name == "varchar":
        return numeric_of(called("parsed", sql), numeric(EXACT_PLACES), other)
    return f"CAST({sql} AS {other.duckdb})"


def declared_numeric(sql: str, one: SqlType, kind: SqlType) -> str:
    """Return a number or a text cast to ``numeric(p, s)``: rounded, and an error if it has too many digits."""
    if is_float(one) or is_text(one):
        sql, one = f"CAST({called('parsed_at', sql, str(kind.scale))} AS {kind.duckdb})", numeric(kind.scale)
    if kind.whole + kind.scale == DIGITS or (is_exact(one) and _fits(as_numeric(one), kind)):
        return f"CAST({sql} AS {kind.duckdb})"
    return f"CAST(CAST({sql} AS DECIMAL({kind.whole + kind.scale}, {kind.scale})) AS {kind.duckdb})"


def _fits(one: SqlType, kind: SqlType) -> bool:
    return one.scale <= kind.scale and one.whole <= kind.whole


def of_text(kind: SqlType) -> str | None:
    """Return what a text, ``{0}``, means as a value of a type; ``None`` for types that others read."""
    if is_float(kind):
        number = f"CAST(windowpane_float({{0}}, '{kind}') AS {kind.duckdb})"
        return f"CAST(windowpane_finite({{0}}, {number}, '{kind}') AS {kind.duckdb})"
    return _OF_TEXT.get(kind)


def texts_of_array(sql: str, kind: SqlType) -> str:
    """Return a text of an array, as PostgreSQL writes it, as an array of texts."""
    depth = dimensions(kind)
    return f"from_json(windowpane_array_json({sql}, {depth}), '{'[' * depth}\"VARCHAR\"{']' * depth}')"


def taken(sql: str, held: str, kind: SqlType) -> str:
    """Return a column of a source as a value of a type: none is rounded to a whole number, and no word behind a time ignored.

    A text means what it does where SQL casts it: DuckDB reads bytes, booleans and intervals in ways of its own.

    Args:
        sql: the column.
        held: its type, as DuckDB or Arrow names it.
        kind: the type.
    """
    if kind.element is not None:
        elements = _taken_elements(sql, held, kind, kind.element)
        if held not in _TEXTS:
            return elements
        texts = taken(texts_of_array(sql, kind), f"VARCHAR{'[]' * dimensions(kind)}", kind)
        return f"CASE WHEN starts_with(ltrim({sql}), '{{') THEN {texts} ELSE {elements} END"
    if held == "JSON" and kind != JSONB:
        sql, held = f"({sql} ->> '$')", "VARCHAR"
    if kind.name == "numeric":
        return _taken_numeric(sql, held, kind)
    value = f"CAST({sql} AS {kind.duckdb})"
    if held in _TEXTS and is_instant(kind):
        middle = "TIMESTAMP" if kind == DATE else kind.duckdb
        return f"CAST(CAST(windowpane_instant({sql}) AS {middle}) AS {kind.duckdb})"
    read = of_text(kind) if held in _TEXTS else None
    if read is not None:
        return read.format(sql)
    if "INT" in held or not is_integer(kind):
        return value
    return f"CAST(windowpane_taken_whole({sql}, {value}, '{kind}') AS {kind.duckdb})"


def _taken_elements(sql: str, held: str, kind: SqlType, element: SqlType) -> str:
    """Return a list, or a text of one, as an array, each of whose elements is taken."""
    if held == kind.duckdb:
        return sql
    listed = f"windowpane_listed(CAST({sql} AS VARCHAR), '{kind}')"
    if held.endswith("[]"):
        items, each = sql, held[:-2]
    elif held == "JSON" and innermost(kind) in (VARCHAR, JSONB, BYTEA):
        items, each = f"CAST(CAST({listed} AS JSON) AS JSON[])", "JSON"
    else:  # as JSON, numbers would lose digits
        items, each = f"CAST({listed} AS VARCHAR[])", "VARCHAR"
    name = "e" + "e" * kind.duckdb.count("[]")
    return f"CAST(list_transform({items}, lambda {name}: {taken(name, each, element)}) AS {kind.duckdb})"


def _taken_numeric(sql: str, held: str, kind: SqlType) -> str:
    """Return a column of a source as a numeric: an open one loses no digit."""
    found = _DECIMAL.fullmatch(held)
    if "INT" not in held and (found is None or int(found.group(1)) > kind.scale):
        sql = called("taken", sql, str(kind.scale), str(kind.open).upper())
    return f"CAST(CAST({sql} AS DECIMAL({kind.whole + kind.scale}, {kind.scale})) AS {kind.duckdb})"


def text_of(sql: str, kind: SqlType) -> str:
    """Return a numeric as text, as PostgreSQL prints it."""
    if kind.scale > EXACT_PLACES:
        return called("text", sql)
    return f"rtrim(rtrim(CAST({sql} AS VARCHAR), '0'), '.')"


def literal_type(text: str) -> SqlType | None:
    """Return the numeric that holds a literal exactly, ``None`` if none does."""
    try:
        value = Decimal(text.strip())
    except ArithmeticError:
        return None
    return type_of(value) if value.is_finite() else None


def type_of(value: Decimal) -> SqlType | None:
    """Return the numeric that holds a value, ``None`` if it has too many digits."""
    if value and not -DIGITS <= value.adjusted() < DIGITS:
        return None
    whole, _, fraction = f"{value:f}".lstrip("-").partition(".")
    kept = fraction.rstrip("0")
    whole = whole.lstrip("0")
    return numeric(len(kept), len(whole)) if len(whole) + len(kept) <= DIGITS else None


def literal_sql(text: str, kind: SqlType) -> str:
    """Return a text literal as a numeric: rounded to a declared scale, else exact."""
    place = exact(kind.scale) if kind.open else rounded(kind.scale)
    unscaled = parse(text, place)
    if abs(unscaled) >= 10 ** (kind.whole + kind.scale):
        raise ValueError(
            f"{text.strip()} has more than {kind.whole} digits before the point, and does not fit {described(kind)}."
        )
    return f"CAST({Decimal(unscaled).scaleb(-kind.scale):f} AS {kind.duckdb})"


def described(kind: SqlType) -> str:
    return "numeric" if kind.open else f"numeric({kind.whole + kind.scale}, {kind.scale})"
