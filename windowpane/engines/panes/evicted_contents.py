"""The contents of panes under a trigger that counts with an evictor, and which of them its firings see.

A row of ``EvictedElements`` is an element, in order of arrival within its pane; of ``EvictedPieces``, where the evictor counts,
too, the partials of a run of elements that every firing sees together, and their number in ``ROWS``::

    count 4, keep the last 6:  pieces of 2      x x|x x F x x|x x F x x|x x F
                                                        [ last 6   ]
"""

from __future__ import annotations

from math import gcd
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from windowpane.arrays import Integers, Mask
from windowpane.engines.common.evicting import argument_columns, kept_columns, timed
from windowpane.engines.panes.folded_contents import Contents, Held, Taken
from windowpane.engines.panes.trigger_program import FIRES, Arrived
from windowpane.engines.panes.windows import Elements
from windowpane.engines.program import Program
from windowpane.errors import MistakeError, present
from windowpane.hidden_columns import ROWS, TIME
from windowpane.kernels.eviction import NEVER, Firings, LastSurvive, Survivors
from windowpane.kernels.grouping.grouped_fold import GroupedFold
from windowpane.kernels.grouping.range_merge import Ranges, fold_groups, merge_ranges
from windowpane.kernels.grouping.running_positions import grouped, run_ends, run_starts
from windowpane.kernels.keys.dense_codes import first_rows, number_codes
from windowpane.kernels.packed_order import stable_order


class EvictedElements(Contents):
    """All elements that evictions have left, in arrival order within their pane."""

    def __init__(self, program: Program, fold: GroupedFold, survivors: Survivors) -> None:
        super().__init__(program, fold)
        self._survivors, self._purges = survivors, program.spec.purges
        self._is_timed = TIME in (kept := kept_columns(program, fold))
        self.columns = kept or [TIME]
        is_last = isinstance(survivors, LastSurvive)
        self.prunes = not program.spec.evicts_after and (is_last or program.spec.assigner.is_event_time)

    def take(self, held: Held, arrived: Arrived, bits: Integers, counts: Integers) -> Taken:
        before = len(held.panes)
        new = self.of(arrived.elements)
        all_bits = np.zeros(before + len(bits), np.int64)
        all_bits[before + arrived.by_pane.order] = bits
        sorted_ = grouped(np.append(held.panes, arrived.panes))
        rows = new if held.rows is None else pa.concat_tables([held.rows, new])
        rows, panes = rows.take(pa.array(sorted_.order)), sorted_.groups
        times = rows[TIME].to_numpy() if self._is_timed else sorted_.positions
        fires = all_bits[sorted_.order] & FIRES > 0
        fired = np.flatnonzero(fires)
        firings = Firings(run_starts(panes, fires if self._purges else None)[fired], fired)
        partials = self._seen(rows, times, firings, _previous(firings.firsts, fired))
        if self._purges and self.program.spec.evicts_after:
            self._survivors.kept(times, firings)  # the evictor reads purged elements, too, and may refuse them
        last_firings = _last_firings(len(counts), panes, fired)
        stays = np.arange(len(panes)) > last_firings[panes]
        if not self._purges:
            stays |= self._surviving(times, panes, last_firings)
        kept = Held(rows.filter(pa.array(stays)), panes[stays])
        at = sorted_.order[fired]
        return Taken(panes[fired], at - before, all_bits[at], partials, kept)

    def fire(self, held: Held, panes: Integers, is_filled: Mask) -> tuple[pa.Table, Held]:
        sees = np.zeros(int(max(panes.max(initial=-1), held.panes.max(initial=-1))) + 1, bool)
        sees[panes] = True
        rows, elements = present(held.rows, "panes were read"), np.flatnonzero(sees[held.panes])
        by_pane = grouped(held.panes[elements])
        elements = elements[by_pane.order]
        lasts, rows = run_ends(by_pane.groups), rows.take(pa.array(elements))
        firings = Firings(run_starts(by_pane.groups)[lasts], lasts)
        times = rows[TIME].to_numpy() if self._is_timed else by_pane.positions
        partials = again = self._survivors.fold(self.fold, rows, times, firings)
        if self.program.spec.evicts_after:  # the first firing sees all, those behind it what it has left
            partials = fold_groups(self.fold, rows, number_codes(by_pane.groups))
        places, first = np.searchsorted(by_pane.groups[lasts], panes), first_rows(panes)[panes] == np.arange(len(panes))
        seen = pa.concat_tables([partials, again.select(partials.column_names)]).take(pa.array(places + len(lasts) * ~first))
        stays = ~sees[held.panes]
        stays[elements] = self._survivors.kept(times, firings)
        return seen, held.where(stays)

    def of(self, elements: Elements) -> pa.Table:
        return timed(self.program, elements.columns(self.columns))

    def survivors(self, held: Held) -> Mask:
        """Return what a firing may still see: what an evictor would take from fewer elements, it takes from more.

        Not so where elements without a time may be first, which keep a time evictor from evicting; and the first firing sees
        all elements where the evictor runs after it.
        """
        if held.rows is None or not self.prunes:
            return super().survivors(held)
        by_pane = grouped(held.panes)
        lasts = run_ends(by_pane.groups)
        times = held.rows[TIME].to_numpy()[by_pane.order] if self._is_timed else by_pane.positions
        stays = np.empty(len(held.panes), bool)
        stays[by_pane.order] = self._survivors.kept(times, Firings(run_starts(by_pane.groups)[lasts], lasts), fires=False)
        return stays

    def _seen(self, rows: pa.Table, times: Integers, firings: Firings, previous: Integers) -> pa.Table:
        if self.program.spec.evicts_after:
            return self._survivors.fold_before_eviction(self.fold, rows, times, firings, previous)
        return self._survivors.fold(self.fold, rows, times, firings)

    def _surviving(self, times: Integers, panes: Integers, last_firings: Integers) -> Mask:
        lasts = np.sort(last_firings[last_firings >= 0])
        return self._survivors.kept(times, Firings(run_starts(panes)[lasts], lasts))


class _Atoms(NamedTuple):
    """The pieces held and the new ones, by pane and in order; a new one may continue the last one held."""

    partials: pa.Table  # the partials of each
    panes: Integers  # its pane
    rows: Integers  # its number of elements
    bits: Integers  # what happens behind it
    elements: Integers  # its last element, -1 for pieces held


class EvictedPieces(Contents):
    """Partials of pieces of the last ``most`` elements; no boundary of a firing falls within a piece.

    A pane fires at multiples of the count, and then sees the elements after a multiple less ``most``: pieces as long as the
    greatest common divisor of the two are never cut.
    """

    fires_at_any_time = False

    def __init__(self, program: Program, fold: GroupedFold, every: int, most: int) -> None:
        super().__init__(program, fold)
        self._most, self._purges = most, program.spec.purges
        self._length = gcd(every, most)
        self.columns = [*self.partials, ROWS]

    def take(self, held: Held, arrived: Arrived, bits: Integers, counts: Integers) -> Taken:
        atoms = self._atoms(held, self._new_pieces(arrived, bits, counts))
        panes, places, ends = atoms.panes, np.arange(len(atoms.panes)), np.cumsum(atoms.rows)
        fires = atoms.bits & FIRES > 0
        fired, begins = np.flatnonzero(fires), run_starts(panes, fires if self._purges else None)
        firsts = np.maximum(begins, np.searchsorted(ends - atoms.rows, ends - self._most))
        last_firings = _last_firings(len(counts), panes, fired)[panes]
        stays = places > last_firings
        stays = stays if self._purges else stays | (places >= firsts[last_firings])
        pieces = self._whole_pieces(np.flatnonzero(stays), panes, ends - atoms.rows)
        ranges = Ranges(np.append(firsts[fired], pieces.firsts), np.append(fired, pieces.lasts))
        merged = merge_ranges(self.fold, atoms.partials, ranges)
        sizes = pa.array(ends[pieces.lasts] - (ends - atoms.rows)[pieces.firsts])
        kept = Held(merged.slice(len(fired)).append_column(ROWS, sizes), panes[pieces.lasts])
        return Taken(panes[fired], atoms.elements[fired], atoms.bits[fired], merged.slice(0, len(fired)), kept)

    def fire(self, held: Held, panes: Integers, is_filled: Mask) -> tuple[pa.Table, Held]:
        raise MistakeError("counts fire, no clocks")

    def _atoms(self, held: Held, new: _Atoms) -> _Atoms:
        if held.rows is None:
            return new
        panes, none = np.append(held.panes, new.panes), np.zeros(len(held.panes), np.int64)
        order = stable_order(panes)
        partials = pa.concat_tables([held.rows.select(self.partials), new.partials]).take(pa.array(order))
        columns = (held.rows[ROWS].to_numpy(), new.rows), (none, new.bits), (none - 1, new.elements)
        return _Atoms(partials, panes[order], *(np.append(*column)[order] for column in columns))

    def _new_pieces(self, arrived: Arrived, bits: Integers, counts: Integers) -> _Atoms:
        by_pane = arrived.by_pane
        begins = (by_pane.positions == 0) | ((counts[by_pane.groups] + by_pane.positions) % self._length == 0)
        pieces = np.empty(len(begins), np.int64)
        pieces[by_pane.order] = np.cumsum(begins) - 1
        columns = argument_columns(self.program, self.fold) or [TIME]
        partials = fold_groups(self.fold, arrived.elements.columns(columns), pieces).select(self.partials)
        firsts = np.flatnonzero(begins)
        lasts = np.append(firsts[1:], len(begins)) - 1
        return _Atoms(partials, by_pane.groups[firsts], lasts - firsts + 1, bits[lasts], by_pane.order[lasts])

    def _whole_pieces(self, kept: Integers, panes: Integers, starts: Integers) -> Ranges:
        """Return the ranges of atoms that are one piece, of those kept; the kept atoms of a pane begin with a piece."""
        from_begin = starts[kept] - starts[kept[run_starts(panes[kept])]]
        firsts = np.flatnonzero(from_begin % self._length == 0)
        lasts = np.append(firsts[1:], len(kept))[: len(firsts)] - 1
        return Ranges(kept[firsts], kept[lasts])


def _previous(begins: Integers, fired: Integers) -> Integers:
    """Return for each firing the one before it of the same list, which begins where its does."""
    previous = np.full(len(fired), NEVER)
    previous[1:] = np.where(begins[1:] == begins[:-1], fired[:-1], NEVER)
    return previous


def _last_firings(count: int, panes: Integers, fired: Integers) -> Integers:
    """Return where each pane fires last, -1 if it does not; ``fired`` ascends."""
    lasts = np.full(count, -1)
    lasts[panes[fired]] = fired
    return lasts
