"""Functions of times: PostgreSQL's and RisingWave's, and Flink's.

A ``timestamptz`` is cut, taken apart and printed in the time zone of the session, so each first becomes the local time there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from windowpane.sql.expressions.expr import Expr, MismatchError, build, convert, counted, local_time, of_local_time, rising
from windowpane.sql.expressions.operators import arithmetic
from windowpane.sql.expressions.types import (
    BIGINT,
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
    is_instant,
    is_number,
)
from windowpane.sql.numerics.functions import constant
from windowpane.sql.scalar.formats import java_format, postgres_format
from windowpane.sql.scalar.macros import refused
from windowpane.sql.scalar.signatures import Builder, accepted, builder, fixed, taking
from windowpane.sql.values import zone

_YEARS = {"decade": 10, "century": 100, "millennium": 1000}
_FIELDS = ("microseconds", "milliseconds", "second", "minute", "hour", "day", "week", "month", "quarter", "year", *_YEARS)
_SHORT = ("microseconds", "milliseconds", "second", "minute", "hour")
_MICROS = {"milliseconds": 1_000, "second": 1_000_000, "minute": 60_000_000, "hour": 3_600_000_000}
_MONTHS = {"month": 1, "quarter": 3, "year": 12, "decade": 120, "century": 1200, "millennium": 12000}


# --- date_trunc --------------------------------------------------------------------------------------------


@taking
def _date_trunc(field: Expr, value: Expr, there: Expr | None = None) -> Expr:
    field = convert(field, VARCHAR)
    if value.type == INTERVAL:
        return _chosen(field, value, INTERVAL, _interval_cut)
    if value.type in (UNKNOWN, DATE):
        value = convert(value, TIMESTAMP if value.type == UNKNOWN else TIMESTAMPTZ)
    if not is_instant(value.type):
        raise MismatchError(f"date_trunc takes a timestamp, not {value.type}. Cast the argument.")
    if there is not None:
        named = convert(there, VARCHAR)
        instant = convert(value, TIMESTAMPTZ)
        local = build(TIMESTAMP, "timezone({1}, {0})", instant, named)
        return _cut_there(field, instant, local, lambda cut: build(TIMESTAMPTZ, "timezone({1}, {0})", cut, named))
    return truncated(field, value)


def truncated(field: Expr, value: Expr) -> Expr:
    """Return a timestamp cut down to a field, which it rises with unless the field is a column."""
    if value.type == TIMESTAMPTZ:
        cut = _cut_here(field, value)
        return cut if field.columns or local_time(value).rises_with is None else rising(cut, value)
    cut = _chosen(field, value, value.type, _cut)
    return cut if field.columns else rising(cut, value)


def _cut_here(field: Expr, value: Expr) -> Expr:
    local = local_time(value)
    if zone.current() == zone.UTC:
        return of_local_time(_chosen(field, local, TIMESTAMP, _cut))
    return _cut_there(field, value, local, of_local_time)


def _cut_there(field: Expr, value: Expr, local: Expr, instant_of: Callable[[Expr], Expr]) -> Expr:
    """Return an instant cut down by the clocks of a zone, which show ``local``.

    An hour that they show twice stays the one it is.
    """
    cut = _chosen(field, local, TIMESTAMP, _cut)
    within_day = build(TIMESTAMPTZ, "({0} - ({1} - {2}))", value, local, cut)
    if field.literal is not None:
        return within_day if field.literal.lower() in _SHORT else instant_of(cut)
    shorts = ", ".join(f"'{name}'" for name in _SHORT)
    template = f"CASE WHEN lower({{0}}) IN ({shorts}) THEN {{1}} ELSE {{2}} END"
    return build(TIMESTAMPTZ, template, field, within_day, instant_of(cut))


def _chosen(field: Expr, value: Expr, kind: SqlType, cut: dict[str, str]) -> Expr:
    """Return ``cut`` by a field, which may be a column."""
    if field.literal is not None:
        name = field.literal.lower()
        if name not in cut:
            raise MismatchError(f"date_trunc has no field {name!r} of {value.type}; there are {', '.join(cut)}.")
        return build(kind, f"CAST({cut[name]} AS {kind.duckdb})", value)
    branches = " ".join(f"WHEN '{name}' THEN CAST({sql} AS {kind.duckdb})" for name, sql in cut.items())
    unknown = refused("'date_trunc has no field ' || {1}")
    null = f"WHEN {{1}} IS NOT NULL THEN CAST({unknown} AS {kind.duckdb})"
    return build(kind, f"CASE lower({{1}}) {branches} ELSE CASE {null} END END", value, field)


_cut = {name: f"date_trunc('{name}', {{0}})" for name in _FIELDS} | {
    name: f"windowpane_years_floor({{0}}, {years})" for name, years in _YEARS.items() if name != "decade"
}


def _interval_field(name: str) -> str:
    if name in _MONTHS:
        months = "windowpane_interval_months({0})"
        return f"to_months(CAST({months} - {months} % {_MONTHS[name]} AS INTEGER))"
    days = "to_months(CAST(windowpane_interval_months({0}) AS INTEGER)) + to_days(CAST(datepart('day', {0}) AS INTEGER))"
    micros = "windowpane_interval_micros({0})"
    unit = _MICROS.get(name, 1)
    return days if name == "day" else f"{days} + to_microseconds({micros} - {micros} % {unit})"


_interval_cut = {name: _interval_field(name) for name in _FIELDS if name != "week"}


# --- text and times ----------------------------------------------------------------------------------------


def _to_timestamp(arguments: Sequence[Expr]) -> Expr:
    if len(arguments) == 2:
        text, form = accepted(arguments[0], VARCHAR), postgres_format(arguments[1])
        return of_local_time(build(TIMESTAMP, f"CAST(strptime({{0}}, {_escaped(form.parsed())}) AS TIMESTAMP)", text))
    if len(arguments) == 1 and arguments[0].type in (VARCHAR, UNKNOWN) and not _is_number(arguments[0]):
        return convert(arguments[0], TIMESTAMP) if arguments[0].literal is not None else _as_timestamp(arguments[0])
    return fixed(TIMESTAMPTZ, "to_timestamp({0})", DOUBLE)(arguments)


def _is_number(argument: Expr) -> bool:
    return argument.literal is not None and argument.literal.strip().replace(".", "", 1).isdigit()


def _as_timestamp(text: Expr) -> Expr:
    return build(TIMESTAMP, "CAST({0} AS TIMESTAMP)", text)


@taking
def _to_date(text: Expr, form: Expr | None = None) -> Expr:
    text = accepted(text, VARCHAR)
    if form is None:
        return build(DATE, "CAST({0} AS DATE)", text)
    return build(DATE, f"CAST(strptime({{0}}, {_escaped(postgres_format(form).parsed())}) AS DATE)", text)


@taking
def _to_char(value: Expr, form: Expr) -> Expr:
    if not is_instant(value.type):
        raise MismatchError(f"to_char takes a timestamp, not {value.type}. Cast the argument.")
    return build(VARCHAR, "CASE WHEN isfinite({1}) THEN {0} END", postgres_format(form).printed(value), value)


@taking
def _date_format(value: Expr, form: Expr) -> Expr:
    if value.type in (VARCHAR, UNKNOWN):
        value = convert(value, TIMESTAMP) if value.literal is not None else _as_timestamp(value)
    if not is_instant(value.type):
        raise MismatchError(f"it takes a timestamp, not {value.type}. Cast the argument.")
    return java_format(form).printed(value)


@taking
def _from_unixtime(seconds: Expr, form: Expr | None = None) -> Expr:
    form = form or Expr.of_text("yyyy-MM-dd HH:mm:ss")
    return java_format(form).printed(build(TIMESTAMPTZ, "to_timestamp({0})", accepted(seconds, BIGINT)))


@taking
def _to_timestamp_ltz(value: Expr, precision: Expr | None = None) -> Expr:
    if not is_number(value.type):
        raise MismatchError(f"it takes a number of seconds or milliseconds, not {value.type}. Cast the argument.")
    scale = 3 if precision is None else constant(precision)
    if scale not in (0, 3):
        raise MismatchError("its precision is 0 (seconds) or 3 (milliseconds).")
    factor = 1_000_000 if scale == 0 else 1_000
    return build(TIMESTAMPTZ, f"make_timestamptz(CAST(CAST({{0}} AS HUGEINT) * {factor} AS BIGINT))", value)


def _escaped(sql: str) -> str:
    return sql.replace("{", "{{").replace("}", "}}")


def at_zone(named: Expr, value: Expr) -> Expr:
    """Return ``timezone(zone, time)``: the local time of an instant there, or the instant of a local time.

    A date, and a text whose type is open, are instants: where several types would do PostgreSQL and RisingWave prefer this one.
    """
    named = convert(named, VARCHAR)
    if not (is_instant(value.type) or value.type == UNKNOWN):
        raise MismatchError(f"it takes a timestamp, not {value.type}. Cast the argument.")
    if value.type == TIMESTAMP:
        return build(TIMESTAMPTZ, "timezone({1}, {0})", value, named)
    return build(TIMESTAMP, "timezone({1}, {0})", convert(value, TIMESTAMPTZ), named)


_MAKE_TIMESTAMP = fixed(
    TIMESTAMP, "make_timestamp(windowpane_year({0}), {1}, {2}, {3}, {4}, {5})", BIGINT, BIGINT, BIGINT, BIGINT, BIGINT, DOUBLE
)


def _make_timestamptz(arguments: Sequence[Expr]) -> Expr:
    """Return the instant at which clocks show a time: those of a zone, or of the session's."""
    counted(arguments, 6, 7)
    local = _MAKE_TIMESTAMP(arguments[:6])
    return of_local_time(local) if len(arguments) == 6 else at_zone(arguments[6], local)


# --- units -------------------------------------------------------------------------------------------------

_UNITS = ("second", "minute", "hour", "day", "month", "quarter", "year")


def unit_named(name: str) -> str:
    """Return a unit of Flink's by its name."""
    unit = name.lower()
    if unit == "week":
        raise MismatchError("Flink's weeks begin on Sunday. Write date_trunc('week', ...) for weeks that begin on Monday.")
    if unit not in _UNITS:
        raise MismatchError(f"{name!r} is no unit of time; there are {', '.join(name.upper() for name in _UNITS)}.")
    return unit


def difference(unit: str, start: Expr, end: Expr) -> Expr:
    """Return Flink's ``TIMESTAMPDIFF``: the whole units between two times."""
    one, other = (local_time(value) if value.type == TIMESTAMPTZ else convert(value, TIMESTAMP) for value in (start, end))
    factor = 7 if unit == "week" else 1
    field = "day" if unit == "week" else unit
    return build(INTEGER, f"CAST(date_sub('{field}', {{0}}, {{1}}) // {factor} AS INTEGER)", one, other)


def floor_to(unit: str, value: Expr) -> Expr:
    """Return Flink's ``FLOOR(value TO unit)``, of the type of the value."""
    if value.type == DATE:
        return rising(build(DATE, f"CAST(date_trunc('{unit}', {{0}}) AS DATE)", value), value)
    if value.type not in (TIMESTAMP, TIMESTAMPTZ):
        raise MismatchError(f"it takes a date or a timestamp, not {value.type}. Cast the argument.")
    return truncated(Expr.of_text(unit), value)


def ceil_to(unit: str, value: Expr) -> Expr:
    """Return Flink's ``CEIL(value TO unit)``, of the type of the value."""
    down = floor_to(unit, value)
    next_one = build(value.type, f"CAST({{0}} + INTERVAL '1' {unit} AS {value.type.duckdb})", down)
    if value.type == TIMESTAMPTZ:
        next_one = of_local_time(build(TIMESTAMP, f"({{0}} + INTERVAL '1' {unit})", local_time(down)))
    return build(value.type, "CASE WHEN {0} = {1} THEN {0} ELSE {2} END", value, down, next_one)


@builder
def _rounded(arguments: Sequence[Expr], round_to: Callable[[str, Expr], Expr]) -> Expr:
    return round_to(unit_named(arguments[0].literal or ""), arguments[1])


def with_unit(name: str, unit: str, arguments: Sequence[Expr]) -> Expr:
    """Return ``TIMESTAMPDIFF(unit, start, end)`` or ``TIMESTAMPADD(unit, number, time)``, as Flink writes them."""
    counted(arguments, 2, 2)
    plain = "week" if unit.lower() == "week" else unit_named(unit)
    if name == "timestampdiff":
        return difference(plain, *arguments)
    number, value = accepted(arguments[0], INTEGER), arguments[1]
    moved = build(INTERVAL, f"(to_{plain}s({{0}}))", number)
    return arithmetic("+", convert(value, TIMESTAMP) if value.type == UNKNOWN else value, moved)


WITH_UNIT = ("timestampdiff", "timestampadd")
"""Functions whose first argument is the name of a unit, as a word."""

TIME_FUNCTIONS: dict[str, Builder] = {
    "date_trunc": _date_trunc,
    "to_timestamp": _to_timestamp,
    "to_char": _to_char,
    "to_date": _to_date,
    "date_format": _date_format,
    "from_unixtime": _from_unixtime,
    "to_timestamp_ltz": _to_timestamp_ltz,
    "floor_to": _rounded(floor_to),
    "ceil_to": _rounded(ceil_to),
    "make_timestamp": _MAKE_TIMESTAMP,
    "make_timestamptz": _make_timestamptz,
    "timezone": taking(at_zone),
    "make_time": fixed(TIME, "make_time({0}, {1}, {2})", BIGINT, BIGINT, DOUBLE),
    "make_date": fixed(DATE, "make_date(CAST(windowpane_year({0}) AS INTEGER), {1}, {2})", INTEGER, INTEGER, INTEGER),
}
