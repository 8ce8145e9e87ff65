"""Calendars: days or months of a time zone, numbered from an origin, and the instants at which they begin.

A period begins with the first instant of its first local date. Where a clock that is put forward skips midnight that is the
instant of the change, and where it passes midnight twice the earlier one; a local date that never was, as 2011-12-30 in Apia, has
no length. Offsets are those of the IANA database, back to local mean time. Source of the rule: java.time's
``LocalDate.atStartOfDay``, by which Spark truncates dates.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from functools import lru_cache
from zoneinfo import ZoneInfo

import numpy as np

from windowpane.arrays import Integers
from windowpane.errors import CalendarRangeError
from windowpane.windowing.intervals import MICROS_PER_DAY
from windowpane.windowing.times import zone_of

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICRO = dt.timedelta(microseconds=1)
_FIRST = (dt.datetime(1, 1, 3, tzinfo=dt.UTC) - _EPOCH) // _MICRO
_LAST = (dt.datetime(9999, 12, 29, tzinfo=dt.UTC) - _EPOCH) // _MICRO


@dataclass(frozen=True)
class Calendar:
    """Periods of so many months, or so many days, in a time zone.

    Args:
        timezone: name of the zone in the IANA database.
        months: months of a period; 0 where it is made of days.
        days: days of a period; 0 where it is made of months.
        origin: the local date at which period 0 begins; for months its day is one that all months have.

    Example:
        >>> calendar = Calendar("Europe/Berlin", 0, 1, dt.date(1970, 1, 1))
        >>> (calendar.begin(19_814) - calendar.begin(19_813)) // 3_600_000_000  # 2024-03-31
        23
    """

    timezone: str
    months: int
    days: int
    origin: dt.date

    def begin(self, index: int) -> int:
        """Return the first instant of a period, in microseconds."""
        return _begin(self, index)

    def index(self, instant: int) -> int:
        """Return the period that holds an instant."""
        return _index(self, instant)

    def days_within(self, index: int, days: int) -> tuple[int, ...]:
        """Return the first instant of a period, and those at which each further ``days`` local dates of it begin."""
        return _days_within(self, index, days)

    def indexes(self, instants: Integers) -> Integers:
        """Return the period that holds each instant."""
        if not len(instants):
            return np.empty(0, np.int64)
        first, begins = self._table(int(instants.min()), int(instants.max()))
        return np.searchsorted(begins, instants, side="right") - 1 + first

    def begins(self, indexes: Integers) -> Integers:
        if not len(indexes):
            return np.empty(0, np.int64)
        first = int(indexes.min())
        table = np.array([self.begin(each) for each in range(first, int(indexes.max()) + 1)], np.int64)
        return table[indexes - first]

    def _table(self, least: int, greatest: int) -> tuple[int, Integers]:
        """Return a period before ``least``, and where it and all up to one behind ``greatest`` begin."""
        for instant in (least, greatest):
            self._refuse_range(instant)
        # Local dates are less than two days off those of UTC.
        first = self._of_date(_date(least - 2 * MICROS_PER_DAY))
        last = self._of_date(_date(greatest + 2 * MICROS_PER_DAY)) + 1
        return first, np.array([self.begin(each) for each in range(first, last + 1)], np.int64)

    def _refuse_range(self, instant: int) -> None:
        if not _FIRST <= instant <= _LAST:
            raise CalendarRangeError(instant, self.timezone)

    def _of_date(self, date: dt.date) -> int:
        """Return the period of a local date."""
        if self.days:
            return (date - self.origin).days // self.days
        months = (date.year - self.origin.year) * 12 + date.month - self.origin.month - (date.day < self.origin.day)
        return months // self.months

    def _date_of(self, index: int) -> dt.date:
        """Return the local date at which a period begins."""
        if self.days:
            return self.origin + dt.timedelta(days=index * self.days)
        years, month = divmod(self.origin.month - 1 + index * self.months, 12)
        return dt.date(self.origin.year + years, month + 1, self.origin.day)


def _date(instant: int) -> dt.date:
    bounded = min(max(instant, _FIRST - MICROS_PER_DAY), _LAST + MICROS_PER_DAY)
    return (_EPOCH + bounded * _MICRO).date()


@lru_cache(maxsize=1 << 14)
def _index(calendar: Calendar, instant: int) -> int:
    calendar._refuse_range(instant)
    index = calendar._of_date(_date(instant - 2 * MICROS_PER_DAY))
    while _begin(calendar, index + 1) <= instant:
        index += 1
    return index


@lru_cache(maxsize=1 << 16)
def _begin(calendar: Calendar, index: int) -> int:
    try:
        date = calendar._date_of(index)
        return _start_of(date, zone_of(calendar.timezone))
    except (OverflowError, ValueError):
        raise CalendarRangeError(None, calendar.timezone) from None


@lru_cache(maxsize=1 << 12)
def _days_within(calendar: Calendar, index: int, days: int) -> tuple[int, ...]:
    first, behind = (calendar._date_of(each) for each in (index, index + 1))
    dates = (first + dt.timedelta(days=further) for further in range(0, (behind - first).days, days))
    found = {_start_of(date, zone_of(calendar.timezone)) for date in dates}  # dates that never were begin where the next does
    return tuple(sorted(found - {calendar.begin(index + 1)}))


def _start_of(date: dt.date, zone: ZoneInfo) -> int:
    """Return the first instant whose local date is ``date``, or later where that date never was."""
    midnight = dt.datetime(date.year, date.month, date.day, tzinfo=zone)
    earlier, later = _instant(midnight), _instant(midnight.replace(fold=1))
    if earlier <= later:
        return earlier
    # A gap: by the offset of before, midnight lies behind the change, by that of after in front of it.
    before, behind = later, earlier
    while before + 1 < behind:
        middle = (before + behind) // 2
        if (_EPOCH + middle * _MICRO).astimezone(zone).date() >= date:
            behind = middle
        else:
            before = middle
    return behind


def _instant(local: dt.datetime) -> int:
    return (local.astimezone(dt.UTC) - _EPOCH) // _MICRO
