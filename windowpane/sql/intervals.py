"""Interval literals: PostgreSQL's and ISO 8601 text to months, days and microseconds."""

from __future__ import annotations

import re
from decimal import Decimal

from windowpane.windowing.intervals import MICROS_PER_DAY, Interval

_MONTHS = {"year": 12, "yr": 12, "y": 12, "month": 1, "mon": 1, "decade": 120, "century": 1200, "centurie": 1200}
_DAYS = {"week": 7, "w": 7, "day": 1, "d": 1}
_MICROS = {
    "hour": 3_600_000_000,
    "hr": 3_600_000_000,
    "h": 3_600_000_000,
    "minute": 60_000_000,
    "min": 60_000_000,
    "m": 60_000_000,
    "second": 1_000_000,
    "sec": 1_000_000,
    "s": 1_000_000,
    "millisecond": 1_000,
    "msec": 1_000,
    "ms": 1_000,
    "microsecond": 1,
    "usec": 1,
    "us": 1,
}
_TERM = re.compile(r"\s*([+-]?\d+(?:\.\d*)?|[+-]?\.\d+)\s*([a-zA-Z]+)")
_CLOCK = re.compile(r"\s*([+-]?)(\d+):(\d{1,2})(?::(\d{1,2}(?:\.\d+)?))?")
_ISO = re.compile(
    r"P(?:(-?\d+)Y)?(?:(-?\d+)M)?(?:(-?\d+)W)?(?:(-?\d+)D)?"
    r"(?:T(?:(-?\d+)H)?(?:(-?\d+)M)?(?:(-?\d+(?:\.\d+)?)S)?)?"
)


def interval_sql(interval: Interval) -> str:
    """Return a DuckDB expression for an interval."""
    return f"(to_months({interval.months}) + to_days({interval.days}) + to_microseconds({interval.micros}))"


def length(interval: Interval) -> int | None:
    """Return its length in microseconds, with days of 24 hours; ``None`` if it has months."""
    return None if interval.months else interval.days * MICROS_PER_DAY + interval.micros


def read_span(text: str, unit: str = "") -> Interval:
    """Return the interval that ``text`` means; a bare number counts ``unit`` (seconds if there is none).

    Raises:
        ValueError: the text is no interval.

    Example:
        >>> read_span("1 day 02:00:00"), read_span("30", "minute")
        (Interval('1 day 2 hours'), Interval('30 minutes'))
    """
    body = text.strip()
    if body.upper().startswith("P"):
        return _iso(body)
    if re.fullmatch(r"[+-]?(\d+(\.\d*)?|\.\d+)", body):
        return _term(body, unit or "second", text)
    total, position = Interval(), 0
    body = f"{body} {unit}".strip() if unit else body
    while position < len(body):
        clock, term = _CLOCK.match(body, position), _TERM.match(body, position)
        found = clock or term
        if found is None:
            raise ValueError(f"{text!r} is not an interval")
        total = _plus(total, _clock(clock) if clock else _term(found.group(1), found.group(2), text))
        position = found.end()
        while position < len(body) and body[position].isspace():
            position += 1
    if not body:
        raise ValueError("an empty text is not an interval")
    return total


def _plus(one: Interval, other: Interval) -> Interval:
    return Interval(one.months + other.months, one.days + other.days, one.micros + other.micros)


def _term(number: str, unit: str, text: str) -> Interval:
    amount, name = Decimal(number), unit.lower()
    for word in (name, name.removesuffix("s"), name.removesuffix("es")):
        if word in _MONTHS:
            return Interval(months=int(amount * _MONTHS[word]))
        if word in _DAYS:
            return _days(amount * _DAYS[word])
        if word in _MICROS:
            return Interval(micros=int(amount * _MICROS[word]))
    raise ValueError(f"{unit!r} in {text!r} is not a unit of time")


def _days(amount: Decimal) -> Interval:
    whole = int(amount)
    return Interval(days=whole, micros=int((amount - whole) * MICROS_PER_DAY))


def _clock(match: re.Match[str]) -> Interval:
    sign, hours, minutes, seconds = match.groups()
    micros = (int(hours) * 60 + int(minutes)) * 60_000_000 + int(Decimal(seconds or "0") * 1_000_000)
    return Interval(micros=-micros if sign == "-" else micros)


def _iso(text: str) -> Interval:
    match = _ISO.fullmatch(text.upper())
    if match is None or len(text) == 1:
        raise ValueError(f"{text!r} is not an interval")
    years, months, weeks, days, hours, minutes = (int(part or 0) for part in match.groups()[:6])
    micros = (hours * 60 + minutes) * 60_000_000 + int(Decimal(match.group(7) or "0") * 1_000_000)
    return Interval(years * 12 + months, weeks * 7 + days, micros)
