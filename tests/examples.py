"""How many examples a random test draws: one in four in ``make test``, all in ``make test-all``."""

from __future__ import annotations

import os

_ALL = "WINDOWPANE_EXAMPLES"
_SHARE, _FEWEST = 4, 25


def examples(number: int) -> int:
    """Return how many of so many examples to draw: each with ``WINDOWPANE_EXAMPLES=all``, else one in four."""
    return number if os.environ.get(_ALL) == "all" else max(number // _SHARE, min(number, _FEWEST))
