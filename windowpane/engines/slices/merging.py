"""Windows that fire together share most of their slices: merge those once, and let the rest run along.

Windows whose starts and ends both ascend, each beginning before the first one ends, have the slices between the last start and
the first end in common. Seen along time, for windows A, B, C::

    A  |--left--|===common===|
    B     |-left|===common===|-right-|
    C           |===common===|---right---|

Slices left of the common ones are merged from right to left, starting with these; slices right of them from left to right. So a
window costs three merges of two tables, however many slices it has. Invariant: every slice of a window is in exactly one of
its two parts. Merging is associative and commutative, up to the last bit of sums of doubles.

Source of the idea: van Herk (1992) and Gil and Werman (1993), running minima; here for any mergeable partials.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa

from windowpane.sizes import Size
from windowpane.windowing.windows import TimeWindow

Merge = Callable[[Sequence[pa.Table]], pa.Table]
Slices = Callable[[int, int], list[pa.Table]]

_MOST = Size("windows that share slices, at most", 32, (3, 5))
"""So many windows share, at most: their left parts are in memory together."""
_FEWEST = Size("windows that share slices, at least", 3, (1, 2))
"""Fewer windows are not worth sharing."""


def merged_windows(windows: Sequence[TimeWindow], slices: Slices, merge: Merge) -> Iterator[pa.Table]:
    """Return the contents of each window that has something, in the order of their ends.

    ``slices`` returns the tables of the slices from one time to another, without those that are empty.
    """
    for group in _sharing(windows):
        if len(group) < _FEWEST.value:
            yield from (_joined(slices(window.start, window.end), merge) for window in group)
        else:
            yield from _shared(group, slices, merge)


def _sharing(windows: Sequence[TimeWindow]) -> Iterator[list[TimeWindow]]:
    group: list[TimeWindow] = []
    for window in windows:
        if group and (len(group) == _MOST.value or not group[-1].start <= window.start < group[0].end):
            yield group
            group = []
        group.append(window)
    if group:
        yield group


def _shared(group: Sequence[TimeWindow], slices: Slices, merge: Merge) -> Iterator[pa.Table]:
    lefts = _lefts(group, slices, merge)
    right: list[pa.Table] = []
    reached = group[0].end
    for window in group:
        brought = slices(reached, window.end)
        if brought:
            right = [_joined([*right, *brought], merge)]
        reached = window.end
        yield _joined([*lefts[window.start], *right], merge)


def _lefts(group: Sequence[TimeWindow], slices: Slices, merge: Merge) -> dict[int, list[pa.Table]]:
    """Return, by start, the slices from there to the first end, merged; an empty list if there are none."""
    found: dict[int, list[pa.Table]] = {}
    held: list[pa.Table] = []
    reached = group[0].end
    for start in sorted({window.start for window in group}, reverse=True):
        brought = slices(start, reached)
        if brought:
            held = [_joined([*brought, *held], merge)]
        found[start], reached = held, start
    return found


def _joined(tables: Sequence[pa.Table], merge: Merge) -> pa.Table:
    return tables[0] if len(tables) == 1 else merge(tables)
