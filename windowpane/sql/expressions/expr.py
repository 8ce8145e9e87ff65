"""Bound expressions: a tree with PostgreSQL's types, which DuckDB computes; conversions and casts."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from decimal import Decimal
from functools import cached_property
from typing import Any

from windowpane.errors import present
from windowpane.sql.embedded.macros import NOW
from windowpane.sql.expressions.types import (
    BOOLEAN,
    BYTEA,
    DATE,
    DOUBLE,
    EXACT_PLACES,
    INTEGER,
    INTERVAL,
    JSONB,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    UNKNOWN,
    VARCHAR,
    SqlType,
    array_of,
    as_numeric,
    dimensions,
    is_exact,
    is_instant,
    is_integer,
    is_number,
    numeric,
)
from windowpane.sql.numerics.conversions import (
    declared_numeric,
    literal_sql,
    literal_type,
    numeric_of,
    of_text,
    text_of,
    texts_of_array,
)
from windowpane.sql.numerics.kernels import called
from windowpane.sql.values import array_text, bytea_values, text_values, zone
from windowpane.sql.values.instant_text import instant_literal, instant_sql
from windowpane.sql.values.intervals import interval_sql, read_span
from windowpane.sql.values.text_values import text_literal
from windowpane.windowing.intervals import Interval


class MismatchError(Exception):
    """Types that do not fit; becomes a ``SqlTypeError`` with the place of the expression."""


@dataclass(frozen=True)
class Expr:
    """A node of a bound expression: its operands, how DuckDB computes it of them, and its PostgreSQL type.

    Args:
        template: DuckDB SQL in which ``{0}``, ``{1}``, ... are the operands; without operands it is SQL as it is.
        type: its type; ``UNKNOWN`` for NULL and for text literals, whose type is what they are compared with.
        operator: what rules on trees look for, empty for everything else: ``AND``, ``OR``, ``NOT``, a comparison, ``IS NULL``,
            ``IN``, ``+`` and ``-`` of a time and an interval, ``CAST``, ``CASE`` (conditions, then results, then perhaps the one
            of ELSE), ``COALESCE``, ``LAMBDA``.
        column: the id of the column that it is, empty if it is none.
        value: the number or interval that is written out, be it cast; ``None`` for everything else.
        literal: the text of a text literal, ``None`` for everything else.
        binds: the names of the parameters that it has for its operands; of a parameter, its own.
        name: the name its column gets when the query gives none.
        rises_with: the id of a column that it never falls behind when the column rises, ``None`` if there is none.
        at_scale: of a quotient: the same, rounded once to another number of decimal places.
        written: the words of the query that it is.
    """

    template: str
    type: SqlType
    parts: tuple[Expr, ...] = ()
    operator: str = ""
    column: str = ""
    value: Decimal | Interval | None = None
    literal: str | None = None
    binds: tuple[str, ...] = ()
    name: str = field(default="?column?", compare=False)
    rises_with: str | None = field(default=None, compare=False)
    at_scale: Callable[[int], Expr] | None = field(default=None, compare=False, repr=False)
    written: str = field(default="", compare=False, repr=False)

    @classmethod
    def of_column(cls, column_id: str, kind: SqlType, name: str = "?column?") -> Expr:
        return cls("", kind, column=column_id, name=name, rises_with=column_id)

    @classmethod
    def parameter(cls, name: str, kind: SqlType) -> Expr:
        return cls(name, kind, binds=(name,))

    @classmethod
    def of_text(cls, text: str) -> Expr:
        return cls(text_literal(text), UNKNOWN, literal=text)

    @classmethod
    def null(cls, kind: SqlType = UNKNOWN) -> Expr:
        return cls("NULL" if kind == UNKNOWN else f"CAST(NULL AS {kind.duckdb})", kind)

    @classmethod
    def of_interval(cls, interval: Interval) -> Expr:
        return cls(interval_sql(interval), INTERVAL, value=interval)

    @cached_property
    def sql(self) -> str:
        """It as DuckDB's SQL over quoted column ids."""
        if self.column:
            return quoted(self.column)
        return self.template.format(*(part.sql for part in self.parts)) if self.parts else self.template

    @cached_property
    def columns(self) -> frozenset[str]:
        return frozenset([self.column]) if self.column else frozenset[str]().union(*(part.columns for part in self.parts))

    @cached_property
    def free(self) -> frozenset[str]:
        """The parameters in it that something around it has."""
        inside = frozenset[str]().union(*(part.free for part in self.parts))
        return inside - frozenset(self.binds) if self.parts else frozenset(self.binds)

    @property
    def is_column(self) -> bool:
        return bool(self.column)

    @property
    def number(self) -> Decimal | None:
        """The number that it is and nothing else, ``None`` if it is none that is written out."""
        return self.value if isinstance(self.value, Decimal) and not self.parts else None

    @property
    def reads_clock(self) -> bool:
        return self.template == NOW or any(part.reads_clock for part in self.parts)

    def over(self, items: Mapping[str, Expr]) -> Expr:
        """Return it with other expressions in the place of columns, by their ids."""
        if self.column:
            return items.get(self.column, self)
        if not self.columns & items.keys():
            return self
        risen = items.get(self.rises_with or "")
        rises_with = self.rises_with if risen is None else risen.column or None
        return replace(self, parts=tuple(part.over(items) for part in self.parts), rises_with=rises_with, at_scale=None)

    def shown(self, names: Mapping[str, str]) -> str:
        """Return it as users wrote it, or with the names of columns, given by their ids."""
        if self.column:
            return names.get(self.column, self.column)
        if self.written or not self.parts:
            return self.written or (f"INTERVAL '{self.value}'" if isinstance(self.value, Interval) else self.template)
        return self.template.format(*(part.shown(names) for part in self.parts))

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.template, self.column, self.literal, self.parts))

    def __getstate__(self) -> dict[str, Any]:
        """Return its fields, without what is only cached."""
        return {each.name: getattr(self, each.name) for each in fields(self) if each.name != "at_scale"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, at_scale=None)


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def build(
    kind: SqlType,
    template: str,
    *operands: Expr,
    name: str = "?column?",
    operator: str = "",
    value: Decimal | Interval | None = None,
) -> Expr:
    """Return an expression of a type: ``template`` with the operands in its ``{0}``, ``{1}``, ..."""
    return Expr(template if operands else template.format(), kind, operands, operator, "", value, name=name)


def places(count: int) -> str:
    """Return all of so many operands in a template, as the arguments of a call."""
    return ", ".join(f"{{{place}}}" for place in range(count))


def each_of(values: Expr, kind: SqlType, changed: Callable[[Expr], Expr], parameter: str = "element") -> Expr:
    """Return an array with each element changed to one of a type; ``parameter`` is its name in SQL."""
    body = changed(Expr.parameter(parameter, element_type(values)))
    return build(array_of(kind), "list_transform({0}, {1})", values, function(body, parameter), name=values.name)


def function(body: Expr, *parameters: str) -> Expr:
    """Return a function of DuckDB's with an expression over its parameters as body."""
    return replace(build(body.type, f"lambda {', '.join(parameters)}: {{0}}", body, operator="LAMBDA"), binds=parameters)


def element_type(values: Expr) -> SqlType:
    return present(values.type.element, "it is an array")


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
        return build(kind, numeric_of("{0}", expr.type, kind), expr, name=expr.name, operator="CAST", value=expr.value)
    if expr.type.element is not None and kind.element is not None:
        return _each_element(expr, kind, convert)
    if kind == TIMESTAMPTZ and expr.type in (TIMESTAMP, DATE):
        return of_local_time(convert(expr, TIMESTAMP))
    if expr.type == TIMESTAMPTZ and kind in (TIMESTAMP, DATE):
        return convert(local_time(expr), kind)
    converted = _plain_cast(expr, kind)
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


def _plain_cast(expr: Expr, kind: SqlType) -> Expr:
    """Return a value as DuckDB casts it."""
    return build(kind, f"CAST({{0}} AS {kind.duckdb})", expr, name=expr.name, operator="CAST", value=expr.value)


def _each_element(expr: Expr, kind: SqlType, change: Callable[[Expr, SqlType], Expr]) -> Expr:
    """Return an array with each element changed to the element type of ``kind``."""
    element, name = present(kind.element, "the type is that of an array"), f"element_{dimensions(kind)}"
    changed = change(Expr.parameter(name, element_type(expr)), element)
    if not changed.parts:
        return replace(expr, type=array_of(changed.type))
    return each_of(expr, changed.type, lambda parameter: changed, name)


def rising(expr: Expr, source: Expr) -> Expr:
    return replace(expr, rises_with=source.rises_with)


def _literal_as(expr: Expr, kind: SqlType) -> Expr:
    text = expr.literal or ""
    try:
        made = _of_literal(text, kind)
    except (ValueError, OverflowError) as error:
        raise MismatchError(f"{str(error).rstrip('.')}.") from None
    return replace(made, name=expr.name)


def _of_literal(text: str, kind: SqlType) -> Expr:
    """Return a text literal as a value of a type."""
    if kind == INTERVAL:
        return Expr.of_interval(read_span(text))
    if kind in (VARCHAR, UNKNOWN):
        return replace(Expr.of_text(text), type=kind)
    if kind == BYTEA:
        return Expr(f"unhex('{bytea_values.read(text).hex()}')", kind)
    if kind.element is not None:
        return _listed(array_text.read_array(text, dimensions(kind)), kind)
    if is_instant(kind):
        return Expr(_instant_literal(text.strip(), kind), kind)
    sql = literal_sql(text, kind) if kind.name == "numeric" else text_values.literal_sql(text, kind)
    return Expr(sql, kind, value=finite(text) if is_number(kind) else None)


def finite(text: str) -> Decimal | None:
    """Return the number that a text is, ``None`` if it is none, or not finite."""
    try:
        value = Decimal(text.strip())
    except ArithmeticError:
        return None
    return value if value.is_finite() else None


def _instant_literal(text: str, kind: SqlType) -> str:
    """Return a text literal as an instant; one without a zone is in that of the session."""
    if kind == DATE and re.fullmatch(r"\d{8}", text, re.ASCII):
        text = f"{text[:4]}-{text[4:6]}-{text[6:]}"
    if kind != TIMESTAMPTZ or zone.current() == zone.UTC or text_values.has_zone(text):
        return instant_literal(text, text_literal(text), kind)
    return f"timezone({text_literal(zone.current())}, {instant_literal(text, text_literal(text), TIMESTAMP)})"


def _listed(items: array_text.Items, kind: SqlType) -> Expr:
    element, listed = present(kind.element, "the type is that of an array"), list[str]()
    for item in items:
        if isinstance(item, str):
            listed.append(_of_literal(item, element).sql)
        else:
            listed.append("NULL" if item is None else _listed(item, element).sql)
    return Expr(f"CAST([{', '.join(listed)}] AS {kind.duckdb})", kind)


def if_kept(condition: Expr, value: Expr) -> Expr:
    """Return a value where a condition holds, else NULL: it is not computed there."""
    return build(value.type, "CASE WHEN {0} THEN {1} END", condition, value, name=value.name, operator="CASE")


def settled(expr: Expr) -> Expr:
    """Return an expression with a definite type: a literal that nothing decided about is text."""
    if expr.type != UNKNOWN:
        return expr
    return replace(_plain_cast(expr, VARCHAR), literal=expr.literal)


def as_text(expr: Expr) -> Expr:
    """Return an expression as text, as PostgreSQL's casts write values."""
    kind = expr.type
    if kind in (VARCHAR, UNKNOWN):
        return convert(expr, VARCHAR)
    if kind.name == "numeric" and kind.scale:
        return build(VARCHAR, text_of("{0}", kind), expr, name=expr.name)
    if kind == TIMESTAMPTZ and zone.current() != zone.UTC:
        return build(VARCHAR, text_values.instant_text("{0}", "{1}"), local_time(expr), expr, name=expr.name)
    if kind.element is not None:
        return _array_text(expr, kind.element)
    return build(VARCHAR, _TEXT_OF.get(kind.name, "CAST({0} AS VARCHAR)"), expr, name=expr.name)


def output_text(expr: Expr) -> Expr:
    """Return an expression as text, as PostgreSQL prints values: a boolean is a letter."""
    if expr.type == BOOLEAN:
        return build(VARCHAR, "CASE {0} WHEN TRUE THEN 't' WHEN FALSE THEN 'f' END", expr, name=expr.name)
    return as_text(expr)


def _array_text(expr: Expr, element: SqlType) -> Expr:
    def shown(item: Expr) -> Expr:
        text = output_text(item)
        return build(VARCHAR, "coalesce({0}, 'NULL')" if element.element is not None else "windowpane_quoted_item({0})", text)

    listed = each_of(expr, VARCHAR, shown, f"element_{dimensions(expr.type)}")
    return build(VARCHAR, "('{{' || array_to_string({0}, ',') || '}}')", listed, name=expr.name)


# As in RisingWave an offset has minutes.
_ERA_LAST = text_values.era_last("CAST({0} AS VARCHAR)")
_TEXT_OF = {
    "bytea": "('\\x' || lower(hex({0})))",
    "real": "windowpane_real_text(CAST({0} AS DOUBLE))",
    "double": "windowpane_double_text(CAST({0} AS VARCHAR))",
    "jsonb": "windowpane_jsonb_text(CAST({0} AS VARCHAR))",
    "interval": "windowpane_interval_text({0})",
    "date": _ERA_LAST,
    "timestamp": _ERA_LAST,
    "timestamptz": f"regexp_replace({_ERA_LAST}, '([+-]\\d\\d)( BC)?$', '\\1:00\\2')",
}


def cast(expr: Expr, kind: SqlType) -> Expr:
    """Return ``CAST(expr AS kind)``."""
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
    return _plain_cast(expr, kind)


def _as_numeric(expr: Expr, kind: SqlType) -> Expr:
    """Return a number or a text as numeric: rounded to a declared scale, else as it is."""
    if kind.open:
        return _open_numeric(expr)
    if expr.at_scale is not None:
        expr = expr.at_scale(kind.scale)
    sql = declared_numeric("{0}", expr.type, kind)
    return build(kind, sql, expr, name=expr.name, operator="CAST", value=expr.value)


def _open_numeric(expr: Expr) -> Expr:
    """Return a number or a text cast to ``numeric`` without a scale: no digit is lost, so a numeric stays as it is."""
    if expr.type.name == "numeric":
        return expr
    if is_exact(expr.type):
        return _plain_cast(expr, as_numeric(expr.type))
    if expr.number is not None:
        digits = f"{float(expr.number):{'.15g' if expr.type == DOUBLE else '.6g'}}"
        found = literal_type(digits)
        if found is not None:
            return Expr(literal_sql(digits, found), found, value=Decimal(digits), name=expr.name)
    kind = numeric(EXACT_PLACES)
    return build(kind, called("parsed", "{0}"), expr, name=expr.name)


def _cast_of_text(expr: Expr, kind: SqlType) -> Expr:
    read = of_text(kind)
    if read is not None:
        return build(kind, read, expr, name=expr.name)
    if kind == TIMESTAMPTZ and zone.current() != zone.UTC:
        return build(kind, text_values.instant_of_text("windowpane_instant({0})"), expr, name=expr.name)
    if is_instant(kind):
        return build(kind, instant_sql("{0}", kind), expr, name=expr.name)
    if is_integer(kind):
        return build(kind, f"CAST(windowpane_whole({{0}}, '{kind}') AS {kind.duckdb})", expr, name=expr.name)
    if kind.element is not None:
        listed = build(_with_text(kind), texts_of_array("{0}", kind), expr)
        return replace(_each_element(listed, kind, cast), name=expr.name)
    return _plain_cast(expr, kind)


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


def counted(arguments: Sequence[object], least: int, most: int) -> None:
    """Check the number of arguments."""
    if not least <= len(arguments) <= most:
        wanted = str(least) if least == most else f"{least} to {most}"
        raise MismatchError(f"it takes {wanted} argument{'' if wanted == '1' else 's'}, not {len(arguments)}.")
