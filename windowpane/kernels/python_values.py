"""The Python values of a column: those of ``to_pylist``, dates, timestamps and decimals in a fraction of its time.

``to_pylist`` makes three datetimes for each timestamp with a zone. Here numpy makes the distances to an instant, which is added
to each of them.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_DAY = 24 * 60 * 60 * 1_000_000
_FIRST_DAY, _LAST_DAY = (day.toordinal() - dt.date(1970, 1, 1).toordinal() for day in (dt.date.min, dt.date.max))
_UTC = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def python_values(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """Return a column as Python values.

    Raises:
        OverflowError, ValueError: a value that Python has no type for, as a timestamp after the year 9999.

    >>> python_values(pa.array([0, None], pa.timestamp("us", "Europe/Paris")))
    [datetime.datetime(1970, 1, 1, 1, 0, tzinfo=zoneinfo.ZoneInfo(key='Europe/Paris')), None]
    """
    kind = column.type
    if pa.types.is_date32(kind):
        days = _between(column.cast(pa.int32()), _FIRST_DAY, _LAST_DAY)
        if days is not None:
            return _filled(column, list(map(dt.date(1970, 1, 1).__add__, days.astype("m8[D]").tolist())))
    if pa.types.is_timestamp(kind) and kind.unit == "us":
        # A day from either end there is a zone in which the calendar ends.
        micros = _between(column.cast(pa.int64()), (_FIRST_DAY + 1) * _DAY, _LAST_DAY * _DAY)
        if micros is not None:
            return _filled(column, _instants(micros.astype("m8[us]").tolist(), column))
    if pa.types.is_decimal128(kind):
        return _filled(column, list(map(Decimal, pc.fill_null(column.cast(pa.string()), "0").to_pylist())))
    return column.to_pylist()  # type: ignore[no-any-return]


def _between(numbers: pa.Array | pa.ChunkedArray, first: int, last: int) -> Any:
    """Return numbers as an array, 0 for null; ``None`` if one of them is out of bounds, or there are none."""
    bounds = pc.min_max(numbers).as_py()
    if bounds["min"] is None or bounds["min"] < first or bounds["max"] > last:
        return None
    return (pc.fill_null(numbers, 0) if numbers.null_count else numbers).to_numpy()


def _instants(distances: list[dt.timedelta], column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """Return the instants at distances to 1970; all are of the zone of the column."""
    if column.type.tz is None:
        return list(map(dt.datetime(1970, 1, 1).__add__, distances))
    zone = pc.drop_null(column)[0].as_py().tzinfo
    if isinstance(zone, dt.timezone) or getattr(zone, "key", None) == "UTC":
        return list(map(_UTC.astimezone(zone).__add__, distances))
    return [instant.astimezone(zone) for instant in map(_UTC.__add__, distances)]


def _filled(column: pa.Array | pa.ChunkedArray, values: list[Any]) -> list[Any]:
    """Return values with ``None`` where the column is null."""
    if column.null_count:
        for place in np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False)).tolist():
            values[place] = None
    return values
