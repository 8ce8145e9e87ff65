"""Late joiners: which elements that are late by themselves a live session takes, in order of arrival.

An element whose own session would be over is kept if it touches a session that lives when it arrives, and dropped else; so two
late elements do not save each other, and one that arrives before those it would have touched is dropped. Only intervals of
islands that hold both kinds are considered here: in others all are kept, or none. Source of the rule: Flink's WindowOperator,
which merges first and then checks whether the merged window is late.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

import numpy as np

from windowpane.arrays import Mask


def join_in_order(islands: Sequence[int], starts: Sequence[int], ends: Sequence[int], is_late: Sequence[bool]) -> Mask:
    """Return for each interval, in order of arrival, whether it is kept.

    Args:
        islands: the island of each; intervals of different islands never touch.
        starts: where each starts.
        ends: where each ends.
        is_late: whether it is late by itself. Sessions that were open before are first and are not.
    """
    live: dict[int, tuple[list[int], list[int]]] = {}
    kept = np.ones(len(islands), bool)
    for number, (island, start, end, late) in enumerate(zip(islands, starts, ends, is_late, strict=True)):
        lows, highs = live.setdefault(island, ([], []))
        first = bisect_left(highs, start)
        after = first
        while after < len(lows) and lows[after] <= end:
            after += 1
        if first == after and late:
            kept[number] = False
            continue
        if first < after:
            start, end = min(start, lows[first]), max(end, highs[after - 1])
        lows[first:after], highs[first:after] = [start], [end]
    return kept
