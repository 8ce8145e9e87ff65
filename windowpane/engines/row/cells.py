"""Cells: all elements of one key and window at once, for triggers that answer to all of them alike.

Such a trigger neither reads elements nor counts them: its answer depends on the window and the clocks, which do not advance. So
it is called once for a cell. Nothing fires before the batch ends, so the windows of a key do not see each other, either.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from windowpane.arrays import Integers
from windowpane.engines.row.assigning import Assigned, assigns_by_time
from windowpane.engines.row.elements import Elements, Key
from windowpane.engines.row.plain import PlainWindowsOperator
from windowpane.kernels.grouping.running_positions import run_ends
from windowpane.kernels.sorting.packed_order import stable_order
from windowpane.windowing.panes import NO_PANES
from windowpane.windowing.spec import WindowSpec
from windowpane.windowing.triggers import (
    ContinuousEventTimeTrigger,
    ContinuousProcessingTimeTrigger,
    EachBatch,
    EndOfStreamTrigger,
    EventTimeTrigger,
    NeverTrigger,
    ProcessingTimeTrigger,
    TriggerResult,
)
from windowpane.windowing.triggers.base import checked_result
from windowpane.windowing.windows import Window

STEADY = (EventTimeTrigger, ProcessingTimeTrigger, EndOfStreamTrigger, NeverTrigger, EachBatch)
"""Triggers that answer to all elements of a window alike, and keep nothing but timers."""

_ALIKE = (*STEADY, ContinuousEventTimeTrigger, ContinuousProcessingTimeTrigger)
"""These, and those that keep what the first element of a window made them wait for."""


class _Cell(NamedTuple):
    """The elements of one key and window.

    Args:
        place: its number in the order in which windows were assigned.
        key: the key.
        window: the window.
        numbers: the elements, in order of arrival.
    """

    place: int
    key: Key
    window: Window
    numbers: Sequence[int]


class CellOperator(PlainWindowsOperator):
    """Takes elements by key and window."""

    @staticmethod
    def covers(spec: WindowSpec) -> bool:
        """Return whether windows are plain and the trigger answers to all elements of one alike."""
        return assigns_by_time(spec.assigner) and type(spec.firing_trigger) in _ALIKE and spec.panes == NO_PANES

    def take(self, elements: Elements) -> None:
        """Take the elements of a batch."""
        assigned = self._assigned(elements)
        if assigned is None:
            self.take_one_by_one(elements, np.arange(len(elements.codes)))
            return
        numbers = self._without(elements, assigned.are_in(self._firing_at_once(assigned)))
        self.counters.elements += len(numbers)
        self._report_all_late(elements, assigned, numbers)
        held_back = []
        for cell in _cells(elements, assigned, numbers):
            self._enter(cell.key.value, cell.key.encoded)
            answer = self._guarded(partial(self._take_cell, elements, cell))
            if answer.is_fire:
                held_back.append((cell, answer))
        for cell, answer in sorted(held_back, key=lambda each: each[0].place):
            self._refinements[cell.key.encoded, cell.window] = (cell.key.value, answer)

    def _firing_at_once(self, assigned: Assigned) -> set[int]:
        """Return the windows that fire at each element."""
        if not self._fires_at_once:
            return set()
        ended = (window.max_timestamp <= self.timers.watermark for window in assigned.windows)
        return {number for number, has_ended in enumerate(ended) if has_ended}

    def _take_cell(self, elements: Elements, cell: _Cell) -> TriggerResult:
        window, values = cell.window, [elements.values[number] for number in cell.numbers]
        self._element = (values[0],)
        with self._in_trigger.of(window):
            self._trigger.check_window(window)
        held = self._holding(window)
        try:
            held.add_all(values, map(elements.instants.__getitem__, cell.numbers))
        except Exception as error:
            self._fail(self._in_accumulator, window, held.culprit, error)
        held.store()
        with self._in_trigger.of(window):
            context, timestamp = self._trigger_context.at(window), elements.instants[cell.numbers[0]]
            answer = checked_result(self._trigger, self._trigger.on_element(values[0], timestamp, window, context), window)
        self._register_cleanup(window)
        return answer


def _cells(elements: Elements, assigned: Assigned, numbers: Integers) -> Iterator[_Cell]:
    """Yield the cells that elements make with the windows they are in, by key."""
    rows, windows = _pairs(assigned, numbers)
    cells = elements.codes[rows] * len(assigned.windows) + windows
    order = stable_order(cells)
    ends = run_ends(cells[order]) + 1
    found = rows[order].tolist()
    for start, end in pairwise([0, *ends.tolist()]):
        place = int(order[start])
        key, window = elements.keys[elements.codes[rows[place]]], assigned.windows[windows[place]]
        yield _Cell(place, key, window, found[start:end])


def _pairs(assigned: Assigned, numbers: Integers) -> tuple[Integers, Integers]:
    """Return, for each element and window it is in, the element and the window, in the order of the operator."""
    lengths = np.array([len(live) for live in assigned.live], np.int64)
    flat = np.array([window for live in assigned.live for window in live], np.int64)
    kinds = assigned.kinds[numbers]
    counts = lengths[kinds]
    within = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
    firsts = np.repeat((np.cumsum(lengths) - lengths)[kinds], counts)
    return np.repeat(numbers, counts), flat[firsts + within]
