"""Means of integers: the exact total by the count, rounded once."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from windowpane.arrays import Integers
from windowpane.kernels.over.sums import LOW_BITS, exact_sum
from windowpane.sizes import Size

_EXACT_HIGH = Size("high half of an exact total of a mean", 1 << 20, (1, 2))
"""Totals with such a high half have less than 53 bits: a double holds them, so one division rounds once."""


def integer_means(high: Integers, low: Integers, counts: Integers) -> pa.Array:
    """Return the mean of each row from the halves of its total and its count; NULL where the count is 0."""
    carried = low >> LOW_BITS
    high, low = high + carried, low - (carried << LOW_BITS)
    means = ((high << LOW_BITS) + low) / np.maximum(counts, 1)
    large = np.flatnonzero(((high < -_EXACT_HIGH.value) | (high >= _EXACT_HIGH.value)) & (counts > 0))
    for row in large.tolist():
        means[row] = exact_sum(high[row], low[row]) / int(counts[row])
    return pa.array(means, mask=counts == 0)
