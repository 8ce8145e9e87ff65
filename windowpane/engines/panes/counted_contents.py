"""What panes hold under a count trigger, and what its firings see.

Elements of one pane, after its contents before the batch::

    held      batch
    x x x |   x x F x x x x F x x         F: the count is reached, the trigger fires (here at every 5 elements)
    piece 0-------|piece 1--|piece 2

Row layout of the contents, besides the key columns and the segment: the partials of a pane and the ``COUNT`` since its last
firing. Where an evictor needs more than that, see ``counted_evictions``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from windowpane.arrays import Integers, Mask
from windowpane.engines.common.evicting import argument_columns
from windowpane.engines.panes.touched import TouchedPanes
from windowpane.engines.program import Program
from windowpane.hidden_columns import COUNT, TIME
from windowpane.kernels.grouping.grouped_fold import GroupedFold
from windowpane.kernels.grouping.range_merge import Ranges, fold_groups, merge_ranges
from windowpane.kernels.grouping.running_positions import grouped, run_ends, run_starts
from windowpane.kernels.sorting.packed_order import stable_order


@dataclass(frozen=True)
class CountRule:
    """Fire at every ``every`` elements, at least 1; drop the contents then if ``purges``."""

    every: int
    purges: bool


class Outcome(NamedTuple):
    """What a batch did to the panes it touched.

    Args:
        fired: keys and partials of each firing.
        elements: the element of the batch at which each fired.
        kept: the rows to keep, with keys and segments.
        kept_count: the number of panes these are of.
    """

    fired: pa.Table
    elements: Integers
    kept: pa.Table
    kept_count: int


class CountedContents(ABC):
    """The contents of panes whose trigger counts."""

    def __init__(self, program: Program, fold: GroupedFold, rule: CountRule) -> None:
        """Fold with ``fold`` what fires by ``rule``."""
        self._program = program
        self._fold = fold
        self._rule = rule

    @abstractmethod
    def take(self, touched: TouchedPanes) -> Outcome:
        """Return what fires and what stays when panes take the elements of a batch."""


class _Pieces(NamedTuple):
    """The elements of a batch, cut at the boundaries, by pane and in order.

    Args:
        partials: the partials of each piece.
        panes: its pane.
        last_elements: its last element.
        is_complete: whether the trigger fires there.
        is_first: whether it continues what its pane held.
        counts: by pane, the count after the batch.
    """

    partials: pa.Table
    panes: Integers
    last_elements: Integers
    is_complete: Mask
    is_first: Mask
    counts: Integers


class FoldedPartials(CountedContents):
    """One row of partials a pane, and its count."""

    def take(self, touched: TouchedPanes) -> Outcome:
        pieces = self._pieces(touched)
        atoms, panes, at = self._atoms(touched, pieces)
        firsts, is_over = np.arange(len(panes)), np.zeros(len(panes), bool)
        starts_anew = self._rule.purges & ~pieces.is_first
        firsts[at] = np.where(starts_anew, at, run_starts(panes)[at])
        is_over[at] = pieces.is_complete & self._rule.purges
        fired, kept = at[pieces.is_complete], run_ends(panes)
        kept = kept[~is_over[kept]]
        lasts = np.concatenate([fired, kept])
        merged = merge_ranges(self._fold, atoms, Ranges(firsts[lasts], lasts))
        rows = joined(touched.keys, panes[kept], merged.slice(len(fired)))
        rows = rows.append_column(COUNT, pa.array(pieces.counts[panes[kept]]))
        results = joined(touched.keys, panes[fired], merged.slice(0, len(fired)))
        return Outcome(results, pieces.last_elements[pieces.is_complete], rows, rows.num_rows)

    def _pieces(self, touched: TouchedPanes) -> _Pieces:
        every, counts = self._rule.every, np.zeros(touched.count, np.int64)
        if touched.held is not None:
            counts[touched.held_panes] = touched.held[COUNT].to_numpy()
        sorted_ = grouped(touched.element_panes)
        turns, places = np.divmod(counts[sorted_.groups] + sorted_.positions, every)
        begins = (sorted_.positions == 0) | (places == 0)
        pieces = np.empty(len(begins), np.int64)
        pieces[sorted_.order] = np.cumsum(begins) - 1
        columns = argument_columns(self._program, self._fold) or [TIME]
        partials = fold_groups(self._fold, touched.elements.columns(columns), pieces)
        ends = run_ends(np.cumsum(begins))
        counts[sorted_.groups] = (places + 1) % every  # that of the last element of each pane stays
        return _Pieces(partials, sorted_.groups[ends], sorted_.order[ends], places[ends] == every - 1, turns[ends] == 0, counts)

    def _atoms(self, touched: TouchedPanes, pieces: _Pieces) -> tuple[pa.Table, Integers, Integers]:
        """Return the contents before and the pieces, by pane and in order; the pane of each; and the place of each piece."""
        names = list(self._fold.columns)
        held = [] if touched.held is None else [touched.held.select(names)]
        panes = np.concatenate([touched.held_panes, pieces.panes])
        order = stable_order(panes)
        at = np.empty(len(order), np.int64)
        at[order] = np.arange(len(order))
        atoms = pa.concat_tables([*held, pieces.partials.select(names)]).take(pa.array(order))
        return atoms, panes[order], at[len(touched.held_panes) :]


def joined(keys: pa.Table, panes: Integers, columns: pa.Table) -> pa.Table:
    """Return the keys of panes beside other columns of theirs; a key may also be an argument."""
    joined = keys.take(pa.array(panes))
    for name in columns.column_names:
        if name not in joined.column_names:
            joined = joined.append_column(name, columns[name])
    return joined
