"""Order values plus and minus the offsets of RANGE and SESSION frames: which offset fits which type, and the arithmetic.

The types follow RisingWave's rule, with dates and durations added: numbers go with numbers, points in time with intervals.
A NULL plus anything is NULL; a sum that the calendar has no day for lies ``BEYOND`` every value.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa

from windowpane.errors import InvalidFrameError, InvalidIntervalError
from windowpane.windowing.aggregates.decimals import EXACT
from windowpane.windowing.frames import Offset
from windowpane.windowing.intervals import Interval

_MICROSECOND = dt.timedelta(microseconds=1)
CALENDAR_SLACK = Interval(days=4)
"""Adding months or days is not the inverse of subtracting them: a month may cut three days off, daylight saving some hours."""


class _Beyond:
    """A place past the last value in the direction of the shift."""

    def __repr__(self) -> str:
        return "BEYOND"

    def __reduce__(self) -> str:
        return "BEYOND"


BEYOND: Final = _Beyond()
"""The sum that the calendar has no day for."""


def check_offset(offset: Offset, kind: pa.DataType, what: object) -> None:
    """Refuse an offset that cannot be added to values of a type.

    Args:
        offset: the offset of a RANGE bound, or the gap of a SESSION.
        kind: the type of the ORDER BY column.
        what: the frame, for the message.

    Raises:
        InvalidFrameError: naming both and what would fit.
    """
    wanted = _wanted(offset, kind)
    if wanted is not None:
        raise InvalidFrameError(f"{what}: offset {offset!r} does not go with an ORDER BY column of type {kind}: use {wanted}.")


def _wanted(offset: Offset, kind: pa.DataType) -> str | None:
    if pa.types.is_integer(kind):
        return None if isinstance(offset, int) else "a whole number, or cast the column to a decimal or double"
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return "a number" if isinstance(offset, Interval) else None
    if not isinstance(offset, Interval):
        return "an interval such as Interval.of('1 hour')" if _is_time(kind) else "a number, time or interval as ORDER BY column"
    if pa.types.is_timestamp(kind):
        return None
    if pa.types.is_date(kind):
        return None if not offset.micros else "an interval of whole days and months, or cast the column to a timestamp"
    if pa.types.is_duration(kind):
        return None if offset.is_fixed else "an interval without days and months"
    return "a number, time or interval as ORDER BY column"


def _is_time(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) or pa.types.is_date(kind) or pa.types.is_duration(kind))


def shifted(value: Any, offset: Offset, forward: bool) -> Any:
    """Return an order value plus ``offset``, or minus it; NULL stays NULL, ``BEYOND`` is past the end of the calendar.

    Args:
        value: as Arrow gives it to Python: int, float, Decimal, datetime, date or timedelta.
        offset: one that ``check_offset`` let through.
        forward: whether it is added.
    """
    if value is None:
        return None
    if isinstance(offset, Interval):
        return _moved(value, offset if forward else -offset)
    if isinstance(value, float):
        return value + float(offset) if forward else value - float(offset)
    if isinstance(value, Decimal):
        exact = Decimal(repr(offset)) if isinstance(offset, float) else Decimal(offset)
        return EXACT.add(value, exact if forward else -exact)
    return value + offset if forward else value - offset


def _moved(value: Any, interval: Interval) -> Any:
    try:
        if isinstance(value, dt.timedelta):
            return value + interval.micros * _MICROSECOND
        return interval.added_to(value)
    except (InvalidIntervalError, OverflowError):
        return BEYOND
