"""Which pages a batch sweeps, so that partitions without new rows drop the rows that no row to come can reach, too.

A batch drops rows of the pages it reads for its changes. Of the others it looks at a few whenever the horizon moves, at a place
that follows from the horizon: no state holds the place of the sweep, a batch that runs again sweeps the same pages, and in time
every page has its turn.
"""

from __future__ import annotations

import numpy as np

from windowpane.arrays import Integers
from windowpane.sizes import Size

PAGES = Size("OVER pages that a batch sweeps", 8, (1, 3))
"""How many pages a batch sweeps."""
_SPREAD = 0x9E3779B97F4A7C15
"""2**64 by the golden ratio: its multiples fall evenly (Knuth)."""


def swept(pages: int, horizon: int) -> Integers:
    first = (horizon * _SPREAD % (1 << 64)) * pages >> 64
    return np.arange(first, min(first + PAGES.value, pages))
