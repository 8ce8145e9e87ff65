"""Aggregates of contiguous ranges, overlapping or not, of a sequence of rows or of partials.

Short ranges are merged piece by piece. Long ones are put together from pieces of 2**k neighbours, each made of two of half its
length: ``log2`` of the longest range many passes, however many ranges overlap.

    elements    a b c d e f g
    length 2    ab bc cd de ef fg
    length 4    abcd bcde cdef defg
    [b..f]      b (length 1), cdef (length 4)

The order of merging is that of the sequence, so aggregates that depend on order are right as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from windowpane.arrays import Integers
from windowpane.hidden_columns import hidden
from windowpane.kernels.grouping.grouped_fold import GroupedFold
from windowpane.kernels.segments import concatenated

_RANGE = hidden("range")


class Ranges(NamedTuple):
    """Ranges of a sequence by their first and last element; none is empty."""

    firsts: Integers
    lasts: Integers


def fold_ranges(fold: GroupedFold, rows: pa.Table, ranges: Ranges) -> pa.Table:
    """Return one row of partials for each range of ``rows``, in the order of ``ranges``.

    Rows that are in the same ranges are folded first.
    """
    cuts = np.zeros(rows.num_rows + 1, bool)
    cuts[ranges.firsts] = cuts[ranges.lasts + 1] = True
    cuts[0] = False
    pieces = np.cumsum(cuts)
    partials = fold_groups(fold, rows, pieces[:-1])
    return merge_ranges(fold, partials, Ranges(pieces[ranges.firsts], pieces[ranges.lasts]))


def fold_groups(fold: GroupedFold, rows: pa.Table, groups: Integers) -> pa.Table:
    """Return one row of partials for each group of ``rows``, in the order of the groups 0, 1, ..., of which none is empty."""
    return _in_order(fold.fold(rows.append_column(_RANGE, pa.array(groups)), [_RANGE]))


def merge_ranges(fold: GroupedFold, partials: pa.Table, ranges: Ranges) -> pa.Table:
    """Return one row of partials for each range of rows of ``partials``, in the order of ``ranges``."""
    partials = partials.select(list(fold.columns))
    lengths = ranges.lasts - ranges.firsts + 1
    longest = int(lengths.max(initial=1))
    if longest == 1:
        return partials.take(pa.array(ranges.firsts))
    doublings = longest.bit_length()
    if lengths.sum() <= 2 * doublings * (partials.num_rows + len(lengths)):
        pieces = partials.take(pa.array(exploded(ranges)))
        return _merged(fold, [(pieces, np.repeat(np.arange(len(lengths)), lengths))])
    return _merged(fold, list(_doubled(fold, partials, ranges.firsts, lengths)))


def exploded(ranges: Ranges) -> Integers:
    return concatenated(ranges.firsts, ranges.lasts - ranges.firsts + 1)


def _doubled(fold: GroupedFold, level: pa.Table, firsts: Integers, lengths: Integers) -> Iterator[tuple[pa.Table, Integers]]:
    """Yield, for each power of two, the pieces of that length and the ranges they are of: each range's in its own order."""
    at, width = firsts.copy(), 1
    while True:
        having = np.flatnonzero(lengths & width)
        yield level.take(pa.array(at[having])), having
        at[having] += width
        if not (lengths >= 2 * width).any():
            return
        left, right = level.slice(0, level.num_rows - width), level.slice(width)
        ids = np.arange(left.num_rows)
        level, width = _merged(fold, [(left, ids), (right, ids)]), 2 * width


def _merged(fold: GroupedFold, parts: list[tuple[pa.Table, Integers]]) -> pa.Table:
    named = [table.append_column(_RANGE, pa.array(ids)) for table, ids in parts]
    return _in_order(fold.merge(named, [_RANGE]))


def _in_order(partials: pa.Table) -> pa.Table:
    ids = partials[_RANGE].to_numpy()
    partials = partials.drop_columns([_RANGE])
    return partials if (ids[1:] > ids[:-1]).all() else partials.take(pa.array(np.argsort(ids)))
