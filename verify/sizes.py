"""Small sizes in place of the usual ones, so that a few rows take every way that millions take."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from random import Random
from typing import Any

from windowpane.sizes import Size, replacing_sizes

_USUAL_PROGRAMS = 0.25
_USUAL_SIZES = 0.3


@contextmanager
def drawn_sizes(seed: int) -> Iterator[None]:
    """Draw each size by a seed until the end of the block: one of its small values or the usual one.

    A quarter of the seeds leave all as they are. What is drawn for a size depends on the seed and its name alone.

    Example:
        >>> with drawn_sizes(7):
        ...     FEWEST_ROWS = Size("rows worth a sort", 1 << 15, (2, 8))
        ...     assert FEWEST_ROWS.value in (2, 8, 1 << 15)
    """
    drawn: dict[str, Any] = {}
    is_usual = Random(f"{seed} sizes").random() < _USUAL_PROGRAMS

    def choose(size: Size[Any]) -> Any:
        if size.name not in drawn:
            draw = Random(f"{seed} {size.name}")
            drawn[size.name] = size.usual if is_usual or draw.random() < _USUAL_SIZES else draw.choice(size.small)
        return drawn[size.name]

    with replacing_sizes(choose):
        yield


@contextmanager
def given_sizes(values: Mapping[Size[Any], Any]) -> Iterator[None]:
    """Put the given values in place of some sizes until the end of the block; others are as usual."""
    with replacing_sizes(lambda size: values.get(size, size.usual)):
        yield
