"""Grouping by sorting packed words: many groups of integers found in a third of the time that hashing takes.

A hash table of some hundred thousand groups does not fit into the processor's cache, and every row misses it. Group columns that
fit into one word beside the row's place are sorted instead (``packed_order``); rows of a group are then neighbours. With few
groups hashing is faster, so a sample of the rows decides.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from windowpane.arrays import Integers
from windowpane.kernels.grouping.cardinality import expected_groups
from windowpane.kernels.grouping.segments import Segments, whole_numbers
from windowpane.kernels.sorting.packed_order import stable_order
from windowpane.sizes import Size

_FEWEST_ROWS = Size("rows worth grouping by packed words", 1 << 15, (2, 8))
_SAMPLE = Size("rows sampled before grouping by packed words", 1 << 12, (2, 8))
_MANY = Size("groups a row that are many", 0.25, (0.0, 0.1))
"""Groups a row: with fewer, hashing them is as fast."""
_BITS = Size("bits of a packed word of groups", 63, (8, 20))


def packed_groups(columns: Sequence[pa.ChunkedArray]) -> Segments | None:
    """Return the rows of each group, groups in ascending order; ``None`` where hashing is faster, or they are no integers.

    Args:
        columns: the group columns, at least one.

    Example:
        >>> packed_groups([pa.chunked_array([[7, 7, 3]])]) is None  # three rows are too few
        True
    """
    if len(columns[0]) < _FEWEST_ROWS.value:
        return None
    found = [whole_numbers(column) for column in columns]
    numbers = [each for each in found if each is not None]
    if len(numbers) < len(found) or not _makes_many(numbers):
        return None
    words = _packed(numbers)
    if words is None:
        return None
    order = stable_order(words)
    sorted_words = words[order]
    begins = np.flatnonzero(sorted_words[1:] != sorted_words[:-1]) + 1
    return Segments(order, np.concatenate(([0], begins, [len(words)])))


def _makes_many(columns: Sequence[Integers]) -> bool:
    rows = len(columns[0])
    stride = max(1, rows // _SAMPLE.value)
    words = _packed([column[::stride] for column in columns])
    if words is None:
        return False
    return expected_groups(len(words), len(np.unique(words)), rows) > _MANY.value * rows


def _packed(columns: Sequence[Integers]) -> Integers | None:
    """Return one word a row, equal where all columns are; ``None`` if they are too wide together to be sorted at once."""
    places = (len(columns[0]) - 1).bit_length()
    words = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        distances = (column - column.min()).view(np.uint64)
        step = max(1, int(np.gcd.reduce(distances)))
        distances = distances // np.uint64(step) if step > 1 else distances
        width = int(distances.max()).bit_length()
        places += width
        if places > _BITS.value:
            return None
        words = (words << np.uint64(width)) | distances
    return words.view(np.int64)
