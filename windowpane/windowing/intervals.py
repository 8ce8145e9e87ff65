"""Calendar intervals: months, days and microseconds kept apart, because a month has no fixed length and a day may have 23 hours.

Arithmetic adds months, then days, then microseconds, as in PostgreSQL and RisingWave: 2024-01-28 + 1 month 2 days is
2024-03-01. A day of the month that does not exist becomes the last one that does. Months and days move the wall clock of the
instant's own zone, microseconds move the instant; a wall clock that a daylight-saving gap skips is moved forward by the gap.
"""

from __future__ import annotations

import datetime as dt
import re
from calendar import monthrange
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from windowpane.errors import InvalidDurationError, InvalidIntervalError
from windowpane.windowing.times import format_micros, terms, to_micros, without_interval

MICROS_PER_DAY = 86_400_000_000

_CLOCK = re.compile(r"\s*([+-]?)(\d+):(\d\d)(?::(\d\d)(?:\.(\d{1,6}))?)?\s*$")
_MONTHS = {"month": 1, "mon": 1, "year": 12, "yr": 12, "y": 12, "quarter": 3, "decade": 120, "century": 1200}
_DAYS = {"day": 1, "d": 1, "week": 7, "w": 7}
_PLURALS = {"centuries": "century", "mons": "mon", "yrs": "yr"}

Instant = TypeVar("Instant", dt.date, dt.datetime)


@dataclass(frozen=True, slots=True)
class Interval:
    """A span of calendar time.

    Args:
        months: calendar months.
        days: calendar days.
        micros: microseconds.

    Example:
        >>> Interval.of("1 month 2 days").added_to(dt.datetime(2024, 1, 28))
        datetime.datetime(2024, 3, 1, 0, 0)
    """

    months: int = 0
    days: int = 0
    micros: int = 0

    @classmethod
    def of(cls, span: Interval | str | int | dt.timedelta) -> Interval:
        """Return an interval from text, a ``timedelta``, or an integer of microseconds.

        In text every field counts by itself, so ``"24 hours"`` is not ``"1 day"``; a clock ``hh:mm[:ss]`` may be last.

        Raises:
            InvalidDurationError: the text is not understood, or a part is finer than a microsecond.
        """
        if isinstance(span, Interval):
            return span
        if isinstance(span, str):
            return _parse(span)
        return cls(micros=to_micros(span))

    @property
    def is_zero(self) -> bool:
        return not (self.months or self.days or self.micros)

    @property
    def is_negative(self) -> bool:
        """Whether one of its fields is below zero: such an interval cannot be the offset of a frame."""
        return min(self.months, self.days, self.micros) < 0

    @property
    def is_fixed(self) -> bool:
        """Whether it is a number of microseconds on every calendar."""
        return not (self.months or self.days)

    def __neg__(self) -> Interval:
        return Interval(-self.months, -self.days, -self.micros)

    def added_to(self, instant: Instant) -> Instant:
        """Return ``instant`` plus this interval; a date stays a date.

        Raises:
            InvalidIntervalError: the result lies outside the years 1 to 9999, or a date would get a time of day.
        """
        try:
            return _added(self, instant)
        except (OverflowError, ValueError) as cause:
            raise InvalidIntervalError(self, instant, "the result is not in the years 1 to 9999") from cause

    def __str__(self) -> str:
        parts = [f"{self.months} month{'' if abs(self.months) == 1 else 's'}"] if self.months else []
        parts += [f"{self.days} day{'' if abs(self.days) == 1 else 's'}"] if self.days else []
        if self.micros or not parts:
            # As text that reads back: a whole number of days is hours here, for a day is another field.
            is_days = self.micros and self.micros % MICROS_PER_DAY == 0
            parts.append(f"{self.micros // 3_600_000_000} hours" if is_days else format_micros(self.micros))
        return " ".join(parts)

    def __repr__(self) -> str:
        return f"Interval({str(self)!r})"


def _added(interval: Interval, instant: Instant) -> Instant:
    if not isinstance(instant, dt.datetime):
        if interval.micros:
            raise InvalidIntervalError(interval, instant, "a date has no time of day; cast it to a timestamp")
        return _add_months(instant, interval.months) + dt.timedelta(days=interval.days)
    zone = instant.tzinfo
    if zone is None:
        return _moved(interval, instant) + dt.timedelta(microseconds=interval.micros)
    moved = instant if interval.is_fixed else _at_wall_clock(_moved(interval, instant.replace(tzinfo=None)), zone)
    elapsed = moved.astimezone(dt.UTC) + dt.timedelta(microseconds=interval.micros)
    return elapsed.astimezone(zone)


def _moved(interval: Interval, wall_clock: dt.datetime) -> dt.datetime:
    return _add_months(wall_clock, interval.months) + dt.timedelta(days=interval.days)


def _at_wall_clock(naive: dt.datetime, zone: dt.tzinfo) -> dt.datetime:
    """A time in a zone; a zone of pytz, which older versions of pyarrow prefer, has to be asked for its offset at that time."""
    localize: Callable[[dt.datetime], dt.datetime] | None = getattr(zone, "localize", None)
    return naive.replace(tzinfo=zone) if localize is None else localize(naive)


def _add_months(instant: Instant, months: int) -> Instant:
    years, month = divmod(instant.month - 1 + months, 12)
    year = instant.year + years
    last = monthrange(year, month + 1)[1] if 1 <= year <= 9999 else 31
    return instant.replace(year=year, month=month + 1, day=min(instant.day, last))


def _parse(text: str) -> Interval:
    body = without_interval(text)
    clock = _CLOCK.search(body)
    before = body if clock is None else body[: clock.start()]
    parts = [] if clock is None else [Interval(micros=_clock_micros(clock))]
    if clock is None or before:
        parts += [_term(number, word, text) for number, word in terms(before, text)]
    return Interval(*(sum(getattr(part, field) for part in parts) for field in ("months", "days", "micros")))


def _term(number: str, word: str, text: str) -> Interval:
    unit = word.lower()
    unit = _PLURALS.get(unit) or (unit if unit in _MONTHS or unit in _DAYS else unit.removesuffix("s"))
    if unit in _MONTHS:
        return Interval(months=_whole(number, text) * _MONTHS[unit])
    if unit in _DAYS:
        return Interval(days=_whole(number, text) * _DAYS[unit])
    return Interval(micros=to_micros(f"{number} {word}"))


def _whole(number: str, text: str) -> int:
    if "." in number:
        raise InvalidDurationError(text, f"{number} of a calendar unit has no fixed length")
    return int(number)


def _clock_micros(clock: re.Match[str]) -> int:
    sign, hours, minutes, seconds, fraction = clock.groups()
    whole = (int(hours) * 60 + int(minutes)) * 60 + int(seconds or 0)
    micros = whole * 1_000_000 + int((fraction or "").ljust(6, "0"))
    return -micros if sign == "-" else micros
