"""Instants: the limits of int64 microseconds, and how an instant is written in messages."""

from __future__ import annotations

import datetime as dt

MIN = -(2**63)
MAX = 2**63 - 1


def format_instant(micros: int) -> str:
    """Return an instant as ISO 8601 in UTC, or the bare number where no calendar reaches it.

    Example:
        >>> format_instant(0)
        '1970-01-01T00:00:00Z'
    """
    if micros in (MIN, MAX):
        return "MIN" if micros == MIN else "MAX"
    try:
        instant = dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=micros)
    except OverflowError:
        return f"{micros} µs"
    return instant.isoformat() + "Z"
