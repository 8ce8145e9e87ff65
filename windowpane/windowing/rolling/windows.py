"""Windows that end now: which times they take, and when rows leave them.

A feature as of ``t`` takes the rows with ``t - length < time <= t``. A hop edge is rounded down to
the start of the tile that an exact edge would cut: such a window is up to one hop too long, never too short::

    exact          |---------- length ----------|
                   ( t - length                 t ]
    hop        |---|---------- length ----------|
               start of the tile

All times are integers of microseconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from windowpane.arrays import Integers
from windowpane.errors import TileMismatchError
from windowpane.windowing.times import format_micros, to_micros

Instants = TypeVar("Instants", int, Integers)
"""One instant, or an array of them."""

_MINUTES = to_micros("5 minutes")
_HOUR = to_micros("1 hour")
DAY = to_micros("1 day")


def default_hop(length: int) -> int:
    """Return the length of the tiles of a window, Chronon's: 5 minutes under 12 hours, 1 hour under 12 days, else 1 day."""
    return _MINUTES if length < 12 * _HOUR else _HOUR if length < 12 * DAY else DAY


def is_exact_by_default(length: int) -> bool:
    """Whether the edge of a window is exact by default: up to a day."""
    return length <= DAY


def check_multiple(what: str, length: int, hop: int) -> None:
    """Refuse a length that tiles do not fill.

    Raises:
        TileMismatchError: it is no multiple of ``hop``.
    """
    if length > 0 and hop > 0 and length % hop == 0:
        return
    below = length // hop * hop if hop > 0 else 0
    near = [each for each in (below, below + hop) if each > 0] if length > 0 and hop > 0 else []
    raise TileMismatchError(f"{what} of {format_micros(length)}", format_micros(hop), " and ".join(map(format_micros, near)))


@dataclass(frozen=True)
class RollingWindow:
    """A window that ends now.

    Args:
        length: its length.
        hop: the length of its tiles.
        is_exact: whether rows decide its left edge, and not tiles.

    Raises:
        TileMismatchError: the length is no multiple of the hop.
    """

    length: int
    hop: int
    is_exact: bool

    def __post_init__(self) -> None:
        check_multiple("a window", self.length, self.hop)

    @property
    def overhang(self) -> int:
        """By how much the window may be too long."""
        return 0 if self.is_exact else self.hop

    @property
    def reach(self) -> int:
        """How far behind the watermark a row may lie that the window can still see."""
        return self.length + self.hop

    def start(self, instant: Instants) -> Instants:
        """Return the earliest time that the window as of ``instant`` takes."""
        start = instant - self.length + 1
        return start if self.is_exact else start // self.hop * self.hop

    def leaving(self, time: Instants) -> Instants:
        """Return the first instant as of which the window no longer takes a row."""
        return time + self.length if self.is_exact else (time // self.hop + 1) * self.hop + self.length - 1

    def __str__(self) -> str:
        return format_micros(self.length)
