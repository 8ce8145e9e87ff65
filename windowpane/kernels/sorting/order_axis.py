"""Order values as points of an int64 axis on which the offsets of RANGE and SESSION frames are added.

Invariant: for values a, b of the column and any offset o, a < b exactly when point(a) < point(b), and b <= a + o exactly when
point(b) <= shift(a, o). So the frame finder compares integers, whatever the type. A shifted point that leaves the axis is at
its end, beyond every value.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windowpane.arrays import Doubles, Integers, Mask
from windowpane.arrays.values import Value
from windowpane.errors import MistakeError
from windowpane.kernels.keys.ordered_codes import coded_floats, has_codes, ordered_codes, validity
from windowpane.windowing.frames import Offset
from windowpane.windowing.intervals import MICROS_PER_DAY, Interval
from windowpane.windowing.over.types import BEYOND, shifted
from windowpane.windowing.times import MAX, MIN

Shift = Callable[[Offset, bool], Integers]

_EPOCH = dt.datetime(1970, 1, 1)
_MICROSECOND = dt.timedelta(microseconds=1)
_INFINITE_DATE = 2**31 - 1


@dataclass(frozen=True)
class OrderAxis:
    points: Integers  # the point of each value, ascending with the value; of a NULL, any
    valid: Mask  # where there is a value
    shift: Shift  # (offset, whether it is added) to the point of each value so moved


def order_axis(column: pa.Array, offsets: tuple[Offset, ...]) -> OrderAxis:
    valid = validity(column)
    if pa.types.is_floating(column.type):
        return OrderAxis(ordered_codes(column), valid, _float_shift(column))
    if _has_plain_days(column.type):
        codes = ordered_codes(column)
        return OrderAxis(codes, valid, _time_shift(codes, column.type))
    steps = {offset: _step(offset, column.type) for offset in offsets}
    if has_codes(column.type) and None not in steps.values():
        points = ordered_codes(column)
        # Beyond a value at an end of the axis there is none.
        at_end = points.min(where=valid, initial=0) == MIN or points.max(where=valid, initial=0) == MAX
        if not (offsets and pa.types.is_integer(column.type) and at_end):
            return OrderAxis(points, valid, lambda offset, forward: _saturated(points, steps[offset] or 0, forward))
    return _python_axis(column, valid, offsets)


def _step(offset: Offset, kind: pa.DataType) -> int | None:
    """Return an offset in units of the codes of a type, ``None`` if it is no fixed number of them."""
    if isinstance(offset, Interval):  # days may differ in length
        has_microseconds = (pa.types.is_duration(kind) or pa.types.is_timestamp(kind)) and kind.unit == "us"
        return offset.micros if offset.is_fixed and has_microseconds else None
    if pa.types.is_decimal(kind):
        scaled = (Decimal(repr(offset)) if isinstance(offset, float) else Decimal(offset)).scaleb(kind.scale)
        return int(scaled) if scaled == scaled.to_integral_value() else None
    return offset if isinstance(offset, int) else None


def _has_plain_days(kind: pa.DataType) -> bool:
    """Whether values are dates, or timestamps in microseconds whose days have 24 hours."""
    if pa.types.is_timestamp(kind):
        return bool(kind.unit == "us" and kind.tz in (None, "UTC", "Etc/UTC", "+00:00"))
    return bool(pa.types.is_date32(kind))


def _time_shift(codes: Integers, kind: pa.DataType) -> Shift:
    """Return what moves dates or timestamps: by months, then days, then microseconds. An infinite one stays where it is.

    DuckDB writes infinity as the largest number, or its negative. Instants that Python cannot hold are moved, too.
    """
    a_day, infinity = (1, _INFINITE_DATE) if pa.types.is_date32(kind) else (MICROS_PER_DAY, MAX)
    infinite = (codes >= infinity) | (codes <= -infinity)

    def shift(offset: Offset, forward: bool) -> Integers:
        if not isinstance(offset, Interval):
            raise MistakeError("check_offset refuses others")
        if offset.months:
            moved = _moved_by_months(codes, a_day, offset if forward else -offset)
        else:
            moved = _saturated(codes, offset.days * a_day + offset.micros, forward)
        return np.where(infinite, codes, moved) if infinite.any() else moved

    return shift


def _moved_by_months(codes: Integers, a_day: int, interval: Interval) -> Integers:
    days, rest = np.divmod(codes, a_day)
    month = days.astype("datetime64[D]").astype("datetime64[M]")
    day_of_month = days - _first_days(month)
    later = month + interval.months
    first, last = _first_days(later), _first_days(later + 1) - 1
    moved = np.minimum(first + day_of_month, last) + interval.days
    farthest = MAX // a_day - 1
    near = np.clip(moved, -farthest, farthest) * a_day + rest
    whole = _saturated(near, abs(interval.micros), interval.micros >= 0)
    return np.select([moved > farthest, moved < -farthest], [MAX, MIN], whole)


def _first_days(months: npt.NDArray[np.datetime64]) -> Integers:
    days: Integers = months.astype("datetime64[D]").astype(np.int64)
    return days


def _saturated(points: Integers, step: int, forward: bool) -> Integers:
    if step > MAX:
        return np.full(len(points), MAX if forward else MIN)
    with np.errstate(over="ignore"):
        moved = points + np.int64(step) if forward else points - np.int64(step)
    wrapped = moved < points if forward else moved > points
    return np.where(wrapped, MAX if forward else MIN, moved) if wrapped.any() else moved


def _float_shift(column: pa.Array) -> Shift:
    numbers: Doubles = column.cast(pa.float64()).fill_null(0.0).to_numpy()

    def shift(offset: Offset, forward: bool) -> Integers:
        if isinstance(offset, Interval):
            raise MistakeError("check_offset refuses it")
        return coded_floats(numbers + float(offset) if forward else numbers - float(offset))

    return shift


def _python_axis(column: pa.Array, valid: Mask, offsets: tuple[Offset, ...]) -> OrderAxis:
    """Return an axis made by the arithmetic of Python values: times at their codes, others at their ranks."""
    encoded = column.dictionary_encode()
    values = encoded.dictionary.to_pylist()
    codes = encoded.indices.fill_null(0).to_numpy(zero_copy_only=False)
    moved = {(offset, way): [_moved(value, offset, way) for value in values] for offset in offsets for way in (True, False)}
    place = _places({_comparable(value) for value in values}.union(*moved.values()) - {BEYOND})

    def points(keys: list[Value], beyond: int) -> Integers:
        placed: Integers = np.array([beyond if key is BEYOND else place(key) for key in keys] or [0], np.int64)[codes]
        return placed

    def shift(offset: Offset, forward: bool) -> Integers:
        return points(moved[offset, forward], MAX if forward else MIN)

    return OrderAxis(points([_comparable(value) for value in values], MIN), valid, shift)


def _places(keys: set[Value]) -> Callable[[Value], int]:
    """Return what places keys on the axis: whole numbers where they are and leave its ends free, others by rank."""
    if all(type(key) is int and MIN < key < MAX for key in keys):
        return int
    return {key: number for number, key in enumerate(sorted(keys))}.__getitem__


def _moved(value: object, offset: Offset, forward: bool) -> Value:
    moved = shifted(value, offset, forward)
    return moved if moved is BEYOND else _comparable(moved)


def _comparable(value: object) -> Value:
    """Return a value that compares as Arrow orders it; of a time its code, an instant whatever its zone."""
    if isinstance(value, dt.datetime):
        naive = value if value.tzinfo is None else value.astimezone(dt.UTC).replace(tzinfo=None)
        return (naive - _EPOCH) // _MICROSECOND
    if isinstance(value, dt.date):
        return (value - _EPOCH.date()).days
    return value // _MICROSECOND if isinstance(value, dt.timedelta) else value
