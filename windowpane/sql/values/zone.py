"""The time zone that a text is bound in: what times without a zone mean, and how those with one are read and printed.

A session sets it while it runs a statement. A materialized view keeps the zone it was made in, as in RisingWave.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache

from windowpane.windowing.times import zone_names

UTC = "UTC"

TIME_ZONE = "timezone"
"""The parameter."""
_ZONE: ContextVar[str] = ContextVar("windowpane_time_zone", default=UTC)


def current() -> str:
    return _ZONE.get()


@contextmanager
def within(zone: str) -> Iterator[None]:
    """Read and print times in a zone for a while."""
    token = _ZONE.set(zone)
    try:
        yield
    finally:
        _ZONE.reset(token)


@cache
def _zones() -> dict[str, str]:
    return {name.lower(): name for name in zone_names()}


def known(name: str) -> str | None:
    """Return a zone's name as the time zone database writes it, ``None`` if there is none."""
    return UTC if name.lower() in ("utc", "z", "default") else _zones().get(name.lower())
