"""Cells: all elements of one key and window at once, for triggers that answer to all of them alike.

Such a trigger neither reads elements nor counts them: its answer depends on the window and the clocks, which do not advance. So
it is called once for a cell. Nothing fires before the batch ends, so the windows of a key do not see each other, either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from windowpane.arrays import Integers
from windowpane.arrays.values import Value
from windowpane.engines.row.assigning import Assigned, assigns_by_time
from windowpane.engines.row.contents import RunBuffer
from windowpane.engines.row.elements import Elements, Key
from windowpane.engines.row.grouped import PlainWindowsOperator
from windowpane.errors import MistakeError
from windowpane.kernels.grouping.running_positions import run_ends
from windowpane.kernels.packed_order import stable_order
from windowpane.operators.window.contents import FoldedContents
from windowpane.sizes import Size
from windowpane.state.column_runs import BatchColumns
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


FEWEST_ROWS_OF_RUNS = Size("rows of a cell worth storing by column", 8, (1, 3))
"""Where cells have fewer, on average, their rows are stored as they are."""


class _Cell(NamedTuple):
    """The elements of one key and window."""

    place: int  # its number in the order in which windows were assigned
    key: Key
    window: Window
    first: int  # the first of its elements
    start: int  # where its elements begin among those of all cells
    end: int  # where they end


@dataclass(frozen=True)
class _Cells:
    """The cells of some elements, by key."""

    elements: Elements  # the elements of the batch
    windows: Sequence[Window]  # the windows that they are in
    pairs: Integers  # for each cell in order, and in it for each of its elements in order of arrival: the number of the element
    window_numbers: Integers  # the number of the window of each
    places: Integers  # its place in the order in which windows were assigned
    starts: Integers  # where each cell begins

    def __iter__(self) -> Iterator[_Cell]:
        firsts = self.pairs[self.starts]
        ends = np.append(self.starts[1:], len(self.pairs))[: len(self.starts)]
        numbers = zip(
            self.places[self.starts].tolist(),
            self.elements.codes[firsts].tolist(),
            self.window_numbers[self.starts].tolist(),
            firsts.tolist(),
            self.starts.tolist(),
            ends.tolist(),
            strict=True,
        )
        for place, code, window, first, start, end in numbers:
            yield _Cell(place, self.elements.keys[code], self.windows[window], first, start, end)


class CellOperator(PlainWindowsOperator):
    """Takes elements by key and window."""

    _at_element: Callable[[], Value] | None = None
    """Returns the element being taken, for errors."""

    @staticmethod
    def covers(spec: WindowSpec) -> bool:
        """Return whether windows are plain and the trigger answers to all elements of one alike."""
        return assigns_by_time(spec.assigner) and type(spec.firing_trigger) in _ALIKE and spec.panes == NO_PANES

    def take(self, elements: Elements) -> None:
        assigned = self._assigned(elements)
        if assigned is None:
            self.take_one_by_one(elements, np.arange(len(elements.codes)))
            return
        numbers = self._without(elements, assigned.are_in(self._firing_at_once(assigned)))
        self.counters.elements += len(numbers)
        self._report_all_late(elements, assigned, numbers)
        held_back = []
        cells = _cells(elements, assigned, numbers)
        add = self._adder(cells)
        for cell in cells:
            self._enter(cell.key.value, cell.key.encoded)
            self._element = None
            self._at_element = partial(elements.value, cell.first)
            answer = self._guarded(partial(self._take_cell, elements, cell, add))
            if answer.is_fire:
                held_back.append((cell, answer))
        self._at_element = None
        for cell, answer in sorted(held_back, key=lambda each: each[0].place):
            self._refinements[cell.key.encoded, cell.window] = (cell.key.value, answer)

    def _firing_at_once(self, assigned: Assigned) -> set[int]:
        if not self._fires_at_once:
            return set()
        ended = (window.max_timestamp <= self.timers.watermark for window in assigned.windows)
        return {number for number, has_ended in enumerate(ended) if has_ended}

    def _adder(self, cells: _Cells) -> Callable[[_Cell], None]:
        """Return what adds the elements of a cell of the current key to its window."""
        columns = self._columns(cells)
        if columns is not None:
            return lambda cell: self._run_buffer(cell.window).store_run(columns.run(cell.start, cell.end))
        values, instants, numbers = cells.elements.values, cells.elements.instants, cells.pairs.tolist()
        return lambda cell: self._add_rows(values, instants, cell.window, numbers[cell.start : cell.end])

    def _columns(self, cells: _Cells) -> BatchColumns | None:
        """Return the elements by column, ``None`` where they are to be added as they are."""
        if isinstance(self._contents, FoldedContents) or len(cells.pairs) < FEWEST_ROWS_OF_RUNS.value * len(cells.starts):
            return None
        times = cells.elements.times if self.spec.evictor is not None else None
        try:
            return BatchColumns(cells.elements.seen, cells.pairs, cells.starts, times)
        except (OverflowError, ValueError):
            return None  # a value that Python has no type for: whoever makes the rows says so

    def _run_buffer(self, window: Window) -> RunBuffer:
        buffer = self._buffer(window)
        if not isinstance(buffer, RunBuffer):
            raise MistakeError("the cell is added to a list")
        return buffer

    def _add_rows(self, values: list[Value], instants: Sequence[int], window: Window, numbers: Sequence[int]) -> None:
        buffer = self._buffer(window)
        try:
            buffer.add_all(list(map(values.__getitem__, numbers)), map(instants.__getitem__, numbers))
        except Exception as error:
            self._fail(self._in_accumulator, window, buffer.culprit, error)
        buffer.store()

    def _take_cell(self, elements: Elements, cell: _Cell, add: Callable[[_Cell], None]) -> TriggerResult:
        window = cell.window
        with self._in_trigger.of(window):
            self._trigger.check_window(window)
        add(cell)
        with self._in_trigger.of(window):
            context, timestamp = self._trigger_context.at(window), elements.instants[cell.first]
            answer = checked_result(self._trigger, self._trigger.on_element(None, timestamp, window, context), window)
        self._register_cleanup(window)
        return answer

    def _where(self) -> dict[str, object]:
        return super()._where() or ({} if self._at_element is None else {"element": self._at_element()})


def _cells(elements: Elements, assigned: Assigned, numbers: Integers) -> _Cells:
    """Return the cells that elements make with the windows they are in, by key."""
    rows, windows = _pairs(assigned, numbers)
    cells = elements.codes[rows] * len(assigned.windows) + windows
    order = stable_order(cells)
    ends = run_ends(cells[order]) + 1
    return _Cells(elements, assigned.windows, rows[order], windows[order], order, np.concatenate(([0], ends))[:-1])


def _pairs(assigned: Assigned, numbers: Integers) -> tuple[Integers, Integers]:
    """Return, for each element and window it is in, the element and the window, in the order of the operator."""
    lengths = np.array([len(live) for live in assigned.live], np.int64)
    flat = np.array([window for live in assigned.live for window in live], np.int64)
    kinds = assigned.kinds[numbers]
    counts = lengths[kinds]
    within = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
    firsts = np.repeat((np.cumsum(lengths) - lengths)[kinds], counts)
    return np.repeat(numbers, counts), flat[firsts + within]
