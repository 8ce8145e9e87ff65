"""Bound expressions: a DuckDB expression over column ids, with its PostgreSQL type."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from windowpane.errors import MistakeError
from windowpane.sql.expressions.types import (
    BOOLEAN,
    BYTEA,
    DATE,
    DOUBLE,
    INTEGER,
    INTERVAL,
    JSONB,
    REAL,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    UNKNOWN,
    VARCHAR,
    SqlType,
    array_of,
    is_float,
    is_instant,
    is_integer,
    is_number,
)
from windowpane.sql.numerics.conversions import (
    declared_numeric,
    literal_sql,
    literal_type,
    numeric_of,
    open_numeric,
    text_of,
)
from windowpane.sql.values import array_text, bytea_values, text_values, zone
from windowpane.sql.values.instant_text import instant_literal, instant_sql
from windowpane.sql.values.intervals import interval_sql, read_span


class MismatchError(Exception):
    """Types that do not fit; becomes a ``SqlTypeError`` with the place of the expression."""


@dataclass(frozen=True)
class Expr:
    """A bound expression.

    Args:
        sql: DuckDB SQL over quoted column ids.
        type: its type; ``UNKNOWN`` for NULL and for text literals, whose type is what they are compared with.
        columns: the ids of the columns in it.
        literal: the text of a text literal, ``None`` for everything else.
        name: the name its column gets when the query gives none.
        rises_with: the id of a column that it never falls behind when the column rises, ``None`` if there is none.
        at_scale: of a quotient: the same, rounded once to another number of decimal places.
        operator: ``AND``, ``OR``, a comparison, ``IS NOT DISTINCT FROM``: what planning looks into; empty for everything else.
        parts: the operands of that operator.
    """

    sql: str
    type: SqlType
    columns: frozenset[str] = frozenset()
    literal: str | None = None
    name: str = "?column?"
    rises_with: str | None = None
    at_scale: Callable[[int], Expr] | None = field(default=None, compare=False, repr=False)
    operator: str = ""
    parts: tuple[Expr, ...] = ()

    @property
    def is_column(self) -> bool:
        """Whether it is a column and nothing else."""
        return len(self.columns) == 1 and self.sql == quoted(next(iter(self.columns)))

    @property
    def column(self) -> str:
        """The id of the column that it is."""
        return next(iter(self.columns))


def quoted(name: str) -> str:
    """Return a name as DuckDB reads it back."""
    return '"' + name.replace('"', '""') + '"'


def text_literal(text: str) -> str:
    """Return a text as a DuckDB literal."""
    return "'" + text.replace("'", "''") + "'"


def build(kind: SqlType, template: str, *operands: Expr, name: str = "?column?") -> Expr:
    """Return ``template`` with the operands in its ``{0}``, ``{1}``, ... as an expression of a type."""
    columns = frozenset[str]().union(*(operand.columns for operand in operands))
    return Expr(template.format(*(operand.sql for operand in operands)), kind, columns, name=name)


def convert(expr: Expr, kind: SqlType) -> Expr:
    """Return an expression as another type that it converts to without a cast, or because it is a literal.

    Raises:
        MismatchError: a literal that is no value of the type.
    """
    if expr.type == kind:
        return expr
    if expr.literal is not None:
        return _literal_as(expr, kind)
    if kind.name == "numeric":
        return Expr(numeric_of(expr.sql, expr.type, kind), kind, expr.columns, name=expr.name)
    if expr.type.element is not None and kind.element is not None:
        return _each_element(expr, kind, convert)
    if kind == TIMESTAMPTZ and expr.type in (TIMESTAMP, DATE):
        return of_local_time(convert(expr, TIMESTAMP))
    if expr.type == TIMESTAMPTZ and kind in (TIMESTAMP, DATE):
        return convert(local_time(expr), kind)
    converted = Expr(f"CAST({expr.sql} AS {kind.duckdb})", kind, expr.columns, name=expr.name)
    return rising(converted, expr) if is_instant(kind) and is_instant(expr.type) else converted


def local_time(expr: Expr) -> Expr:
    """Return a ``timestamptz`` as the time that clocks of the session's time zone show.

    Clocks go back once a year, so only in UTC does it rise with what it is made of.
    """
    if zone.current() == zone.UTC:
        return rising(build(TIMESTAMP, "CAST({0} AS TIMESTAMP)", expr, name=expr.name), expr)
    return build(TIMESTAMP, f"timezone({text_literal(zone.current())}, {{0}})", expr, name=expr.name)


def of_local_time(expr: Expr) -> Expr:
    """Return the ``timestamptz`` at which clocks of the session's time zone show a time."""
    if zone.current() == zone.UTC:
        return rising(build(TIMESTAMPTZ, "CAST({0} AS TIMESTAMPTZ)", expr, name=expr.name), expr)
    return build(TIMESTAMPTZ, f"timezone({text_literal(zone.current())}, {{0}})", expr, name=expr.name)


def _each_element(expr: Expr, kind: SqlType, change: Callable[[Expr, SqlType], Expr]) -> Expr:
    """Return an array with each element changed to the element type of ``kind``."""
    if expr.type.element is None:
        raise MistakeError("it is an array")
    if kind.element is None:
        raise MistakeError("the type is that of an array")
    name = f"element_{_depth(kind)}"
    changed = change(Expr(name, expr.type.element), kind.element)
    if changed.sql == name:
        return replace(expr, type=array_of(changed.type))
    escaped = changed.sql.replace("{", "{{").replace("}", "}}")
    return build(array_of(changed.type), f"list_transform({{0}}, lambda {name}: {escaped})", expr, name=expr.name)


def _depth(kind: SqlType) -> int:
    return 0 if kind.element is None else 1 + _depth(kind.element)


def rising(expr: Expr, source: Expr) -> Expr:
    """Return an expression that rises with what ``source`` rises with."""
    return replace(expr, rises_with=source.rises_with)


def _literal_as(expr: Expr, kind: SqlType) -> Expr:
    text = expr.literal or ""
    if kind == INTERVAL:
        try:
            return Expr(interval_sql(read_span(text)), kind, name=expr.name)
        except ValueError as error:
            raise MismatchError(f"{error}.") from None
    if kind in (VARCHAR, UNKNOWN):
        return Expr(expr.sql, kind, literal=text, name=expr.name)
    if kind == BYTEA:
        return Expr(_bytes_literal(text), kind, name=expr.name)
    if kind.name == "numeric":
        return Expr(_numeric_literal(text, kind), kind, name=expr.name)
    if kind.element is not None:
        return _array_literal(expr, text, kind)
    if is_instant(kind):
        return Expr(_instant_literal(text.strip(), kind), kind, name=expr.name)
    try:
        return Expr(text_values.literal_sql(text, kind), kind, name=expr.name)
    except ValueError as error:
        raise MismatchError(f"{error}.") from None


def _bytes_literal(text: str) -> str:
    try:
        return f"unhex('{bytea_values.read(text).hex()}')"
    except bytea_values.ByteaError as error:
        raise MismatchError(f"{error}.") from None


def _instant_literal(text: str, kind: SqlType) -> str:
    """Return a text literal as an instant; one without a zone is in that of the session."""
    if kind == DATE and re.fullmatch(r"\d{8}", text, re.ASCII):
        text = f"{text[:4]}-{text[4:6]}-{text[6:]}"
    if kind != TIMESTAMPTZ or zone.current() == zone.UTC or text_values.has_zone(text):
        return instant_literal(text, text_literal(text), kind)
    return f"timezone({text_literal(zone.current())}, {instant_literal(text, text_literal(text), TIMESTAMP)})"


def _array_literal(expr: Expr, text: str, kind: SqlType) -> Expr:
    try:
        items = array_text.read_array(text, _depth(kind))
    except ValueError as error:
        raise MismatchError(f"{error}.") from None
    return replace(_listed(items, kind), name=expr.name)


def _listed(items: array_text.Items, kind: SqlType) -> Expr:
    """Return the elements of an array literal as the array they are."""
    if kind.element is None:
        raise MistakeError("the type is that of an array")
    listed = []
    for item in items:
        if item is None:
            listed.append("NULL")
        elif isinstance(item, list):
            listed.append(_listed(item, kind.element).sql)
        else:
            listed.append(convert(Expr(text_literal(item), UNKNOWN, literal=item), kind.element).sql)
    return Expr(f"CAST([{', '.join(listed)}] AS {kind.duckdb})", kind)


def _numeric_literal(text: str, kind: SqlType) -> str:
    try:
        return literal_sql(text, kind)
    except ValueError as error:
        raise MismatchError(str(error)) from None


def _bytes_of(sql: str) -> str:
    """Return a text as bytes: those its hexadecimal digits or its escapes mean, or its own."""
    return f"(CASE WHEN contains({sql}, '\\') THEN windowpane_bytea_read({sql}) ELSE encode({sql}) END)"


def if_kept(condition: Expr, value: Expr) -> Expr:
    """Return a value where a condition holds, else NULL: it is not computed there."""
    return build(value.type, "CASE WHEN {0} THEN {1} END", condition, value, name=value.name)


def settled(expr: Expr) -> Expr:
    """Return an expression with a definite type: a literal that nothing decided about is text."""
    if expr.type != UNKNOWN:
        return expr
    return Expr(f"CAST({expr.sql} AS VARCHAR)", VARCHAR, expr.columns, expr.literal, expr.name)


def as_text(expr: Expr) -> Expr:
    """Return an expression as text, as PostgreSQL's casts write values."""
    kind = expr.type
    if kind in (VARCHAR, UNKNOWN):
        return convert(expr, VARCHAR)
    if kind.name == "numeric" and kind.scale:
        return build(VARCHAR, text_of("{0}", kind), expr, name=expr.name)
    if kind == BYTEA:
        return build(VARCHAR, "('\\x' || lower(hex({0})))", expr, name=expr.name)
    if kind == REAL:
        return build(VARCHAR, "windowpane_real_text(CAST({0} AS DOUBLE))", expr, name=expr.name)
    if kind == DOUBLE:
        return build(VARCHAR, "windowpane_double_text(CAST({0} AS VARCHAR))", expr, name=expr.name)
    if kind == JSONB:
        return build(VARCHAR, "windowpane_jsonb_text(CAST({0} AS VARCHAR))", expr, name=expr.name)
    if kind == TIMESTAMPTZ and zone.current() != zone.UTC:
        return build(VARCHAR, text_values.instant_text("{0}", "{1}"), local_time(expr), expr, name=expr.name)
    if is_instant(kind):
        return build(VARCHAR, _INSTANT_TEXT[kind.name], expr, name=expr.name)
    if kind == INTERVAL:
        return build(VARCHAR, "windowpane_interval_text({0})", expr, name=expr.name)
    if kind.element is not None:
        return _array_text(expr, kind.element)
    return build(VARCHAR, "CAST({0} AS VARCHAR)", expr, name=expr.name)


def output_text(expr: Expr) -> Expr:
    """Return an expression as text, as PostgreSQL prints values: a boolean is a letter."""
    if expr.type == BOOLEAN:
        return build(VARCHAR, "CASE {0} WHEN TRUE THEN 't' WHEN FALSE THEN 'f' END", expr, name=expr.name)
    return as_text(expr)


def _array_text(expr: Expr, element: SqlType) -> Expr:
    name = f"element_{_depth(expr.type)}"
    text = output_text(Expr(name, element)).sql
    item = f"coalesce({text}, 'NULL')" if element.element is not None else f"windowpane_quoted_item({text})"
    escaped = item.replace("{", "{{").replace("}", "}}")
    return build(
        VARCHAR,
        f"('{{{{' || array_to_string(list_transform({{0}}, lambda {name}: {escaped}), ',') || '}}}}')",
        expr,
        name=expr.name,
    )


# DuckDB writes "0044-03-15 (BC) 10:00:00+00". As in RisingWave an offset has minutes.
_ERA_LAST = "regexp_replace(CAST({0} AS VARCHAR), '^(.*) \\(BC\\)(.*)$', '\\1\\2 BC')"
_INSTANT_TEXT = {
    "date": _ERA_LAST,
    "timestamp": _ERA_LAST,
    "timestamptz": f"regexp_replace({_ERA_LAST}, '([+-]\\d\\d)( BC)?$', '\\1:00\\2')",
}


def cast(expr: Expr, kind: SqlType) -> Expr:
    """Return ``CAST(expr AS kind)``.

    Raises:
        MismatchError: there is no such cast.
    """
    if expr.type == UNKNOWN and expr.literal is not None:
        return _literal_as(expr, literal_type(expr.literal) or kind if kind.open else kind)
    if kind == VARCHAR:
        return as_text(expr)
    if not _castable(expr.type, kind):
        raise MismatchError(f"cannot cast type {expr.type} to {kind}.")
    if kind.name == "numeric" and (is_number(expr.type) or expr.type == VARCHAR):
        return _as_numeric(expr, kind)
    if expr.type == VARCHAR:
        return _cast_of_text(expr, kind)
    if expr.type == JSONB and kind != JSONB:
        return _cast_of_jsonb(expr, kind)
    if expr.type.element is not None and kind.element is not None:
        return _each_element(expr, kind, cast)
    if expr.type == kind or (is_instant(expr.type) and is_instant(kind)):
        return convert(expr, kind)
    if expr.type == TIME and kind == INTERVAL:
        return build(kind, "to_microseconds(epoch_us({0}))", expr, name=expr.name)
    if expr.type == INTERVAL and kind == TIME:
        moved = "(TIMESTAMP '2000-01-01' + to_microseconds(windowpane_interval_micros({0})))"
        return build(kind, f"CAST({moved} AS TIME)", expr, name=expr.name)
    if expr.type == TIMESTAMPTZ and kind == TIME:
        expr = local_time(expr)
    return build(kind, f"CAST({{0}} AS {kind.duckdb})", expr, name=expr.name)


def _as_numeric(expr: Expr, kind: SqlType) -> Expr:
    """Return a number or a text as numeric: rounded to a declared scale, else as it is."""
    if kind.open:
        sql, kind = open_numeric(expr.sql, expr.type)
        return replace(expr, sql=sql, type=kind)
    if expr.at_scale is not None:
        expr = expr.at_scale(kind.scale)
    return Expr(declared_numeric(expr.sql, expr.type, kind), kind, expr.columns, name=expr.name)


def _cast_of_text(expr: Expr, kind: SqlType) -> Expr:
    if kind == BYTEA:
        return Expr(_bytes_of(expr.sql), kind, expr.columns, name=expr.name)
    if kind == JSONB:
        return build(kind, "CAST(windowpane_jsonb({0}) AS JSON)", expr, name=expr.name)
    if kind == INTERVAL:
        return build(kind, "windowpane_interval_of(windowpane_interval_parts({0}))", expr, name=expr.name)
    if kind == BOOLEAN:
        return build(kind, "windowpane_boolean({0})", expr, name=expr.name)
    if kind == TIME:
        return build(kind, f"CAST(windowpane_clock({{0}}, '{kind}') AS TIME)", expr, name=expr.name)
    if kind == TIMESTAMPTZ and zone.current() != zone.UTC:
        return build(kind, text_values.instant_of_text("windowpane_instant({0})"), expr, name=expr.name)
    if is_instant(kind):
        return Expr(instant_sql(expr.sql, kind), kind, expr.columns, name=expr.name)
    if is_integer(kind):
        return build(kind, f"CAST(windowpane_whole({{0}}, '{kind}') AS {kind.duckdb})", expr, name=expr.name)
    if is_float(kind):
        number = f"CAST(windowpane_float({{0}}, '{kind}') AS {kind.duckdb})"
        return build(kind, f"CAST(windowpane_finite({{0}}, {number}, '{kind}') AS {kind.duckdb})", expr, name=expr.name)
    if kind.element is not None:
        texts = _with_text(kind)
        listed = build(texts, f"from_json(windowpane_array_json({{0}}, {_depth(kind)}), '{_json_form(kind)}')", expr)
        return replace(_each_element(listed, kind, cast), name=expr.name)
    return build(kind, f"CAST({{0}} AS {kind.duckdb})", expr, name=expr.name)


def _cast_of_jsonb(expr: Expr, kind: SqlType) -> Expr:
    """Return jsonb that is a number or a boolean as one; its ``null`` is NULL.

    As in RisingWave a fraction becomes an integer as a double does, halves to the even number.
    """
    wanted = "boolean" if kind == BOOLEAN else "number"
    text = build(VARCHAR, f"windowpane_jsonb_scalar({{0}}, '{wanted}')", expr, name=expr.name)
    if not is_integer(kind):
        return cast(text, kind)
    rounded = f"CASE WHEN regexp_full_match({{0}}, '-?[0-9]+') THEN CAST(CAST({{0}} AS HUGEINT) AS {kind.duckdb}) ELSE {{1}} END"
    return build(kind, rounded, text, cast(cast(text, DOUBLE), kind), name=expr.name)


def _with_text(kind: SqlType) -> SqlType:
    """Return the arrays of text with as many dimensions as a type."""
    return VARCHAR if kind.element is None else array_of(_with_text(kind.element))


def _json_form(kind: SqlType) -> str:
    return '"VARCHAR"' if kind.element is None else f"[{_json_form(kind.element)}]"


def _castable(one: SqlType, other: SqlType) -> bool:
    if one.name == other.name or one in (UNKNOWN, VARCHAR):
        return True
    if is_number(one) and is_number(other):
        return True
    if one == JSONB and (is_number(other) or other == BOOLEAN):
        return True
    if one == BOOLEAN or other == BOOLEAN:
        return INTEGER in (one, other)
    if is_instant(one):
        return is_instant(other) or (other.name == "time" and one.name != "date")
    return (one.name, other.name) in {("time", "interval"), ("interval", "time"), ("jsonb", "varchar"), ("array", "array")}


def counted(arguments: Sequence[Expr], least: int, most: int) -> None:
    """Check the number of arguments.

    Raises:
        MismatchError: there are more or fewer.
    """
    if not least <= len(arguments) <= most:
        wanted = str(least) if least == most else f"{least} to {most}"
        raise MismatchError(f"it takes {wanted} arguments, not {len(arguments)}.")
