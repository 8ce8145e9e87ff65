"""Instants that Python cannot hold: infinity, years after 9999, and years before Christ. They are text, as PostgreSQL writes it.

DuckDB's infinities are the ends of its integers, of microseconds for timestamps and of days for dates.
"""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa

from windowpane.arrays.python_values import has_end_of_day
from windowpane.sql.values.intervals import clock_text
from windowpane.windowing.intervals import MICROS_PER_DAY

_CYCLE_YEARS, _CYCLE_DAYS = 400, 146_097
_EPOCH = dt.date(1970, 1, 1).toordinal()


def cells(column: pa.ChunkedArray) -> list[Any]:
    """Return the values of a column as Python has them, and as text where Python cannot hold them."""
    if has_end_of_day(column):
        return [_cell(scalar) for scalar in column]
    try:
        return list(column.to_pylist())
    except (OverflowError, ValueError, pa.ArrowInvalid):
        return [_cell(scalar) for scalar in column]


def _cell(scalar: Any) -> Any:
    if not scalar.is_valid:
        return None
    kind = scalar.type
    if pa.types.is_time(kind) and scalar.value == MICROS_PER_DAY:
        return "24:00:00"
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return [_cell(each) for each in scalar.values]
    try:
        return scalar.as_py()
    except (OverflowError, ValueError, pa.ArrowInvalid):
        if pa.types.is_date(kind):
            return far_date(scalar.value)
        return far_timestamp(scalar.value, has_zone=kind.tz is not None)


def far_date(days: int) -> str:
    """Return a date as text, by its days since 1970.

    Example:
        >>> far_date(2932897)
        '10000-01-01'
    """
    if abs(days) == 2**31 - 1:
        return "infinity" if days > 0 else "-infinity"
    date, suffix = _calendar(days)
    return f"{date}{suffix}"


def far_timestamp(micros: int, *, has_zone: bool = False) -> str:
    """Return a timestamp as text, by its microseconds since 1970 in UTC.

    Example:
        >>> far_timestamp(-62135596800_000_000 - 1)
        '0001-12-31 23:59:59.999999 BC'
    """
    if abs(micros) == 2**63 - 1:
        return "infinity" if micros > 0 else "-infinity"
    days, rest = divmod(micros, MICROS_PER_DAY)
    date, suffix = _calendar(days)
    return f"{date} {clock_text(rest)}{'+00:00' if has_zone else ''}{suffix}"


def _calendar(days: int) -> tuple[str, str]:
    """Return a day, and the text behind it (BC) before Christ; the calendar repeats itself every 400 years."""
    cycles = (days + _EPOCH - 1) // _CYCLE_DAYS
    near = dt.date.fromordinal(days + _EPOCH - cycles * _CYCLE_DAYS)
    year = near.year + cycles * _CYCLE_YEARS
    text = f"{year if year > 0 else 1 - year:04}-{near.month:02}-{near.day:02}"
    return text, "" if year > 0 else " BC"
