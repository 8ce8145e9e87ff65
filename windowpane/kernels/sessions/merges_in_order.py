"""Merges in order: the windows that intervals make on the way, taken one after the other as they arrive.

Islands are the windows in the end. Where a window on the way matters (Flink refuses one that ends behind the watermark, even
if a later element makes it longer), the few intervals of that island are merged one by one. Source of the rule: Flink's
MergingWindowSet, which calls back for every merge that changes an existing window.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence


def merges_in_order(islands: Sequence[int], starts: Sequence[int], ends: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Yield the place, start and end of each interval that changes an existing window, with the window they become together.

    Args:
        islands: the island of each interval; those of different islands never touch.
        starts: where each starts.
        ends: where each ends; intervals that touch are merged.

    Example:
        >>> list(merges_in_order([0, 0, 0], [1, 8, 3], [4, 9, 5]))
        [(2, 1, 5)]
    """
    live: dict[int, tuple[list[int], list[int]]] = {}
    for place, (island, start, end) in enumerate(zip(islands, starts, ends, strict=True)):
        lows, highs = live.setdefault(island, ([], []))
        first = bisect_left(highs, start)
        after = first
        while after < len(lows) and lows[after] <= end:
            after += 1
        met = list(zip(lows[first:after], highs[first:after], strict=True))
        if met:
            start, end = min(start, lows[first]), max(end, highs[after - 1])
        lows[first:after], highs[first:after] = [start], [end]
        if met and met != [(start, end)]:
            yield place, start, end
