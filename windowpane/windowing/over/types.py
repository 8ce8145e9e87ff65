"""An OVER window meets the types of its input: the type of each call, and what is refused.

Numbering gives bigint (percent_rank and cume_dist double), lag, lead and the value functions give the type of their argument,
aggregates what they are bound to. Which offset of a RANGE or SESSION frame fits which type
follows RisingWave's rule, with dates and durations added (numbers go with numbers, points in time with intervals); a NULL plus
anything is NULL; a sum that the calendar has no day for lies ``BEYOND`` every value.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from decimal import Decimal
from typing import Final

import pyarrow as pa

from windowpane.arrays.misfits import why_not
from windowpane.arrays.values import Value
from windowpane.errors import InvalidFrameError, InvalidIntervalError, InvalidSpecError, UnknownColumnError
from windowpane.windowing.aggregates.canonical import is_orderable
from windowpane.windowing.aggregates.decimals import EXACT
from windowpane.windowing.aggregates.definition import BoundAggregate
from windowpane.windowing.frames import Offset
from windowpane.windowing.intervals import Interval
from windowpane.windowing.over.spec import OverCall, OverSpec

_RATIOS = frozenset({"percent_rank", "cume_dist"})


def bind_call(call: OverCall, columns: pa.Schema) -> BoundAggregate:
    """Return the aggregate of a call, bound to the types of its arguments."""
    return call.aggregate.bind([columns.field(name).type for name in call.arguments])


def call_type(call: OverCall, columns: pa.Schema) -> pa.DataType:
    """Return the type of a call's result."""
    if call.function in _RATIOS:
        return pa.float64()
    if call.is_numbering:
        return pa.int64()
    return bind_call(call, columns).result_type if call.is_aggregate else columns.field(call.arguments[0]).type


def output_schema(spec: OverSpec, columns: pa.Schema, names: Sequence[str]) -> pa.Schema:
    """Return the columns of the calls under ``names``, after checking the window against the types of its input."""
    for name in spec.columns:
        if name not in columns.names:
            raise UnknownColumnError(name, "OVER window", columns.names)
    for name in (*spec.order_names, *spec.key):
        kind = columns.field(name).type
        if not is_orderable(kind):
            raise InvalidSpecError(f"column {name!r} of type {kind} has no order: it cannot stand in ORDER BY or the key.")
    taken = sorted({name for name in names if name in columns.names or list(names).count(name) > 1})
    if taken:
        raise InvalidSpecError(f"output column {', '.join(taken)} is there already: give the call another name.")
    for call in spec.calls:
        if call.filter is not None and not pa.types.is_boolean(columns.field(call.filter).type):
            raise InvalidSpecError(f"{call}: the filter {call.filter!r} is {columns.field(call.filter).type}, not boolean.")
        if call.default is not None:
            kind = columns.field(call.arguments[0]).type
            if (reason := why_not(call.default, kind)) is not None:
                raise InvalidSpecError(f"{call}: the default is a value of the column, which is {kind} and {reason}.")
        frame = call.frame
        if frame is not None and frame.has_range_offset:
            for offset in (frame.start.offset, frame.end.offset, frame.gap):
                if offset is not None:
                    check_offset(offset, columns.field(spec.order_names[0]).type, call)
    return pa.schema([(name, call_type(call, columns)) for name, call in zip(names, spec.calls, strict=True)])


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
    """Refuse an offset of a RANGE bound, or a gap of a SESSION, that cannot be added to an ORDER BY column of a type."""
    wanted = _wanted(offset, kind)
    if wanted is not None:
        raise InvalidFrameError(f"{what}: offset {offset!r} does not go with an ORDER BY column of type {kind}: use {wanted}.")


def _wanted(offset: Offset, kind: pa.DataType) -> str | None:
    if pa.types.is_integer(kind):
        return None if isinstance(offset, int) else "a whole number, or cast the column to a decimal or double"
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return "a number" if isinstance(offset, Interval) else None
    if not isinstance(offset, Interval):
        is_time = pa.types.is_timestamp(kind) or pa.types.is_date(kind) or pa.types.is_duration(kind)
        return "an interval such as Interval.of('1 hour')" if is_time else "a number, time or interval as ORDER BY column"
    if pa.types.is_timestamp(kind):
        return None
    if pa.types.is_date(kind):
        return None if not offset.micros else "an interval of whole days and months, or cast the column to a timestamp"
    if pa.types.is_duration(kind):
        return None if offset.is_fixed else "an interval without days and months"
    return "a number, time or interval as ORDER BY column"


def shifted(value: Value, offset: Offset, forward: bool) -> Value:
    """Return an order value plus an offset that ``check_offset`` let through, or minus it; NULL stays NULL.

    ``BEYOND`` is past the end of the calendar. Values are as Arrow gives them to Python.
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


def _moved(value: Value, interval: Interval) -> Value:
    try:
        if isinstance(value, dt.timedelta):
            return value + interval.micros * _MICROSECOND
        return interval.added_to(value)
    except (InvalidIntervalError, OverflowError):
        return BEYOND
