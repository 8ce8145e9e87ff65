"""Places of rows: row_number, rank, dense_rank, percent_rank, cume_dist, ntile."""

from __future__ import annotations

import numpy as np

from windowpane.arrays import Doubles, Integers
from windowpane.kernels.over.layout import Layout


def percent_rank(layout: Layout) -> Doubles:
    """Return (rank - 1) / (rows - 1) of each row; 0 in a partition of one row."""
    ranks: Doubles = (layout.peer_first - layout.first) / np.maximum(layout.end - layout.first - 1, 1)
    return ranks


def cume_dist(layout: Layout) -> Doubles:
    shares: Doubles = (layout.peer_end - layout.first) / (layout.end - layout.first)
    return shares


def ntile(layout: Layout, buckets: int) -> Integers:
    """Return the bucket of each row, where the first buckets are one row larger if the rows do not go up evenly."""
    at, rows = layout.numbers - layout.first, layout.end - layout.first
    small, larger = rows // buckets, rows % buckets
    in_larger = at < larger * (small + 1)
    behind = at - larger * (small + 1)
    return np.where(in_larger, at // (small + 1), larger + behind // np.maximum(small, 1)) + 1
