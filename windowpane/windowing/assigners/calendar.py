"""Calendar windows: days, weeks, months, quarters and years of a time zone, however many hours they have.

Source of the rules: Flink's tumbling, sliding and cumulating windows, on bounds of local dates; bounds as Spark's ``date_trunc``.
"""

from __future__ import annotations

import datetime as dt
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import gcd
from typing import Literal, Self, get_args

import numpy as np

from windowpane.arrays import Integers
from windowpane.arrays.values import Value
from windowpane.errors import InvalidDurationError, InvalidSpecError
from windowpane.windowing.assigners.base import AssignerContext, WindowAssigner
from windowpane.windowing.assigners.calendars import Calendar
from windowpane.windowing.intervals import Interval
from windowpane.windowing.times import zone_of
from windowpane.windowing.windows import TimeWindow

FirstDay = Literal["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]

_DAYS_OF_WEEK = get_args(FirstDay)
_MONDAY = dt.date(1969, 12, 29)
_COMMON_DAY = 28


@dataclass(frozen=True)
class CalendarWindows(WindowAssigner):
    """Windows whose bounds are local dates, by event time: ``of`` and ``cumulate`` make them.

    Args:
        unit: the periods that all windows are made of.
        size: how many periods a window has.
        slide: how many periods from one window to the next.
        step: of cumulating windows, how many periods from one to the next longer one; 0 for others.
        step_micros: of windows that cumulate within a period, microseconds from one to the next longer one; 0 for others.
        step_days: of those that do by local days.

    Example:
        >>> windows = CalendarWindows.of("1 month", timezone="Europe/Berlin")
        >>> print(windows.windows_at(1_709_999_999_000_000)[0])
        [2024-02-29T23:00:00Z, 2024-03-31T22:00:00Z)
    """

    reads_elements = False
    unit: Calendar
    size: int
    slide: int
    step: int = 0
    step_micros: int = 0
    step_days: int = 0

    @classmethod
    def of(
        cls,
        size: str | Interval,
        timezone: str = "UTC",
        slide: str | Interval | None = None,
        first_day: FirstDay | None = None,
        origin: dt.date | str | None = None,
    ) -> Self:
        """Return the assigner for windows of so many days, weeks, months, quarters or years.

        Args:
            size: of a window: ``"1 month"``, ``"2 weeks"``, ``"1 day"``.
            timezone: the zone whose dates they are.
            slide: from one window to the next, in the same kind of unit; by default the size. At most the size.
            first_day: at which weeks begin, ``"monday"`` by default; for sizes of whole weeks.
            origin: a local date at which a window begins, ISO text or a date; by default 1970-01-01, for weeks the first day
                next before it. For months a day from 1 to 28.

        Raises:
            InvalidSpecError: an unknown zone, a size that mixes months with days or hours, a slide longer than the size, ...

        Example:
            >>> CalendarWindows.of("3 months", "America/New_York", slide="1 month").size
            3
        """
        length = _period(size, "size")
        shift = length if slide is None else _period(slide, "slide")
        if (length.months > 0) != (shift.months > 0):
            raise InvalidSpecError(f"CalendarWindows: size {size!r} and slide {slide!r} must both be months, or both be days.")
        unit = _calendar(timezone, gcd(length.months, shift.months), gcd(length.days, shift.days), first_day, origin, length)
        each = unit.months or unit.days
        whole, part = (length.months or length.days) // each, (shift.months or shift.days) // each
        if part > whole:
            raise InvalidSpecError(f"CalendarWindows: the slide {slide!r} is longer than the size {size!r}.")
        return cls(unit, whole, part)

    @classmethod
    def cumulate(
        cls,
        max_size: str | Interval,
        step: str | Interval,
        timezone: str = "UTC",
        first_day: FirstDay | None = None,
        origin: dt.date | str | None = None,
    ) -> Self:
        """Return the assigner for windows that share a start and grow step by step up to ``max_size``.

        Args:
            max_size: of the longest window: ``"1 day"``, ``"1 month"``.
            step: days or months that ``max_size`` is a multiple of. Or days of months, or a time, as ``"1 hour"``, that are
                counted from the start of the window: the last step ends with it, in a month of 28 days, on a day of 25 hours.
            timezone: the zone whose dates they are.
            first_day: at which weeks begin, see ``of``.
            origin: a local date at which a window begins, see ``of``.

        Raises:
            InvalidSpecError: as ``of``; a step that is not positive, or that ``max_size`` is no multiple of.

        Example:
            >>> CalendarWindows.cumulate("1 day", "1 hour", "Asia/Kolkata").step_micros
            3600000000
            >>> print(*CalendarWindows.cumulate("1 month", "10 days").windows_at(1_708_000_000_000_000))  # 2024-02-15
            [2024-02-01T00:00:00Z, 2024-02-21T00:00:00Z) [2024-02-01T00:00:00Z, 2024-03-01T00:00:00Z)
        """
        length, part = _period(max_size, "max_size"), _interval(step, "step")
        if part.micros and not (part.months or part.days):
            if part.micros < 0:
                raise InvalidSpecError(f"CalendarWindows: the step must be positive, but is {step!r}.")
            unit = _calendar(timezone, length.months, length.days, first_day, origin, length)
            return cls(unit, 1, 1, step_micros=part.micros)
        part = _period(step, "step")
        if length.months and part.days:
            return cls(_calendar(timezone, length.months, 0, first_day, origin, length), 1, 1, step_days=part.days)
        if (length.months > 0) != (part.months > 0) or (length.months or length.days) % (part.months or part.days):
            raise InvalidSpecError(f"CalendarWindows: max_size {max_size!r} must be a multiple of the step {step!r}.")
        unit = _calendar(timezone, part.months, part.days, first_day, origin, length)
        periods = (length.months or length.days) // (part.months or part.days)
        return cls(unit, periods, periods, step=1)

    def assign_windows(self, element: Value, timestamp: int, context: AssignerContext) -> Sequence[TimeWindow]:
        return self.windows_at(self.instant_of(element, timestamp, context))

    # What engines read. Rows of one slice are in the same windows; each window has an end of its own.

    def windows_at(self, instant: int) -> tuple[TimeWindow, ...]:
        """Return the windows that hold an instant, in the order of ``assign_windows``."""
        index = self.unit.index(instant)
        if not self.is_within:
            return _windows_of(self, index)
        steps = self._steps(index)
        ends = [*steps[bisect_right(steps, instant) :], self.unit.begin(index + 1)]
        return tuple(TimeWindow(steps[0], end) for end in ends)

    def slice_starts(self, instants: Integers) -> Integers:
        """Return where the slice of each instant begins."""
        indexes = self.unit.indexes(instants)
        if self.step_days and len(instants):
            periods = range(int(indexes.min()), int(indexes.max()) + 1)
            steps = np.array([at for index in periods for at in self._steps(index)], np.int64)
            return steps[np.searchsorted(steps, instants, side="right") - 1]
        begins = self.unit.begins(indexes)
        if self.step_micros:
            return begins + (instants - begins) // self.step_micros * self.step_micros
        # Dates that never were begin where the next does.
        return begins

    def slices_between(self, start: int, end: int) -> list[int]:
        """Return where the slices from one bound of a slice to another begin."""
        if start >= end:
            return []
        periods = range(self.unit.index(start), self.unit.index(end - 1) + 1)
        if not self.is_within:
            return sorted({self.unit.begin(index) for index in periods})
        steps = (self._steps(index) for index in periods)
        return [at for each in steps for at in each[bisect_left(each, start) : bisect_left(each, end)]]

    def window_start(self, end: int) -> int:
        """Return where the window that ends at ``end`` starts."""
        index = self.unit.index(end - 1)
        if self.is_within:
            return self.unit.begin(index)
        if self.step:
            return self.unit.begin(index // self.size * self.size)
        start = index + 1 - self.size
        while start % self.slide:  # dates that never were lie between
            start += 1
        return self.unit.begin(start)

    @property
    def is_within(self) -> bool:
        """Whether windows cumulate within a period, whose end is that of the last step."""
        return bool(self.step_micros or self.step_days)

    def _steps(self, index: int) -> Sequence[int]:
        """Return where the steps within a period begin."""
        if self.step_days:
            return self.unit.days_within(index, self.step_days)
        return range(self.unit.begin(index), self.unit.begin(index + 1), self.step_micros)


@lru_cache(maxsize=1 << 14)
def _windows_of(windows: CalendarWindows, index: int) -> tuple[TimeWindow, ...]:
    unit, size = windows.unit, windows.size
    if windows.step:
        start = index // size * size
        bounds = [(start, end) for end in range(index + 1, start + size + 1)]
    else:
        last = index // windows.slide * windows.slide
        bounds = [(start, start + size) for start in range(last, index - size, -windows.slide)]
    # Where each period begins or ends a window, one whose last date never was ends where another does: it is left out.
    is_dense = windows.step or windows.slide == 1
    kept = [(start, end) for start, end in bounds if not is_dense or unit.begin(end - 1) < unit.begin(end)]
    return tuple(TimeWindow(unit.begin(start), unit.begin(end)) for start, end in kept)


def _interval(span: str | Interval, what: str) -> Interval:
    try:
        return Interval.of(span)
    except InvalidDurationError as error:
        raise InvalidSpecError(f"CalendarWindows: {what} {span!r} is no span of time: {error}") from error


def _period(span: str | Interval, what: str) -> Interval:
    found = _interval(span, what)
    if found.micros or (found.months != 0) == (found.days != 0) or found.months < 0 or found.days < 0:
        raise InvalidSpecError(
            f"CalendarWindows: {what} must be a positive number of months (quarters, years) or of days (weeks), but is "
            f"{span!r}. Mixtures have no calendar; for hours take TumblingEventTimeWindows."
        )
    return found


def _calendar(
    timezone: str, months: int, days: int, first_day: FirstDay | None, origin: dt.date | str | None, length: Interval
) -> Calendar:
    zone_of(timezone, "CalendarWindows")
    has_weeks = length.days > 0 and length.days % 7 == 0
    if first_day is not None and (first_day not in _DAYS_OF_WEEK or not has_weeks or origin is not None):
        raise InvalidSpecError(
            f"CalendarWindows: first_day is a day of the week, as 'sunday', for sizes of whole weeks and without an origin, but "
            f"is {first_day!r}."
        )
    if origin is None:
        start = _MONDAY + dt.timedelta(days=_DAYS_OF_WEEK.index(first_day or "monday")) if has_weeks else dt.date(1970, 1, 1)
        start = start - dt.timedelta(days=7) if start > dt.date(1970, 1, 1) else start
    else:
        start = _date(origin)
    if months and start.day > _COMMON_DAY:
        raise InvalidSpecError(f"CalendarWindows: months begin at a day that all have, from 1 to 28, but the origin is {start}.")
    return Calendar(timezone, months, days, start)


def _date(origin: dt.date | str) -> dt.date:
    try:
        return dt.date.fromisoformat(origin) if isinstance(origin, str) else dt.date(origin.year, origin.month, origin.day)
    except (ValueError, AttributeError) as error:
        raise InvalidSpecError(f"CalendarWindows: origin is a date, as '2024-01-01', but is {origin!r}.") from error
