"""Fields of times: ``extract``, ``date_part``, and Flink's functions of one field, such as ``YEAR(at)``.

Which fields a type has, and their other names, are PostgreSQL's; ``nanosecond`` is RisingWave's.
"""

from __future__ import annotations

from collections.abc import Sequence

from windowpane.sql.expressions.expr import Expr, MismatchError, build, convert, counted, local_time
from windowpane.sql.expressions.operators import arithmetic
from windowpane.sql.expressions.types import BIGINT, DATE, DOUBLE, INTERVAL, TIME, TIMESTAMP, TIMESTAMPTZ, UNKNOWN, numeric
from windowpane.sql.scalar.signatures import Builder, builder, taking
from windowpane.windowing.intervals import MICROS_PER_DAY

_YEARS = ("year", "decade", "century", "millennium")
_DAYS = frozenset(("day", "week", "month", "quarter", *_YEARS, "dow", "isodow", "doy", "isoyear", "julian", "epoch"))
_CLOCK = frozenset(("nanosecond", "microsecond", "millisecond", "second", "minute", "hour", "epoch"))
_OF_TYPE = {
    DATE: _DAYS,
    TIME: _CLOCK,
    TIMESTAMP: _DAYS | _CLOCK,
    TIMESTAMPTZ: _DAYS | _CLOCK | {"timezone", "timezone_hour", "timezone_minute"},
    INTERVAL: _CLOCK | {"day", "month", "quarter", *_YEARS},
}
_NAMES = {
    "nanosecond": "ns nanoseconds",
    "microsecond": "us usec usecs useconds microseconds",
    "millisecond": "ms msec msecs mseconds milliseconds",
    "second": "s sec secs seconds",
    "minute": "m min mins minutes",
    "hour": "h hr hrs hours",
    "day": "d days",
    "week": "w weeks",
    "month": "mon mons months",
    "quarter": "qtr quarters",
    "year": "y yr yrs years",
    "decade": "dec decades",
    "century": "c cent centuries",
    "millennium": "mil mils millennia",
}
_FIELDS = {other: name for name, others in _NAMES.items() for other in others.split()}
_BEFORE_CHRIST = {
    "year": "CASE WHEN {0} > 0 THEN {0} ELSE {0} - 1 END",
    "isoyear": "CASE WHEN {0} > 0 THEN {0} ELSE {0} - 1 END",
    "decade": "floor(date_part('year', {{0}}) / 10)",
}
"""DuckDB's year before year 1 is 0, PostgreSQL's is -1; and a decade begins, as any other, with a year that 10 divides."""
_FRACTIONS = {"second": 6, "millisecond": 3}


def extract(field: str, value: Expr) -> Expr:
    """Return ``EXTRACT(field FROM value)``, a numeric."""
    value = convert(value, TIMESTAMP) if value.type == UNKNOWN else value
    known = _OF_TYPE.get(value.type)
    if known is None:
        raise MismatchError(f"extract takes a time, not {value.type}. Cast the argument.")
    part = _FIELDS.get(field.lower(), field.lower())
    if part not in known:
        raise MismatchError(f"{value.type} has no field {field.lower()!r}; there are {', '.join(sorted(known))}.")
    if part == "epoch":
        return _epoch(value)
    if part.startswith("timezone"):
        return _offset(part, value)
    value = local_time(value) if value.type == TIMESTAMPTZ else value
    if part == "julian":
        return _julian(value)
    if part == "nanosecond":
        return build(numeric(0), "CAST(date_part('microsecond', {0}) * 1000 AS DECIMAL(38, 0))", value)
    if part in _FRACTIONS:
        return _in_millionths("date_part('microsecond', {0})", value, _FRACTIONS[part])
    amount = f"date_part('{part}', {{0}})"
    if value.type != INTERVAL and part in _BEFORE_CHRIST:
        amount = _BEFORE_CHRIST[part].format(amount)
    return build(numeric(0), f"CAST({amount} AS DECIMAL(38, 0))", value)


def _in_millionths(micros: str, value: Expr, places: int) -> Expr:
    """Return a number of units whose ``places`` decimal places are microseconds, exactly."""
    unit = f"{10**-places:.{places}f}::DECIMAL({places + 1}, {places})"
    return build(numeric(places), f"(CAST({micros} AS DECIMAL(20, 0)) * {unit})::DECIMAL(38, {places})", value)


def _epoch(value: Expr) -> Expr:
    if value.type == INTERVAL:
        return build(numeric(6), "CAST(epoch({0}) AS DECIMAL(38, 6))", value)
    return _in_millionths("epoch_us({0})", convert(value, TIMESTAMP) if value.type == DATE else value, 6)


def _offset(part: str, value: Expr) -> Expr:
    """Return how far the clocks of the session's zone are ahead: all of it in seconds, or its hours or minutes."""
    seconds = "date_diff('second', timezone('UTC', {1}), {0})"
    amount = {"timezone_hour": f"trunc({seconds} / 3600)", "timezone_minute": f"trunc({seconds} / 60) % 60"}.get(part, seconds)
    return build(numeric(0), f"CAST({amount} AS DECIMAL(38, 0))", local_time(value), value)


def _julian(value: Expr) -> Expr:
    """Return the number of days since the first of January 4713 BC, and how much of the last one is over."""
    days = "(date_diff('day', DATE '2000-01-01', CAST({0} AS DATE)) + 2451545)"
    if value.type == DATE:
        return build(numeric(0, 10), f"CAST({days} AS DECIMAL(38, 0))", value)
    passed = "(epoch_us({0}) - epoch_us(CAST(CAST({0} AS DATE) AS TIMESTAMP)))"
    micros = build(numeric(0, 18), f"CAST(CAST({days} AS HUGEINT) * {MICROS_PER_DAY} + {passed} AS DECIMAL(38, 0))", value)
    return arithmetic("/", micros, Expr(f"CAST({MICROS_PER_DAY} AS DECIMAL(38, 0))", numeric(0, 11)))


@taking
def _date_part(field: Expr, value: Expr) -> Expr:
    if field.literal is None:
        raise MismatchError("date_part takes the name of a field in quotes.")
    return convert(extract(field.literal, value), DOUBLE)


@builder
def _part(arguments: Sequence[Expr], field: str) -> Expr:
    """Return Flink's function of a field, such as ``YEAR(at)``, a bigint."""
    counted(arguments, 1, 1)
    value = arguments[0]
    has_clock = field in ("hour", "minute", "second")
    part = extract(field, convert(value, TIMESTAMP) if has_clock and value.type == DATE else value)
    offset = " + 1" if field == "dow" else ""  # Flink counts Sunday as 1
    return build(BIGINT, f"CAST(trunc({{0}}){offset} AS BIGINT)", part)


FIELD_FUNCTIONS: dict[str, Builder] = {
    "date_part": _date_part,
    "year": _part("year"),
    "quarter": _part("quarter"),
    "month": _part("month"),
    "week": _part("week"),
    "dayofyear": _part("doy"),
    "dayofmonth": _part("day"),
    "dayofweek": _part("dow"),
    "hour": _part("hour"),
    "minute": _part("minute"),
    "second": _part("second"),
}
