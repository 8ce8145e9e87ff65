"""What panes hold, and what their firings see: here one row of partials a pane.

Elements of one pane, after its contents before the batch, are cut into pieces at what happens to it::

    held      batch
    x x x |   x x F x x x x F x x         F: the trigger fires
    piece 0-------|piece 1--|piece 2

A firing sees a range of pieces, from the first one or the one behind the last purge. ``evicted_contents`` has what panes hold
where an evictor needs more.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from windowpane.arrays import Integers, Mask
from windowpane.engines.common.evicting import argument_columns
from windowpane.engines.panes.trigger_program import FIRES, IS_DROPPED, PURGES, Arrived
from windowpane.engines.panes.windows import Elements
from windowpane.engines.program import Program
from windowpane.errors import present
from windowpane.hidden_columns import SLICE, TIME, hidden
from windowpane.kernels.grouping.grouped_fold import GroupedFold
from windowpane.kernels.grouping.range_merge import Ranges, fold_groups, merge_ranges
from windowpane.kernels.grouping.running_positions import run_ends, run_starts
from windowpane.kernels.packed_order import stable_order

_PANE = hidden("pane")


class Held(NamedTuple):
    """Rows of contents, and the pane that each is of; ``None`` where there never was one."""

    rows: pa.Table | None
    panes: Integers

    def of(self, panes: Mask) -> Held:
        return self.where(panes[self.panes])

    def where(self, wanted: Mask) -> Held:
        return self if self.rows is None or wanted.all() else Held(self.rows.filter(pa.array(wanted)), self.panes[wanted])


class Taken(NamedTuple):
    """What a batch made of the contents of panes."""

    panes: Integers  # the pane of each firing; those of one pane in order
    elements: Integers  # the element at which each fires
    bits: Integers  # what happens there
    partials: pa.Table  # what each shows
    kept: Held  # the contents afterwards

    def at(self, firings: Integers) -> Taken:
        """Return some firings, and what all leave."""
        partials = self.partials.take(pa.array(firings))
        return Taken(self.panes[firings], self.elements[firings], self.bits[firings], partials, self.kept)


class Contents(ABC):
    """The contents of panes.

    Attributes:
        columns: the columns of a row.
        partials: the columns of partials.
        prunes: whether it is known of rows before a firing that none sees them.
        has_one_row: whether a pane that holds something has exactly one row.
        fires_at_any_time: whether it is known what a firing now would see.
    """

    has_one_row = prunes = False
    fires_at_any_time = True

    def __init__(self, program: Program, fold: GroupedFold) -> None:
        self.program = program
        self.fold = fold
        self.partials = self.columns = list(fold.columns)

    @abstractmethod
    def take(self, held: Held, arrived: Arrived, bits: Integers, counts: Integers) -> Taken:
        """Return what fires and what stays of what panes held and what arrives; ``bits``: what happens, by pane and in order."""

    @abstractmethod
    def fire(self, held: Held, panes: Integers, is_filled: Mask) -> tuple[pa.Table, Held]:
        """Return what firings see that clocks cause, and what they leave; their ``panes`` are neighbours in time.

        What stands for those that see none, by ``is_filled``, is never read.
        """

    def merged(self, held: Held) -> Held:
        """Return contents that batches have appended as one batch would have written them."""
        return held

    def of(self, elements: Elements) -> pa.Table:
        """Return what is appended of elements."""
        return elements.columns(self.columns)

    def survivors(self, held: Held) -> Mask:
        """Return what of contents a firing to come may see."""
        return np.ones(len(held.panes), bool)


class FoldedContents(Contents):
    """One row of partials a pane."""

    has_one_row = True

    def __init__(self, program: Program, fold: GroupedFold) -> None:
        super().__init__(program, fold)
        self._arguments = argument_columns(program, fold) or [TIME]

    def take(self, held: Held, arrived: Arrived, bits: Integers, counts: Integers) -> Taken:
        order, panes = arrived.by_pane.order, arrived.by_pane.groups
        if (bits & IS_DROPPED).any():
            is_taken = bits & IS_DROPPED == 0
            order, panes, bits = order[is_taken], panes[is_taken], bits[is_taken]
        pieces, lasts = self._pieces(arrived.elements, order, panes, bits)
        before = len(held.panes)
        panes, bits = np.append(held.panes, panes[lasts]), np.append(np.zeros(before, np.int64), bits[lasts])
        in_order = stable_order(panes)
        rows = pieces if held.rows is None else pa.concat_tables([held.rows, pieces])
        atoms, panes, bits = rows.take(pa.array(in_order)), panes[in_order], bits[in_order]
        begins = run_starts(panes, bits & PURGES > 0)
        fired, ends = np.flatnonzero(bits & FIRES > 0), run_ends(panes)
        ends = ends[bits[ends] & PURGES == 0]
        is_shown = bits[ends] & FIRES > 0  # what stays is what the pane has just shown
        ranges = np.append(fired, ends[~is_shown])
        merged = merge_ranges(self.fold, atoms, Ranges(begins[ranges], ranges))
        places = np.searchsorted(fired, ends)
        places[~is_shown] = np.arange(len(fired), len(ranges))
        kept = Held(merged.take(pa.array(places)), panes[ends])
        at = np.append(np.full(before, -1), order[lasts])[in_order]
        return Taken(panes[fired], at[fired], bits[fired], merged.slice(0, len(fired)), kept)

    def fire(self, held: Held, panes: Integers, is_filled: Mask) -> tuple[pa.Table, Held]:
        rows = np.zeros(int(panes.max(initial=-1)) + 1, np.int64)
        known = held.panes < len(rows)
        rows[held.panes[known]] = np.flatnonzero(known)
        return present(held.rows, "panes were read").take(pa.array(rows[panes], mask=~is_filled)), held

    def merged(self, held: Held) -> Held:
        if held.rows is None or len(held.panes) < 2:
            return held
        merged = self.fold.merge([held.rows.append_column(_PANE, pa.array(held.panes))], [_PANE])
        return Held(merged.select(self.columns), merged[_PANE].to_numpy())

    def _pieces(self, elements: Elements, order: Integers, panes: Integers, bits: Integers) -> tuple[pa.Table, Integers]:
        """Return the partials of pieces, and the last element of each; elements that are partials are pieces themselves."""
        if SLICE in elements.rows.column_names:
            return elements.columns(self.columns).take(pa.array(order)), np.arange(len(order))
        begins = run_starts(panes) == np.arange(len(panes))
        begins[1:] |= bits[:-1] & (FIRES | PURGES) > 0
        numbers = np.cumsum(begins) - 1
        rows, lasts = elements.columns(self._arguments), run_ends(numbers)
        if len(order) < rows.num_rows:
            rows = rows.take(pa.array(order))
        else:
            in_order, numbers = numbers, np.empty_like(numbers)
            numbers[order] = in_order
        return fold_groups(self.fold, rows, numbers).select(self.columns), lasts


class MergedContents(FoldedContents):
    """The same where panes fire once a batch, after all of its rows, which come as partials."""

    def take(self, held: Held, arrived: Arrived, bits: Integers, counts: Integers) -> Taken:
        parts = [arrived.elements.columns(self.columns).append_column(_PANE, pa.array(arrived.panes))]
        if held.rows is not None:
            parts.insert(0, held.rows.append_column(_PANE, pa.array(held.panes)))
        merged = self.fold.merge(parts, [_PANE])
        panes, partials, bits = merged[_PANE].to_numpy(), merged.select(self.columns), bits[: merged.num_rows]
        kept = Held(partials, panes).of(np.full(len(counts), not (bits & PURGES).any()))
        return Taken(panes, np.arange(len(panes)), bits, partials, kept)
