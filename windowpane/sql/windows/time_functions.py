"""Window bounds as scalar functions: ``tumble_start``, ``tumble_end``; and the arithmetic behind window table functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from windowpane.sql.expressions.expr import Expr, MismatchError, build, convert, counted, rising
from windowpane.sql.expressions.types import DATE, INTERVAL, TIMESTAMP, TIMESTAMPTZ, UNKNOWN, SqlType
from windowpane.sql.scalar.signatures import taking
from windowpane.sql.values.intervals import length
from windowpane.windowing.intervals import Interval


def bound_type(time: SqlType) -> SqlType:
    """Return the type of the bounds of windows over a time column."""
    if time in (DATE, UNKNOWN):
        return TIMESTAMP
    if time in (TIMESTAMP, TIMESTAMPTZ):
        return time
    raise MismatchError(f"windows are made by a date or timestamp, not by {time}. Cast the column.")


def floor_sql(time: str, size: str, offset: str = "0") -> str:
    """Return the start of the tumbling window of a time, all as SQL of microseconds."""
    return f"({time} - ((({time} - ({offset})) % ({size})) + ({size})) % ({size}))"


def micros_sql(time: str) -> str:
    return f"epoch_us({time})"


def instant_sql(micros: str, kind: SqlType) -> str:
    stamp = f"make_timestamp(CAST({micros} AS BIGINT))"
    return stamp if kind == TIMESTAMP else f"timezone('UTC', {stamp})"


def _tumble_start(arguments: Sequence[Expr]) -> Expr:
    counted(arguments, 2, 3)
    kind = bound_type(arguments[0].type)
    time = convert(arguments[0], kind)
    size, offset = _size(arguments[1]), [_interval(each) for each in arguments[2:]]
    template = floor_sql(micros_sql("{0}"), _micros("{1}"), _micros("{2}") if offset else "0")
    start = build(kind, instant_sql(template, kind), time, size, *offset)
    return start if size.columns or any(each.columns for each in offset) else rising(start, time)


def _tumble_end(arguments: Sequence[Expr]) -> Expr:
    start = _tumble_start(arguments)
    return rising(build(start.type, "({0} + {1})", start, convert(arguments[1], INTERVAL)), start)


_INSTEAD_OF_MONTHS = "Months have no fixed length: take date_trunc, or TUMBLE in FROM, whose months are those of the calendar."


def _interval(value: Expr) -> Expr:
    interval = convert(value, INTERVAL) if value.type == UNKNOWN else value
    if interval.type != INTERVAL:
        raise MismatchError(f"the size of a window is an interval, not {interval.type}. Write INTERVAL '10 minutes'.")
    return interval


def _size(value: Expr) -> Expr:
    """Return the size of windows, which has no months and is greater than zero; what no literal says, rows are checked for."""
    interval = _interval(value)
    written = interval.value
    if not isinstance(written, Interval):
        return build(INTERVAL, "windowpane_size_of_windows({0})", interval)
    if written.months:
        raise MismatchError(f"a window is not {written} long. {_INSTEAD_OF_MONTHS}")
    if (length(written) or 0) <= 0:
        raise MismatchError(f"the size of a window is greater than zero, not {written}.")
    return interval


def _micros(interval: str) -> str:
    return f"CAST(round(epoch({interval}) * 1000000) AS BIGINT)"


@taking
def _date_bin(size: Expr, value: Expr, origin: Expr) -> Expr:
    kind = bound_type(value.type)
    size, value, origin = _size(size), convert(value, kind), convert(origin, kind)
    floor = instant_sql(floor_sql(micros_sql("{0}"), _micros("{1}"), micros_sql("{2}")), kind)
    # Infinity is its own bin, as in PostgreSQL.
    template = f"CASE WHEN isinf({{0}}) AND {{1}} IS NOT NULL AND {{2}} IS NOT NULL THEN {{0}} ELSE {floor} END"
    start = build(kind, template, value, size, origin)
    return rising(start, value) if start.columns == value.columns else start


TIME_FUNCTIONS: dict[str, Callable[[Sequence[Expr]], Expr]] = {
    "tumble_start": _tumble_start,
    "tumble_end": _tumble_end,
    "date_bin": _date_bin,
}
