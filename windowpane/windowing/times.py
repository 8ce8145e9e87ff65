"""Instants and durations: every time inside windowpane is an int64 count of microseconds.

An instant counts from 1970-01-01T00:00:00Z. ``MIN`` and ``MAX`` are the limits of int64 and mean "before everything" (no
watermark yet, an element without a timestamp) and "after everything" (the end of a bounded stream).
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from importlib import resources
from zoneinfo import ZoneInfo

from windowpane.arrays.instants import MAX, MIN, format_instant
from windowpane.errors import InvalidDurationError, InvalidSpecError

__all__ = [
    "MAX",
    "MIN",
    "Duration",
    "add_clamped",
    "format_instant",
    "format_micros",
    "to_micros",
    "truncate",
    "wrap_int64",
]

Duration = int | str | dt.timedelta

_UNITS = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
    "week": 604_800_000_000,
}
_SHORT = {"us": 1, "µs": 1, "ms": 1_000, "s": 1_000_000, "sec": 1_000_000, "min": 60_000_000, "m": 60_000_000}
_SHORT |= {"h": 3_600_000_000, "hr": 3_600_000_000, "d": 86_400_000_000, "w": 604_800_000_000}
_OF_CALENDAR = ("month", "quarter", "year", "decade")
_TERM = re.compile(r"\s*([+-]?\d+(?:\.\d+)?)\s*([a-zµ]+)", re.IGNORECASE)


def to_micros(duration: Duration) -> int:
    """Return ``duration`` in microseconds.

    Args:
        duration: text such as ``"10 minutes"`` or ``"1 hour 30 min"``, a ``timedelta``, or an integer of microseconds.

    Raises:
        InvalidDurationError: the text is not understood, the type is another one, or the result is no int64.

    Example:
        >>> to_micros("1 hour 30 minutes")
        5400000000
    """
    if isinstance(duration, bool):
        raise InvalidDurationError(duration, "a bool is no duration")
    if isinstance(duration, int):
        micros = duration
    elif isinstance(duration, dt.timedelta):
        micros = duration // dt.timedelta(microseconds=1)
    elif isinstance(duration, str):
        parts = terms(without_interval(duration), duration)
        micros = sum(_scaled(number, _unit(word, duration), duration) for number, word in parts)
    else:
        raise InvalidDurationError(duration, f"its type is {type(duration).__name__}")
    if not MIN <= micros <= MAX:
        raise InvalidDurationError(duration, "it does not fit into 64 bits of microseconds")
    return micros


def without_interval(text: str) -> str:
    """Return a span of time without the word INTERVAL and the quotes behind it."""
    body = text.strip()
    return body[len("interval ") :].strip().strip("'\"") if body.lower().startswith("interval ") else body


def terms(body: str, text: str) -> Iterator[tuple[str, str]]:
    """Yield the numbers and units of a span of time; ``text`` is what messages name."""
    position = 0
    while position < len(body):
        term = _TERM.match(body, position)
        if term is None:
            raise InvalidDurationError(text, f"{body[position:]!r} is not a number with a unit")
        yield term[1], term[2]
        position = term.end()
    if position == 0:
        raise InvalidDurationError(text, "it is empty")


def _unit(word: str, text: str) -> int:
    lower = word.lower()
    micros = _SHORT.get(lower) or _UNITS.get(lower.removesuffix("s"))
    if micros is None and lower.removesuffix("s") in _OF_CALENDAR:
        raise InvalidDurationError(
            text,
            f"a {lower.removesuffix('s')} has no fixed length. Windows of calendar months and years are "
            "wp.CalendarWindows.of('1 month'); elsewhere count days, as in '30 days'",
        )
    if micros is None:
        raise InvalidDurationError(text, f"{word!r} is not a unit of fixed length")
    return micros


def _scaled(number: str, unit: int, text: str) -> int:
    whole, _, fraction = number.partition(".")
    if not fraction:
        return int(whole) * unit
    scaled = int(whole + fraction) * unit
    scale: int = 10 ** len(fraction)
    micros, rest = divmod(scaled, scale)
    if rest:
        raise InvalidDurationError(text, f"{number} is finer than a microsecond")
    return micros


def format_micros(micros: int) -> str:
    """Return a duration in the largest unit that divides it, as ``to_micros`` reads it back.

    Example:
        >>> format_micros(5_400_000_000)
        '90 minutes'
    """
    for name in ("day", "hour", "minute", "second", "millisecond"):
        unit = _UNITS[name]
        if micros and micros % unit == 0:
            count = micros // unit
            return f"{count} {name}{'' if abs(count) == 1 else 's'}"
    return f"{micros} microseconds"


class Zone(ZoneInfo):
    """A time zone with the rules of the package ``tzdata``; a pickled one is read from the package where it arrives."""

    def __reduce__(self) -> tuple[Callable[[str], ZoneInfo], tuple[str]]:
        return zone_of, (self.key,)


def zone_of(timezone: str, role: str = "timezone") -> ZoneInfo:
    """Return a time zone by its name, with the rules of the package ``tzdata``.

    Machines of a cluster may each have other rules (a country ends summer time with a few weeks' notice), and windows whose
    bounds depend on the machine would be wrong. The package is installed with windowpane, on driver and executors.

    Raises:
        InvalidSpecError: the package knows none of that name.
    """
    try:
        return _packaged(timezone)
    except (ValueError, TypeError, OSError) as error:
        raise InvalidSpecError(
            f"{role}: {timezone!r} is no time zone of the IANA database, whose names are as 'Europe/Berlin'. A newer version of "
            "the package tzdata may know it."
        ) from error


def zone_names() -> list[str]:
    """Return the names of all time zones."""
    return resources.files("tzdata").joinpath("zones").read_text().split()


@lru_cache(maxsize=1024)
def _packaged(name: str) -> ZoneInfo:
    if not isinstance(name, str) or not all(part.strip(".") for part in name.split("/")):
        raise ValueError(name)
    with resources.files("tzdata").joinpath("zoneinfo", *name.split("/")).open("rb") as rules:
        return Zone.from_file(rules, key=name)


def add_clamped(instant: int, duration: int) -> int:
    """Return ``instant + duration``, held inside int64: lateness beyond the end of time is the end of time."""
    return max(MIN, min(MAX, instant + duration))


def wrap_int64(value: int) -> int:
    """Return ``value`` as two's complement int64 arithmetic has it: the overflow that some rules of Flink depend on."""
    return (value + 2**63) % 2**64 - 2**63


def truncate(instant: int, interval: int) -> int:
    """Return ``instant`` rounded toward zero to a multiple of ``interval``: Java's division, not the floor of Python's.

    Example:
        >>> truncate(-7, 5)
        -5
    """
    return instant - instant % interval if instant >= 0 else instant + -instant % interval
