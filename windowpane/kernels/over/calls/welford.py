"""Welford's update for many variances at once, in the bound aggregate's order of operations.

Source of the rules beyond the range of doubles: ``aggregates.moments``.
"""

from __future__ import annotations

import numpy as np

from windowpane.arrays import Doubles


def welford(counts: Doubles, means: Doubles, m2: Doubles, values: Doubles) -> tuple[Doubles, Doubles]:
    """Return means and m2 after one value more each; ``counts`` are those with it.

    Example:
        >>> welford(np.array([2.0]), np.array([1.0]), np.array([0.0]), np.array([3.0]))
        (array([2.]), array([2.]))
    """
    with np.errstate(all="ignore"):
        delta = values - means
        step = delta / counts
        after, squares = means + step, m2 + delta * (delta - step)
    is_beyond = np.isnan(squares)
    if is_beyond.any():
        is_finite = np.isfinite(means) & np.isfinite(values)
        after = np.where(is_beyond, np.where(is_finite, means, np.nan), after)
        squares = np.where(is_beyond, np.where(is_finite, np.inf, np.nan), squares)
    return after, squares
