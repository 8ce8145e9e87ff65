"""Window bounds as scalar functions: ``tumble_start``, ``tumble_end``; and the arithmetic behind window table functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from windowpane.sql.expressions.expr import Expr, MismatchError, build, convert, rising
from windowpane.sql.expressions.types import DATE, INTERVAL, TIMESTAMP, TIMESTAMPTZ, UNKNOWN, SqlType
from windowpane.sql.values.intervals import length, of_sql


def bound_type(time: SqlType) -> SqlType:
    """Return the type of the bounds of windows over a time column.

    Raises:
        MismatchError: windows cannot be made by that type.
    """
    if time in (DATE, UNKNOWN):
        return TIMESTAMP
    if time in (TIMESTAMP, TIMESTAMPTZ):
        return time
    raise MismatchError(f"windows are made by a date or timestamp, not by {time}. Cast the column.")


def floor_sql(time: str, size: str, offset: str = "0") -> str:
    """Return the start of the tumbling window of a time, all as SQL of microseconds."""
    return f"({time} - ((({time} - ({offset})) % ({size})) + ({size})) % ({size}))"


def micros_sql(time: str) -> str:
    """Return a timestamp as SQL of microseconds."""
    return f"epoch_us({time})"


def instant_sql(micros: str, kind: SqlType) -> str:
    """Return microseconds as a timestamp of a type."""
    stamp = f"make_timestamp(CAST({micros} AS BIGINT))"
    return stamp if kind == TIMESTAMP else f"timezone('UTC', {stamp})"


def _tumble_start(arguments: Sequence[Expr]) -> Expr:
    if not 2 <= len(arguments) <= 3:
        raise MismatchError(f"it takes a time, a size and perhaps an offset, not {len(arguments)} arguments.")
    kind = bound_type(arguments[0].type)
    time = convert(arguments[0], kind)
    size = _micros(_size(arguments[1]))
    offset = _micros(_interval(arguments[2])) if len(arguments) == 3 else "0"
    others = arguments[1:]
    sql = instant_sql(floor_sql(micros_sql(time.sql), size, offset), kind)
    columns = frozenset[str]().union(time.columns, *(other.columns for other in others))
    rises = time.rises_with if not any(other.columns for other in others) else None
    return Expr(sql, kind, columns, rises_with=rises)


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
    written = of_sql(interval.sql)
    if written is None:
        return build(INTERVAL, "windowpane_size_of_windows({0})", interval)
    if written.months:
        raise MismatchError(f"a window is not {written} long. {_INSTEAD_OF_MONTHS}")
    if (length(written) or 0) <= 0:
        raise MismatchError(f"the size of a window is greater than zero, not {written}.")
    return interval


def _micros(interval: Expr) -> str:
    return f"CAST(round(epoch({interval.sql}) * 1000000) AS BIGINT)"


def _date_bin(arguments: Sequence[Expr]) -> Expr:
    if len(arguments) != 3:
        raise MismatchError(f"it takes a length, a time and an origin, not {len(arguments)} arguments.")
    size, time, origin = arguments
    kind = bound_type(time.type)
    start = micros_sql(convert(origin, kind).sql)
    value = convert(time, kind)
    sql = instant_sql(floor_sql(micros_sql(value.sql), _micros(_size(size)), start), kind)
    columns = frozenset[str]().union(*(argument.columns for argument in arguments))
    return Expr(sql, kind, columns, rises_with=value.rises_with if columns == value.columns else None)


TIME_FUNCTIONS: dict[str, Callable[[Sequence[Expr]], Expr]] = {
    "tumble_start": _tumble_start,
    "tumble_end": _tumble_end,
    "date_bin": _date_bin,
}
