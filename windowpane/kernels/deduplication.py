"""First rows of keys, and runs of rows that are near.

Of rows in order of arrival those are first ones that are near to no row of their key that was kept before. They are found in
rounds: the first remaining row of each key is kept, and rows near to it are duplicates. Where most rows of a key are near to its
first, one round is all. Rows that many rounds would take, such as one key over a long time, are taken one by one.
"""

from __future__ import annotations

from bisect import bisect_left, insort

import numpy as np

from windowpane.arrays import Integers, Mask, Unsigned
from windowpane.kernels.ranges import moved
from windowpane.kernels.segments import starts_of_runs
from windowpane.kernels.sessions.islands import Islands, find_islands
from windowpane.sizes import Size

WORTH_A_ROUND = Size("part of the rows that a round must decide", 32, (1, 2))


def distance(one: Integers, other: Integers) -> Unsigned:
    """Return how far apart times are; no two of them are too far for it."""
    later, earlier = np.maximum(one, other), np.minimum(one, other)
    apart: Unsigned = later.view(np.uint64) - earlier.view(np.uint64)
    return apart


def first_rows(codes: Integers, times: Integers, held_codes: Integers, held_times: Integers, within: int) -> Mask:
    """Return which rows, in order of arrival, are kept, given those that were kept before."""
    kept = np.zeros(len(codes), np.bool_)
    order = np.argsort(codes, kind="stable")
    if len(held_codes):
        order = order[~_near(codes, times, held_codes, held_times, within)[order]]
    while len(order):
        present = codes[order]
        starts = starts_of_runs(present)
        firsts = order[starts]
        kept[firsts] = True
        apart = distance(times[order], times[firsts][np.cumsum(starts) - 1])
        left = order[apart >= np.uint64(within)]
        if (len(order) - len(left)) * WORTH_A_ROUND.value < len(left):
            _keep_one_by_one(codes, times, left, within, kept)
            break
        order = left
    return kept


def _near(codes: Integers, times: Integers, held_codes: Integers, held_times: Integers, within: int) -> Mask:
    near = np.zeros(len(codes), np.bool_)
    asked = np.flatnonzero(np.isin(codes, held_codes))
    both = np.concatenate([held_codes, codes[asked]])
    at = np.concatenate([held_times, times[asked]])
    order = np.lexsort((at, both))
    both, at, is_held = both[order], at[order], order < len(held_codes)
    places = np.arange(len(order))
    before = np.maximum.accumulate(np.where(is_held, places, -1))
    after = np.minimum.accumulate(np.where(is_held, places, len(places))[::-1])[::-1]
    found = np.zeros(len(order), np.bool_)
    for place in (np.maximum(before, 0), np.minimum(after, len(places) - 1)):
        found |= is_held[place] & (both[place] == both) & (distance(at[place], at) < np.uint64(within))
    rows = ~is_held
    near[asked[order[rows] - len(held_codes)]] = found[rows]
    return near


def _keep_one_by_one(codes: Integers, times: Integers, left: Integers, within: int, kept: Mask) -> None:
    """Go through the rows that are left, by key and in order of arrival; none is near to a row kept so far."""
    by_key: dict[int, list[int]] = {}
    for row, code, time in zip(left.tolist(), codes[left].tolist(), times[left].tolist(), strict=True):
        held = by_key.setdefault(code, [])
        place = bisect_left(held, time)
        is_near = (place and time - held[place - 1] < within) or (place < len(held) and held[place] - time < within)
        if not is_near:
            insort(held, time)
            kept[row] = True


def runs(codes: Integers, starts: Integers, ends: Integers, within: int) -> Islands:
    """Return the runs of spans of time, given the keys of the spans: those of one key that are less than ``within`` apart."""
    return find_islands(codes, starts, moved(ends, within - 1))
