"""The contents of panes under a count trigger with an evictor, and which of them its firings see.

Row layout of the contents, besides the key columns and the segment, in arrival order within a pane: ``EvictedElements`` the
columns of each element; ``EvictedPieces``, where the evictor counts, too, the partials of runs of elements that every firing
sees together, and their number in ``ROWS``. ``FRESH`` marks those after the last firing, so that their number is the count::

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
from windowpane.engines.panes.counted_contents import CountedContents, CountRule, Outcome, joined
from windowpane.engines.panes.touched import TouchedPanes
from windowpane.engines.program import Program
from windowpane.hidden_columns import FRESH, ROWS, TIME
from windowpane.kernels.eviction import NEVER, Firings, Survivors
from windowpane.kernels.grouping.grouped_fold import GroupedFold
from windowpane.kernels.grouping.range_merge import Ranges, fold_groups, merge_ranges
from windowpane.kernels.grouping.running_positions import Grouped, grouped, run_ends, run_starts
from windowpane.kernels.sorting.packed_order import stable_order


class EvictedElements(CountedContents):
    """All elements that evictions have left, in arrival order within their pane."""

    def __init__(self, program: Program, fold: GroupedFold, rule: CountRule, survivors: Survivors) -> None:
        """Evict by ``survivors`` at each firing."""
        super().__init__(program, fold, rule)
        self._survivors = survivors
        self._columns = kept_columns(program, fold)

    def take(self, touched: TouchedPanes) -> Outcome:
        sorted_, rows = self._sequence(touched)
        is_fresh = rows[FRESH].to_numpy(zero_copy_only=False)
        times = rows[TIME].to_numpy() if TIME in self._columns else sorted_.positions
        panes, is_new = sorted_.groups, sorted_.order >= len(touched.held_panes)
        fires = is_new & (_counts(is_fresh.astype(np.int64), panes) % self._rule.every == 0)
        fired = np.flatnonzero(fires)
        firings = Firings(_list_begins(fires, panes, self._rule.purges)[fired], fired)
        partials = self._seen(rows, times, firings, _previous(firings.firsts, fired))
        if self._rule.purges and self._program.spec.evicts_after:
            self._survivors.kept(times, firings)  # the evictor reads purged elements, too, and may refuse them
        last_firings = _last_firings(touched, panes, fired)
        is_later = np.arange(len(panes)) > last_firings[panes]
        kept = is_later if self._rule.purges else is_later | self._surviving(times, panes, last_firings)
        rows = joined(touched.keys, panes, rows.drop_columns([FRESH]).append_column(FRESH, pa.array(is_fresh & is_later)))
        numbers = sorted_.order[fired] - len(touched.held_panes)
        results = joined(touched.keys, panes[fired], partials)
        return Outcome(results, numbers, rows.filter(pa.array(kept)), len(run_ends(panes[kept])))

    def _seen(self, rows: pa.Table, times: Integers, firings: Firings, previous: Integers) -> pa.Table:
        if self._program.spec.evicts_after:
            return self._survivors.fold_before_eviction(self._fold, rows, times, firings, previous)
        return self._survivors.fold(self._fold, rows, times, firings)

    def _sequence(self, touched: TouchedPanes) -> tuple[Grouped, pa.Table]:
        """Return the elements held before and the new ones, by pane and in order."""
        columns = self._columns or [TIME]
        new = timed(self._program, touched.elements.columns(columns))
        new = new.append_column(FRESH, pa.array(np.ones(new.num_rows, bool)))
        held = [] if touched.held is None else [touched.held.select(new.column_names)]
        sorted_ = grouped(np.concatenate([touched.held_panes, touched.element_panes]))
        return sorted_, pa.concat_tables([*held, new]).take(pa.array(sorted_.order))

    def _surviving(self, times: Integers, panes: Integers, last_firings: Integers) -> Mask:
        lasts = np.sort(last_firings[last_firings >= 0])
        return self._survivors.kept(times, Firings(run_starts(panes)[lasts], lasts))


class _Atoms(NamedTuple):
    """The pieces held and the new ones, by pane and in order; a new one may continue the last one held.

    Args:
        partials: the partials of each.
        panes: its pane.
        rows: its number of elements.
        is_fresh: whether they arrived after the last firing before the batch.
        elements: its last element, -1 for pieces held.
    """

    partials: pa.Table
    panes: Integers
    rows: Integers
    is_fresh: Mask
    elements: Integers


class EvictedPieces(CountedContents):
    """Partials of pieces of the last ``most`` elements; no boundary of a firing falls within a piece.

    A pane fires at multiples of the count, and then sees the elements after a multiple less ``most``: pieces as long as the
    greatest common divisor of the two are never cut.
    """

    def __init__(self, program: Program, fold: GroupedFold, rule: CountRule, most: int) -> None:
        """Keep the last ``most`` elements at each firing."""
        super().__init__(program, fold, rule)
        self._most = most
        self._length = gcd(rule.every, most)

    def take(self, touched: TouchedPanes) -> Outcome:
        atoms = self._atoms(touched)
        panes, places, ends = atoms.panes, np.arange(len(atoms.panes)), np.cumsum(atoms.rows)
        counts = _counts(np.where(atoms.is_fresh, atoms.rows, 0), panes)
        fires = (atoms.elements >= 0) & (counts % self._rule.every == 0)
        fired = np.flatnonzero(fires)
        begins = _list_begins(fires, panes, self._rule.purges)
        firsts = np.maximum(begins, np.searchsorted(ends - atoms.rows, ends - self._most))
        last_firings = _last_firings(touched, panes, fired)[panes]
        is_later = places > last_firings
        kept = is_later if self._rule.purges else is_later | (places >= firsts[last_firings])
        pieces = self._whole_pieces(np.flatnonzero(kept), panes, ends - atoms.rows)
        ranges = Ranges(np.append(firsts[fired], pieces.firsts), np.append(fired, pieces.lasts))
        merged = merge_ranges(self._fold, atoms.partials, ranges)
        rows = joined(touched.keys, panes[pieces.lasts], merged.slice(len(fired)))
        rows = rows.append_column(FRESH, pa.array((atoms.is_fresh & is_later)[pieces.lasts]))
        rows = rows.append_column(ROWS, pa.array(ends[pieces.lasts] - (ends - atoms.rows)[pieces.firsts]))
        results = joined(touched.keys, panes[fired], merged.slice(0, len(fired)))
        return Outcome(results, atoms.elements[fired], rows, len(run_ends(panes[pieces.lasts])))

    def _atoms(self, touched: TouchedPanes) -> _Atoms:
        held, names = touched.held, list(self._fold.columns)
        sizes, is_fresh = np.zeros(0, np.int64), np.zeros(0, bool)
        if held is not None:
            sizes, is_fresh = held[ROWS].to_numpy(), held[FRESH].to_numpy(zero_copy_only=False)
        counts = np.zeros(touched.count, np.int64)
        np.add.at(counts, touched.held_panes[is_fresh], sizes[is_fresh])
        new = self._new_pieces(touched, counts)
        panes = np.append(touched.held_panes, new.panes)
        order = stable_order(panes)
        partials = pa.concat_tables([*([] if held is None else [held.select(names)]), new.partials.select(names)])
        elements = np.append(np.full(len(sizes), -1), new.elements)
        sizes, is_fresh = np.append(sizes, new.rows), np.append(is_fresh, new.is_fresh)
        return _Atoms(partials.take(pa.array(order)), panes[order], sizes[order], is_fresh[order], elements[order])

    def _new_pieces(self, touched: TouchedPanes, counts: Integers) -> _Atoms:
        """Return the elements in pieces, given the count of each pane before."""
        by_pane = grouped(touched.element_panes)
        begins = (by_pane.positions == 0) | ((counts[by_pane.groups] + by_pane.positions) % self._length == 0)
        pieces = np.empty(len(begins), np.int64)
        pieces[by_pane.order] = np.cumsum(begins) - 1
        columns = argument_columns(self._program, self._fold) or [TIME]
        partials = fold_groups(self._fold, touched.elements.columns(columns), pieces)
        firsts = np.flatnonzero(begins)
        lasts = np.append(firsts[1:], len(begins)) - 1
        is_fresh = np.ones(len(firsts), bool)
        return _Atoms(partials, by_pane.groups[firsts], lasts - firsts + 1, is_fresh, by_pane.order[lasts])

    def _whole_pieces(self, kept: Integers, panes: Integers, starts: Integers) -> Ranges:
        """Return the ranges of atoms that are one piece, of those kept; the kept atoms of a pane begin with a piece."""
        from_begin = starts[kept] - starts[kept[run_starts(panes[kept])]]
        firsts = np.flatnonzero(from_begin % self._length == 0)
        lasts = np.append(firsts[1:], len(kept))[: len(firsts)] - 1
        return Ranges(kept[firsts], kept[lasts])


def _list_begins(fires: Mask, panes: Integers, purges: bool) -> Integers:
    """Return, for each place, where the list begins that a firing there would see: a purge ends a list."""
    return run_starts(panes, fires if purges else None)


def _previous(begins: Integers, fired: Integers) -> Integers:
    """Return for each firing the one before it of the same list, which begins where its does."""
    previous = np.full(len(fired), NEVER)
    previous[1:] = np.where(begins[1:] == begins[:-1], fired[:-1], NEVER)
    return previous


def _last_firings(touched: TouchedPanes, panes: Integers, fired: Integers) -> Integers:
    """Return where each pane fires last, -1 if it does not; ``fired`` ascends."""
    lasts = np.full(touched.count, -1)
    lasts[panes[fired]] = fired
    return lasts


def _counts(weights: Integers, panes: Integers) -> Integers:
    """Return, at each place, the sum of the weights of its pane so far."""
    counts, begins = np.cumsum(weights), run_starts(panes)
    sums: Integers = counts - (counts[begins] - weights[begins])
    return sums
