"""Sizes: from how many rows on a kernel pays, how large a page grows. They decide how work is done, never what comes out of it.

A size stands beside the code that reads it, and says which smaller values put a few rows on the ways of millions. Tests put
those in its place for a while (``standing_in``), and compare what comes out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

Number = TypeVar("Number", int, float)
StandIn = Callable[["Size[Any]"], Any]
"""Says what a size is, for a while."""

_stand_in: StandIn | None = None


@dataclass(frozen=True, eq=False)
class Size(Generic[Number]):
    """A size or threshold.

    Args:
        name: what it is the size of, no other's name.
        usual: its value, measured to be a good one.
        small: values that tests draw in its place.

    Example:
        >>> FEWEST_ROWS = Size("rows worth a sort", 1 << 15, (2, 8))
        >>> FEWEST_ROWS.value
        32768
    """

    name: str
    usual: Number
    small: tuple[Number, ...]

    @property
    def value(self) -> Number:
        """The value in force."""
        if _stand_in is None:
            return self.usual
        found: Number = _stand_in(self)
        return found


@contextmanager
def standing_in(choose: StandIn) -> Iterator[None]:
    """Let ``choose`` say what every size of this process is, until the end of the block."""
    global _stand_in
    before, _stand_in = _stand_in, choose
    try:
        yield
    finally:
        _stand_in = before
