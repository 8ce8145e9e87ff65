"""Bounds of calendar windows as a function of Arrow arrays: what DuckDB calls for windows of months, and of days of a zone."""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windowpane.windowing.calendars import Calendar


def bound(instants: Any, periods: Any, size: Any, timezone: Any, months: Any, days: Any, origin: Any) -> pa.Array:
    """Return where the period begins that lies so many periods behind the start of the group of ``size`` that holds an instant.

    Args:
        instants: microseconds from the epoch; NULL gives NULL.
        periods: how many periods further.
        size: how many periods a group has; its groups are counted from period 0.
        timezone: the zone, as all that follow of one value.
        months: months of a period; 0 where it is made of days.
        days: days of a period; 0 where it is made of months.
        origin: the local date at which period 0 begins, as ISO text.

    Raises:
        CalendarRangeError: an instant lies outside of the years 1 to 9999.
    """
    if not len(instants):
        return pa.nulls(0, pa.int64())
    given = [column[0].as_py() for column in (timezone, months, days, origin)]
    calendar = Calendar(given[0], given[1], given[2], dt.date.fromisoformat(given[3]))
    length = size[0].as_py()
    is_null = pc.is_null(instants).to_numpy(zero_copy_only=False)
    valid = instants.drop_null().to_numpy()
    further = periods.to_numpy()[~is_null]
    result = np.zeros(len(is_null), np.int64)
    result[~is_null] = calendar.begins(calendar.indexes(valid) // length * length + further)
    return pa.array(result, mask=is_null)
