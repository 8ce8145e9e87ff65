"""Interval literals: PostgreSQL's and ISO 8601 text to months, days and microseconds."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import ROUND_HALF_EVEN, Decimal

from windowpane.errors import OutOfRangeError
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
_NUMBER = r"[+-]?\s*(?:\d+\.?\d*|\.\d+)"
_TERM = re.compile(rf"({_NUMBER})\s*([a-zA-Z]+)")
_CLOCK = re.compile(r"([+-]?)\s*(\d+):(\d{1,2})(?::(\d{1,2}(?:\.\d*)?))?(?![\d:])")
_YEARS_MONTHS = re.compile(r"([+-]?)(\d+)-(\d{1,2})(?![\d-])")
_BARE_DAYS = re.compile(r"([+-]?\d+)(?=\s+[+-]?\d+:)")
_PART = r"(?:(-?\d+(?:\.\d+)?){})?"
_ISO = re.compile(
    "P" + "".join(map(_PART.format, "YMWD")) + "(?:T" + "".join(map(_PART.format, "HMS")) + ")?",
)
_ISO_UNITS = ("year", "month", "week", "day", "hour", "minute", "second")
_DAYS_A_MONTH = 30


def interval_sql(interval: Interval) -> str:
    return f"(to_months({interval.months}) + to_days({interval.days}) + to_microseconds({interval.micros}))"


def length(interval: Interval) -> int | None:
    """Return its length in microseconds, with days of 24 hours; ``None`` if it has months."""
    return None if interval.months else interval.days * MICROS_PER_DAY + interval.micros


def interval_text(months: int, days: int, micros: int) -> str:
    """Return an interval as PostgreSQL and RisingWave print it.

    Example:
        >>> interval_text(14, -3, 7_200_000_000)
        '1 year 2 mons -3 days +02:00:00'
    """
    parts, follows_negative = list[str](), False
    for amount, unit in ((int(months / 12), "year"), (months - int(months / 12) * 12, "mon"), (days, "day")):
        if amount:
            sign = "+" if follows_negative and amount > 0 else ""
            parts.append(f"{sign}{amount} {unit}{'' if amount == 1 else 's'}")
            follows_negative = amount < 0
    if micros or not parts:
        sign = "-" if micros < 0 else "+" if follows_negative else ""
        parts.append(sign + clock_text(abs(micros)))
    return " ".join(parts)


def clock_text(micros: int) -> str:
    """Return a time of day, or a longer one, as text, by its microseconds."""
    seconds, fraction = divmod(micros, 1_000_000)
    text = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return text if not fraction else f"{text}.{fraction:06}".rstrip("0")


def read_span(text: str, unit: str = "") -> Interval:
    """Return the interval that ``text`` means; a bare number counts ``unit`` (seconds if there is none).

    Raises:
        ValueError: the text is no interval, or one that is too long.

    Example:
        >>> read_span("1 day 02:00:00"), read_span("30", "minute")
        (Interval('1 day 2 hours'), Interval('30 minutes'))
    """
    body = text.strip()
    if not body:
        raise ValueError("an empty text is not an interval")
    found = _iso(body) if body.upper().startswith("P") else _verbose(body, unit, text)
    limits = ((found.months, 31), (found.days, 31), (found.micros, 63))
    if any(not -(2**bits) <= amount < 2**bits for amount, bits in limits):
        raise OutOfRangeError(f"interval out of range: {text!r}")
    return found


def _verbose(body: str, unit: str, text: str) -> Interval:
    if re.fullmatch(_NUMBER, body):
        return _term(body, unit or "second", text)
    body = re.sub(r"^@\s*", "", f"{body} {unit}".strip() if unit else body)
    backwards = re.search(r"\s+ago$", body, re.IGNORECASE)
    body = body[: backwards.start()] if backwards else body
    total, position = Interval(), 0
    while position < len(body):
        found = next((each for each in (pattern.match(body, position) for pattern in _READERS) if each), None)
        if found is None:
            raise ValueError(f"{text!r} is not an interval")
        total = _plus(total, _READERS[found.re](found, text))
        position = found.end()
        while position < len(body) and body[position].isspace():
            position += 1
    return Interval(-total.months, -total.days, -total.micros) if backwards else total


def _plus(one: Interval, other: Interval) -> Interval:
    return Interval(one.months + other.months, one.days + other.days, one.micros + other.micros)


def _term(number: str, unit: str, text: str) -> Interval:
    amount, name = Decimal(re.sub(r"\s", "", number)), unit.lower()
    for word in (name, name.removesuffix("s"), name.removesuffix("es")):
        if word in _MONTHS:
            return _months(amount, _MONTHS[word])
        if word in _DAYS:
            return _days(amount * _DAYS[word])
        if word in _MICROS:
            return Interval(micros=_whole(amount * _MICROS[word]))
    raise ValueError(f"{unit!r} in {text!r} is not a unit of time")


def _whole(amount: Decimal) -> int:
    return int(amount.to_integral_value(ROUND_HALF_EVEN))


def _months(amount: Decimal, factor: int) -> Interval:
    """A part of a month is days of thirty to a month; a part of years is whole months, as in PostgreSQL."""
    if factor > 1:
        return Interval(months=_whole(amount * factor))
    whole = int(amount)
    return _plus(Interval(months=whole), _days((amount - whole) * _DAYS_A_MONTH))


def _days(amount: Decimal) -> Interval:
    whole = int(amount)
    return Interval(days=whole, micros=_whole((amount - whole) * MICROS_PER_DAY))


def _clock(match: re.Match[str]) -> Interval:
    sign, hours, minutes, seconds = match.groups()
    micros = (int(hours) * 60 + int(minutes)) * 60_000_000 + _whole(Decimal(seconds or "0") * 1_000_000)
    return Interval(micros=-micros if sign == "-" else micros)


def _years_months(match: re.Match[str]) -> Interval:
    months = int(match.group(2)) * 12 + int(match.group(3))
    return Interval(months=-months if match.group(1) == "-" else months)


_READERS: dict[re.Pattern[str], Callable[[re.Match[str], str], Interval]] = {
    _CLOCK: lambda found, _: _clock(found),
    _YEARS_MONTHS: lambda found, _: _years_months(found),
    _BARE_DAYS: lambda found, _: Interval(days=int(found.group(1))),
    _TERM: lambda found, text: _term(found.group(1), found.group(2), text),
}


def _iso(text: str) -> Interval:
    match = _ISO.fullmatch(text.upper())
    if match is None or len(text) == 1:
        raise ValueError(f"{text!r} is not an interval")
    total = Interval()
    for number, unit in zip(match.groups(), _ISO_UNITS, strict=True):
        if number is not None and unit == "second":
            number = re.sub(r"(\.\d{6})\d+$", r"\1", number)  # RisingWave cuts what is finer
        total = total if number is None else _plus(total, _term(number, unit, text))
    return total
