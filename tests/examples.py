"""How many examples a random test draws, its seeds, and vectors of a file: a share in ``make test``, all in ``make test-all``."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import pytest

_ALL = "WINDOWPANE_EXAMPLES"
_SHARE, _FEWEST = 48, 5


def examples(number: int) -> int:
    """Return how many of so many examples to draw: all with ``WINDOWPANE_EXAMPLES=all``, else a share, and a few at least."""
    return number if os.environ.get(_ALL) == "all" else max(number // _SHARE, min(number, _FEWEST))


def first(number: int) -> int | None:
    """Return how many vectors of a file to replay, spread evenly: all, as ``None``, with ``WINDOWPANE_EXAMPLES=all``."""
    return None if os.environ.get(_ALL) == "all" else number


def some(items: Sequence[Any], one_in: int) -> Sequence[Any]:
    """Return items that a test goes through: all with ``WINDOWPANE_EXAMPLES=all``, else one in so many, the first among them."""
    return items if os.environ.get(_ALL) == "all" else items[::one_in]


def seeds(number: int) -> list[Any]:
    """Return so many seeds, to parametrize a test with: one in 24 is of ``make test``, the others have the mark ``slow``."""
    kept = max(number // 24, 1)
    return [*range(kept), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(kept, number))]
