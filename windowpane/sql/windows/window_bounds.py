"""The bounds of TUMBLE, HOP and CUMULATE as SQL of microseconds: of fixed lengths, and of the calendar of a time zone."""

from __future__ import annotations

from dataclasses import dataclass, replace

from windowpane.sql.values.text_values import text_literal
from windowpane.sql.windows.time_functions import floor_sql
from windowpane.windowing.assigners.calendar import CalendarWindows
from windowpane.windowing.assigners.calendars import Calendar
from windowpane.windowing.intervals import MICROS_PER_DAY

_LONGEST_MONTH = 31
_CHANGES = 2 * MICROS_PER_DAY
"""No zone has put its clock back by more, between two local dates."""


@dataclass(frozen=True)
class WindowBounds:
    """The windows of a time ``{t}``, numbered by ``windowpane_n``; all is SQL of microseconds.

    Args:
        condition: which of the numbers are windows of the time.
        count: how many numbers there are.
        first_start: the least start of all windows that hold ``{t}`` or a later time.
        first_end: the least end of them.
    """

    start: str
    end: str
    condition: str
    count: int
    first_start: str
    first_end: str


def fixed_bounds(name: str, size: int, step: int, offset: int) -> WindowBounds:
    """Return the bounds of windows of so many microseconds."""
    base = floor_sql("{t}", str(step if name == "hop" else size), str(offset))
    if name == "tumble":
        return WindowBounds(base, f"({base} + {size})", "TRUE", 1, base, f"({base} + {size})")
    if name == "hop":
        start = f"({base} - windowpane_n * {step})" if size > step else base
        first = f"({floor_sql(f'{{t}} - {size}', str(step), str(offset))} + {step})"
        condition = f"{{t}} < {start} + {size}" if size % step else "TRUE"
        return WindowBounds(start, f"({start} + {size})", condition, -(-size // step), first, f"({first} + {size})")
    end = f"({base} + (windowpane_n + 1) * {step})" if size > step else f"({base} + {size})"
    next_step = f"({floor_sql('{t}', str(step), str(offset))} + {step})"
    return WindowBounds(base, end, f"{{t}} < {end}", size // step, base, next_step)


def calendar_bounds(windows: CalendarWindows) -> WindowBounds:
    """Return the bounds of windows of a calendar; of windows with the same end only one counts."""
    if windows.is_within:
        return _within_periods(windows)
    size = windows.size
    if windows.step:
        start, end = _at(windows, "0", size), _at(windows, "CAST(windowpane_n + 1 AS BIGINT)", size)
        condition = f"{{t}} < {end} AND {_at(windows, 'CAST(windowpane_n AS BIGINT)', size)} < {end}"
        return WindowBounds(start, end, condition, size, start, _at(windows, "1", 1))
    if size == 1:
        start, end = _at(windows, "0", 1), _at(windows, "1", 1)
        return WindowBounds(start, end, "TRUE", 1, start, end)
    if windows.slide > 1:
        return _sliding(windows)
    start, end = _at(windows, "CAST(-windowpane_n AS BIGINT)", 1), _at(windows, f"CAST({size} - windowpane_n AS BIGINT)", 1)
    condition = f"{_at(windows, f'CAST({size - 1} - windowpane_n AS BIGINT)', 1)} < {end}"
    return WindowBounds(start, end, condition, size, _at(windows, str(1 - size), 1), _at(windows, "1", 1))


def _sliding(windows: CalendarWindows) -> WindowBounds:
    """Return the bounds of windows that slide by several periods: of the earliest ones, fewer periods may be left."""
    size, slide = windows.size, windows.slide
    count = -(-size // slide)
    start, end = (_at(windows, f"CAST({further} - windowpane_n * {slide} AS BIGINT)", slide) for further in (0, size))
    firsts = (slide * (1 - count), slide * (2 - count))
    early, late = ([_at(windows, str(first + further), slide) for further in (0, size)] for first in firsts)
    first_start, first_end = (
        f"(CASE WHEN {{t}} < {early[1]} THEN {one} ELSE {other} END)" for one, other in zip(early, late, strict=True)
    )
    return WindowBounds(start, end, f"{{t}} < {end}", count, first_start, first_end)


def _within_periods(windows: CalendarWindows) -> WindowBounds:
    """Return the bounds of windows that cumulate by a time or by days: the last one ends with its period, however long it is."""
    step, days, unit = windows.step_micros, windows.step_days, windows.unit
    start, until = _at(windows, "0", 1), _at(windows, "1", 1)
    longest = unit.days or unit.months * _LONGEST_MONTH
    if days:
        dates = replace(windows, unit=Calendar(unit.timezone, 0, 1, unit.origin))
        begin, next_begin = (
            _at(dates, f"CAST((windowpane_n + {further}) * {days} AS BIGINT)", 1).replace("{t}", start) for further in (0, 1)
        )
        count, first_end = -(-longest // days), _at(dates, "1", 1)  # ends are days' first instants: none lies in between
    else:
        begin, next_begin = (f"{start} + (windowpane_n + {further}) * {step}" for further in (0, 1))
        count = -(-(longest * MICROS_PER_DAY + _CHANGES) // step)
        first_end = f"least({start} + (({{t}} - {start}) // {step} + 1) * {step}, {until})"
    end = f"least({next_begin}, {until})"
    return WindowBounds(start, end, f"{{t}} < {end} AND {begin} < {end}", count, start, first_end)


def _at(windows: CalendarWindows, periods: str, size: int) -> str:
    unit = windows.unit
    zone, origin = text_literal(unit.timezone), text_literal(unit.origin.isoformat())
    return f"windowpane_calendar_bound({{t}}, {periods}, {size}, {zone}, {unit.months}, {unit.days}, {origin})"
