"""Trigger programs: what is kept of the trigger of each pane, as one number, and what it answers when rows arrive.

A program answers for all panes of a step at once: one word of bits for each element, by pane and in order. Pieces of a batch end
where panes fire or are purged, whatever the program::

    Counting(2)                 held  x | batch  x F  x x F  x
    accumulating shows          first firing  held + 1st piece   second  held + 1st + 2nd
    discarding shows            first firing  held + 1st piece   second  2nd

``OncePerBatch`` and ``Counting`` are here; ``called`` has the program of every other trigger, which it calls.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from windowpane.arrays import Integers, Mask
from windowpane.engines.panes.windows import Elements
from windowpane.errors import MistakeError
from windowpane.hidden_columns import COUNT
from windowpane.kernels.grouping.running_positions import Grouped, grouped, run_ends
from windowpane.windowing.panes import NO_PANES
from windowpane.windowing.spec import WindowSpec
from windowpane.windowing.times import MAX
from windowpane.windowing.windows import Window

FIRES, PURGES, IS_DROPPED, IS_ON_TIME, IS_LAST, MAY_BE_EMPTY, IS_CLEARED = (1 << bit for bit in range(7))
"""What happens at one step, as bits.

``IS_DROPPED``: the trigger is finished, and takes no row. ``IS_CLEARED``: the window is over.
"""
NEW = 0
"""The number of a pane without rows."""


@dataclass(frozen=True)
class Arrived:
    """Rows that arrive at panes."""

    elements: Elements  # the rows
    panes: Integers  # the pane of each element
    ends: Integers  # the end of the window of each pane
    window: Callable[[int], Window]  # returns the window that has an end

    @cached_property
    def by_pane(self) -> Grouped:
        return grouped(self.panes)


class Opened(NamedTuple):
    """What elements make of panes without rows."""

    numbers: Integers  # the number of the pane after each
    bits: Integers  # what happens
    kinds: Integers  # the first element of each kind, whose panes are alike


class TriggerProgram(ABC):
    """One kind of trigger program."""

    # whether ``opened`` says what happens whatever a pane holds, so that rows are appended to panes that nobody reads; of what it
    # says of the rows of a pane, the first counts
    appends = False
    is_ordered = True  # whether the order of rows matters
    folds_rows = False  # whether all rows of a pane in a batch do what one of them does, so that they may come as one
    has_timers = False  # whether clocks call it, by the index of what is due; else windows end without it
    keeps_empty = False  # whether there may be something to keep of a pane that holds nothing

    def set_clocks(self, watermark: int, now: int) -> None:
        """Set the clocks, under which rows arrive then."""

    @abstractmethod
    def take(self, arrived: Arrived, numbers: Integers) -> tuple[Integers, Integers]:
        """Return what happens at each element, by pane and in order, and the number of each pane afterwards."""

    def opened(self, elements: Elements, window: Callable[[int], Window]) -> Opened:
        """Return what elements make of panes without rows, where the program appends."""
        raise MistakeError("the program reads panes")

    def numbers(self, rows: pa.Table) -> Integers:
        """Return the number of the pane of each row that ``beside`` has written."""
        return np.zeros(rows.num_rows, np.int64)

    def beside(self, rows: pa.Table, numbers: Integers) -> pa.Table:
        """Return rows of panes with what is kept of their triggers."""
        return rows

    def first_times(self, numbers: Integers, last_instants: Integers, event_time: bool) -> Integers:
        """Return when a clock is first due to call for each pane, given the last instants of the windows; ``MAX`` for never."""
        return np.full(len(numbers), MAX)

    def begun(self, window: Window) -> int:
        """Return the number of a pane whose rows another trigger has seen."""
        return NEW

    def in_words(self, numbers: Integers) -> pa.Array:
        """Return what is known of each pane, for people; NULL for nothing."""
        return pa.nulls(len(numbers), pa.string())

    def are_nothing(self, numbers: Integers) -> Mask:
        """Return which numbers say nothing that has to be kept."""
        are_nothing: Mask = numbers == NEW
        return are_nothing


class OncePerBatch(TriggerProgram):
    """Fires the panes that a batch has rows of, when all of them are in (``EachBatch``), so that their contents merge at once."""

    folds_rows = True
    is_ordered = False

    def __init__(self, spec: WindowSpec) -> None:
        self._answer = FIRES | PURGES * spec.purges
        self.keeps_empty = spec.purges and spec.panes != NO_PANES

    def take(self, arrived: Arrived, numbers: Integers) -> tuple[Integers, Integers]:
        return np.full(len(arrived.panes), self._answer), numbers


class Counting(TriggerProgram):
    """Fires at every so many elements, at least 1; the number of a pane is its count since."""

    def __init__(self, spec: WindowSpec, every: int) -> None:
        self._every = every
        self._answer = FIRES | PURGES * spec.purges
        self.keeps_empty = spec.purges and spec.panes != NO_PANES

    def take(self, arrived: Arrived, numbers: Integers) -> tuple[Integers, Integers]:
        groups, positions, after = arrived.by_pane.groups, arrived.by_pane.positions, numbers.copy()
        counts = (numbers[groups] + positions + 1) % self._every
        lasts = run_ends(groups)
        after[groups[lasts]] = counts[lasts]
        return np.where(counts == 0, self._answer, 0), after

    def numbers(self, rows: pa.Table) -> Integers:
        counts: Integers = np.minimum(rows[COUNT].to_numpy(), self._every - 1)  # it may have been a larger size
        return counts

    def beside(self, rows: pa.Table, numbers: Integers) -> pa.Table:
        return rows.append_column(COUNT, pa.array(numbers))

    def in_words(self, numbers: Integers) -> pa.Array:
        return pa.array([f"count {number} of {self._every}" for number in numbers.tolist()], pa.string())
