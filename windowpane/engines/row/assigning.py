"""Windows of all elements of a batch at once, where they depend on nothing but the time of an element.

The elements of one slice are in the same windows, and those of one moment of the clock are, too. So an assigner is called once
for each kind of element, and whether a window is over is computed once, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from windowpane.arrays import Integers, Mask
from windowpane.engines.common.slicing import slices_of
from windowpane.engines.row.elements import Elements
from windowpane.errors import WindowpaneError, present
from windowpane.windowing.assigners import (
    CalendarWindows,
    CumulateEventTimeWindows,
    GlobalWindows,
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
    WindowAssigner,
)
from windowpane.windowing.assigners.base import AssignerContext
from windowpane.windowing.assigners.tumbling import WindowStagger
from windowpane.windowing.times import MIN
from windowpane.windowing.windows import Window

_BY_TIME = (TumblingEventTimeWindows, SlidingEventTimeWindows, CumulateEventTimeWindows, CalendarWindows)
_BY_CLOCK = (TumblingProcessingTimeWindows, SlidingProcessingTimeWindows, GlobalWindows)


@dataclass(frozen=True)
class Assigned:
    """Which windows elements are in."""

    windows: Sequence[Window]  # the different windows
    kinds: Integers  # for each element its kind; those of one kind are in the same windows
    members: Sequence[Sequence[int]]  # for each kind the numbers of its windows, in the order of the assigner
    is_over: Sequence[bool]  # for each window whether it is over

    @cached_property
    def live(self) -> list[list[int]]:
        return [[number for number in members if not self.is_over[number]] for members in self.members]

    @cached_property
    def missed(self) -> list[list[Window]]:
        return [[self.windows[number] for number in members if self.is_over[number]] for members in self.members]

    def are_late(self) -> Mask:
        """Return which elements miss a window, or are in none."""
        late = [bool(missed) or not live for missed, live in zip(self.missed, self.live, strict=True)]
        return np.array(late, np.bool_)[self.kinds]

    def are_in(self, numbers: set[int]) -> Mask:
        """Return which elements are in one of some windows."""
        return np.array([not numbers.isdisjoint(live) for live in self.live], np.bool_)[self.kinds]


def assigns_by_time(assigner: WindowAssigner) -> bool:
    """Return whether the windows of an assigner depend on nothing but the time of an element."""
    if type(assigner) in _BY_TIME:
        return getattr(assigner, "stagger", WindowStagger.ALIGNED) is WindowStagger.ALIGNED
    return type(assigner) in _BY_CLOCK


def windows_by_time(
    assigner: WindowAssigner, elements: Elements, context: AssignerContext
) -> tuple[list[Window], Integers, list[list[int]]] | None:
    """Return the different windows of elements, the kind of each, and the windows of each kind.

    ``None`` where an element has no time or a window does not fit into int64: whoever takes that element says so.
    """
    try:
        kinds, found = _by_clock(assigner, elements, context) if type(assigner) in _BY_CLOCK else _by_slice(assigner, elements)
    except WindowpaneError:
        return None
    numbers: dict[Window, int] = {}
    members = [[numbers.setdefault(window, len(numbers)) for window in windows] for windows in found]
    return list(numbers), kinds, members


def _by_clock(assigner: WindowAssigner, elements: Elements, context: AssignerContext) -> tuple[Integers, list[Sequence[Window]]]:
    windows = assigner.assign_windows(None, int(elements.times[0]), context)
    return np.zeros(len(elements.times), np.int64), [windows]


def _by_slice(assigner: WindowAssigner, elements: Elements) -> tuple[Integers, list[Sequence[Window]]]:
    slices = present(slices_of(assigner), "the assigner has windows of slices")
    times = elements.times
    if (times == MIN).any():
        raise WindowpaneError("an element without a time")
    starts = slices.starts(times)
    distinct, kinds = np.unique(starts, return_inverse=True)
    found: list[Sequence[Window]] = [slices.windows_of(start) for start in distinct.tolist()]
    if slices.has_gaps:
        kinds = np.where(slices.covers(times, starts), kinds, len(found))
        found.append(())
    return kinds, found
