"""Sizes: from how many rows on a kernel pays, how large a page grows. They decide how work is done, never the results.

A size is defined beside the code that reads it, and names smaller values with which a few rows take the code paths of
millions. Tests use those for a while (``replacing_sizes``), and compare results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

Number = TypeVar("Number", int, float)
ReplaceSize = Callable[["Size[Any]"], Any]
"""Returns the value of a size, for a while."""

_replacement: ReplaceSize | None = None


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
        if _replacement is None:
            return self.usual
        found: Number = _replacement(self)
        return found


@contextmanager
def replacing_sizes(choose: ReplaceSize) -> Iterator[None]:
    """Let ``choose`` say what every size of this process is, until the end of the block."""
    global _replacement
    before, _replacement = _replacement, choose
    try:
        yield
    finally:
        _replacement = before
