"""Where rows of keys, in order, are cut into sessions that rows, sums and lengths end.

Where a session ends follows from where it begins. So the end of a session is found for *every* row as if one began there, all at
once; then the true ones are those that are reached from the first row, each from the one before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from windowpane.arrays import Integers, Mask

_MOST = 1 << 62


class Limit(NamedTuple):
    """A sum that closes a session: the row with which it is reached is the last one."""

    weights: Integers  # what each row adds, not negative
    most: int


@dataclass(frozen=True)
class Cuts:
    """The sessions of rows, in order."""

    firsts: Integers  # the place of the first row of each
    lasts: Integers  # the place of the last row
    are_closed: Mask  # whether that row closes it


def cuts(
    breaks: Mask, times: Integers, reaches: Integers, closes: Mask, limits: Sequence[Limit], duration: int | None = None
) -> Cuts:
    """Cut rows into sessions.

    Args:
        breaks: which rows are the first of their key.
        times: the event time of each row, ascending in its key.
        reaches: how far the session reaches that a row is the last of: a row there, or later, opens another one.
        closes: which rows close their session.
        limits: the sums that close sessions.
        duration: how long a session is at most.

    Example:
        >>> times = np.array([0, 10, 20, 90])
        >>> found = cuts(times < 0, times, times + 30, times == 10, [])
        >>> found.firsts.tolist(), found.are_closed.tolist()
        ([0, 2, 3], [True, False, False])
    """
    rows = len(times)
    if not rows:
        none = np.zeros(0, np.int64)
        return Cuts(none, none, np.zeros(0, bool))
    begins = breaks.copy()
    begins[:1] = True
    begins[1:] |= times[1:] >= reaches[:-1]
    following = _after(begins, 1)
    if duration is not None:
        following = np.minimum(following, _too_long(breaks, times, duration))
    closing = _after(closes, 0)
    for limit in limits:
        closing = np.minimum(closing, _reached(limit))
    ends = np.minimum(following, closing + 1)
    firsts, at, after = [], 0, ends.tolist()
    while at < rows:
        firsts.append(at)
        at = after[at]
    found = np.array(firsts)
    return Cuts(found, ends[found] - 1, closing[found] < following[found])


def _after(chosen: Mask, distance: int) -> Integers:
    """Return for each row the place of the first chosen row at a distance or more behind it; the number of rows for none."""
    places = np.append(np.flatnonzero(chosen), len(chosen))
    return places[np.searchsorted(places, np.arange(distance, len(chosen) + distance))]


def _too_long(breaks: Mask, times: Integers, duration: int) -> Integers:
    """Return for each row the place of the first one, of its key or another, that is so much later, or of another key."""
    keys = np.cumsum(breaks)
    late = times + np.int64(duration)
    late[late < times] = np.iinfo(np.int64).max
    both = np.concatenate([late, times])
    of_rows = np.append(np.zeros(len(times), np.int64), np.ones(len(times), np.int64))
    order = np.lexsort((of_rows, both, np.append(keys, keys)))
    before = np.cumsum(of_rows[order])  # how many rows are before each of both
    found = np.empty(len(order), np.int64)
    found[order] = before
    return found[: len(times)]


def _reached(limit: Limit) -> Integers:
    """Return for each row the place of the row with which the sum from it on is reached; the number of rows if it is not."""
    weights = np.minimum(limit.weights, limit.most)
    sums = np.cumsum(weights) if limit.most < _MOST // len(weights) else np.cumsum(weights.astype(object))
    return np.searchsorted(sums, sums - weights + limit.most)
