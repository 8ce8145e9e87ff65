"""The Python values of a column: those of ``to_pylist``, dates, timestamps and decimals in a fraction of its time.

``to_pylist`` makes three datetimes for each timestamp with a zone. Here numpy makes the distances to an instant, which is added
to each of them.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windowpane.arrays import Integers, NumpyArray
from windowpane.arrays.values import Value

_MICROS_PER_DAY = 86_400_000_000
_DAY = dt.date(1970, 1, 1)
_INSTANT = dt.datetime(1970, 1, 1)
_FIRST_DAY, _LAST_DAY = (day.toordinal() - _DAY.toordinal() for day in (dt.date.min, dt.date.max))


def python_values(column: pa.Array | pa.ChunkedArray) -> list[Value]:
    """Return a column as Python values.

    Raises:
        OverflowError, ValueError: a value that Python has no type for, as a timestamp after the year 9999.

    >>> python_values(pa.array([0, None], pa.timestamp("us", "Europe/Paris")))
    [datetime.datetime(1970, 1, 1, 1, 0, tzinfo=zoneinfo.ZoneInfo(key='Europe/Paris')), None]
    """
    kind = column.type
    numbers = calendar_numbers(column)
    if numbers is not None:
        is_day = pa.types.is_date32(kind)
        return _filled(column, days_at(numbers, 0) if is_day else instants_at(numbers, 0, zone_of(kind.tz)))
    if pa.types.is_decimal128(kind):
        return _filled(column, list(map(Decimal, pc.fill_null(column.cast(pa.string()), "0").to_pylist())))
    values: list[Value] = column.to_pylist()
    return values


def python_rows(names: Sequence[str], columns: Sequence[Sequence[Value]], count: int) -> list[dict[str, Value]]:
    """Return so many rows as dicts, given the values of each column."""
    return list(map(_row_maker(tuple(names)), *columns)) if names else [{} for _ in range(count)]


@lru_cache(maxsize=256)
def _row_maker(names: tuple[str, ...]) -> Callable[..., dict[str, Value]]:
    """Return what makes a row of its values: a dict display, compiled for these names, takes a third of the time of ``zip``."""
    places = range(len(names))
    display = ", ".join(f"{name!r}: v{place}" for place, name in zip(places, names, strict=True))
    made: Callable[..., dict[str, Value]] = eval(f"lambda {', '.join(f'v{place}' for place in places)}: {{{display}}}")
    return made


def calendar_numbers(column: pa.Array | pa.ChunkedArray) -> Integers | None:
    """Return dates as days since 1970, and timestamps as microseconds, 0 for null.

    ``None`` for columns of other types, and where there is none or one may be beyond Python's calendar.
    """
    kind = column.type
    if pa.types.is_date32(kind):
        return _between(column.cast(pa.int32()), _FIRST_DAY, _LAST_DAY)
    if pa.types.is_timestamp(kind) and kind.unit == "us":
        # In some zone the calendar ends up to a day before it does in UTC.
        return _between(column.cast(pa.int64()), (_FIRST_DAY + 1) * _MICROS_PER_DAY, _LAST_DAY * _MICROS_PER_DAY)
    return None


def has_end_of_day(column: pa.Array | pa.ChunkedArray) -> bool:
    """Whether a time of a column, or of its lists, is 24:00, which Python would take for 0:00.

    >>> has_end_of_day(pa.array([[0], [_MICROS_PER_DAY]], pa.list_(pa.time64("us"))))
    True
    """
    while pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
        column = pc.list_flatten(column)
    return pa.types.is_time64(column.type) and bool(pc.any(pc.equal(column.cast(pa.int64()), _MICROS_PER_DAY)).as_py())


def days_at(distances: NumpyArray, least: int) -> list[dt.date]:
    """Return the dates at distances, in days, to a day since 1970."""
    first = _DAY + dt.timedelta(days=least)
    return list(map(first.__add__, distances.astype("m8[D]").tolist()))


def instants_at(distances: NumpyArray, least: int, zone: dt.tzinfo | None) -> list[dt.datetime]:
    """Return the instants at distances, in microseconds, to one since 1970, in a zone."""
    first, spans = _INSTANT + dt.timedelta(microseconds=least), distances.astype("m8[us]").tolist()
    if zone is None:
        return list(map(first.__add__, spans))
    first = first.replace(tzinfo=dt.UTC)
    if isinstance(zone, dt.timezone) or getattr(zone, "key", None) == "UTC":
        return list(map(first.astimezone(zone).__add__, spans))
    return [instant.astimezone(zone) for instant in map(first.__add__, spans)]


@lru_cache(maxsize=256)
def zone_of(name: str | None) -> dt.tzinfo | None:
    """Return the zone of the values of a timestamp column whose type has a zone of this name."""
    instant: dt.datetime = pa.array([0], pa.timestamp("us", name))[0].as_py()
    return instant.tzinfo


def _between(numbers: pa.Array | pa.ChunkedArray, first: int, last: int) -> Integers | None:
    """Return numbers as an array, 0 for null; ``None`` if one of them is out of bounds, or there are none."""
    bounds = pc.min_max(numbers).as_py()
    if bounds["min"] is None or bounds["min"] < first or bounds["max"] > last:
        return None
    filled: NumpyArray = (pc.fill_null(numbers, 0) if numbers.null_count else numbers).to_numpy()
    return filled.astype(np.int64, copy=False)


def _filled(column: pa.Array | pa.ChunkedArray, values: list[Value]) -> list[Value]:
    """Return values with ``None`` where the column is null."""
    if column.null_count:
        for place in np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False)).tolist():
            values[place] = None
    return values
